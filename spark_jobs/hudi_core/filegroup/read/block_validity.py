"""Which instants' log blocks count: the part of a timeline that a task on an executor needs, as JSON."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hudi_core.timeline.instant import COMMIT_ACTIONS, Action

if TYPE_CHECKING:
    from hudi_core.timeline.timeline import Timeline

_PENDING_WRITES = COMMIT_ACTIONS | {Action.LOG_COMPACTION, Action.CLUSTERING}


@dataclass(frozen=True, slots=True)
class CommittedInstants:
    """Answers "is this instant committed?" (AbstractHoodieLogRecordReader, BaseHoodieLogRecordReader).

    Committed is an instant that is a completed commit, deltacommit or replacecommit, or that is older than the first of
    them (its file was archived), unless it is inflight. Hudi 1.1 and later check this for whole log files and not for
    blocks; the answer is the same. `inflight` also holds instants that are only requested, and log compactions: what
    the timeline shows as pending is never committed, however old.
    """

    completed: frozenset[str]
    inflight: frozenset[str]
    start: str | None

    def __call__(self, instant: str) -> bool:
        if instant in self.inflight:
            return False
        return instant in self.completed or (self.start is not None and instant < self.start)

    def up_to(self, instant: str, *, inclusive: bool = True) -> CommittedInstants:
        """The same answers for instants requested up to `instant`, or before it.

        Later ones are not committed, archived or not.
        """
        completed = frozenset(time for time in self.completed if time < instant)
        start = None if self.start is None else min(self.start, instant)
        return CommittedInstants(
            completed | {instant} if inclusive and self(instant) else completed, self.inflight, start
        )

    @staticmethod
    def of(timeline: Timeline) -> CommittedInstants:
        """The committed instants of a loaded timeline."""
        commits = timeline.commits()
        inflight = timeline.pending().of_actions(*_PENDING_WRITES)
        return CommittedInstants(commits.requested_times, inflight.requested_times, commits.start)


def latest_read_instant(timeline: Timeline) -> str | None:
    """The instant up to which a snapshot query reads log blocks: the last completed commit.

    None for a table without any.
    """
    last = timeline.commits().last()
    return None if last is None else last.requested_time


def latest_compaction_instant(timeline: Timeline) -> str | None:
    """The instant up to which a compaction reads log blocks (HoodieCompactor.getMaxInstantTime of Hudi 0.15).

    The last completed commit, deltacommit or rollback of the whole timeline: a rollback counts, so that its command
    blocks are obeyed.
    """
    last = timeline.completed().of_actions(Action.COMMIT, Action.DELTA_COMMIT, Action.ROLLBACK).last()
    return None if last is None else last.requested_time
