"""Finds the files of a source, checks their rows against the schema, and counts them by partition."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field, replace
from hashlib import blake2b
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from hudi_core.codec.avro.arrow import arrow_schema
from hudi_core.codec.avro.arrow_types import spark_field
from hudi_core.codec.avro.schema import AvroSchema, without_fields
from hudi_core.codec.parquet.file import ParquetBaseFile
from hudi_core.config.rows_config import WriteConfig
from hudi_core.engine.protocol import Engine, TaskAttempt
from hudi_core.errors import (
    ConfigError,
    ConflictError,
    CorruptFileError,
    FormatError,
    StorageNotFoundError,
    UnsupportedError,
)
from hudi_core.filegroup.merge.base_merge import GROUP_SHARE
from hudi_core.filegroup.merge.ordering_values import Ordering
from hudi_core.filegroup.merge.table_policy import MergePolicy
from hudi_core.filegroup.read.base_file import base_batches
from hudi_core.filegroup.write.buckets import Buckets
from hudi_core.filegroup.write.key_generator import KeyGenerator
from hudi_core.frozen import dataclass
from hudi_core.model.names import META_FIELDS
from hudi_core.model.partition import PARTITION_METADATA, check_partitions
from hudi_core.services.source.key_scope import KeyScope
from hudi_core.services.source.schema import NO_COLUMN, check_names, check_types, evolve, named_as
from hudi_core.storage.arrow_store import open_data_storage
from hudi_core.storage.local import followed

log = logging.getLogger(__name__)

UNIT_BYTES: Final = 128 << 20
"""Compressed bytes of row groups that one task reads."""
FEW_KEYS: Final = 50_000
"""With more rows a write looks for all keys of its partitions (tag.py)."""
_FEW_FILES: Final = 64
_WHAT: Final = "source of a write"
_NO_PATH: Final = "give each row another value in the partition columns, or leave it out"
_DAMAGED: Final = "give a whole Parquet file, whose values the types of the table's columns hold"


@dataclass(frozen=True, slots=True)
class RowsFrom:
    """Where rows come from: the address `source`, or a query, or a function that returns a DataFrame; or the rows of
    the table itself that the predicate `where` selects.
    """

    source: str = ""
    query: str = ""
    dataframe: str = ""
    dataframe_args: Mapping[str, str] = field(default_factory=dict)
    where: str = ""


@dataclass(frozen=True, slots=True)
class Needs:
    """What a write needs of the rows of its source. `keys_only`: the columns of keys and partitions, for deletes.
    `one_of_a_key`: of the rows with one key (KeyScope) one is written, whatever the options say. `one_in_logs`: so it
    is where Hudi appends them to a bucket's log files, which merge them. `few_keys`: their keys on the driver, where
    they are few. `takes_hashing`: whether buckets by consistent hashing are written.
    """

    keys_only: bool = False
    one_of_a_key: bool = False
    one_in_logs: bool = False
    few_keys: bool = False
    takes_hashing: bool = False


@dataclass(frozen=True, slots=True)
class SourceRows:
    """How tasks read rows. `uri` is the folder of the files. `schema` is the table's, without meta fields. `dropped`
    are partition columns that base files lack (TableConfig.dropped_columns), whether or not the schema names them.
    `evolved_from` is the table's schema where these rows change it. `policy` says which rows are marked as deleted, and
    with `combines` the order of rows with one key of the `scope`. With `buckets` its key gives a row's file group.
    `keys_only`: the schema has the columns of keys and partitions, and other columns of the source do not matter.
    """

    uri: str
    storage_options: Mapping[str, str]
    schema: AvroSchema
    keys: KeyGenerator
    config: WriteConfig
    dropped: tuple[str, ...] = ()
    evolved_from: AvroSchema | None = None
    policy: MergePolicy | None = None
    combines: bool = False
    scope: KeyScope = field(default_factory=KeyScope)
    buckets: Buckets | None = None
    keys_only: bool = False

    @property
    def found_schema(self) -> AvroSchema:
        """The table's schema as it was when the rows were counted."""
        return self.schema if self.evolved_from is None else self.evolved_from

    @property
    def columns(self) -> pa.Schema:
        """The table's columns, as base files hold them."""
        return arrow_schema(without_fields(self.schema, self.dropped), path=self.uri)

    @property
    def named_columns(self) -> pa.Schema:
        """The table's columns, with those dropped ones that its schema names."""
        return arrow_schema(self.schema, path=self.uri)

    @property
    def ordering(self) -> Ordering:
        """What orders rows of one key. Raises UnsupportedError for a column of a type without order."""
        return Ordering(()) if self.policy is None else Ordering.of(self.policy, self.schema, path=self.uri)

    def read_columns(self, file: ParquetBaseFile) -> pa.Schema:
        """Returns the columns with the dropped ones. These have the type in the table's schema, or else the type that
        Spark gives them: partition paths of numbers depend on the type.
        """
        named, given = self.named_columns, named_as(self.dropped, file.schema)
        dropped = [
            named.field(name) if name in named.names else spark_field(given.field(name)) for name in self.dropped
        ]
        return pa.schema([*self.columns, *dropped])


