"""A partition made of file names alone."""

from __future__ import annotations

from hudi_core.model.names import FileGroupId
from hudi_core.storage.base import FileInfo
from hudi_core.timeline.actions.compaction import CompactionOperation, CompactionPlan
from hudi_core.view.file_group import FileSlice

F = FileGroupId("p", "f-0")


class Listing:
    """One partition of named files, each of ten bytes."""

    def __init__(self, *names: str, partition: str = "p") -> None:
        self.partition = partition
        self.infos = [FileInfo(f"{partition}/{name}", 10, 0.0) for name in names]

    def partitions(self) -> list[str]:
        return [self.partition]

    def files(self, partition: str) -> list[FileInfo]:
        return self.infos if partition == self.partition else []


def base(instant: str, token: str = "0-1-2", file_id: str = "f-0") -> str:
    return f"{file_id}_{token}_{instant}.parquet"


def log(instant: str, version: int = 1, token: str = "0-1-2", file_id: str = "f-0", tail: str = "") -> str:
    return f".{file_id}_{instant}.log.{version}_{token}{tail}"


def names_of(item: FileSlice) -> list[str]:
    return [data_file.name for data_file in item.files]


def plan(*file_ids: str) -> CompactionPlan:
    return CompactionPlan(
        tuple(CompactionOperation("p", file_id, "001", f"{file_id}_0-1-2_001.parquet", ()) for file_id in file_ids)
    )
