"""Says to which commits the table may be restored, and why not to the others; which instants are rolled back for that,
and in which order (BaseHoodieWriteClient.restoreToSavepoint, RestorePlanActionExecutor,
RestoreInstantComparatorFactory). job.py carries a restore out. savepoint.py says which files a savepoint keeps.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Final

from hudi_core.config.services.retention_config import ARCHIVE_BEYOND_SAVEPOINT
from hudi_core.errors import ConfigError, TimelineError, UnsupportedError
from hudi_core.frozen import dataclass
from hudi_core.history.archived import ArchivedTimeline
from hudi_core.model.names import FileGroupId, LogFileName, parse_data_file
from hudi_core.services.context import TableContext
from hudi_core.services.rollback.checks import cleans_since
from hudi_core.timeline.actions.content import member, text
from hudi_core.timeline.actions.rollback import decode_savepoint
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.timeline.instant import COMMIT_ACTIONS, WRITE_ACTIONS, Action, Instant, State
from hudi_core.timeline.pending_plans import read_clustering_plans
from hudi_core.timeline.timeline import Timeline
from hudi_core.view.file_system_view import CutOff, cut_off_slices

_BY_REQUEST: Final = frozenset({Action.COMPACTION, Action.COMMIT})
"""These actions are compactions of a merge-on-read table. Later requested writes lie on top of them."""


@dataclass(frozen=True, slots=True)
class Restorable:
    """A completed commit, whether a savepoint keeps it, and why the table cannot be restored to it (None: it can)."""

    instant: str
    action: str
    savepoint: bool
    reason: str | None


def commit_at(timeline: Timeline, time: str) -> Instant | None:
    return next((instant for instant in timeline.commits() if instant.requested_time == time), None)


class RestoreCandidates:
    """The states to which the table can go back, one for each completed commit, by one state of the timeline."""

    def __init__(self, context: TableContext, timeline: Timeline) -> None:
        self._context = context
        self._timeline = timeline

    def all(self) -> list[Restorable]:
        return [
            Restorable(item.requested_time, item.action, item.requested_time in self._saved, self.reason(item))
            for item in self._timeline.commits()
        ]

    def check(self, time: str) -> Instant:
        """Returns the commit at `time`. Raises ConfigError where there is none. Raises TimelineError (UnsupportedError
        for a downgrade) that says why the table cannot be restored to it.
        """
        target = commit_at(self._timeline, time)
        if target is None:
            what = f"the timeline holds no completed commit at instant {time}"
            remedy = "list the instants that can be restored with `hudictl restore TABLE --dry-run`"
            raise ConfigError(what, path=self._context.active.folder, remedy=remedy)
        reason = self.reason(target)
        if reason is not None:
            usable = [item.instant for item in self.all() if item.reason is None]
            remedy = "no instant of this table can be restored now"
            if usable:
                remedy = f"these can be restored: {', '.join(usable[-10:])}"
            refusal = UnsupportedError if reason == self._cut_off_by(target) else TimelineError
            raise refusal(f"the table cannot be restored to {target.action} {time}: {reason}", remedy=remedy)
        return target

    def reason(self, target: Instant) -> str | None:
        """Returns why the table cannot be restored to `target`; None when it can."""
        saved = target.requested_time in self._saved
        going = self.after(target)
        kept = self._saved.intersection(instant.requested_time for instant in going)
        if kept:
            return f"commit {max(kept)} after it is savepointed; delete that savepoint first"
        if not saved and self.retained is not None and target.requested_time < self.retained:
            return (
                f"cleans may have removed files of it; the oldest commit whose files are all there is {self.retained}"
            )
        legacy = [instant.requested_time for instant in going if instant.is_legacy]
        if legacy:
            return f"commit {legacy[0]} after it was written before the table's upgrade, and no engine rolls that back"
        if ARCHIVE_BEYOND_SAVEPOINT.read(self._context.options):
            return f"instants after it may be archived: {ARCHIVE_BEYOND_SAVEPOINT.name} is set"
        if saved and self._is_behind_archived(target):
            return "instants after it are archived and cannot be rolled back"
        return self.why_lost(target)

    @cached_property
    def retained(self) -> str | None:
        """The oldest commit that no clean, completed or pending, has taken files from
        (SavepointActionExecutor.getLastCommitRetained); None without commits and cleans. A clean by file versions does
        not name it: then it is the last write before the clean, as in Hudi 1.2. Unlike in Hudi, archived cleans count.
        """
        timeline, active = self._timeline, self._context.active
        first = timeline.commits().first()
        retained = [_retained_by(active, timeline, clean) for clean in timeline.of_actions(Action.CLEAN)]
        if first is not None:
            history, folder = self._context.history(), self._context.config.history_folder
            retained += [
                text(history.content(clean), "earliestCommitToRetain", path=folder) or _write_before(timeline, clean)
                for clean in self._archived_cleans(history, first.requested_time)
            ]
        # All cleans count: one by file versions may have gone further than a later one by commits.
        return max(retained, default=None if first is None else first.requested_time)

    def after(self, target: Instant) -> list[Instant]:
        """Returns the instants to remove for the table after `target`: pending clusterings, then newest first."""

        def order(item: Instant) -> tuple[bool, tuple[bool, str, str]]:
            later = item.requested_time > target.requested_time
            return later and item.requested_time in self._clusterings, self._order(item)

        writes = self._timeline.of_actions(*WRITE_ACTIONS)
        return sorted((item for item in writes if self._is_after(item, target)), key=order, reverse=True)

    def timeline(self, target: Instant) -> Timeline:
        """Returns the timeline that gives the file slices as they are after the restore. Instants that go are pending
        writes in it: without them, an instant that is older than the rest would count as archived, and so as completed.
        """
        going = set(self.after(target))
        return Timeline(
            Instant(item.requested_time, Action.COMMIT, State.INFLIGHT) if item in going else item
            for item in self._timeline
        )

    def why_lost(self, target: Instant) -> str | None:
        """Returns why a restore would lose rows of `target`, or None. Leaves cleans by requested time to `retained`."""
        going = self.after(target)
        return self._lost_with_slices(going) or self._lost_to_cleans(target, going) or self._cut_off_by(target)

    def _cut_off_by(self, target: Instant) -> str | None:
        """Returns why a compaction that a downgrade made must stay, in layout 1: it names a log file that the
        compaction merged. Without the compaction the slice has no base file. The rollback's plan would name log files
        of other instants, and so fail. Files are listed once, if at all.
        """
        if self._context.active.layout != 1 or not self._context.config.is_merge_on_read:
            return None
        time = target.requested_time
        if not any(item.action == Action.COMMIT and item.is_completed for item in self.after(target)):
            return None
        for item in self._cut_off:
            if item.end is None or time < item.end:
                what = "is of table version 8 or 9, and the compaction that the downgrade to 6 made of it would go"
                return f"the log file {item.path} {what}"
        return None

    def _is_after(self, instant: Instant, target: Instant) -> bool:
        """Whether `instant` is after `target`: by requested time in layout 1, and for compactions of merge-on-read
        tables; else by completion time, with pending instants last.
        """
        if instant.requested_time == target.requested_time:
            return False
        by_request = self._context.config.is_merge_on_read and (
            instant.action in _BY_REQUEST or target.action in _BY_REQUEST
        )
        if by_request:
            return instant.requested_time > target.requested_time
        return self._order(instant) > self._order(target)

    def _order(self, instant: Instant) -> tuple[bool, str, str]:
        if self._context.active.layout == 1:
            return False, instant.requested_time, instant.action
        return not instant.is_completed, instant.completed_at, instant.requested_time

    def _lost_with_slices(self, going: Iterable[Instant]) -> str | None:
        """Returns the reason where rows of a commit that stays would be lost, in layout 1. An instant goes with its
        slices, also with the log files in them of older writers that were still at work.
        """
        times = {item.requested_time for item in going}
        for time, slices in self._later_slices.items():
            lost = times.intersection(slices)
            if lost and time not in times:
                return f"rows of commit {time} are in log files of {min(lost)} after it, and go with these"
        return None

    def _lost_to_cleans(self, target: Instant, going: list[Instant]) -> str | None:
        """Returns the reason where a clean removes files that the restore needs. An instant that was requested before
        `target` and completed after it is rolled back, but cleans go by requested time.
        """
        overtaken = [item for item in going if item.is_completed and item.requested_time < target.requested_time]
        if not overtaken:
            return None
        times, kept = frozenset(item.requested_time for item in going), self._saved_groups(target)
        first = min(item.requested_time for item in overtaken)
        archived = self._archived_cleans(self._context.history(), first)
        for item in overtaken:
            cleans = cleans_since(self._context, self._timeline, item, going=times, kept=kept, archived=archived)
            if cleans:
                what = f"{item.action} {item.requested_time}, which completed after it, replaced"
                return f"clean {cleans[-1]} removes what {what}"
        return None

    def _archived_cleans(self, history: ArchivedTimeline, after: str) -> list[Instant]:
        cleans = (instant for instant in history.instants(after=after) if instant.action == Action.CLEAN)
        return [clean for clean in cleans if not self._timeline.contains(clean.requested_time)]

    def _saved_groups(self, target: Instant) -> frozenset[FileGroupId]:
        saved = self._timeline.find(target.requested_time, Action.SAVEPOINT)
        if saved is None or not saved.is_completed:
            return frozenset()
        active = self._context.active
        names = decode_savepoint(active.read_details(saved), path=active.path_of(saved)).files
        return frozenset(
            FileGroupId(partition, parsed.file_id)
            for partition, files in names.items()
            for parsed in map(parse_data_file, files)
            if parsed is not None
        )

    def _is_behind_archived(self, target: Instant) -> bool:
        """Whether later instants were archived while a savepoint kept the target on the timeline."""
        others = self._timeline.of_actions(*COMMIT_ACTIONS)
        first = next((instant.requested_time for instant in others if instant != target), None)
        if first is None or first < target.requested_time:
            return False  # an older one is still there, and archival goes from the oldest on
        archived = self._context.history().instants(after=target.requested_time)
        return any(instant.action in WRITE_ACTIONS for instant in archived)

    @cached_property
    def _saved(self) -> frozenset[str]:
        return self._timeline.savepoints()

    @cached_property
    def _cut_off(self) -> list[CutOff]:
        """The cut off slices, by a listing of storage: a restore may be what mends the metadata table."""
        context = self._context
        return cut_off_slices(context.active, self._timeline, context.listing(None))

    @cached_property
    def _clusterings(self) -> frozenset[str]:
        return frozenset(read_clustering_plans(self._context.active, self._timeline))

    @cached_property
    def _later_slices(self) -> dict[str, frozenset[str]]:
        """Returns delta commits of layout 1 in slices of later instants, with these slices' base instants."""
        if self._context.active.layout != 1 or not self._context.config.is_merge_on_read:
            return {}
        slices = {}
        for item in self._timeline.commits().of_actions(Action.DELTA_COMMIT):
            names = (parse_data_file(stat.name) for stat in self._context.active.read_commit(item).write_stats())
            logs = (name.instant for name in names if isinstance(name, LogFileName))
            slices[item.requested_time] = frozenset(time for time in logs if time > item.requested_time)
        return slices


def restorable_instants(context: TableContext) -> list[Restorable]:
    """Returns every completed active commit, oldest first, with the reason where it cannot be restored."""
    return RestoreCandidates(context, context.active.load()).all()


def _retained_by(active: ActiveTimeline, timeline: Timeline, clean: Instant) -> str:
    if clean.is_completed:
        earliest = text(active.read_of(clean), "earliestCommitToRetain", path=active.path_of(clean))
    else:
        path = active.path(clean.requested_time, Action.CLEAN, State.REQUESTED)
        plan = active.read_any(clean.requested_time, Action.CLEAN, State.REQUESTED)
        earliest = text(member(plan, "earliestInstantToRetain", dict, path=path, default={}), "timestamp", path=path)
    return earliest or _write_before(timeline, clean)


def _write_before(timeline: Timeline, clean: Instant) -> str:
    writes = timeline.completed().filter(lambda instant: instant.action in WRITE_ACTIONS)
    before = writes.up_to(clean.requested_time).last()
    return clean.requested_time if before is None else before.requested_time
