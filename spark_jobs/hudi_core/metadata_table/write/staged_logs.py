"""Stages log blocks: executors write finished blocks before a deltacommit starts, into a folder outside the table's
partitions. Under the table lock, a writer copies them into log files of the present file slices (delta_writer). A dead
attempt leaves only staged files.

The blocks have the rows of row-level indexes, and the records of each file of a commit. Hudi's writers roll pending
deltacommits of the metadata table back as soon as they see them. So nothing of a commit may be in the metadata table
before the lock is held (docs/decisions/0010). An exchange reads each file once and brings its records to the file
groups of the indexes. One more shard merges the statistics of each data partition, for the driver.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial, reduce
from itertools import accumulate, groupby
from operator import attrgetter
from typing import Final

import pyarrow as pa

from hudi_core.codec.hashing import group_indexes
from hudi_core.engine.exchange import exchange_rows
from hudi_core.engine.protocol import Engine, TaskAttempt
from hudi_core.engine.serializer import from_text, to_text
from hudi_core.errors import ExecutionError, HudiError
from hudi_core.frozen import dataclass
from hudi_core.metadata_table.extract.data_file import StatisticsRequirements, read_file_statistics
from hudi_core.metadata_table.partitions.registry import maintained
from hudi_core.metadata_table.partitions.row_exchange import LOG_BYTES, Conflict, RowsOfIndex, log_contents
from hudi_core.metadata_table.read.row_level import OtherPartitions
from hudi_core.metadata_table.record import RecordEncoder, block_schema
from hudi_core.metadata_table.records.file_statistics import DataFileRef, FileStatistics, Record
from hudi_core.metadata_table.records.range_merge import merge_statistics
from hudi_core.metadata_table.timeline import MetadataTimeline, latest_schema
from hudi_core.model.names import WriteToken
from hudi_core.storage.arrow_store import open_data_storage
from hudi_core.storage.base import Storage

STAGING: Final = ".hoodie/.airflow_hudi/metadata"
"""The folder of staged blocks: it has a folder for each instant, and in that one for each attempt."""


@dataclass(frozen=True, slots=True)
class StagedLog:
    """The staged blocks of one log file: their path, the numbers of records and deletions, and the size in bytes."""

    file_id: str
    path: str
    records: int
    deletions: int
    size: int


@dataclass(frozen=True, slots=True)
class Workers:
    """The tasks of one attempt: their engine, the attempt's `epoch`, and how they open the table."""

    engine: Engine
    epoch: int
    uri: str
    storage_options: Mapping[str, str]

    @property
    def token(self) -> WriteToken:
        return WriteToken(0, self.epoch, 0)

    def staging_target(self, metadata_timeline: MetadataTimeline, instant: str) -> StagingTarget:
        active = metadata_timeline.active
        return StagingTarget(
            self.uri,
            dict(self.storage_options),
            instant,
            block_schema(latest_schema(active, active.load())),
            staging_folder(instant, self.epoch),
        )


def staging_folder(instant: str, epoch: int) -> str:
    return f"{STAGING}/{instant}/{epoch}"


@dataclass(frozen=True, slots=True)
class StagingTarget:
    """The place where the tasks of one attempt at an instant stage blocks. `schema` is the schema of stored records."""

    uri: str
    storage_options: Mapping[str, str]
    instant: str
    schema: str
    folder: str

    def stage(
        self,
        partition: str,
        file_id: str,
        batches: Iterator[pa.RecordBatch],
        attempt: TaskAttempt,
        *,
        conflict: Conflict | None,
        limit: int = LOG_BYTES,
    ) -> Iterator[StagedLog]:
        """Stages the blocks of one file group (row_exchange.log_contents), under names of this attempt."""
        storage = open_data_storage(self.uri, self.storage_options)
        contents = log_contents(partition, batches, self.instant, self.schema, conflict=conflict, limit=limit)
        token = f"{attempt.partition_id}-{attempt.stage_id}-{attempt.attempt_id}"
        for number, content in enumerate(contents):
            path = f"{self.folder}/{partition}_{file_id}_{number}_{token}"
            storage.write(path, content.data)
            yield StagedLog(file_id, path, content.records, content.deletions, len(content.data))


