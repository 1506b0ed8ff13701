"""Initializes indexes by an exchange: executors read data files, and write a base file for each file group. Indexes of
files get the records that their type makes of the files' statistics; for an index of whole data partitions, all files
of a data partition go to one task. Row-level indexes get the rows' keys.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final, TypeVar

import pyarrow as pa

from hudi_core.engine.protocol import Produce, TaskAttempt
from hudi_core.errors import ExecutionError, HudiError
from hudi_core.frozen import dataclass
from hudi_core.metadata_table.extract.data_file import StatisticsRequirements, read_file_statistics
from hudi_core.metadata_table.indexed_table import IndexedTable
from hudi_core.metadata_table.initialize.initialize import Initialization, Sizes
from hudi_core.metadata_table.initialize.target import NewBaseFile, NewPartition, WrittenShard
from hudi_core.metadata_table.partitions.protocol import PartitionType
from hudi_core.metadata_table.partitions.registry import partition_type_of, requirements_of, row_level_type
from hudi_core.metadata_table.partitions.row_exchange import (
    IndexUnit,
    RowsOfIndex,
    base_cells,
    distinct_rows,
    produce_index_rows,
)
from hudi_core.metadata_table.partitions.row_level import Counts, SliceChange
from hudi_core.metadata_table.record import RecordEncoder
from hudi_core.metadata_table.records.file_statistics import DataFileRef, FileStatistics
from hudi_core.metadata_table.write.staged_logs import RecordRows, Workers
from hudi_core.storage.arrow_store import open_data_storage
from hudi_core.view.file_group import DataFile, FileSlice

_UNIT_FILES: Final = 50
"""The files that one task reads; more where all files of a data partition belong to one task and it has more."""
U = TypeVar("U")


def files_of_all_slices(files: Sizes) -> list[DataFileRef]:
    """Returns all committed files (initialize.committed_files), for partition types with `needs.older_slices`."""
    return [
        DataFileRef.of(DataFile(partition, name, size))
        for partition, sizes in files.items()
        for name, size in sizes.items()
    ]


def files_of_latest_slices(slices: Iterable[FileSlice]) -> list[DataFileRef]:
    """Returns the files that a snapshot query reads, for all other partition types of files."""
    return [DataFileRef.of(file) for item in slices for file in item.files]


def initialization_from_files(
    partition_type: PartitionType, table: IndexedTable, files: Sequence[DataFileRef], instant: str, workers: Workers
) -> Initialization:
    """Returns the initialization of an index of files. `files` are the files that the type's needs ask for, by data
    partition. `instant` is the table's latest completed instant (instants.SOLO_COMMIT: none), which filters name.
    Raises the errors of PartitionType.group_count; the fill raises the errors of read_file_statistics and
    Engine.exchange. Memory of the driver: the names of the files. Memory of a task: some megabytes of records; for a
    type of whole data partitions the ranges of one partition's files, 400 bytes for each column and file.
    """

    def fill(target: NewPartition) -> list[NewBaseFile]:
        shards = IndexShards(workers.uri, workers.storage_options, target)
        units = [FileRecordsUnit(shards, table, instant, tuple(part)) for part in _parts(partition_type, files)]
        return _write(workers, shards, produce_file_records, units)

    return Initialization(
        partition_type.partition,
        partition_type.file_ids(partition_type.group_count(table.settings)),
        fill,
        partition_type.definition(),
    )


def initialization_from_rows(
    name: str, table: IndexedTable, counts: Counts, slices: Sequence[FileSlice], spec: str, workers: Workers, zone: str
) -> Initialization:
    """Returns the initialization of a row-level index. `counts` are its file groups (row_level.group_counts), `slices`
    the latest merged file slices, `spec` the ReaderSpec of a snapshot query as text, `zone` the time zone of instants.
    The fill raises the errors of produce_index_rows, of Engine.exchange and of reading the slices.
    """
    index = row_level_type(name, table)

    def fill(target: NewPartition) -> list[NewBaseFile]:
        rows = RowsOfIndex.of(index.rows(counts, target.schema, zone))
        units = [
            IndexUnit(workers.uri, workers.storage_options, spec, rows, SliceChange(None, item)) for item in slices
        ]
        shards = IndexShards(workers.uri, workers.storage_options, target, rows)
        return _write(workers, shards, produce_index_rows, units)

    return Initialization(name, index.row_file_ids(counts), fill, index.definition())


@dataclass(frozen=True, slots=True)
class IndexShards:
    """The new partition that an exchange writes; `index` makes the rows of a row-level index."""

    uri: str
    storage_options: Mapping[str, str]
    target: NewPartition
    index: RowsOfIndex | None = None


@dataclass(frozen=True, slots=True)
class FileRecordsUnit:
    """The files of the indexed table that one task reads; `instant` as in initialization_from_files."""

    shards: IndexShards
    table: IndexedTable
    instant: str
    files: tuple[DataFileRef, ...]


def _write(workers: Workers, shards: IndexShards, produce: Produce[U], units: Sequence[U]) -> list[NewBaseFile]:
    if not shards.target.file_ids:
        return []  # a partitioned record index of a table without data partitions: the first commit brings them
    found = workers.engine.exchange(
        produce, units, partial(write_base_shard, shards), shards=len(shards.target.file_ids), run_epoch=workers.epoch
    )
    return [item.file for item in found if item.file is not None]


def produce_file_records(unit: FileRecordsUnit, attempt: TaskAttempt) -> Iterator[pa.RecordBatch]:
    """Yields the records of a unit's files (Produce). Raises the errors of read_file_statistics and of the type."""
    target = unit.shards.target
    storage = open_data_storage(unit.shards.uri, unit.shards.storage_options)
    partition_type = partition_type_of(target.name, unit.table)
    requirements = requirements_of(unit.table, [partition_type])
    records = partition_type.initial(
        unit.instant, (read_file_statistics(storage, item, requirements) for item in unit.files)
    )
    encoder, rows = RecordEncoder(target.schema), RecordRows()
    for key, datum in records:
        if isinstance(datum, Mapping):
            yield from rows.add(0, len(target.file_ids), key, encoder.value(datum))
    yield from rows.batches()


