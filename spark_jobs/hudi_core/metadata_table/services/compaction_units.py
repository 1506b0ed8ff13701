"""The units of a compaction of the metadata table: each merges one file group into a new base file."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

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
from hudi_core.view.file_group import DataFile, FileSlice, check_slice

if TYPE_CHECKING:
    from hudi_core.engine.protocol import TaskAttempt

_UNIT: Final = "compaction unit"


@dataclass(frozen=True, slots=True)
class GroupUnit:
    """A file slice of the metadata table, in one of its partitions, that one task compacts at `instant`. `blocks` are
    those that count for readers too, `schema` is that of the records as they are stored.
    """

    uri: str
    storage_options: Mapping[str, str]
    file_slice: FileSlice
    blocks: BlockFilter
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
    item = check_slice(unit.file_slice)
    folder, file_id = f"{ROOT}/{check_file_name(item.file_group.partition, source=_UNIT)}", item.file_group.file_id
    merged = MergedSlice(
        file_id, None if item.base_file is None else _info(item.base_file), tuple(map(_info, item.log_files))
    )
    merge = GroupMerge(open_sources(storage, merged, unit.blocks), RecordEncoder(unit.schema))
    name = BaseFileName(file_id, token, unit.instant, "hfile")
    with ExitStack() as stack:

        def open_file() -> MetadataBaseFile:
            return stack.enter_context(
                MetadataBaseFile(storage, f"{folder}/{name}", unit.schema, bloom_entries=unit.bloom_entries)
            )

        try:
            file = merge.write(open_file)
        except ValueError as error:
            raise CorruptFileError(
                f"the file group's records cannot be written: {error}", path=f"{folder}/{file_id}"
            ) from error
        if file is None:
            return CompactedGroup(None, 0, 0, merge.counts)
        size = file.close()
    return CompactedGroup(str(name), size, file.count, merge.counts)


def _info(file: DataFile) -> FileInfo:
    return FileInfo(f"{ROOT}/{file.path}", file.size, 0.0)
