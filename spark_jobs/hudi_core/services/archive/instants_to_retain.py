"""What keeps commits on the active timeline: the candidates for the earliest instant to retain, one rule each, by which
planner.py decides what is archived. Pure (TimelineArchiverV1, TimelineArchiverV2).

How many commits stay in any case (minimum and maximum) is in planner.py.

A commit stays where its absence would change what is visible: while an earlier instant is pending, while files exist
that must stay invisible, and while file groups exist that it replaced.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Final

from hudi_core.config.services.archive_config import ARCHIVE_BEYOND_SAVEPOINT, ARCHIVE_ON_CLEAN, ArchiveConfig
from hudi_core.config.services.clean_config import KEEP_LATEST_FILE_VERSIONS
from hudi_core.config.services.compaction_config import COMPACTION_DELTA_COMMITS
from hudi_core.history.archived_instant import InstantKey, key_of
from hudi_core.timeline.actions.clean import LastClean
from hudi_core.timeline.instant import REPLACING_ACTIONS, WRITE_ACTIONS, Action, Instant
from hudi_core.timeline.timeline import Timeline


@dataclass(frozen=True, slots=True)
class ArchiveInputs:
    """`timeline` is the whole active timeline; times are requested times. `cleaner_keeps` is the earliest commit that
    the cleaner would retain, `last_clean` the last completed one with content. `metadata_compaction` is the metadata
    table's last completed compaction, which counts where `has_metadata_table`. `rolling_back` are targets of pending
    rollbacks. `counts_cleans`: cleans and rollbacks are archived by their own number, as in layout 1; else those before
    the last archived commit. `interrupted` are instants that an archival which was cut off has left on the timeline.
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
        """How many of the first of these instants an interrupted archival has left: they go now in any case."""
        return sum(1 for _ in takewhile(lambda item: key_of(item) in self.interrupted, instants))


@dataclass(frozen=True, slots=True)
class Findings:
    """By requested time: `uncleaned` replacecommits and a file of a file group that they replaced, `orphans` data files
    of instants that never completed, `hidden` commits behind a savepoint and a file of theirs.
    """

    uncleaned: Mapping[str, str] = field(default_factory=dict)
    orphans: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    hidden: Mapping[str, str] = field(default_factory=dict)


NOT_LISTED: Final = Findings()
"""Of a table whose files were not looked at yet: the conditions on the timeline alone hold commits."""


@dataclass(frozen=True, slots=True)
class Hold:
    """Commits requested at `since` or later stay; `reason` names the option or action that would change it."""

    since: str
    reason: str


def holds_of(inputs: ArchiveInputs, config: ArchiveConfig, findings: Findings) -> list[Hold]:
    holds = (
        _restoring(inputs.timeline),
        _rolling_back(inputs),
        _pending(inputs.timeline),
        _passed_over(inputs),
        None if config.beyond_savepoint else _savepointed(inputs.timeline),
        _for_compaction(inputs, config),
        _replaced(inputs),
        _for_metadata(inputs),
        _for_clean(inputs) if config.block_on_clean else None,
    )
    listed = (*_uncleaned(findings), *_orphaned(inputs.timeline, findings), *_hidden(findings))
    return [*(hold for hold in holds if hold is not None), *listed]


def _restoring(timeline: Timeline) -> Hold | None:
    """A pending restore removes commits and reads them all; Hudi does not check this."""
    pending = timeline.pending().of_actions(Action.RESTORE).first()
    if pending is None:
        return None
    return Hold("", f"restore {pending.requested_time} is pending: run it to its end first")


def _rolling_back(inputs: ArchiveInputs) -> Hold | None:
    """A completed commit in rollback must not become older than the timeline; Hudi does not check this."""
    first = min(inputs.rolling_back, default=None)
    return None if first is None else Hold(first, f"a rollback of {first} is pending: run it to its end first")


def _pending(timeline: Timeline) -> Hold | None:
    """The last commit before the earliest pending write stays: else that write would count as committed (hudi#4163)."""
    pending = timeline.filter(lambda item: not item.is_completed and item.action in WRITE_ACTIONS).first()
    if pending is None:
        return None
    before = timeline.commits().before(pending.requested_time).last()
    return Hold(
        (before or pending).requested_time,
        f"{pending.action} {pending.requested_time} is pending: complete it or roll it back",
    )


def _passed_over(inputs: ArchiveInputs) -> Hold | None:
    """The first pending clean or indexing: it stays, and would be older than archived instants with log files."""
    if inputs.counts_cleans or not inputs.merge_on_read:
        return None
    first = inputs.timeline.pending().of_actions(Action.CLEAN, Action.INDEXING).first()
    if first is None:
        return None
    return Hold(first.requested_time, f"{first.action} {first.requested_time} is pending: run it, or unschedule it")


def _savepointed(timeline: Timeline) -> Hold | None:
    first = min(timeline.savepoints(), default=None)
    remedy = f"delete the savepoint, or set {ARCHIVE_BEYOND_SAVEPOINT.name}=true"
    return None if first is None else Hold(first, f"commit {first} is savepointed: {remedy}")


def _for_compaction(inputs: ArchiveInputs, config: ArchiveConfig) -> Hold | None:
    """The delta commits that the next compaction counts (CompactionUtils.getEarliestInstantToRetainForCompaction)."""
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
    """The first replacecommit without a clean since (ClusteringUtils.getEarliestInstantToRetainForClustering)."""
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
    """The earliest savepoint for which the last clean kept replaced groups (getEarliestReplacedSavepointInClean)."""
    saved = min(last.savepoints, default="")
    if inputs.clean_policy == KEEP_LATEST_FILE_VERSIONS or not saved or not last.earliest or last.earliest <= saved:
        return None
    replaced = inputs.timeline.completed().of_actions(Action.REPLACE_COMMIT)
    return saved if any(saved <= item.requested_time <= last.earliest for item in replaced) else None


def _for_metadata(inputs: ArchiveInputs) -> Hold | None:
    """Its log blocks count by the data timeline until a compaction has merged them (getValidInstantTimestamps)."""
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


def _for_clean(inputs: ArchiveInputs) -> Hold | None:
    if inputs.last_clean is None or not inputs.last_clean.earliest:
        return None
    since = inputs.last_clean.earliest
    return Hold(since, f"the last clean kept the files since {since} ({ARCHIVE_ON_CLEAN.name})")


def _uncleaned(findings: Findings) -> list[Hold]:
    return [
        Hold(
            time,
            f"{path} is still there, whose file group replacecommit {time} replaced: run a clean (a savepoint may "
            "keep the file)",
        )
        for time, path in findings.uncleaned.items()
    ]


def _orphaned(timeline: Timeline, findings: Findings) -> list[Hold]:
    """The last commit before an orphan's instant stays: the timeline then starts before it and does not contain it."""
    holds = []
    for time, paths in findings.orphans.items():
        before = timeline.commits().before(time).last()
        reason = f"{paths[0]} is of instant {time}, which never completed: delete the file, or roll the instant back"
        holds.append(Hold(time if before is None else before.requested_time, reason))
    return holds


def _hidden(findings: Findings) -> list[Hold]:
    """A commit between a savepointed one and the next stays while it has files: readers take an instant behind the
    first commit of the timeline that is not on it for never committed. In Hudi its rows are gone.
    """
    why = (
        f"readers would not see it behind a savepointed commit ({ARCHIVE_BEYOND_SAVEPOINT.name}): delete the "
        "savepoint, or wait for a clean"
    )
    return [Hold(time, f"{path} of commit {time} is still there, and {why}") for time, path in findings.hidden.items()]