@dataclass(frozen=True, slots=True)
class Source:
    """The address of a source. Where `names` are given, only these files of its folder count."""

    address: str
    names: frozenset[str] | None = None


@dataclass(frozen=True, slots=True)
class SourcePart:
    """Row groups of one file, from `first` to before `end` (None: to the last). `size` is their bytes. `footer` is the
    hash of the file's footer when its rows were counted; "" before.
    """

    name: str
    size: int
    first: int = 0
    end: int | None = None
    footer: str = ""


@dataclass(frozen=True, slots=True)
class CountUnit:
    """A file whose rows are counted."""

    rows: SourceRows
    part: SourcePart
    keeps_keys: bool = False


@dataclass(frozen=True, slots=True)
class FileCount:
    """How many rows of a file each partition gets, and the file's row groups in parts of about UNIT_BYTES. `keys` are
    those of the rows, by partition, where they were asked for and are at most FEW_KEYS; else empty.
    """

    by_partition: Mapping[str, int]
    parts: tuple[SourcePart, ...]
    keys: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CountedRows:
    """The rows of a source, by partition. `row_bytes` is a row's size in a base file, or None: as in the source. `keys`
    are the keys by partition where they are few (Needs.few_keys); else None.
    """

    rows: SourceRows
    parts: tuple[SourcePart, ...]
    by_partition: Mapping[str, int]
    row_bytes: float | None = None
    keys: Mapping[str, frozenset[str]] | None = None

    @property
    def count(self) -> int:
        """How many rows there are."""
        return sum(self.by_partition.values())

    @property
    def size(self) -> int:
        """The bytes of the new files, as estimated."""
        return sum(part.size for part in self.parts) if self.row_bytes is None else int(self.row_bytes * self.count)


def find_source(
    address: str, storage_options: Mapping[str, str], only: frozenset[str] | None = None
) -> tuple[str, list[SourcePart]]:
    """Returns the folder of a source and its files, sorted by name, without hidden ones and those that begin with `_`;
    with `only`, these alone. Follows a local address that is a symbolic link, but no links in the folder. Raises
    StorageNotFoundError where there is no file, or not all of `only`; ConfigError for a folder with other files, or of
    a Hudi table; UnsupportedError for one with folders, because the values in their names would be lost.
    """
    address = followed(address)
    folder, _, name = address.rstrip("/").rpartition("/")
    if name and (folder or "/" not in address):
        try:
            found = open_data_storage(folder or ".", storage_options).stat(name)
            return folder or ".", [SourcePart(name, found.size)]
        except StorageNotFoundError:
            pass
    storage = open_data_storage(address, storage_options)
    every, below = storage.list_files(""), storage.list_folders("")
    if ".hoodie" in below or any(info.name.startswith(PARTITION_METADATA) for info in every):
        raise ConfigError(
            f"the {_WHAT} is a folder of a Hudi table, whose files hold rows that were changed or deleted since",
            path=address,
            remedy="give a query of that table, or the file of `hudictl read TABLE --output FILE`",
        )
    files = [info for info in every if not info.name.startswith(("_", "."))]
    folders = [path for path in below if not path.startswith(("_", "."))]
    if folders:
        raise UnsupportedError(
            f"the {_WHAT} has the folder {folders[0]!r}",
            path=address,
            remedy="give one folder of Parquet files with all columns in them",
        )
    if only is not None:
        files = [info for info in files if info.name in only]
        if len(files) < len(only):
            raise StorageNotFoundError(
                f"the {_WHAT} lacks {len(only) - len(files)} of its files", path=address, remedy="run again"
            )
    if not files:
        raise StorageNotFoundError(
            f"the {_WHAT} is no file, and no folder of Parquet files",
            path=address,
            remedy="give the address of a Parquet file, or of a folder of them, that all executors can read",
        )
    other = next((info.name for info in files if not info.name.endswith(".parquet")), None)
    if other is not None:
        raise ConfigError(
            f"the {_WHAT} holds {other!r}, which is not named .parquet",
            path=address,
            remedy="give a folder of Parquet files alone, named .parquet",
        )
    return address, [SourcePart(info.name, info.size) for info in files]