@dataclass(frozen=True, slots=True)
class LogShards:
    """The place where the rows of a row-level index are staged. `file_ids` are in the order of shards; `others` is used
    for a record index. In a clustering (`is_clustering`) a key with rows in several file groups keeps one of its
    places, as in Hudi 0.15.0; other changes that bring such rows are refused.
    """

    target: StagingTarget
    index: RowsOfIndex
    file_ids: tuple[str, ...]
    others: OtherPartitions | None = None
    is_clustering: bool = False


@dataclass(frozen=True, slots=True)
class StagedShard:
    """A shard's result: staged blocks and the number of omitted deletions (OtherPartitions); or merged statistics."""

    logs: tuple[StagedLog, ...] = ()
    spared: int = 0
    wholes: tuple[FileStatistics, ...] = ()


def write_log_shard(
    shards: LogShards, shard: int, batches: Iterator[pa.RecordBatch], attempt: TaskAttempt
) -> StagedShard:
    """Stages the blocks of one file group; with `shards` given it is an engine.protocol.Consume."""
    rows, target, others = shards.index.rows, shards.target, shards.others
    elsewhere = None if others is None else others.open(open_data_storage(target.uri, target.storage_options))
    if elsewhere is not None:
        batches = elsewhere.filtered(shard, batches)
    conflict = None if shards.is_clustering else rows.conflict
    logs = tuple(target.stage(rows.partition, shards.file_ids[shard], batches, attempt, conflict=conflict))
    return StagedShard(logs, 0 if elsewhere is None else elsewhere.spared)


def staged_instants(storage: Storage) -> frozenset[str]:
    return frozenset(folder.rpartition("/")[2] for folder in storage.list_folders(STAGING))


def forget_staged(storage: Storage, instant: str, *, up_to: int | None = None) -> None:
    """Deletes the staged blocks of an instant, or of attempts `up_to` an epoch; under the lock or after completion."""
    if up_to is None:
        storage.delete_folder(f"{STAGING}/{instant}")
        return
    for folder in storage.list_folders(f"{STAGING}/{instant}"):
        epoch = folder.rpartition("/")[2]
        if not epoch.isdecimal() or int(epoch) <= up_to:
            storage.delete_folder(folder)


DRIVER_FILES: Final = 64
"""For at most so many files, the driver gets the statistics of each; with Hudi's defaults 430 KB for each filter."""
_UNIT_FILES: Final = 50
_BATCH_BYTES: Final = 4 << 20
_BATCH_ROWS: Final = 4096

Groups = Mapping[str, Sequence[str]]
"""The ids of the file groups of metadata partitions, in order."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """Staged blocks and their file groups' ids, by index; for files of a commit also merged statistics by partition."""

    groups: Groups
    staged: Mapping[str, Sequence[StagedLog]]
    wholes: tuple[FileStatistics, ...] = ()


@dataclass(frozen=True, slots=True)
class PrepareTarget:
    """The target of a preparation's tasks: where they stage, the statistics that they read, and the file groups."""

    staging: StagingTarget
    requirements: StatisticsRequirements
    groups: Groups


@dataclass(frozen=True, slots=True)
class PrepareUnit:
    target: PrepareTarget
    files: tuple[DataFileRef, ...]


def prepare_files(
    workers: Workers,
    staging: StagingTarget,
    files: Sequence[DataFileRef],
    requirements: StatisticsRequirements,
    groups: Groups,
) -> Prepared:
    """Stages the records of `files` for the indexes in `groups`: `column_stats`, `bloom_filters`, expression indexes.
    Raises the errors of Engine.exchange and read_file_statistics. Memory: names of files, ranges of data partitions.
    """
    target = PrepareTarget(staging, requirements, {name: tuple(groups[name]) for name in sorted(groups)})
    ordered = sorted(files, key=lambda item: (item.partition, item.name))
    units = [PrepareUnit(target, tuple(ordered[at : at + _UNIT_FILES])) for at in range(0, len(ordered), _UNIT_FILES)]
    shards = sum(map(len, groups.values())) + 1
    found = workers.engine.exchange(
        produce_file_records, units, partial(stage_file_records, target), shards=shards, run_epoch=workers.epoch
    )
    staged: dict[str, list[StagedLog]] = {}
    for (name, _), item in zip(_shards(groups), found, strict=False):
        staged.setdefault(name, []).extend(item.logs)
    return Prepared(groups, staged, found[-1].wholes)


