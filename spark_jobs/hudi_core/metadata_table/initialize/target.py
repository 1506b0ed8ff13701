"""A partition of the metadata table during its initialization: its file groups' files, written here or by tasks.

Every file group starts with a log file of 80 bytes with an empty delete block: so it is listed without records.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

import pyarrow as pa

from hudi_core.codec.hashing import file_group_indexes
from hudi_core.codec.log.blocks import BlockType, HeaderKey, encode_block
from hudi_core.config.table_config import METADATA, METADATA_INFLIGHT, TableConfig, update_properties
from hudi_core.config.versions import TableVersion
from hudi_core.engine.protocol import TaskAttempt
from hudi_core.errors import BuildRolledBackError, ExecutionError, StorageExistsError
from hudi_core.frozen import dataclass
from hudi_core.metadata_table.instants import initial_instant, marks
from hudi_core.metadata_table.partition_type import is_secondary_index
from hudi_core.metadata_table.read.file_group import ROOT, metadata_path
from hudi_core.metadata_table.record import RecordEncoder
from hudi_core.metadata_table.records.file_statistics import Record
from hudi_core.metadata_table.timeline import NEWER_COUNTS, MetadataTimeline, latest_schema
from hudi_core.metadata_table.write.base_file import MetadataBaseFile
from hudi_core.model.names import BaseFileName, LogFileName, WriteToken
from hudi_core.model.partition import PARTITION_METADATA, check_file_name, check_file_names, join
from hudi_core.storage.base import Storage
from hudi_core.timeline.actions.commit import SCHEMA_KEY, CommitMetadata
from hudi_core.timeline.actions.write_stats import WriteStat
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.timeline.instant import Action
from hudi_core.timeline.timeline import Timeline
from hudi_core.transaction.reconcile import remove_losers

_UNIT: Final = "index unit"
_NO_TOKEN: Final = WriteToken(0, 0, 0)
_EMPTY_DELETES: Final = bytes.fromhex("000000030000000100")
"""A delete block of version 3 without records."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class NewBaseFile:
    file_id: str
    name: str
    records: int
    size: int


@dataclass(frozen=True, slots=True)
class NewPartition:
    """The place of a partition's files, for tasks. `file_ids` are in order: a key's hash gives the position."""

    name: str
    instant: str
    file_ids: tuple[str, ...]
    token: WriteToken
    schema: str
    bloom_entries: int

    def __post_init__(self) -> None:
        """Raises FormatError for names that leave the metadata table."""
        check_file_name(self.name, source=_UNIT)
        check_file_names(self.file_ids, source=_UNIT)

    @property
    def folder(self) -> str:
        return f"{ROOT}/{self.name}"

    def begin(self, storage: Storage, time: str | None = None) -> None:
        """Empties the folder and creates the file groups. `time` is the initialization's time, if not the instant."""
        storage.delete_folder(self.folder)
        content = f"#partition metadata\ncommitTime={time or self.instant}\npartitionDepth=1\n"
        storage.create_exclusive(join(self.folder, PARTITION_METADATA), content.encode("ascii"))
        for file_id in self.file_ids:
            initialize_group(storage, self.name, file_id, self.instant)

    def check_initialized(self, storage: Storage, group: int) -> None:
        """Raises BuildRolledBackError when the file group's first log file is gone: another process rolled it back."""
        path = metadata_path(first_log(self.file_ids[group], self.instant), self.name)
        if not storage.exists(path):
            message = f"another process rolled back what was built of the metadata partition `{self.name}`"
            remedy = "run the indexing again"
            raise BuildRolledBackError(message, path=path, remedy=remedy)

    def write(self, storage: Storage, records: Iterable[Record]) -> list[NewBaseFile]:
        """Writes records from this process. Raises ValueError for two of one key. Memory: all records, as encoded."""
        cells = RecordEncoder(self.schema).cells((key, datum) for key, datum in records if datum is not None)
        indexes = file_group_indexes([key.decode("utf-8") for key, _ in cells], len(self.file_ids)).tolist()
        by_group: dict[int, list[tuple[bytes, bytes]]] = {}
        for cell, index in zip(cells, indexes, strict=True):
            by_group.setdefault(index, []).append(cell)
        return [self._write_group(storage, group, cells=by_group[group]) for group in sorted(by_group)]

    def write_shard(
        self, storage: Storage, shard: int, batches: Iterator[pa.RecordBatch], attempt: TaskAttempt
    ) -> WrittenShard:
        """Writes the cells of an exchange's shard: sorted, each key once. Memory: MetadataBaseFile's and a batch."""
        cells = (batch for batch in batches if batch.num_rows)
        first = next(cells, None)
        if first is None:
            return WrittenShard()
        token = WriteToken(attempt.partition_id, attempt.stage_id, attempt.attempt_id)
        return WrittenShard(self._write_group(storage, shard, token, batches=itertools.chain((first,), cells)))

    def _write_group(
        self,
        storage: Storage,
        group: int,
        token: WriteToken | None = None,
        *,
        cells: Iterable[tuple[bytes, bytes]] = (),
        batches: Iterable[pa.RecordBatch] = (),
    ) -> NewBaseFile:
        name = BaseFileName(
            self.file_ids[group], token or replace(self.token, partition_id=group), self.instant, "hfile"
        )
        self.check_initialized(storage, group)
        with MetadataBaseFile(storage, f"{self.folder}/{name}", self.schema, bloom_entries=self.bloom_entries) as file:
            for key, value in cells:
                file.add(key, value)
            for batch in batches:
                file.add_batch(batch.column(0), batch.column(1))
            self.check_initialized(storage, group)
            size = file.close()
        return NewBaseFile(name.file_id, str(name), file.count, size)