def evolved_rows(rows: SourceRows, first: SourcePart, version: int) -> SourceRows:
    """Returns the rows with the table's later schema, by the first file. Raises as evolve and check_names."""
    with _opened(rows, first) as file:
        evolution = evolve(rows.schema, file, {*META_FIELDS, *rows.dropped}, version)
    if not evolution:
        return rows
    log.info("columns that the rows add: %s; that they widen: %s", list(evolution.added), list(evolution.widened))
    return replace(rows, schema=evolution.schema, evolved_from=rows.schema)


def count_rows(engine: Engine, rows: SourceRows, files: Sequence[SourcePart], *, few_keys: bool = False) -> CountedRows:
    """Counts the rows of all files, and with `few_keys` returns their keys where they are few. Raises as count_file.
    Memory on the driver: a number for each partition, and FEW_KEYS keys of each of _FEW_FILES files.
    """
    counts: dict[str, int] = {}
    keys: dict[str, set[str]] = {}
    parts: list[SourcePart] = []
    keeps_keys = few_keys and len(files) <= _FEW_FILES
    for result in engine.run(count_file, [CountUnit(rows, part, keeps_keys) for part in files], run_epoch=0):
        parts += result.parts
        for partition, count in result.by_partition.items():
            counts[partition] = counts.get(partition, 0) + count
        for partition, of_file in result.keys.items():
            keys.setdefault(partition, set()).update(of_file)
    has_all = keeps_keys and sum(counts.values()) <= FEW_KEYS
    found = {partition: frozenset(of_all) for partition, of_all in keys.items()} if has_all else None
    return CountedRows(rows, tuple(parts), dict(sorted(counts.items())), keys=found)


def count_file(unit: CountUnit, attempt: TaskAttempt) -> FileCount:
    """Counts the rows of a file (the UnitTask of counting). Raises ConfigError naming the file for columns that do not
    fit the table's; FormatError for rows without a key or a bucket, or with an unsafe partition path, and as
    check_ordered where rows are combined; for a null that the table does not have, too; CorruptFileError for a file
    that is not Parquet. Memory: a batch of the columns of keys, partitions and ordering values, and of required ones.
    """
    counts: dict[str, int] = {}
    kept: dict[str, list[str]] = {}
    with open_part(unit.rows, unit.part) as file:
        keeps_keys = unit.keeps_keys and file.num_rows <= FEW_KEYS
        every, ordering = unit.rows.read_columns(file), unit.rows.ordering if unit.rows.combines else Ordering(())
        ordered = (column.name.partition(".")[0] for column in ordering.columns)
        required = (name for name in every.names if not every.field(name).nullable)
        names = dict.fromkeys((*unit.rows.keys.columns, *ordered, *required))
        columns = pa.schema([every.field(name) for name in names])
        for batch in _batches(unit.rows, file, columns):
            path = file.path
            check_ordered(batch, ordering, path=path)
            _check_required(batch, columns, path=path)
            keys = unit.rows.keys.keys(batch, path=path)
            if unit.rows.buckets is not None:
                unit.rows.buckets.hashes(keys, path=path)
            partitions = unit.rows.keys.partitions(batch, path=path)
            for counted in pc.value_counts(partitions).to_pylist():
                counts[counted["values"]] = counts.get(counted["values"], 0) + counted["counts"]
            if keeps_keys:
                for partition in pc.unique(partitions).to_pylist():
                    kept.setdefault(partition, []).extend(keys.filter(pc.equal(partitions, partition)).to_pylist())
        try:
            check_partitions(counts, source=file.path)
        except FormatError as error:
            raise FormatError(error.message, path=error.path, remedy=_NO_PATH) from error
        return FileCount(counts, tuple(_parts(file, unit.part)), {name: tuple(of) for name, of in kept.items()})


def check_ordered(batch: pa.RecordBatch, ordering: Ordering, *, path: str) -> None:
    """Raises FormatError naming `path` for rows without an ordering value, which Hudi refuses to combine, too."""
    for column in ordering.columns:
        absent = column.from_rows(batch).null_count
        if absent:
            raise FormatError(
                f"{absent} rows have no value in {column.name!r}, by which they are combined",
                path=path,
                remedy="give each row one",
            )


