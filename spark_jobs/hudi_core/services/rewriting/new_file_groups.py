"""Writes new base files: of new file groups, where the next begins as one ends by its size, or of one file group."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import field
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from hudi_core.codec.avro.schema import AvroSchema, without_fields
from hudi_core.codec.parquet.file import ParquetBaseFile
from hudi_core.codec.parquet.page_sink import CopiedRows
from hudi_core.config.rows_config import WriteConfig
from hudi_core.errors import FormatError
from hudi_core.filegroup.merge.table_policy import reads_as_hudi_1
from hudi_core.filegroup.write.base_file_writer import BaseFileHandle
from hudi_core.filegroup.write.markers import MarkerType, check_attempt, create_marker
from hudi_core.frozen import dataclass
from hudi_core.metadata_table.extract.data_file import StatisticsRequirements, read_file_statistics
from hudi_core.metadata_table.records.file_statistics import FileStatistics
from hudi_core.model.names import COMMIT_SEQNO, COMMIT_TIME, BaseFileName, FileGroupId, WriteToken, parse_base_file
from hudi_core.model.partition import join
from hudi_core.services.rewriting.proof import Rewritten, file_of, unproved
from hudi_core.storage.base import Storage
from hudi_core.timeline.actions.write_stats import NULL_COMMIT, WriteStat

if TYPE_CHECKING:
    from hudi_core.engine.protocol import TaskAttempt
    from hudi_core.services.context import TableContext

DEFAULT_CODEC: Final = "GZIP"


@dataclass(frozen=True, slots=True)
class NewFiles:
    """What all new files of an instant have in common. `schema` is the table's, without meta fields. A file ends once
    it has `target_bytes`, at the end of a row group, but not within FileGroupWriter.joining. `stamps_rows`: rows get
    the commit time and sequence numbers of this instant. `requirements` are what the metadata table must know.
    `as_hudi_1` is table_policy.reads_as_hudi_1. `has_meta` is TableConfig.populate_meta_fields.
    """

    instant: str
    schema: AvroSchema
    config: WriteConfig
    target_bytes: int
    as_hudi_1: bool
    stamps_rows: bool = False
    requirements: StatisticsRequirements | None = None
    has_meta: bool = True

    @staticmethod
    def of(
        context: TableContext,
        instant: str,
        schema: AvroSchema,
        target_bytes: int,
        requirements: StatisticsRequirements | None,
        *,
        stamps_rows: bool = True,
    ) -> NewFiles:
        """Returns the settings for a table of this `schema`. Stamps no row of a table without meta fields."""
        config = context.config
        return NewFiles(
            instant,
            without_fields(schema, config.dropped_columns),
            WriteConfig.of(context.options),
            target_bytes,
            as_hudi_1=reads_as_hudi_1(config),
            stamps_rows=stamps_rows and config.populate_meta_fields,
            requirements=requirements,
            has_meta=config.populate_meta_fields,
        )


@dataclass(frozen=True, slots=True)
class NewFile:
    """A new file. `statistics` are those that were required."""

    stat: WriteStat
    statistics: FileStatistics | None = None


@dataclass
class FileGroupWriter:
    """Writes rows of a partition to file groups `<prefix>-0` and so on. Where its `with` ends by an error, the open
    file is removed. Sequence numbers begin at `next_row`, after another writer of this attempt.
    """

    storage: Storage
    files: NewFiles
    partition: str
    prefix: str
    codec: str
    attempt: TaskAttempt
    done: list[NewFile] = field(default_factory=list)
    next_row: int = 0
    spark_version: str | None = None
    """The version that BaseFileHandle gets: it says that dates and timestamps are proleptic."""
    only: MarkerType | None = None
    """The type of the marker, where the file is a new version of the file group whose id is `prefix` itself."""

    def __post_init__(self) -> None:
        self._handle: BaseFileHandle | None = None
        self._stack = ExitStack()
        self._started = 0.0
        self._number = 0
        self._knows_keys = False

    def turn_to(self, partition: str, prefix: str) -> None:
        """Completes the file. The next rows go to other file groups."""
        self._end()
        self.partition, self.prefix, self._number = partition, prefix, 0

    def write(self, batch: pa.RecordBatch) -> None:
        """Appends rows, with their keys unless these were joined."""
        if batch.num_rows:
            rows = self._stamped(batch) if self.files.stamps_rows else batch
            self.handle.write(rows, known_keys=self._knows_keys)
            self._end_full()

    def copy(self, rows: CopiedRows, keys: Iterable[pa.Array]) -> None:
        """Appends rows of another file undecoded. `keys` are their record keys; none where they were joined."""
        self.handle.copy(rows)
        for some in keys:
            self.handle.keys.add(some)
        self._end_full()

    @contextmanager
    def joining(self, base: ParquetBaseFile) -> Iterator[bool]:
        """Joins the keys of `base` by its footer; the block then appends all rows of `base`. Yields whether the keys
        were joined: not where so many bytes fill the file, nor where the footer does not fit (FileKeys.join). The file
        does not end within the block: else look-ups would miss the rows in the next one.
        """
        has_room = self.handle.position + base.size < self.files.target_bytes
        self._knows_keys = has_room and self.handle.keys.join(base)
        yield self._knows_keys
        self._knows_keys = False
        self._end_full()

    @property
    def handle(self) -> BaseFileHandle:
        """The file that rows are appended to; it is begun where there is none."""
        if self._handle is None:
            self._started = time.perf_counter()
            token = WriteToken(self.attempt.partition_id, self.attempt.stage_id, self.attempt.attempt_id)
            file_id = self.prefix if self.only is not None else f"{self.prefix}-{self._number}"
            name = str(parse_base_file(str(BaseFileName(file_id, token, self.files.instant, "parquet"))))
            instant, epoch, kind = self.files.instant, self.attempt.stage_id, self.only or MarkerType.CREATE
            self._marker = create_marker(self.storage, instant, self.partition, name, kind)
            check_attempt(self.storage, instant, epoch, self._marker, closed=False)
            self._handle = self._stack.enter_context(
                BaseFileHandle(
                    self.storage,
                    join(self.partition, name),
                    self.files.schema,
                    self.files.config,
                    codec=self.codec,
                    spark_version=self.spark_version,
                    has_keys=self.files.has_meta,
                )
            )
        return self._handle

    def close(self) -> tuple[NewFile, ...]:
        """Completes the last file, and returns all files. There is none where no row came."""
        self._end()
        return tuple(self.done)

    def _stamped(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Returns the rows with this instant's commit time and sequence numbers (HoodieRecord.generateSequenceId)."""
        numbers = pa.array(range(self.next_row, self.next_row + batch.num_rows)).cast(pa.string())
        self.next_row += batch.num_rows
        start = f"{self.files.instant}_{self.attempt.partition_id}_"
        columns = {
            COMMIT_TIME: pa.repeat(pa.scalar(self.files.instant), batch.num_rows),
            COMMIT_SEQNO: pa.compute.binary_join_element_wise(pa.scalar(start), numbers, ""),
        }
        arrays = [columns.get(name, batch.column(at)) for at, name in enumerate(batch.schema.names)]
        return pa.RecordBatch.from_arrays(arrays, schema=batch.schema)

    def _end_full(self) -> None:
        is_full = self._handle is not None and self._handle.position >= self.files.target_bytes
        if is_full and not self._knows_keys:
            self._end()

    def _end(self) -> None:
        handle = self._handle
        if handle is None:
            return
        size = handle.close()
        check_attempt(self.storage, self.files.instant, self.attempt.stage_id, self._marker, closed=True)
        self._handle = None
        self._number += 1
        self._stack.close()
        created_ms = int((time.perf_counter() - self._started) * 1000)
        stat = self._stat(handle, size, created_ms)
        self.done.append(
            NewFile(stat, statistics_of(self.storage, stat, self.files.requirements, content=handle.content))
        )

    def _stat(self, handle: BaseFileHandle, size: int, created_ms: int) -> WriteStat:
        extra: dict[str, Any] = {"numUpdates": 0, "totalLogReadTimeMs": 0} if self.files.as_hudi_1 else {}
        return WriteStat(
            file_id=parse_base_file(handle.path.rpartition("/")[2]).file_id,
            path=handle.path,
            partition_path=self.partition,
            prev_commit=NULL_COMMIT,
            num_writes=handle.rows,
            num_deletes=0,
            num_update_writes=0,
            num_inserts=handle.rows,
            file_size_in_bytes=size,
            total_write_bytes=size,
            total_create_time_ms=created_ms,
            extra=extra,
        )

    def __enter__(self) -> FileGroupWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.__exit__(kind, error, trace)


