"""Decides which instants leave the active timeline for the archive, and what keeps the others. Pure
(TimelineArchiverV1, TimelineArchiverV2, ArchivalUtils). listing.py finds what files of the table say against it.

A reader takes an instant before the first commit of the timeline for committed, without a look into the archive. So
archival starts at the oldest commit and leaves no holes. It must not pass an instant whose absence would change what is
visible: a pending instant, an instant whose files must stay invisible, or one whose replaced file groups still exist.

In layout 2 no older instant of any action stays on it. Hudi 1.2 takes an instant that is not on the timeline for
pending, unless it is older than the whole timeline. The compactions that Hudi plans would then lack its log files
(CompletionTimeQueryViewV2.cursorInstant).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from itertools import takewhile
from typing import Final

from hudi_core.config.services.compaction_config import COMPACTION_DELTA_COMMITS
from hudi_core.config.services.retention_config import (
    ARCHIVE_BEYOND_SAVEPOINT,
    ARCHIVE_ON_CLEAN,
    KEEP_LATEST_FILE_VERSIONS,
    KEEP_MAX,
    KEEP_MIN,
    ArchiveConfig,
)
from hudi_core.frozen import dataclass
from hudi_core.history.archived_instant import InstantKey, key_of
from hudi_core.timeline.actions.clean import LastClean
from hudi_core.timeline.instant import REPLACING_ACTIONS, WRITE_ACTIONS, Action, Instant
from hudi_core.timeline.timeline import Timeline

_NEVER_BY_HUDI: Final = (Action.INDEXING, Action.RESTORE)
"""Completed actions that Hudi's own archival never removes from the timeline."""


@dataclass(frozen=True, slots=True)
class ArchiveInputs:
    """The inputs of a plan. `timeline` is all of it, with requested times. `cleaner_keeps` is the earliest commit that
    the cleaner would retain, `last_clean` the last completed clean with content. `metadata_compaction` is the last
    completed compaction of the metadata table; it counts where `has_metadata_table`. `rolling_back` are the targets of
    pending rollbacks. With `counts_cleans`, as in layout 1, cleans and rollbacks are archived by their own number;
    otherwise those before the last archived commit are. `interrupted` are instants that an interrupted archival left.
    """

    timeline: Timeline
    merge_on_read: bool = False
    counts_cleans: bool = True
    clean_policy: str = ""
    cleaner_keeps: str | None = None
    last_clean: LastClean | None = None
    has_metadata_table: bool = False
    metadata_compaction: str | None = None
    rolling_back: frozenset[str] = frozenset()
    interrupted: frozenset[InstantKey] = frozenset()

    def left_by_interruption(self, instants: Iterable[Instant]) -> int:
        """Returns how many of the first `instants` an interrupted archival left. They go, also below the maximum."""
        return sum(1 for _ in takewhile(lambda item: key_of(item) in self.interrupted, instants))


@dataclass(frozen=True, slots=True)
class Findings:
    """The findings, by requested time. `uncleaned` has replacecommits, each with a replaced file. `orphans` has
    instants that never completed, with data files. `hidden` has commits after a savepoint, each with one of its files.
    """

    uncleaned: Mapping[str, str] = field(default_factory=dict)
    orphans: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    hidden: Mapping[str, str] = field(default_factory=dict)


NOT_LISTED: Final = Findings()
"""The findings before files are looked at: only the conditions on the timeline keep commits."""


@dataclass(frozen=True, slots=True)
class Hold:
    """Keeps the commits requested at `since` or later. `reason` names the option or action that would change it."""

    since: str
    reason: str


def _holds(inputs: ArchiveInputs, config: ArchiveConfig, findings: Findings) -> Iterator[Hold]:
    timeline = inputs.timeline
    yield from _of_pending(inputs)
    first_saved = min(timeline.savepoints(), default=None)
    if first_saved is not None and not config.beyond_savepoint:
        remedy = f"delete the savepoint, or set {ARCHIVE_BEYOND_SAVEPOINT.name}=true"
        yield Hold(first_saved, f"commit {first_saved} is savepointed: {remedy}")
    yield from _for_services(inputs, config)
    for time, path in findings.uncleaned.items():
        what = f"{path} is still there, whose file group replacecommit {time} replaced"
        yield Hold(time, f"{what}: run a clean (a savepoint may keep the file)")
    for time, paths in findings.orphans.items():
        # The last commit before an orphan's instant stays: so the instant is after the timeline's start, and not on it.
        before = timeline.commits().before(time).last()
        reason = f"{paths[0]} is of instant {time}, which never completed: delete the file, or roll the instant back"
        yield Hold(time if before is None else before.requested_time, reason)
    # For readers an instant that is missing after the first commit of the timeline never committed. In Hudi the rows
    # of an instant between a savepointed commit and the next one are then gone.
    for time, path in findings.hidden.items():
        why = f"readers would not see it behind a savepointed commit ({ARCHIVE_BEYOND_SAVEPOINT.name})"
        remedy = "delete the savepoint, or wait for a clean"
        yield Hold(time, f"{path} of commit {time} is still there, and {why}: {remedy}")


