"""The units of a compaction of the metadata table: each merges one file group into a new base file."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hudi_core.errors import CorruptFileError
from hudi_core.metadata_table.read.file_group import ROOT, MergedSlice
from hudi_core.metadata_table.read.group_reader import open_sources
from hudi_core.metadata_table.read.log_blocks import BlockFilter
from hudi_core.metadata_table.record import RecordEncoder
from hudi_core.metadata_table.services.merge_group import Counts, GroupMerge
from hudi_core.metadata_table.write.base_file import MetadataBaseFile
from hudi_core.model.names import BaseFileName, WriteToken
from hudi_core.model.partition import check_file_name
from hudi_core.storage.arrow_store import open_data_storage
from hudi_core.storage.base import FileInfo, Storage

if TYPE_CHECKING:
    from hudi_core.engine.protocol import TaskAttempt


@dataclass(frozen=True, slots=True)
class SizedFile:
    """A file by its plain name, and its bytes."""

    name: str
    size: int


@dataclass(frozen=True, slots=True)
class CountedBlocks:
    """Which blocks of log files count, for readers too: those of `instants` up to `latest`; see BlockFilter."""

    instants: frozenset[str]
    latest: str
    stop_at_newer: bool

    @staticmethod
    def of(blocks: BlockFilter) -> CountedBlocks:
        """A filter as plain values."""
        instants = frozenset(item for item in blocks.valid if blocks.committed(item))
        return CountedBlocks(instants, blocks.latest, blocks.stop_at_newer)

    def filter(self) -> BlockFilter:
        """The inverse of `of`."""
        return BlockFilter(lambda instant: True, self.instants, self.latest, self.stop_at_newer)


@dataclass(frozen=True, slots=True)
class GroupUnit:
    """A file group of the metadata table that one task compacts at `instant`. `schema` is that of the records as they
    are stored.
    """

    uri: str
    storage_options: Mapping[str, str]
    partition: str
    file_id: str
    base_file: SizedFile | None
    logs: tuple[SizedFile, ...]
    blocks: CountedBlocks
    instant: str
    schema: str
    bloom_entries: int


@dataclass(frozen=True, slots=True)
class CompactedGroup:
    """The new base file, name None where there is nothing to write, and the merge's counts."""

    name: str | None
    size: int
    records: int
    counts: Counts


def compact_group_task(unit: GroupUnit, attempt: TaskAttempt) -> CompactedGroup:
    """Writes the base file of a unit; the UnitTask of the compaction. See compact_group."""
    storage = open_data_storage(unit.uri, unit.storage_options)
    return compact_group(storage, unit, WriteToken(attempt.partition_id, attempt.stage_id, attempt.attempt_id))


def compact_group(storage: Storage, unit: GroupUnit, token: WriteToken) -> CompactedGroup:
    """Merges a file group into a new base file.

    There is nothing to write of a group without base file whose logs hold no record: it stays as it is. Memory: see
    GroupMerge and MetadataBaseFile. Raises CorruptFileError for a damaged file, StorageNotFoundError for one that is
    gone.
    """
    folder = f"{ROOT}/{check_file_name(unit.partition, source='compaction unit')}"
    merged = MergedSlice(
        unit.file_id,
        None if unit.base_file is None else _info(folder, unit.base_file),
        tuple(_info(folder, item) for item in unit.logs),
    )
    merge = GroupMerge(open_sources(storage, merged, unit.blocks.filter()), RecordEncoder(unit.schema))
    name = BaseFileName(unit.file_id, token, unit.instant, "hfile")
    with ExitStack() as stack:

        def open_file() -> MetadataBaseFile:
            return stack.enter_context(
                MetadataBaseFile(storage, f"{folder}/{name}", unit.schema, bloom_entries=unit.bloom_entries)
            )

        try:
            file = merge.write(open_file)
        except ValueError as error:
            raise CorruptFileError(
                f"the file group's records cannot be written: {error}", path=f"{folder}/{unit.file_id}"
            ) from error
        if file is None:
            return CompactedGroup(None, 0, 0, merge.counts)
        size = file.close()
    return CompactedGroup(str(name), size, file.count, merge.counts)


def _info(folder: str, item: SizedFile) -> FileInfo:
    return FileInfo(f"{folder}/{check_file_name(item.name, source='compaction unit')}", item.size, 0.0)