def statistics_of(
    storage: Storage,
    stat: WriteStat,
    requirements: StatisticsRequirements | None,
    *,
    is_base: bool = True,
    content: bytes | None = None,
) -> FileStatistics | None:
    """Returns the required statistics of a new file. `content` is that of a base file, where it is known."""
    if requirements is None:
        return None
    return read_file_statistics(storage, file_of(stat, is_base=is_base), requirements, content)


def prove_files(
    files: Sequence[NewFile],
    rows: Mapping[str, int],
    instant: str,
    replaced: Collection[FileGroupId],
    *,
    with_statistics: bool,
) -> Rewritten:
    """Returns the new files, once they are shown to hold as many rows as there are by partition. Raises ExecutionError
    otherwise. Also raises it for a file of another partition or with a replaced id, and for missing statistics.
    """
    stats = [file.stat for file in files]
    known = frozenset(group.file_id for group in replaced)
    written: dict[str, int] = {}
    for stat in stats:
        _check_file(stat, instant, rows, known)
        written[stat.partition_path] = written.get(stat.partition_path, 0) + stat.num_writes
    for partition in sorted({*rows, *written}):
        if rows.get(partition, 0) != written.get(partition, 0):
            raise unproved(
                f"{rows.get(partition, 0)} rows were read and {written.get(partition, 0)} written in {partition!r}"
            )
    if len({(stat.partition_path, stat.file_id) for stat in stats}) != len(stats):
        raise unproved("two files are of one file group")
    statistics: list[FileStatistics] = []
    for file in files if with_statistics else ():
        if file.statistics is None or file.statistics.file != file_of(file.stat):
            raise unproved(f"the statistics of {file.stat.path} for the metadata table are not there")
        statistics.append(file.statistics)
    return Rewritten(list(map(file_of, stats)), stats, statistics)


def _check_file(stat: WriteStat, instant: str, partitions: Collection[str], replaced: Collection[str]) -> None:
    try:
        name = parse_base_file(stat.name)
    except FormatError as error:
        raise unproved(f"the engine returned {stat.path!r}: {error.message}") from error
    is_right = (
        stat.partition_path in partitions
        and stat.path == join(stat.partition_path, stat.name)
        and (name.file_id, name.instant) == (stat.file_id, instant)
        and name.file_id not in replaced
        and stat.file_size_in_bytes > 0
        and stat.num_writes > 0
    )
    if not is_right:
        raise unproved(f"the engine returned {stat.path!r} of {stat.file_size_in_bytes} bytes, {stat.num_writes} rows")