def _of_pending(inputs: ArchiveInputs) -> Iterator[Hold]:
    """Yields the holds of pending instants. Hudi checks pending writes only (hudi#4163)."""
    timeline, pending = inputs.timeline, inputs.timeline.pending()
    restore = pending.of_actions(Action.RESTORE).first()
    if restore is not None:  # a restore reads all commits, and removes some
        yield Hold("", f"restore {restore.requested_time} is pending: run it to its end first")
    target = min(inputs.rolling_back, default=None)
    if target is not None:  # a completed target must not become older than the timeline
        yield Hold(target, f"a rollback of {target} is pending: run it to its end first")
    write = pending.of_actions(*WRITE_ACTIONS).first()
    if write is not None:  # without the last commit before it, it would count as committed
        before = timeline.commits().before(write.requested_time).last() or write
        reason = f"{write.action} {write.requested_time} is pending: complete it or roll it back"
        yield Hold(before.requested_time, reason)
    other = pending.of_actions(Action.CLEAN, Action.INDEXING).first()
    if other is not None and inputs.merge_on_read and not inputs.counts_cleans:
        # This instant stays, and would be older than archived instants with log files.
        reason = f"{other.action} {other.requested_time} is pending: run it, or unschedule it"
        yield Hold(other.requested_time, reason)


def _for_services(inputs: ArchiveInputs, config: ArchiveConfig) -> Iterator[Hold]:
    yield from filter(None, (_for_compaction(inputs, config), _replaced(inputs), _for_metadata(inputs)))
    if config.block_on_clean and inputs.last_clean is not None and inputs.last_clean.earliest:
        since = inputs.last_clean.earliest
        yield Hold(since, f"the last clean kept the files since {since} ({ARCHIVE_ON_CLEAN.name})")


def _for_compaction(inputs: ArchiveInputs, config: ArchiveConfig) -> Hold | None:
    """Keeps delta commits that the next compaction counts (CompactionUtils.getEarliestInstantToRetainForCompaction)."""
    if not inputs.merge_on_read or config.delta_commits is None:
        return None
    deltas = inputs.timeline.of_actions(Action.DELTA_COMMIT)
    last = inputs.timeline.commits().of_actions(Action.COMMIT).last()
    if last is not None:
        since = last.requested_time
        deltas = deltas.filter(lambda item: item.completed_at > since and item.requested_time != since)
    first = last or deltas.first()
    if first is None:
        return None
    kept = first if len(deltas) < config.delta_commits else deltas.instants[len(deltas) - config.delta_commits]
    since = kept.requested_time
    return Hold(
        since, f"the delta commits since {since} count towards the next compaction ({COMPACTION_DELTA_COMMITS.name})"
    )


def _replaced(inputs: ArchiveInputs) -> Hold | None:
    """Keeps commits from the first replacecommit without a later clean on (getEarliestInstantToRetainForClustering)."""
    replacing = inputs.timeline.of_actions(*REPLACING_ACTIONS)
    last = inputs.last_clean
    if last is not None:
        bound = _savepointed_replaced(inputs, last) or last.earliest or last.requested_time
        replacing = replacing.filter(lambda item: item.requested_time >= bound)
    first = replacing.first()
    if first is None:
        return None
    replaced = f"that {first.action} {first.requested_time} replaced"
    return Hold(first.requested_time, f"no clean has removed the file groups yet {replaced}: run one")


def _savepointed_replaced(inputs: ArchiveInputs, last: LastClean) -> str | None:
    """Returns the earliest savepoint that keeps replaced file groups (getEarliestReplacedSavepointInClean)."""
    saved = min(last.savepoints, default="")
    if inputs.clean_policy == KEEP_LATEST_FILE_VERSIONS or not saved or not last.earliest or last.earliest <= saved:
        return None
    replaced = inputs.timeline.completed().of_actions(Action.REPLACE_COMMIT)
    return saved if any(saved <= item.requested_time <= last.earliest for item in replaced) else None


def _for_metadata(inputs: ArchiveInputs) -> Hold | None:
    """Keeps the commits since the last compaction of the metadata table. Until a compaction merges them, the table's
    log blocks count by the data timeline (getValidInstantTimestamps).
    """
    if not inputs.has_metadata_table:
        return None
    compacted = inputs.metadata_compaction
    when = "was never compacted" if compacted is None else f"was last compacted at {compacted}"
    option = "hoodie.metadata.compact.max.delta.commits"
    reason = f"the metadata table {when}: Hudi's next writes do it, or hudictl metadata update ({option})"
    if compacted is None:
        return Hold("", reason)
    if inputs.counts_cleans:
        return Hold(compacted, reason)
    later = inputs.timeline.commits().filter(
        lambda item: item.completed_at > compacted and item.requested_time != compacted
    )
    first = later.first()
    return None if first is None else Hold(first.requested_time, reason)


