"""Rolls a failed instant back in the metadata table of table version 8 or later, as Hudi 1.x does.

Where the metadata table has a deltacommit of the failed instant T, rollback R of the data table is one of the metadata
table too (HoodieBackedTableMetadataWriter.update(HoodieRollbackMetadata), ListingBasedRollbackStrategy): the files that
T wrote in any partition are deleted, the deltacommit is removed, `R.rollback` completes. Where it has nothing of T,
nothing is written. The data table's rollback adds no file, so that `files` needs no record.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable

from hudi_core.config.table_config import TableConfig
from hudi_core.errors import ConflictError
from hudi_core.metadata_table.partition_type import FILES_PARTITION
from hudi_core.metadata_table.read.file_group import ROOT, partition_folders
from hudi_core.metadata_table.records.file_statistics import FileChanges
from hudi_core.metadata_table.timeline import MetadataTimeline
from hudi_core.metadata_table.write.footprint import Footprint, check_not_merged
from hudi_core.model.names import parse_data_file
from hudi_core.storage.base import FileInfo, Storage
from hudi_core.storage.registry import plan_address
from hudi_core.timeline.actions.rollback import (
    RollbackPartition,
    RollbackRequest,
    encode_rollback_metadata,
    encode_rollback_plan,
)
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.timeline.instant import Action, State
from hudi_core.timeline.pending_plans import pending_rollback_of
from hudi_core.timeline.timeline import Timeline
from hudi_core.transaction.instant_generator import InstantClock

log = logging.getLogger(__name__)


class DeletingRollback:
    """Rolls instants back on the metadata table of the data table in `storage`. The caller holds the table lock while
    it calls `run`.
    """

    def __init__(self, storage: Storage, config: TableConfig, clock: InstantClock | None = None) -> None:
        self._storage = storage
        self._metadata_timeline = MetadataTimeline(storage, config, clock)

    @property
    def _active(self) -> ActiveTimeline:
        return self._metadata_timeline.active

    def footprint(self, failed: str) -> Footprint:
        """What there is of `failed`: one listing of the timeline and one of each partition."""
        return self._footprint(self._active.load(), failed)

    def check(self, failed: str) -> None:
        """Raises TimelineError when a compaction of the metadata table has taken the failed instant in: only a rebuild
        helps then.
        """
        check_not_merged(self._metadata_timeline, self._active.load(), failed)

    def run(self, failed: str, rollback: str, changes: FileChanges | None = None) -> None:
        """Rolls `failed` back as part of the data table's rollback `rollback`; goes on where an earlier attempt
        stopped.

        `changes` is not needed in this layout. What a writer that was taken for dead wrote behind the completed
        rollback is deleted, too: it would count once the failed instant has left the data timeline. Raises
        TimelineError as check, before anything is written; ConflictError when such a writer was at work meanwhile.
        """
        started = time.monotonic()
        timeline = self._active.load()
        footprint = self._footprint(timeline, failed)
        if not footprint:
            return
        check_not_merged(self._metadata_timeline, timeline, failed)
        metadata_timeline = footprint.pending_rollback or rollback
        done = timeline.find(metadata_timeline, Action.ROLLBACK)
        if done is not None and done.is_completed:
            log.warning(
                "files of %s were written into the metadata table after rollback %s of it had completed: deleted",
                failed,
                metadata_timeline,
            )
            self._delete(failed, footprint)
            return
        addresses = {info.path: plan_address(self._storage, info.path) for info in footprint.live}
        if footprint.pending_rollback is None:
            requests = [
                RollbackRequest(partition_of(path), files_to_delete=(address,)) for path, address in addresses.items()
            ]
            self._active.create_requested(
                metadata_timeline, Action.ROLLBACK, encode_rollback_plan(failed, Action.DELTA_COMMIT, requests)
            )
        self._active.to_inflight(metadata_timeline, Action.ROLLBACK)
        self._delete(failed, footprint)
        partitions = [RollbackPartition(name, tuple(paths)) for name, paths in _by_partition(addresses.items()).items()]
        took = int((time.monotonic() - started) * 1000)
        metadata = encode_rollback_metadata(
            metadata_timeline, took, failed, Action.DELTA_COMMIT, partitions or [RollbackPartition(FILES_PARTITION)]
        )
        self._active.complete(
            metadata_timeline, Action.ROLLBACK, metadata, self._metadata_timeline.completion_time(metadata_timeline)
        )

    def _delete(self, failed: str, footprint: Footprint) -> None:
        """First it stops being completed, so that no reader looks for one of its files in vain."""
        self._active.remove(failed, Action.DELTA_COMMIT, State.COMPLETED)
        for info in footprint.live:
            self._storage.delete(info.path)
        self._active.undo(failed, Action.DELTA_COMMIT)
        late = self._footprint(self._active.load(), failed)
        if late.live or late.delta_commit is not None:
            raise ConflictError(
                f"something of the failed instant {failed} appeared while it was rolled back: its writer is "
                "still alive",
                path=late.live[0].path if late.live else self._active.folder,
                remedy="stop that writer, then run the instant again",
            )

    def _footprint(self, timeline: Timeline, failed: str) -> Footprint:
        written = tuple(info for info, _ in files_written_by(self._storage, frozenset({failed})))
        return Footprint(
            timeline.find(failed, Action.DELTA_COMMIT), pending_rollback_of(self._active, timeline, failed), written
        )


def files_written_by(storage: Storage, instants: frozenset[str]) -> list[tuple[FileInfo, str]]:
    """The base and log files of all partitions of the metadata table whose names carry one of `instants`, each with
    that, by path.
    """
    found: list[tuple[FileInfo, str]] = []
    for partition in partition_folders(storage):
        for info in storage.list_files(f"{ROOT}/{partition}"):
            name = parse_data_file(info.name)
            if name is not None and name.instant in instants:
                found.append((info, name.instant))
    return found


def partition_of(path: str) -> str:
    """The metadata partition in which a file lies, by its path below the data table's base path."""
    return path.removeprefix(f"{ROOT}/").rpartition("/")[0]


def _by_partition(addresses: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for path, address in addresses:
        found.setdefault(partition_of(path), []).append(address)
    return found
