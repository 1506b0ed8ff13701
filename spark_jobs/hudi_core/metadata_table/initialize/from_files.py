"""Partitions that say something of each data file begin by an exchange: executors read the files and make the records
that their kind makes of them, and write a base file for each file group. A kind that says something of whole data
partitions gets all files of one in one task.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from hudi_core.codec.hashing import file_group_indexes
from hudi_core.engine.exchange import exchange_rows
from hudi_core.errors import ExecutionError, HudiError
from hudi_core.metadata_table.extract.data_file import read_file_statistics
from hudi_core.metadata_table.indexed_table import IndexedTable
from hudi_core.metadata_table.initialize.initialize import Initialization
from hudi_core.metadata_table.initialize.listed_files import Sizes
from hudi_core.metadata_table.initialize.shard_file import WrittenShard, write_shard, written_files
from hudi_core.metadata_table.initialize.target import NewBaseFile, NewPartition
from hudi_core.metadata_table.partitions.protocol import PartitionType
from hudi_core.metadata_table.partitions.registry import partition_type_of, requirements_of
from hudi_core.metadata_table.partitions.row_exchange import distinct_rows
from hudi_core.metadata_table.record import RecordEncoder
from hudi_core.metadata_table.records.file_statistics import DataFileRef, Record
from hudi_core.model.names import BaseFileName, parse_data_file
from hudi_core.storage.arrow_store import open_data_storage
from hudi_core.view.fs_view import FileSystemView

if TYPE_CHECKING:
    from hudi_core.engine.protocol import Engine, TaskAttempt

_UNIT_FILES: Final = 50
"""Files that one task reads, or more where a data partition has more and the kind wants them together."""
_BATCH_RECORDS: Final = 1000
_BATCH_FILTERS: Final = 8
"""Filters have 430 KB each with Hudi's defaults."""


def files_of_all_slices(files: Sizes) -> list[DataFileRef]:
    """All committed files (listed.committed_files): for kinds with `needs.older_slices`."""
    return [_reference(partition, name, size) for partition, sizes in files.items() for name, size in sizes.items()]


def files_of_latest_slices(view: FileSystemView) -> list[DataFileRef]:
    """The files of the slices that a snapshot query reads: for all other kinds."""
    slices = [item for partition in view.partitions() for item in view.latest_merged_slices(partition)]
    return [_reference(file.partition, file.name, file.size) for item in slices for file in item.files]


def initialization_from_files(
    partition_type: PartitionType,
    table: IndexedTable,
    files: Sequence[DataFileRef],
    instant: str,
    engine: Engine,
    *,
    uri: str,
    storage_options: Mapping[str, str] | None = None,
    run_epoch: int = 0,
) -> Initialization:
    """The beginning of `column_stats`, `bloom_filters`, `partition_stats` or an expression index.

    `files` are those that the kind's needs ask for, data partition by data partition; `instant` is the latest completed
    one of the data table (instants.SOLO_COMMIT: none), which filters name. Tasks open the table by `uri` and
    `storage_options`. Errors as PartitionType.group_count, and of the fill those of read_file_statistics and
    Engine.exchange. Memory here: the names of the files. Of a task: some megabytes of records; for a kind of whole data
    partitions the ranges of one partition's files, some 400 bytes for each column of each file.
    """
    options = dict(storage_options or {})

    def fill(target: NewPartition) -> list[NewBaseFile]:
        common = FileRecordsTarget(
            uri, options, table, partition_type.partition, instant, target.schema, len(target.file_ids)
        )
        units = [FileRecordsUnit(common, tuple(part)) for part in _parts(partition_type, files)]
        return written_files(
            engine.exchange(
                produce_file_records,
                units,
                partial(write_file_records, FileRecordsShards(uri, options, target)),
                shards=len(target.file_ids),
                run_epoch=run_epoch,
            )
        )

    return Initialization(
        partition_type.partition,
        partition_type.file_ids(partition_type.group_count(table.settings)),
        fill,
        partition_type.definition(),
    )


@dataclass(frozen=True, slots=True)
class FileRecordsTarget:
    """What all tasks of an initialization know: the table that is indexed, and the partition type, of `groups` file
    groups, whose records have `schema`.
    """

    uri: str
    storage_options: Mapping[str, str]
    table: IndexedTable
    partition: str
    instant: str
    schema: str
    groups: int


@dataclass(frozen=True, slots=True)
class FileRecordsUnit:
    """Files that one task reads."""

    target: FileRecordsTarget
    files: tuple[DataFileRef, ...]


@dataclass(frozen=True, slots=True)
class FileRecordsShards:
    """Where the records go."""

    uri: str
    storage_options: Mapping[str, str]
    target: NewPartition


def produce_file_records(unit: FileRecordsUnit, attempt: TaskAttempt) -> Iterator[pa.RecordBatch]:
    """engine.protocol.Produce of a unit's files: their statistics are read, and the partition type's records of them
    encoded.

    Raises what read_file_statistics and the partition type raise.
    """
    target = unit.target
    storage, table = open_data_storage(target.uri, target.storage_options), target.table
    partition_type = partition_type_of(target.partition, table)
    requirements = requirements_of(table, [partition_type])
    records = partition_type.initial(
        target.instant, (read_file_statistics(storage, item, requirements) for item in unit.files)
    )
    encoder = RecordEncoder(target.schema)
    size = _BATCH_FILTERS if _holds_filters(partition_type) else _BATCH_RECORDS
    for chunk in _chunks(records, size):
        cells = encoder.cells((key, datum) for key, datum in chunk if datum is not None)
        shards = file_group_indexes([key.decode("utf-8") for key, _ in cells], target.groups)
        keys, values = (pa.array([cell[part] for cell in cells], pa.binary()) for part in (0, 1))
        yield exchange_rows(pa.array(shards, pa.int32()), keys, values)


def write_file_records(
    shards: FileRecordsShards, shard: int, batches: Iterator[pa.RecordBatch], attempt: TaskAttempt
) -> WrittenShard:
    """Writes the base file of one file group; with `shards` given, engine.protocol.Consume. See
    shard_file.write_shard.
    """
    storage, target = open_data_storage(shards.uri, shards.storage_options), shards.target

    def conflict(key: bytes) -> HudiError:
        return ExecutionError(
            f"two records of {target.name} have the key {key.decode('utf-8', 'replace')!r}", path=target.folder
        )

    return write_shard(storage, target, shard, distinct_rows(batches, conflict=conflict), attempt)


def _parts(partition_type: PartitionType, files: Sequence[DataFileRef]) -> Iterator[list[DataFileRef]]:
    """The files of each unit."""
    if not partition_type.needs.remaining:
        yield from (list(files[at : at + _UNIT_FILES]) for at in range(0, len(files), _UNIT_FILES))
        return
    held: list[DataFileRef] = []
    for _, items in itertools.groupby(files, lambda item: item.partition):
        held += items
        if len(held) >= _UNIT_FILES:
            yield held
            held = []
    if held:
        yield held


def _holds_filters(partition_type: PartitionType) -> bool:
    return partition_type.needs.bloom or (
        partition_type.needs.expression is not None and partition_type.needs.expression.base_files_only
    )


def _chunks(records: Iterable[Record], size: int) -> Iterator[list[Record]]:
    source = iter(records)
    while chunk := list(itertools.islice(source, size)):
        yield chunk


def _reference(partition: str, name: str, size: int) -> DataFileRef:
    return DataFileRef(partition, name, size, isinstance(parse_data_file(name), BaseFileName))
