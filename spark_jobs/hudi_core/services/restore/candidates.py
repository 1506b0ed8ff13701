"""Which instants the table may be restored to, which go for that and in which order (pending clusterings, then the
newest first), and for the other instants why not.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from hudi_core.config.services.archive_config import ARCHIVE_BEYOND_SAVEPOINT
from hudi_core.errors import ConfigError, TimelineError, UnsupportedError
from hudi_core.services.context import TableContext
from hudi_core.services.savepoint.job import last_commit_retained
from hudi_core.services.savepoint.restored_state import RestoredStates
from hudi_core.timeline.instant import COMMIT_ACTIONS, WRITE_ACTIONS, Instant
from hudi_core.timeline.timeline import Timeline


@dataclass(frozen=True, slots=True)
class Restorable:
    """A completed commit, whether a savepoint keeps it, and why the table cannot be restored to it (None: it can)."""

    instant: str
    action: str
    savepoint: bool
    reason: str | None


class RestoreCandidates:
    """The rules for one state of the timeline (BaseHoodieWriteClient.restoreToSavepoint, RestorePlanActionExecutor)."""

    def __init__(self, context: TableContext, timeline: Timeline) -> None:
        self._context = context
        self._timeline = timeline
        self._states = RestoredStates(context, timeline)

    def all(self) -> list[Restorable]:
        """Every completed commit, oldest first."""
        return [
            Restorable(item.requested_time, item.action, item.requested_time in self._saved, self.reason(item))
            for item in self._timeline.commits()
        ]

    def find(self, time: str) -> Instant | None:
        """The completed commit at `time`."""
        return next((instant for instant in self._timeline.commits() if instant.requested_time == time), None)

    def check(self, time: str) -> Instant:
        """The commit at `time`. Raises ConfigError without one, TimelineError naming why it cannot be restored
        (UnsupportedError behind a downgrade).
        """
        target = self.find(time)
        if target is None:
            raise ConfigError(
                f"the timeline holds no completed commit at instant {time}",
                path=self._context.active.folder,
                remedy="list the instants that can be restored with `hudictl restore TABLE --dry-run`",
            )
        reason = self.reason(target)
        if reason is not None:
            usable = [item.instant for item in self.all() if item.reason is None]
            remedy = "no instant of this table can be restored now"
            if usable:
                remedy = f"these can be restored: {', '.join(usable[-10:])}"
            refusal = UnsupportedError if reason == self._states.cut_off(target) else TimelineError
            raise refusal(f"the table cannot be restored to {target.action} {time}: {reason}", remedy=remedy)
        return target

    def reason(self, target: Instant) -> str | None:
        """Why the table cannot be restored to `target`; None when it can."""
        saved = target.requested_time in self._saved
        going = self.after(target)
        kept = self._saved.intersection(instant.requested_time for instant in going)
        if kept:
            return f"commit {max(kept)} after it is savepointed; delete that savepoint first"
        if not saved and self._retained is not None and target.requested_time < self._retained:
            return (
                f"cleans may have removed files of it; the oldest commit whose files are all there is {self._retained}"
            )
        legacy = [instant.requested_time for instant in going if instant.is_legacy]
        if legacy:
            return f"commit {legacy[0]} after it was written before the table's upgrade, and no engine rolls that back"
        if ARCHIVE_BEYOND_SAVEPOINT.read(self._context.options):
            return f"instants after it may be archived: {ARCHIVE_BEYOND_SAVEPOINT.name} is set"
        if saved and self._is_behind_archived(target):
            return "instants after it are archived and cannot be rolled back"
        return self._states.why_lost(target)

    def after(self, target: Instant) -> list[Instant]:
        """See RestoredStates."""
        return self._states.after(target)

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
    def _retained(self) -> str | None:
        return last_commit_retained(self._context, self._timeline)


def restorable_instants(context: TableContext) -> list[Restorable]:
    """Every completed commit of the active timeline, oldest first, with the reason where it cannot be restored."""
    return RestoreCandidates(context, context.active.load()).all()
