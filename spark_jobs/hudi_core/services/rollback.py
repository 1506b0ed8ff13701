"""Rolls back what an attempt at a planned instant left, so that the plan can be run again (HoodieTable.rollbackInflightCompaction of 0.15).

The requested file stays: a plan is sticky. What goes: the base files of the instant, its markers, its deltacommit in the metadata table,
its inflight file. A rollback instant R on the data timeline records it, as real Hudi does.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from hudi_core.errors import FormatError
from hudi_core.filegroup.markers import delete_markers, list_markers
from hudi_core.metadata_table.rollback import MetadataRollback
from hudi_core.model.names import parse_base_file
from hudi_core.model.partition import check_partition
from hudi_core.services.context import TableContext
from hudi_core.storage.base import FileInfo
from hudi_core.timeline.instant import Action, State
from hudi_core.timeline.rollback_plans import RollbackPartition, RollbackRequest, encode_rollback_metadata, encode_rollback_plan
from hudi_core.timeline.rollback_target import pending_rollback_of
from hudi_core.transaction.addresses import plan_address
from hudi_core.transaction.claim import Claim
from hudi_core.transaction.lock import FileSystemLock
from hudi_core.transaction.reconcile import base_files_of

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Leftovers:
    """What earlier attempts at an instant left. An inflight file alone needs no rollback: the next attempt goes on from it."""

    files: tuple[FileInfo, ...]
    in_metadata_table: bool
    pending_rollback: str | None

    def __bool__(self) -> bool:
        return bool(self.files) or self.in_metadata_table or self.pending_rollback is not None


class AttemptRollback:
    """Finds and removes what attempts at `instant` left in the planned partitions and in those that markers name."""

    def __init__(
        self, context: TableContext, instant: str, action: str, partitions: Iterable[str], claim: Claim, lock: Callable[[], FileSystemLock]
    ) -> None:
        self._context = context
        self._storage = context.storage
        self._active = context.active
        self._instant = instant
        self._action = action
        self._planned = frozenset(partitions)
        self._claim = claim
        self._lock = lock
        self._metadata = MetadataRollback(context.storage, context.config) if context.has_metadata_table else None

    def partitions(self) -> frozenset[str]:
        """Where attempts may have written: the plan's partitions and those that markers name."""
        return self._planned | {marker.partition for marker in list_markers(self._storage, self._instant)}

    def find(self) -> Leftovers:
        """What is there now."""
        timeline = self._active.load()
        return Leftovers(
            tuple(base_files_of(self._storage, self._instant, self.partitions())),
            self._metadata is not None and bool(self._metadata.traces(self._instant)),
            pending_rollback_of(self._active, timeline, self._instant),
        )

    def run(self) -> str | None:
        """Rolls the leftovers back and returns the rollback's instant; None when there was nothing to roll back.

        Every step may be repeated: an attempt that dies here is resumed under the same rollback instant. In the end the instant is
        requested, unless nothing but its inflight file was there.
        """
        left = self.find()
        if not left:
            delete_markers(self._storage, self._instant)
            return None
        started = time.monotonic()
        rollback = self._begin(left)
        log.info("rolling back an earlier attempt at %s %s as %s: %d base files", self._action, self._instant, rollback, len(left.files))
        self._claim.check()
        for info in left.files:
            self._storage.delete(info.path)
        deleted = self._planned_files(rollback, left.files)
        with self._lock() as lock:
            self._claim.check()
            if self._metadata is not None:
                self._metadata.run(self._instant, rollback)
            took = int((time.monotonic() - started) * 1000)
            parts = [RollbackPartition(partition, tuple(plan_address(self._storage, path) for path in paths)) for partition, paths in deleted.items()]
            lock.check()
            self._active.complete(rollback, Action.ROLLBACK, encode_rollback_metadata(rollback, took, self._instant, self._action, parts))
        delete_markers(self._storage, self._instant)
        self._active.remove(self._instant, self._action, State.INFLIGHT)
        return rollback

    def _begin(self, left: Leftovers) -> str:
        """The rollback's instant: a pending one of this instant is resumed (getPendingRollbackInfo), else a new one is requested."""
        rollback = left.pending_rollback
        if rollback is None:
            with self._lock():
                self._claim.check()
                rollback = self._context.new_instant(self._active.load())
                requests = [
                    RollbackRequest(info.path.rpartition("/")[0], files_to_delete=(plan_address(self._storage, info.path),)) for info in left.files
                ]
                self._active.create_requested(rollback, Action.ROLLBACK, encode_rollback_plan(self._instant, self._action, requests))
        self._active.to_inflight(rollback, Action.ROLLBACK)
        return rollback

    def _planned_files(self, rollback: str, files: Iterable[FileInfo]) -> dict[str, list[str]]:
        """What this rollback deleted, by partition: the files of this attempt, and those of its plan that an earlier attempt deleted.

        The plan's paths are not followed: a name counts when it parses as a base file of this instant.
        """
        deleted: dict[str, set[str]] = {}
        for info in files:
            deleted.setdefault(info.path.rpartition("/")[0], set()).add(info.path)
        source = self._active.path(rollback, Action.ROLLBACK, State.REQUESTED)
        plan = self._active.read_any(rollback, Action.ROLLBACK, State.REQUESTED)
        for request in plan.get("RollbackRequests") or ():
            partition = check_partition(request.get("partitionPath") or "", source=source)
            for address in request.get("filesToBeDeleted") or ():
                name = str(address).rpartition("/")[2]
                try:
                    parsed = parse_base_file(name)
                except FormatError:
                    continue
                if parsed.instant == self._instant:
                    deleted.setdefault(partition, set()).add(f"{partition}/{name}" if partition else name)
        return {partition: sorted(paths) for partition, paths in sorted(deleted.items())}
