"""How table version 8 or later undoes an instant in the metadata table: the files that it wrote, which carry it in
their names, are deleted (ListingBasedRollbackStrategy of Hudi 1.x).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from hudi_core.errors import ConflictError
from hudi_core.metadata_table.partition_type import FILES_PARTITION
from hudi_core.metadata_table.read.file_group import ROOT, data_files, partition_folders
from hudi_core.metadata_table.timeline import MetadataTimeline
from hudi_core.storage.base import FileInfo, Storage
from hudi_core.storage.registry import plan_address
from hudi_core.timeline.actions.rollback import (
    RollbackPartition,
    RollbackRequest,
)
from hudi_core.timeline.instant import Action, State
from hudi_core.timeline.timeline import Timeline


@dataclass(frozen=True, slots=True)
class FileDeletion:
    """The rollback strategy of metadata tables whose log files carry the instant that writes them."""

    storage: Storage
    metadata_timeline: MetadataTimeline

    def instant_of(self, rollback: str) -> str:
        """The instant of the rollback on the metadata timeline: that of the data table's."""
        return rollback

    def find(self, timeline: Timeline, failed: str) -> tuple[list[FileInfo], list[RollbackRequest]]:
        """The files of `failed`, and the requests to delete them: one listing of each partition."""
        files = [info for info, _ in files_written_by(self.storage, frozenset({failed}))]
        addresses = addresses_by_partition(self.storage, files)
        return files, [
            RollbackRequest(partition, files_to_delete=(address,))
            for partition, found in addresses.items()
            for address in found
        ]

    def undo(self, failed: str, rollback: str, files: Sequence[FileInfo]) -> list[RollbackPartition]:
        """Deletes the files. First the instant stops being completed, so that no reader misses one.

        Raises ConflictError where its writer, presumed dead, wrote more meanwhile.
        """
        self.metadata_timeline.active.remove(failed, Action.DELTA_COMMIT, State.COMPLETED)
        for info in files:
            self.storage.delete(info.path)
        self.metadata_timeline.active.undo(failed, Action.DELTA_COMMIT)
        timeline = self.metadata_timeline.active.load()
        late, _ = self.find(timeline, failed)
        if late or timeline.find(failed, Action.DELTA_COMMIT) is not None:
            raise still_written(failed, late[0].path if late else self.metadata_timeline.active.folder)
        deleted = addresses_by_partition(self.storage, files) or {FILES_PARTITION: ()}
        return [RollbackPartition(partition, addresses) for partition, addresses in deleted.items()]


def still_written(failed: str, path: str) -> ConflictError:
    """The error for a writer that writes `path` under the instant that is rolled back."""
    return ConflictError(
        f"something of the failed instant {failed} appeared while it was rolled back: its writer is still alive",
        path=path,
        remedy="stop that writer, then run the instant again",
    )


def files_written_by(storage: Storage, instants: frozenset[str]) -> list[tuple[FileInfo, str]]:
    """The base and log files of all partitions of the metadata table whose names carry one of `instants`, each with
    that, by path.
    """
    return [
        (info, name.instant)
        for partition in partition_folders(storage)
        for info, name in data_files(storage.list_files(f"{ROOT}/{partition}"))
        if name.instant in instants
    ]


def by_partition(files: Iterable[FileInfo]) -> dict[str, list[FileInfo]]:
    """Files of the metadata table by its partitions."""
    found: dict[str, list[FileInfo]] = {}
    for info in files:
        found.setdefault(info.path.removeprefix(f"{ROOT}/").rpartition("/")[0], []).append(info)
    return found


def addresses_by_partition(storage: Storage, files: Iterable[FileInfo]) -> dict[str, tuple[str, ...]]:
    """Their addresses, as rollbacks record them."""
    return {
        name: tuple(plan_address(storage, info.path) for info in found) for name, found in by_partition(files).items()
    }