@dataclass(frozen=True, slots=True)
class ArchivePlan:
    """The instants to archive, in order. `reason` says what keeps the others, or why there are none."""

    instants: tuple[Instant, ...]
    reason: str

    @property
    def commits(self) -> tuple[Instant, ...]:
        return Timeline(item for item in self.instants if item.action in WRITE_ACTIONS).instants


def plan_archival(inputs: ArchiveInputs, config: ArchiveConfig, findings: Findings = NOT_LISTED) -> ArchivePlan:
    """Plans an archival. Without `findings` it is the most that can be archived, for which files are then listed."""
    holds = [*_holds(inputs, config, findings)]
    commits, reason = _commits(inputs, config, holds)
    others = (
        _by_number(inputs, config, holds, findings) if inputs.counts_cleans else _before_last(inputs, commits, holds)
    )
    order = [*others, *commits] if inputs.counts_cleans else sorted((*others, *commits), key=lambda item: item.sort_key)
    return ArchivePlan(tuple(order), reason)


def start_after(timeline: Timeline, gone: frozenset[str]) -> str | None:
    """Returns the start of the completed commits without those at `gone`; None where only savepointed ones are left."""
    commits = {instant.requested_time for instant in timeline.commits()} - gone
    of_commits = timeline.completed().of_actions(*WRITE_ACTIONS, Action.SAVEPOINT)
    return of_commits.filter(lambda item: item.requested_time in commits).start


def _commits(inputs: ArchiveInputs, config: ArchiveConfig, holds: list[Hold]) -> tuple[list[Instant], str]:
    commits = inputs.timeline.commits()
    least, most, why = _kept(inputs, config)
    saved = inputs.timeline.savepoints() if config.beyond_savepoint else frozenset()
    first = min(holds, key=lambda hold: hold.since, default=None)
    passable = commits if first is None else commits.before(first.since)
    free = [item for item in passable if item.requested_time not in saved]
    room = max(0, len(commits) - least)
    if len(commits) <= most:
        chosen = free[: min(room, inputs.left_by_interruption(free))]
        return chosen, f"the timeline has {len(commits)} commits and {KEEP_MAX.name} is {most}{why}"
    chosen = free[:room]
    if first is not None and len(chosen) < room:
        return chosen, first.reason
    return chosen, f"{KEEP_MIN.name} is {least}{why}"


def _kept(inputs: ArchiveInputs, config: ArchiveConfig) -> tuple[int, int, str]:
    """Returns the least and the most commits to keep, and why. The least is two more than the commits after
    `cleaner_keeps`, where the options name fewer (getMinAndMaxInstantsToKeep).
    """
    if inputs.cleaner_keeps is not None:
        needed = len(inputs.timeline.commits().after(inputs.cleaner_keeps)) + 2
        if config.keep_min < needed:
            why = f", with the commits that the cleaner keeps since {inputs.cleaner_keeps}"
            return needed, needed + config.keep_max - config.keep_min, why
    return config.keep_min, config.keep_max, ""


def _by_number(inputs: ArchiveInputs, config: ArchiveConfig, holds: list[Hold], findings: Findings) -> list[Instant]:
    """Returns the oldest cleans, and counted apart the oldest rollbacks, where the timeline has too many of that action
    (layout 1). A rollback stays while a file exists that it should have deleted (hudi#18783); this instant is older.
    """
    if any(hold.since == "" for hold in holds):
        return []
    least, most, _ = _kept(inputs, config)
    compaction = inputs.metadata_compaction if inputs.has_metadata_table else None
    chosen: list[Instant] = []
    for action in (Action.ROLLBACK, Action.CLEAN):
        completed = inputs.timeline.completed().of_actions(action).instants
        room = max(0, len(completed) - least)
        free = completed[: room if len(completed) > most else min(room, inputs.left_by_interruption(completed))]
        bounds = [
            *(findings.orphans if action == Action.ROLLBACK else ()),
            *([] if compaction is None else [compaction]),
        ]
        chosen += [item for item in free if not bounds or item.requested_time < min(bounds)]
    return chosen


def _before_last(inputs: ArchiveInputs, commits: list[Instant], holds: list[Hold]) -> list[Instant]:
    """Returns the other instants before the last commit that goes (layout 2), and instants that Hudi never archives
    where they are older than all commits that stay.
    """
    others = inputs.timeline.completed().of_actions(Action.CLEAN, Action.ROLLBACK, *_NEVER_BY_HUDI)
    last = commits[-1].requested_time if commits else ""
    first_held = min((hold.since for hold in holds), default=None)
    interrupted = frozenset(others.instants[: inputs.left_by_interruption(others)])
    going = frozenset(commits)
    stays = next((item.requested_time for item in inputs.timeline.commits() if item not in going), "")

    def goes(item: Instant) -> bool:
        behind = item.action in _NEVER_BY_HUDI and item.requested_time < stays
        return item.requested_time < last or (
            (item in interrupted or behind) and (first_held is None or item.requested_time < first_held)
        )

    return [item for item in others if goes(item)]
