"""The units of a compaction of the metadata table: each writes one file group's base file anew."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from hudi_core.errors import ConfigError, CorruptFileError
from hudi_core.metadata_table.read.file_group import ROOT
from hudi_core.metadata_table.read.group_reader import open_sources
from hudi_core.metadata_table.read.log_blocks import BlockFilter
from hudi_core.metadata_table.read.slices import MergedSlice
from hudi_core.metadata_table.record import RecordEncoder
from hudi_core.metadata_table.services.merge_group import Counts, GroupMerge
from hudi_core.metadata_table.write.base_file import MetadataBaseFile
from hudi_core.model.ids import WriteToken
from hudi_core.model.names import BaseFileName
from hudi_core.model.partition import check_file_name
from hudi_core.storage.base import FileInfo, Storage
from hudi_core.storage.data_registry import open_data_storage

if TYPE_CHECKING:
    from hudi_core.engine.protocol import Json, TaskAttempt
    from hudi_core.timeline.actions.compaction import CompactionOperation


def group_unit(
    operation: CompactionOperation,
    sizes: Mapping[str, int],
    blocks: BlockFilter,
    *,
    instant: str,
    schema: str,
    bloom_entries: int,
    uri: str = "",
    storage_options: Mapping[str, str] | None = None,
) -> Json:
    """One operation as JSON. `sizes` are those of the operation's files by name, `schema` that of the records as they
    are stored.

    Of the blocks of its log files those of instants that `blocks` accepts count: the same that readers take.
    """
    return {
        "uri": uri,
        "storage_options": dict(storage_options or {}),
        "partition": operation.partition,
        "file_id": operation.file_id,
        "base_instant": operation.base_instant,
        "base_file": None if operation.base_file is None else [operation.base_file, sizes[operation.base_file]],
        "logs": [[name, sizes[name]] for name in operation.log_files],
        "accepted": sorted(item for item in blocks.valid if blocks.committed(item)),
        "latest": blocks.latest,
        "stop_at_newer": blocks.stop_at_newer,
        "instant": instant,
        "schema": schema,
        "bloom_entries": bloom_entries,
    }


def compact_group_task(unit: Json, attempt: TaskAttempt) -> Json:
    """Writes the base file of a unit; the UnitTask of the compaction. The result is that of compact_group."""
    try:
        storage = open_data_storage(unit["uri"], unit["storage_options"])
    except (KeyError, TypeError) as error:
        raise ConfigError(f"compaction unit is not what this version makes: {error!r}") from error
    return compact_group(storage, unit, WriteToken(attempt.partition_id, attempt.stage_id, attempt.attempt_id))


def compact_group(storage: Storage, unit: Json, token: WriteToken) -> Json:
    """Merges a file group into a new base file; returns `{"name", "size", "records", "counts"}`, name None where there
    is nothing to write.

    That is a group without base file whose logs hold no record: it stays as it is. Memory: see GroupMerge and
    MetadataBaseFile. Raises CorruptFileError for a damaged file, StorageNotFoundError for one that is gone.
    """
    folder = f"{ROOT}/{check_file_name(unit['partition'], source='compaction unit')}"
    base = unit["base_file"]
    merged = MergedSlice(
        unit["file_id"],
        None if base is None else _info(folder, base),
        tuple(_info(folder, item) for item in unit["logs"]),
    )
    blocks = BlockFilter(_is_any, frozenset(unit["accepted"]), unit["latest"], unit["stop_at_newer"])
    merge = GroupMerge(open_sources(storage, merged, blocks), RecordEncoder(unit["schema"]))
    name = BaseFileName(unit["file_id"], token, unit["instant"], "hfile")
    with ExitStack() as stack:

        def open_file() -> MetadataBaseFile:
            return stack.enter_context(
                MetadataBaseFile(storage, f"{folder}/{name}", unit["schema"], bloom_entries=unit["bloom_entries"])
            )

        try:
            file = merge.write(open_file)
        except ValueError as error:
            raise CorruptFileError(
                f"the file group's records cannot be written: {error}", path=f"{folder}/{unit['file_id']}"
            ) from error
        if file is None:
            return {"name": None, "size": 0, "records": 0, "counts": _counts(merge.counts)}
        size = file.close()
    return {"name": str(name), "size": size, "records": file.count, "counts": _counts(merge.counts)}


def _info(folder: str, item: list[Any]) -> FileInfo:
    name, size = item
    return FileInfo(f"{folder}/{check_file_name(name, source='compaction unit')}", int(size), 0.0)


def _is_any(instant: str) -> bool:
    return True


def _counts(counts: Counts) -> Json:
    return {name: getattr(counts, name) for name in Counts.__slots__}