@contextmanager
def open_part(rows: SourceRows, part: SourcePart) -> Iterator[ParquetBaseFile]:
    """Opens the file of a part, and checks its columns. Raises the errors of count_file."""
    with _opened(rows, part) as file:
        # Meta columns of another table's rows are written anew, as HoodieSparkSqlWriter does.
        named = rows.named_columns
        passed = {*META_FIELDS, *rows.dropped} - {*named.names}
        given = named_as([*named.names, *passed], file.schema)
        if rows.keys_only:
            passed |= {*given.names} - {*named.names}
        check_types([field for field in given if field.name not in passed], named, file)
        # Without the column all rows would go to the partition of nulls.
        needed = (*rows.keys.partition_fields, *rows.dropped)
        absent = next((name for name in needed if name not in given.names), None)
        if absent is not None:
            raise ConfigError(
                f"the source has no column {absent!r}, by which the table is partitioned",
                path=file.path,
                remedy=NO_COLUMN,
            )
        yield file


@contextmanager
def _opened(rows: SourceRows, part: SourcePart) -> Iterator[ParquetBaseFile]:
    """Opens a file of the source. Its errors have the remedies for a file that does not belong to the table."""
    storage = open_data_storage(rows.uri, rows.storage_options)
    path = f"{rows.uri}/{part.name}"
    try:
        with storage.open_input(part.name) as stream, ParquetBaseFile(stream, path, storage.limits) as file:
            if part.footer and part.footer != _hash(file):
                raise ConflictError(
                    "the file was changed since its rows were counted",
                    path=path,
                    remedy="run it again when no process writes the source",
                )
            check_names(file.schema, path=path)
            yield file
    except CorruptFileError as error:
        raise CorruptFileError(error.message, path=error.path, remedy=_DAMAGED) from error
    except StorageNotFoundError as error:
        if not part.footer:  # it was listed, but perhaps by another machine
            raise
        message, remedy = "the file was deleted since its rows were counted", "run it again"
        raise ConflictError(message, path=path, remedy=remedy) from error


def read_part(rows: SourceRows, part: SourcePart) -> Iterator[pa.RecordBatch]:
    """Yields the rows of a part with SourceRows.read_columns; columns that the file lacks are null. Raises the errors
    of count_file, and FormatError for a value that the table does not take.
    """
    with open_part(rows, part) as file:
        columns = rows.read_columns(file)
        groups = range(part.first, file.metadata.num_row_groups if part.end is None else part.end)
        for batch in _batches(rows, file, columns, list(groups)):
            _check_required(batch, columns, path=file.path)
            yield batch


def _check_required(batch: pa.RecordBatch, columns: pa.Schema, *, path: str) -> None:
    for name, column in zip(columns.names, batch.columns, strict=True):
        if column.null_count and not columns.field(name).nullable:
            raise FormatError(
                f"the column {name!r} holds nulls, which the table does not", path=path, remedy="give each row a value"
            )


def _batches(
    rows: SourceRows, file: ParquetBaseFile, columns: pa.Schema, groups: Sequence[int] | None = None
) -> Iterator[pa.RecordBatch]:
    """Yields the batches of a file; the option airflow_hudi.batch.rows and the memory budget limit their size. Raises
    FormatError for a text that is not UTF-8, which Parquet files may hold and neither Avro nor a path does.
    """
    share = rows.config.memory_bytes // GROUP_SHARE
    for batch in base_batches(file, columns, batch_rows=rows.config.batch_rows, batch_bytes=share, row_groups=groups):
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            try:
                column.validate(full=True)
            except pa.ArrowInvalid as error:
                message = f"the column {name!r} has a value that is none of the type {column.type}: {error}"
                raise FormatError(message, path=file.path, remedy="correct the rows; texts are UTF-8") from error
        yield batch


def _parts(file: ParquetBaseFile, whole: SourcePart) -> Iterator[SourcePart]:
    first = size = 0
    groups = file.metadata.num_row_groups
    for number in range(groups):
        group = file.metadata.row_group(number)
        size += sum(group.column(at).total_compressed_size for at in range(group.num_columns))
        if size >= UNIT_BYTES or number == groups - 1:
            yield SourcePart(whole.name, size, first, number + 1, _hash(file))
            first, size = number + 1, 0


def _hash(file: ParquetBaseFile) -> str:
    return blake2b(file.footer_bytes, digest_size=16).hexdigest()