def produce_file_records(unit: PrepareUnit, attempt: TaskAttempt) -> Iterator[pa.RecordBatch]:
    """Yields the records of a unit's files, and the merged statistics of their partitions (engine.protocol.Produce).
    Memory: a batch of records, and the ranges of one data partition's files.
    """
    target, staging = unit.target, unit.target.staging
    storage, encoder = open_data_storage(staging.uri, staging.storage_options), RecordEncoder(staging.schema)
    groups, starts = target.groups, _starts(target.groups)
    made = {name: _records_of(name, target.requirements, staging.instant) for name in groups}
    rows = RecordRows()
    for _, files in groupby(unit.files, attrgetter("partition")):
        held: list[FileStatistics] = []
        for file in files:
            statistics = read_file_statistics(storage, file, target.requirements)
            held.append(replace(statistics, bloom=None))
            for name, records in made.items():
                for key, datum in records([statistics]):
                    if isinstance(datum, Mapping):
                        yield from rows.add(starts[name], len(groups[name]), key, encoder.value(datum))
        whole = merge_statistics(held)
        yield from rows.add(starts[None], 1, whole.file.partition, to_text(whole).encode("ascii"))
    yield from rows.batches()


def stage_file_records(
    target: PrepareTarget, shard: int, batches: Iterator[pa.RecordBatch], attempt: TaskAttempt
) -> StagedShard:
    """Stages the blocks of one file group; the last shard merges the statistics of data partitions. With `target` given
    it is an engine.protocol.Consume.
    """
    places = _shards(target.groups)
    if shard == len(places):
        return StagedShard(wholes=tuple(_wholes(batches)))
    name, file_id = places[shard]

    def conflict(key: bytes) -> HudiError:
        return ExecutionError(f"two records of the index {name} have the key {key.decode('utf-8', 'replace')!r}")

    return StagedShard(tuple(target.staging.stage(name, file_id, batches, attempt, conflict=conflict)))


def _wholes(batches: Iterable[pa.RecordBatch]) -> Iterator[FileStatistics]:
    found = (from_text(FileStatistics, value) for batch in batches for value in batch.column(1).to_pylist())
    for _, items in groupby(found, lambda item: item.file.partition):
        yield reduce(lambda held, item: merge_statistics([held, item]), items)


def _records_of(
    name: str, requirements: StatisticsRequirements, instant: str
) -> Callable[[Iterable[FileStatistics]], Iterable[Record]]:
    partition_type = maintained(name)
    expression = next((item for item in requirements.expressions if item.partition == name), None)
    return lambda files: partition_type.of_files(instant, files, expression)


def _shards(groups: Groups) -> list[tuple[str, str]]:
    return [(name, file_id) for name in sorted(groups) for file_id in groups[name]]


def _starts(groups: Groups) -> dict[str | None, int]:
    """Returns the first shard of each metadata partition, and under None the shard of the data partitions."""
    counts = [len(groups[name]) for name in sorted(groups)]
    return dict(zip((*sorted(groups), None), accumulate(counts, initial=0), strict=True))


class RecordRows:
    """Rows of an exchange that wait for their batch, by metadata partition. The hash of a key gives its shard."""

    def __init__(self) -> None:
        self._hashed: dict[tuple[int, int], tuple[list[str], list[bytes]]] = {}
        self._bytes = 0
        self._count = 0

    def add(self, start: int, groups: int, key: str, value: bytes) -> Iterator[pa.RecordBatch]:
        """Adds a row for one of `groups` shards from `start` on. Yields the batches when they are full."""
        keys, values = self._hashed.setdefault((start, groups), ([], []))
        keys.append(key)
        values.append(value)
        self._bytes += len(value)
        self._count += 1
        if self._bytes >= _BATCH_BYTES or self._count >= _BATCH_ROWS:
            yield from self.batches()

    def batches(self) -> Iterator[pa.RecordBatch]:
        for (start, groups), (keys, values) in self._hashed.items():
            texts = pa.array(keys, pa.string())
            shards = pa.array(group_indexes(texts, groups) + start, pa.int32())
            yield exchange_rows(shards, texts.cast(pa.binary()), pa.array(values, pa.binary()))
        self._hashed, self._bytes, self._count = {}, 0, 0