@dataclass(frozen=True, slots=True)
class WrittenShard:
    file: NewBaseFile | None = None


def first_log(file_id: str, instant: str) -> LogFileName:
    """Returns the name of a file group's first log file (HoodieBackedTableMetadataWriter.initializeFileGroups)."""
    return LogFileName(file_id, instant, 1, _NO_TOKEN)


def initialize_group(storage: Storage, partition: str, file_id: str, instant: str) -> None:
    block = encode_block(BlockType.DELETE, {HeaderKey.INSTANT_TIME: instant}, _EMPTY_DELETES)
    storage.create_exclusive(metadata_path(first_log(file_id, instant), partition), block)


Fill = Callable[[NewPartition], Sequence[NewBaseFile]]
"""Writes the base files of a new partition; file groups without records have none."""


def start_initialization(metadata_timeline: MetadataTimeline, instant: str) -> None:
    metadata_timeline.active.create_requested(instant, Action.DELTA_COMMIT)
    metadata_timeline.active.to_inflight(instant, Action.DELTA_COMMIT)


def complete_initialization(
    metadata_timeline: MetadataTimeline, instant: str, written: Mapping[str, Sequence[NewBaseFile]], schema: str
) -> None:
    """Completes the deltacommit of an initialization. `written` are the base files by metadata partition."""
    features = metadata_timeline.features
    stats = {
        name: tuple(_base_stat(name, file, features) for file in files) for name, files in written.items() if files
    }
    metadata = CommitMetadata(stats, False, features.metadata_initialized_with, {SCHEMA_KEY: schema})
    metadata_timeline.complete(instant, Action.DELTA_COMMIT, metadata_timeline.commit_content(metadata))


def check_written(target: NewPartition, written: Sequence[NewBaseFile]) -> None:
    """Raises ExecutionError unless tasks report at most one file per file group, with this instant in its name."""
    by_group = {item.file_id: item for item in written}
    wrong = [
        item
        for item in written
        if item.file_id not in target.file_ids or not item.name.endswith(f"_{target.instant}.hfile") or item.size <= 0
    ]
    if len(by_group) != len(written) or wrong:
        message = f"what was written of the metadata partition `{target.name}` does not fit its file groups"
        raise ExecutionError(message, path=target.folder)


def remove_attempts(
    storage: Storage, target: NewPartition, written: Sequence[NewBaseFile], guard: Callable[[], None]
) -> None:
    """Deletes the files of the tasks' other attempts: they would count. `guard` raises when the table lock is lost."""
    winners = {f"{target.folder}/{item.name}": item.size for item in written}
    remove_losers(storage, target.instant, [target.folder], winners, check=guard)


def list_partitions(storage: Storage, config: TableConfig, names: Sequence[str]) -> TableConfig:
    """Lists inflight partitions as initialized in the table's properties, and returns these. The caller holds the table
    lock. The partitions have all that completed; for secondary indexes the properties say so (instants.marks).
    """
    data = ActiveTimeline(storage, config).load()
    return update_properties(
        storage,
        {
            METADATA.name: ",".join(sorted(config.metadata_partitions.union(names))),
            METADATA_INFLIGHT.name: ",".join(sorted(config.metadata_partitions_inflight.difference(names))),
            **marks(data, {name: storage.list_files(f"{ROOT}/{name}") for name in names if is_secondary_index(name)}),
        },
    )


def initialize_groups(metadata_timeline: MetadataTimeline, data: Timeline, name: str, file_ids: Sequence[str]) -> None:
    """Adds file groups without records to a partition, for example for a new data partition of a partitioned record
    index. `data` is the data table's timeline. The caller holds the table lock. May be repeated after a crash: files of
    an incomplete deltacommit are ignored, and the same file groups are created under the next instant.
    """
    if not file_ids:
        return
    timeline = metadata_timeline.active.load()
    instant = initial_instant(data, timeline, metadata_timeline.features)
    log.info("the metadata partition %s gets the file groups %s", name, ", ".join(file_ids))
    start_initialization(metadata_timeline, instant)
    for file_id in file_ids:
        # The instant of a dead attempt may have been rolled back, but its file kept: the file is the same.
        with contextlib.suppress(StorageExistsError):
            initialize_group(metadata_timeline.storage, name, file_id, instant)
    complete_initialization(metadata_timeline, instant, {}, latest_schema(metadata_timeline.active, timeline))


def _base_stat(partition: str, file: NewBaseFile, features: TableVersion) -> WriteStat:
    """Returns the write stat of a base file, like HoodieCreateHandle."""
    return WriteStat(
        file_id=file.file_id,
        path=join(partition, file.name),
        partition_path=partition,
        prev_commit="null",
        num_writes=file.records,
        num_deletes=0,
        num_update_writes=0,
        num_inserts=file.records,
        file_size_in_bytes=file.size,
        total_write_bytes=file.size,
        extra={} if features.json_commits else NEWER_COUNTS,
    )
