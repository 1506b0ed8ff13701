"""Rolls back what an attempt at a planned instant left, so that the plan can be run again
(HoodieTable.rollbackInflightCompaction).

The requested file stays: a plan is sticky. What goes: the files of the instant, its markers, its deltacommit in the
metadata table, its inflight file. A rollback instant on the data timeline records it, as real Hudi does.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass

from hudi_core.filegroup.write.markers import delete_markers, list_markers
from hudi_core.filegroup.write.rollback_files import FileUndo
from hudi_core.model.claim_names import CLAIMS
from hudi_core.model.names import BaseFileName, parse_data_file
from hudi_core.services.context import TableContext
from hudi_core.services.rollback.job import run_rollback
from hudi_core.services.rollback.units import encode_plan
from hudi_core.storage.base import FileInfo
from hudi_core.timeline.instant import Action, Instant, State
from hudi_core.timeline.pending_plans import pending_rollback_of, read_clustering_plan, rollback_target
from hudi_core.transaction.claim import Claim
from hudi_core.transaction.reconcile import list_partitions

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Leftovers:
    """What earlier attempts at an instant left. An inflight file alone needs no rollback: the next attempt goes on from
    it.
    """

    files: tuple[FileInfo, ...]
    in_metadata_table: bool
    pending_rollback: str | None

    def __bool__(self) -> bool:
        return bool(self.files) or self.in_metadata_table or self.pending_rollback is not None


class AttemptSearch:
    """Finds the files of attempts at `instant` in the planned partitions and in those that markers name. Needs no claim
    and changes nothing.

    `action` is the pending one: a compaction or clustering, or a log compaction where its log files are its own.
    """

    def __init__(self, context: TableContext, instant: str, action: str, partitions: Iterable[str]) -> None:
        self._context = context
        self._storage = context.storage
        self._active = context.active
        self._instant = instant
        self._action = action
        self._planned = frozenset(partitions)

    def partitions(self) -> frozenset[str]:
        """Where attempts may have written: the plan's partitions and those that markers name."""
        return self._planned | {marker.partition for marker in list_markers(self._storage, self._instant)}

    def find(self) -> Leftovers:
        """What is there now."""
        timeline = self._active.load()
        publisher = self._context.metadata_publisher()
        return Leftovers(
            tuple(self._files()),
            publisher is not None and bool(publisher.footprint(self._instant)),
            pending_rollback_of(self._active, timeline, self._instant),
        )

    def _files(self) -> list[FileInfo]:
        """In table version 6 a log file named after a compaction's instant holds other writers' rows: it is none of the
        compaction's own.
        """
        logs = self._action != Action.COMPACTION or self._context.config.features.log_name_has_delta_commit
        found: list[FileInfo] = []
        for _, files in list_partitions(self._storage, self.partitions()):
            for info in files:
                name = parse_data_file(info.name)
                if name is not None and name.instant == self._instant and (logs or isinstance(name, BaseFileName)):
                    found.append(info)
        return found


class AttemptRollback(AttemptSearch):
    """Removes what attempts at `instant` left. `claim` is the caller's on the instant.

    `removed` are the files that went, with their sizes in bytes by path.
    """

    def __init__(
        self, context: TableContext, instant: str, action: str, partitions: Iterable[str], claim: Claim
    ) -> None:
        super().__init__(context, instant, action, partitions)
        self._claim = claim
        self.removed: dict[str, int] = {}

    def run(self) -> str | None:
        """Rolls the leftovers back and returns the rollback's instant; None when there was nothing to roll back.

        Every step may be repeated: an attempt that dies here is resumed under the same rollback instant. In the end the
        instant is requested, unless nothing but its inflight file was there.
        """
        left = self.find()
        self.removed = {info.path: info.size for info in left.files}
        if not left:
            self._clean_up_behind()
            delete_markers(self._storage, self._instant)
            return None
        rollback = left.pending_rollback or self._request(left)
        log.info(
            "rolling back an earlier attempt at %s %s as %s: %d files",
            self._action,
            self._instant,
            rollback,
            len(left.files),
        )
        run_rollback(self._context, rollback, self._claim.owner, fenced_by=self._claim, extra=self._steps(left))
        delete_markers(self._storage, self._instant)
        self._active.remove(self._instant, self._action, State.INFLIGHT)
        return rollback

    def _clean_up_behind(self) -> None:
        """What a run left that died right after it had completed a rollback of the instant: the rollback's claims and
        markers.
        """
        timeline = self._active.load()
        for folder in self._storage.list_folders(CLAIMS):
            done = timeline.find(folder.rpartition("/")[2], Action.ROLLBACK)
            if (
                done is not None
                and done.is_completed
                and rollback_target(self._active, done.requested_time) == self._instant
            ):
                run_rollback(self._context, done.requested_time, self._claim.owner, fenced_by=self._claim)

    def _steps(self, left: Leftovers) -> list[FileUndo]:
        return [FileUndo(info.path.rpartition("/")[0], delete=(info.name,)) for info in left.files]

    def _request(self, left: Leftovers) -> str:
        with self._context.lock(self._claim.owner) as lock:
            self._claim.check()
            # What a zombie wrote may be found when the plan waits already; a requested instant would go as a whole
            # (RollbackExecution.begin).
            self._active.to_inflight(self._instant, self._action)
            rollback = self._context.new_instant(self._active.load())
            failed = Instant(self._instant, self._action, State.INFLIGHT)
            lock.check()
            self._active.create_requested(
                rollback, Action.ROLLBACK, encode_plan(self._context, failed, self._steps(left))
            )
            return rollback


def planned_partitions(context: TableContext, instant: Instant) -> frozenset[str]:
    """The partitions that the plan of a compaction, log compaction or clustering names."""
    if instant.pending_action in (Action.COMPACTION, Action.LOG_COMPACTION):
        plan = context.active.read_plan(instant.requested_time, instant.pending_action)
        return frozenset(operation.partition for operation in plan.operations)
    clustering = read_clustering_plan(context.active, instant)
    return frozenset() if clustering is None else frozenset(group.partition for group in clustering.file_groups())
