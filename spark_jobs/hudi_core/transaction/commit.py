"""The only place that completes an instant. An instant without a decision is run again or rolled back.

Completer works under the table lock, in this order (HoodieBackedTableMetadataWriter and
BaseHoodieTableServiceClient.completeCompaction of Hudi 0.15):
1. It updates the metadata table with the new files, under the same instant. A death after this step, before the
   decision, completes nothing: readers of the metadata table accept blocks of completed data instants only. The next
   owner closes the epoch and rolls this attempt back (services/rollback/failed_attempt.py), in the metadata table as
   well. Or it runs the instant again (services/lifecycle.py); then reconcile.py removes the lost attempt's base files.
2. It records the owner's decision (claim_file.py). From then on the owner or its successor completes the instant with
   these bytes and, in layout 2, at this completion time. The decision is abandoned only where rows would be lost
   (services/decided_completion.py), or where another writer rolled the instant back.
3. It creates the completed file on the data timeline, which makes data and metadata table visible at once.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable

from hudi_core.errors import ConflictError, StorageExistsError, TimelineError
from hudi_core.frozen import dataclass
from hudi_core.storage.base import LATE_SECONDS
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.timeline.instant import Action, Instant, State
from hudi_core.timeline.timeline import Timeline
from hudi_core.transaction.claim import Claim
from hudi_core.transaction.claim_file import Decision
from hudi_core.transaction.instant_generator import InstantClock
from hudi_core.transaction.locks.base import TableLock

WhyNot = Callable[[Decision, Timeline], str | None]
"""Returns why a decision may not be carried out on the timeline, read under the lock; None where it may."""
CheckOwner = Callable[[], None]
"""Raises LockError when the table lock is lost, ConflictError when the instant has another owner."""
Publish = Callable[[CheckOwner], None]
"""Updates the metadata table under the lock; it calls the check before a change that readers believe at once."""
Precondition = Callable[[Timeline], None]
"""Raises ConflictError when the timeline, read under the lock, no longer allows the commit."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Completer:
    """Completes instants of one table for the owner of a claim."""

    _timeline: ActiveTimeline
    _claim: Claim
    _lock: Callable[[], TableLock]
    _clock: InstantClock

    def complete(
        self,
        instant: str,
        action: str,
        content: bytes,
        *,
        publish: Publish | None = None,
        preconditions: tuple[Precondition, ...] = (),
    ) -> Instant:
        """Completes the inflight `action` (the pending name, `compaction`) at `instant` with the file `content`.
        `publish` updates the metadata table, under the lock; the claim is checked before and after it. Raises
        ConflictError when this owner may no longer complete the instant, TimelineError when `content` is empty, and the
        errors of `publish`, the preconditions and the storage. After a StorageError the instant may still be completed,
        now or later, with these very bytes: `finish_decided` of the next claim finds out.
        """
        if not content:
            raise TimelineError("a completed instant must have content", path=self._timeline.folder)
        with self._lock() as lock:
            self._claim.check()
            timeline = self._timeline.load()
            check_inflight(timeline, instant, action)
            for precondition in preconditions:
                precondition(timeline)

            def check() -> None:
                self._claim.check_with(lock.check)

            if publish is not None:
                publish(check)
            # A successor that came meanwhile has closed the epoch: then the decision cannot be recorded.
            completion_time = None if self._timeline.layout == 1 else self._clock.next(timeline, minimum=instant)
            decision = Decision(action, completion_time, content, timeline.commits().requested_times)
            lock.check()
            self._timeline.look_again()  # the last moment at which another writer's completed file can be seen
            self._claim.decide(decision, self._timeline.look_ahead)
            return self._put(instant, decision)

    def finish_decided(self, instant: str, *, why_not: WhyNot | None = None) -> Instant | None:
        """Carries out an earlier owner's decision, and returns the completed instant. Returns None where no decision is
        left: then this owner may run the instant. Every service calls it right after the claim: until then Claim.check
        refuses. The decision is abandoned (docs/decisions/0023) where `why_not` names a reason, or where the instant is
        no longer inflight because a foreign writer rolled it back. A completed file counts, also one that arrives while
        the decision is abandoned. Raises ConflictError when another owner took over. For LATE_SECONDS it raises
        ConflictError and abandons nothing: the earlier owner's put may still arrive.
        """
        decision = self._claim.decided
        if decision is None:
            return None
        with self._lock() as lock:
            self._claim.check_owner()
            timeline = self._timeline.load()
            shown = timeline.find(instant, decision.action)
            if shown is not None and shown.is_completed:
                self._claim.settle()
                return shown
            reason = None
            if shown is None or shown.state is not State.INFLIGHT:
                reason = "another process has rolled it back since"
            elif why_not is not None:
                reason = why_not(decision, timeline)
            lock.check()
            if reason is not None:
                self._check_put_is_over(instant, decision, reason)
                log.warning("an earlier run decided to complete %s %s, but %s", decision.action, instant, reason)
                self._claim.settle(abandoned=True)
                shown = self._timeline.load().find(instant, decision.action)
                return shown if shown is not None and shown.is_completed else None
            self._timeline.look_again()  # as above
            completed = self._put(instant, decision)
            self._claim.settle()
            log.info("%s %s completed: an earlier run had decided so and was cut off", decision.action, instant)
            return completed

    def _check_put_is_over(self, instant: str, decision: Decision, reason: str) -> None:
        seconds = LATE_SECONDS - self._claim.decided_ago()
        if seconds > 0:
            raise ConflictError(
                f"an earlier run decided to complete {decision.action} {instant}: it is not completed any more, as "
                f"{reason}, but the request of that run may still arrive",
                path=self._timeline.path(instant, decision.action, State.INFLIGHT),
                remedy=f"run it again in {math.ceil(seconds)} seconds: then none can arrive",
            )

    def _put(self, instant: str, decision: Decision) -> Instant:
        try:
            return self._timeline.complete(instant, decision.action, decision.content, decision.completion_time)
        except StorageExistsError as error:
            completed = self._timeline.load().get(instant, decision.action)
            same = completed.completion_time == decision.completion_time or self._timeline.layout == 1
            if not same or self._timeline.read_details(completed) != decision.content:
                message = "another process completed this instant"
                remedy = "validate the table's metadata"
                raise ConflictError(message, path=self._timeline.path_of(completed), remedy=remedy) from error
            return completed  # equal bytes: an earlier try of this request arrived, and only its answer was lost


