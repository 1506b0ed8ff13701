"""An instant: one action on the table at one time, in one of three states (HoodieInstant)."""

from __future__ import annotations

from dataclasses import field, fields
from enum import Enum
from typing import Final

from hudi_core.frozen import dataclass


class State(Enum):
    """What has happened to an instant so far. The values are the words of hudictl's JSON."""

    REQUESTED = "requested"
    INFLIGHT = "inflight"
    COMPLETED = "completed"

    @property
    def rank(self) -> int:
        """0, 1 or 2: a later state has a larger rank."""
        # No dict: an enum's hash is a Python function, and timelines of many thousand instants are sorted by this.
        return 2 if self is State.COMPLETED else int(self is State.INFLIGHT)


STATES: Final = (State.REQUESTED, State.INFLIGHT, State.COMPLETED)
"""The states by rank."""


class Action:
    """The action names that Hudi writes (HoodieTimeline). An instant of another name is only shown."""

    COMMIT: Final = "commit"
    DELTA_COMMIT: Final = "deltacommit"
    REPLACE_COMMIT: Final = "replacecommit"
    COMPACTION: Final = "compaction"
    LOG_COMPACTION: Final = "logcompaction"
    CLUSTERING: Final = "clustering"
    CLEAN: Final = "clean"
    ROLLBACK: Final = "rollback"
    RESTORE: Final = "restore"
    SAVEPOINT: Final = "savepoint"
    INDEXING: Final = "indexing"


KNOWN_ACTIONS: Final = frozenset(value for name, value in vars(Action).items() if name.isupper())
COMMIT_ACTIONS: Final = frozenset({Action.COMMIT, Action.DELTA_COMMIT, Action.REPLACE_COMMIT})
"""The actions whose completed file is commit metadata: those that change what the table holds."""
WRITE_ACTIONS: Final = COMMIT_ACTIONS | {Action.COMPACTION, Action.LOG_COMPACTION, Action.CLUSTERING}
"""The actions that write data files, by pending and completed names (HoodieTimeline.getWriteTimeline)."""
REPLACING_ACTIONS: Final = frozenset({Action.REPLACE_COMMIT, Action.CLUSTERING})
"""The actions that replace file groups. A clustering is pending under either name, by the table's version."""
PLANNED_ACTIONS: Final = KNOWN_ACTIONS - {Action.COMMIT, Action.DELTA_COMMIT, Action.SAVEPOINT}
"""The actions whose requested file is a plan. A replacecommit's is a plan only for a clustering."""

_COMPLETED_NAMES: Final = {
    Action.COMPACTION: Action.COMMIT,
    Action.LOG_COMPACTION: Action.DELTA_COMMIT,
    Action.CLUSTERING: Action.REPLACE_COMMIT,
}


def completed_action(action: str) -> str:
    """Returns the name under which `action` completes. States of one instant compete in this class
    (getComparableAction).
    """
    return _COMPLETED_NAMES.get(action, action)


@dataclass(frozen=True, slots=True, init=False)
class Instant:
    """One action at one requested time. `requested_time` is the text of the file name, usually `yyyyMMddHHmmssSSS`; all
    comparisons are of text. `action` is that of the file that shows the highest state: `compaction` while pending,
    `commit` once completed. Only layout 2 has a `completion_time`. `planned_action` is the action of the pending files
    while they exist: `compaction` for a completed compaction. `is_legacy` says that, in layout 2, the completed file
    has a name of layout 1, as an upgrade leaves it.
    """

    requested_time: str
    action: str
    state: State
    completion_time: str | None = None
    planned_action: str | None = field(default=None, compare=False)
    is_legacy: bool = field(default=False, compare=False)

    def __init__(
        self,
        requested_time: str,
        action: str,
        state: State,
        completion_time: str | None = None,
        planned_action: str | None = None,
        is_legacy: bool = False,
    ) -> None:
        """Takes half the time of the one that dataclass makes. A timeline has many thousand instants."""
        for_time, for_action, for_state, for_completion, for_plan, for_legacy = _SETTERS
        for_time(self, requested_time)
        for_action(self, action)
        for_state(self, state)
        for_completion(self, completion_time)
        for_plan(self, planned_action)
        for_legacy(self, is_legacy)

    @property
    def is_completed(self) -> bool:
        return self.state is State.COMPLETED

    @property
    def pending_action(self) -> str:
        return self.planned_action or self.action

    @property
    def completed_at(self) -> str:
        """The sort key of completed instants: the completion time, or in layout 1, without one, the requested time."""
        return self.completion_time or self.requested_time

    @property
    def sort_key(self) -> tuple[str, str, int]:
        """Timeline order: requested time, then action class, then state (HoodieInstant.COMPARATOR)."""
        return self.requested_time, completed_action(self.action), self.state.rank


_SETTERS: Final = tuple(getattr(Instant, item.name).__set__ for item in fields(Instant))
"""They set the fields of a frozen instant, in their order."""
