"""The only place that completes an instant.

Order (HoodieBackedTableMetadataWriter and BaseHoodieTableServiceClient.completeCompaction of Hudi 0.15): under the table lock the metadata
table learns of the new files first, under the same instant, then the data timeline's completed file appears. A reader of the metadata
table accepts blocks of completed data instants only, so the completed file makes both visible at once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from hudi_core.errors import ConflictError, StorageExistsError
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.timeline.commit_metadata import CommitMetadata, encode_commit
from hudi_core.timeline.instant import Action, Instant, State, completed_action
from hudi_core.timeline.query import Timeline
from hudi_core.transaction.claim import Claim
from hudi_core.transaction.lock import FileSystemLock


class MetadataSink(Protocol):
    """Whoever must know of a commit's files before the commit completes: the metadata table."""

    def publish(self, instant: str, metadata: CommitMetadata) -> None:
        """Makes the files of `metadata` part of the metadata table under `instant`; called under the table lock, once per attempt."""
        ...


Precondition = Callable[[Timeline], None]
"""Raises ConflictError when the timeline, read under the lock, no longer allows the commit."""


class Completer:
    """Completes instants of one table for the owner of a claim."""

    def __init__(self, timeline: ActiveTimeline, claim: Claim, lock: Callable[[], FileSystemLock], sink: MetadataSink | None) -> None:
        """`lock` makes the table lock; `sink` is None for a table without metadata table."""
        self._timeline = timeline
        self._claim = claim
        self._lock = lock
        self._sink = sink

    def complete(self, instant: str, action: str, metadata: CommitMetadata, *, preconditions: tuple[Precondition, ...] = ()) -> None:
        """Publishes `metadata` and completes the inflight `action` (the pending name, `compaction`) at `instant`.

        The claim is checked on both sides of the publication: an owner that was taken over while it wrote metadata must not complete, and
        its deltacommit is rolled back by the new owner. Raises ConflictError when the instant is no longer this owner's to complete.
        """
        content = encode_commit(metadata)
        with self._lock() as lock:
            self._claim.check()
            timeline = self._timeline.load()
            check_inflight(timeline, instant, action)
            for precondition in preconditions:
                precondition(timeline)
            if self._sink is not None:
                self._sink.publish(instant, metadata)
            self._claim.check()
            lock.check()
            self._put(instant, action, content)

    def _put(self, instant: str, action: str, content: bytes) -> None:
        try:
            self._timeline.complete(instant, action, content)
        except StorageExistsError as error:
            completed = Instant(instant, completed_action(action), State.COMPLETED)
            if self._timeline.read_details(completed) != content:
                path = self._timeline.path_of(completed)
                raise ConflictError("somebody else completed this instant", path=path, remedy="validate the table's metadata") from error
            # the same bytes: an earlier try of this very request arrived although its answer was lost


def check_inflight(timeline: Timeline, instant: str, action: str) -> None:
    """Raises ConflictError unless `action` at `instant` is inflight: completed by another run, or rolled back by another writer."""
    found = timeline.find(instant, action)
    if found is None or found.state is not State.INFLIGHT:
        state = "gone from the timeline" if found is None else f"{found.state.value} on the timeline"
        raise ConflictError(
            f"{action} {instant} is {state}, expected inflight: another writer completed it or rolled it back while it ran",
            remedy="run it again; this attempt's files were not published",
        )


def check_not_rolled_back(timeline: Timeline, instant: str, read_target: Callable[[str], str]) -> None:
    """Raises ConflictError when a pending rollback names `instant`. `read_target` gives the instant that a pending rollback rolls back.

    Hudi 1.x makes the same check before a commit; a rollback that began after ours ended would delete the files that we publish.
    """
    for pending in timeline.pending().of_actions(Action.ROLLBACK):
        if read_target(pending.requested_time) == instant:
            raise ConflictError(
                f"rollback {pending.requested_time} is rolling {instant} back",
                remedy="run it again when that rollback has completed",
            )