def check_inflight(timeline: Timeline, instant: str, action: str) -> None:
    """Raises ConflictError unless `action` at `instant` is inflight: another run completed it or rolled it back."""
    shown = timeline.find(instant, action)
    if shown is None or shown.state is not State.INFLIGHT:
        state = "no longer on the timeline" if shown is None else f"{shown.state.value} on the timeline"
        raise ConflictError(
            f"{action} {instant} is {state}, expected inflight: another writer completed it or rolled it "
            "back while it ran",
            remedy="run it again; this attempt's files were not published",
        )


def check_not_rolled_back(
    timeline: Timeline, instant: str, read_target: Callable[[str], str | None], since: Timeline
) -> None:
    """Raises ConflictError when a rollback of `instant` is pending, or completed since the timeline `since` was read,
    before this attempt's first file. A pending rollback would delete the files that we publish (Hudi 1.x checks it,
    too). A completed rollback has deleted them, although the instant may be inflight again: Hudi's writers with own
    services roll back what they find inflight, and run the plan (BaseHoodieTableServiceClient.compact, cluster).
    """
    before = since.completed().of_actions(Action.ROLLBACK).requested_times
    for rollback in timeline.of_actions(Action.ROLLBACK):
        if rollback.requested_time not in before and read_target(rollback.requested_time) == instant:
            raise ConflictError(
                f"rollback {rollback.requested_time} "
                + (f"has rolled {instant} back meanwhile" if rollback.is_completed else f"is rolling {instant} back"),
                remedy="run it again when no other process runs it",
            )
