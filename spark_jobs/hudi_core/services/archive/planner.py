"""Which instants are archived and leave the active timeline, and what blocks the others; the conditions that block are
in instants_to_retain.py. Pure (TimelineArchiverV1, TimelineArchiverV2, ArchivalUtils).

A reader takes an instant for committed that is older than the first commit of the timeline, without a look into the
archive. So archival goes from the oldest commit on and leaves no holes, and it must not pass an instant whose absence
would change what is visible: one that is pending, one whose files must stay invisible, one whose replaced file groups
still exist.

In layout 2 no older instant of any action stays behind: Hudi 1.2 takes an instant that is not on the timeline for
pending unless it is older than the whole timeline, and its log files are missing in the compactions that it plans
(CompletionTimeQueryViewV2.cursorInstant).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from hudi_core.config.services.archive_config import KEEP_MAX, KEEP_MIN, ArchiveConfig
from hudi_core.services.archive.instants_to_retain import NOT_LISTED, ArchiveInputs, Findings, Hold, holds_of
from hudi_core.timeline.instant import WRITE_ACTIONS, Action, Instant
from hudi_core.timeline.timeline import Timeline

_NEVER_BY_HUDI: Final = (Action.INDEXING, Action.RESTORE)
"""Completed actions that Hudi's own archival leaves on the timeline for good."""


@dataclass(frozen=True, slots=True)
class ArchivePlan:
    """The instants to archive, in their order, and what holds back the others; without instants, why there are none."""

    instants: tuple[Instant, ...]
    reason: str

    @property
    def commits(self) -> tuple[Instant, ...]:
        return Timeline(item for item in self.instants if item.action in WRITE_ACTIONS).instants


def plan_archival(inputs: ArchiveInputs, config: ArchiveConfig, findings: Findings = NOT_LISTED) -> ArchivePlan:
    """What to archive. Without `findings` the most that there can be: what is to be looked up in the listing."""
    holds = holds_of(inputs, config, findings)
    commits, reason = _commits(inputs, config, holds)
    others = (
        _by_number(inputs, config, holds, findings) if inputs.counts_cleans else _before_last(inputs, commits, holds)
    )
    order = [*others, *commits] if inputs.counts_cleans else sorted((*others, *commits), key=lambda item: item.sort_key)
    return ArchivePlan(tuple(order), reason)


def start_after(timeline: Timeline, gone: frozenset[str]) -> str | None:
    """The start of completed commits without those at `gone`; None where none but savepointed ones are left."""
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
    """The least and most commits to keep, and why: two more than the cleaner retains (getMinAndMaxInstantsToKeep)."""
    if inputs.cleaner_keeps is not None:
        needed = len(inputs.timeline.commits().after(inputs.cleaner_keeps)) + 2
        if config.keep_min < needed:
            why = f", with the commits that the cleaner keeps since {inputs.cleaner_keeps}"
            return needed, needed + config.keep_max - config.keep_min, why
    return config.keep_min, config.keep_max, ""


def _by_number(inputs: ArchiveInputs, config: ArchiveConfig, holds: list[Hold], findings: Findings) -> list[Instant]:
    """Layout 1: the oldest cleans, and apart from them the oldest rollbacks, when there are too many of that action. A
    rollback stays while a file exists that it should have deleted (hudi#18783); that file's instant is older.
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
    """Layout 2: others than commits before the last commit that goes; what Hudi never archives if older than all."""
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