def write_base_shard(
    shards: IndexShards, shard: int, batches: Iterator[pa.RecordBatch], attempt: TaskAttempt
) -> WrittenShard:
    """Writes a file group's base file; with `shards` it is an engine.protocol.Consume. Memory: write_shard's."""
    storage, target = open_data_storage(shards.uri, shards.storage_options), shards.target

    def conflict(key: bytes) -> HudiError:
        return ExecutionError(
            f"two records of {target.name} have the key {key.decode('utf-8', 'replace')!r}", path=target.folder
        )

    cells = (
        distinct_rows(batches, conflict=conflict) if shards.index is None else base_cells(shards.index.rows, batches)
    )
    return target.write_shard(storage, shard, cells, attempt)


def _parts(partition_type: PartitionType, files: Sequence[DataFileRef]) -> Iterator[list[DataFileRef]]:
    part: list[DataFileRef] = []
    for file in files:
        is_whole = not partition_type.needs.remaining or (part and part[-1].partition != file.partition)
        if len(part) >= _UNIT_FILES and is_whole:
            yield part
            part = []
        part.append(file)
    if part:
        yield part


@dataclass(frozen=True, slots=True)
class StatisticsUnit:
    uri: str
    storage_options: Mapping[str, str]
    requirements: StatisticsRequirements
    files: tuple[DataFileRef, ...]


@dataclass(frozen=True, slots=True)
class ReadStatistics:
    statistics: tuple[FileStatistics, ...]


def read_statistics(
    workers: Workers, files: Sequence[DataFileRef], requirements: StatisticsRequirements
) -> Iterator[FileStatistics]:
    """Yields the statistics of `files` in order; the driver holds all. Raises the errors of read_file_statistics."""
    units = [
        StatisticsUnit(workers.uri, workers.storage_options, requirements, tuple(files[at : at + _UNIT_FILES]))
        for at in range(0, len(files), _UNIT_FILES)
    ]
    for result in workers.engine.run(read_statistics_task, units, run_epoch=workers.epoch):
        yield from result.statistics


def read_statistics_task(unit: StatisticsUnit, attempt: TaskAttempt) -> ReadStatistics:
    storage = open_data_storage(unit.uri, unit.storage_options)
    return ReadStatistics(tuple(read_file_statistics(storage, item, unit.requirements) for item in unit.files))
