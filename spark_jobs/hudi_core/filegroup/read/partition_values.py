"""Reads the values in a partition path (hive style, URL escapes, dates with slashes, times), and says which columns a
query reads from the path (HoodieHadoopFsRelationFactory, BaseHoodieTableFileIndex, Spark3ParsePartitionUtil).
model/partition.py says which paths are safe.

The values of a path and of rows differ in three cases: empty values, which become `__HIVE_DEFAULT_PARTITION__` and are
read as null; timestamps that a writer put there as numbers; key generators that derive the path from the column.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from hudi_core.config.rows_config import SLASHED_DATES
from hudi_core.config.table_config import TableConfig
from hudi_core.errors import ConfigError, UnsupportedError
from hudi_core.expr.wall_time import parse_timestamp, zone_of
from hudi_core.filegroup.merge.table_policy import reads_as_hudi_1
from hudi_core.frozen import dataclass

KEYGENERATOR_CLASS = "hoodie.table.keygenerator.class"
KEYGENERATOR_TYPE = "hoodie.table.keygenerator.type"
PARTITION_FIELDS = "hoodie.table.partition.fields"
DEFAULT_PARTITION = "__HIVE_DEFAULT_PARTITION__"
_ESCAPED = re.compile(r"%([0-9A-Fa-f]{2})")
_HUDIS_PACKAGES = ("org.apache.hudi.", "org.apache.spark.sql.hudi.")
_TIMESTAMP = ("TimestampBasedKeyGenerator", "TimestampBasedAvroKeyGenerator", "TIMESTAMP", "TIMESTAMP_AVRO")
"""Classes and types of key generators whose partition paths are times formatted from a column."""
_CUSTOM = ("CustomKeyGenerator", "CustomAvroKeyGenerator", "CUSTOM", "CUSTOM_AVRO")
"""Classes and types whose partition fields have a type each, SIMPLE or TIMESTAMP."""


@dataclass(frozen=True, slots=True)
class PartitionColumns:
    """Where a query's partition columns come from. `from_path` are read from the partition path and replace what rows
    hold. `as_text` are read from rows and turned to text. `last` puts the columns of `from_path` after all others, as
    Spark does for a file source.
    """

    from_path: tuple[str, ...]
    as_text: frozenset[str]
    text_path: bool
    last: bool

    def field(self, name: str, schema: pa.Schema) -> pa.Field:
        """Returns the field of a column from the path: text with `text_path`, or when rows do not store the column."""
        return pa.field(name, pa.string()) if self.text_path or name not in schema.names else schema.field(name)


def partition_columns(config: TableConfig, *, merged: bool, incremental: bool) -> PartitionColumns:
    """Returns the rule for one query. `merged` says that log files are merged, `incremental` that the query is of a
    range of commits. Hudi 0.15 takes partition values from the path when it reads base files through Spark's Parquet
    source, else from rows. Hudi 1.x takes them from the path, except for columns that the path does not determine (of a
    timestamp key generator) or that merging needs (HoodieHadoopFsRelationFactory.partitionColumnsToRead).
    """
    fields = config.partition_fields
    timestamp = _has_key_generator(config, _TIMESTAMP)
    if not reads_as_hudi_1(config):
        stored = (merged or incremental) and not config.drop_partition_columns
        return PartitionColumns(() if stored else fields, frozenset(), timestamp, True)
    if config.drop_partition_columns:
        return PartitionColumns(fields, frozenset(), timestamp, False)
    from_rows = {name for name in fields if name in config.ordering_fields} | _variable(config, timestamp)
    from_path = tuple(name for name in fields if name not in from_rows)
    return PartitionColumns(from_path, frozenset(fields) if timestamp else frozenset(), timestamp, False)


def has_keys_in_rows(config: TableConfig) -> bool:
    """Whether a user's class makes the table's record keys and partition paths, by rules that are not known."""
    name = config.raw.get(KEYGENERATOR_CLASS, "")
    return bool(name) and not name.startswith(_HUDIS_PACKAGES)


def not_in_path(config: TableConfig) -> frozenset[str]:
    """Returns the partition columns that the path does not give: formatted times, and a user's key generator's."""
    if has_keys_in_rows(config):
        return frozenset(config.partition_fields)
    return frozenset(_variable(config, _has_key_generator(config, _TIMESTAMP)))


def _variable(config: TableConfig, timestamp: bool) -> set[str]:
    if timestamp:
        return set(config.partition_fields)
    if not _has_key_generator(config, _CUSTOM):
        return set()
    typed = [entry.partition(":") for entry in config.raw.get(PARTITION_FIELDS, "").split(",")]
    # Tables of older writers do not record the types; any of the columns may then be a time.
    if not all(kind for _, _, kind in typed):
        return set(config.partition_fields)
    return {name.strip() for name, _, kind in typed if kind.strip().upper() == "TIMESTAMP"}


def _has_key_generator(config: TableConfig, names: Sequence[str]) -> bool:
    """Whether the table's key generator is one of `names`, by its class or by its type."""
    name = config.raw.get(KEYGENERATOR_CLASS, "").rsplit(".", 1)[-1]
    return name in names or config.raw.get(KEYGENERATOR_TYPE, "").upper() in names


def path_values(
    partition: str, config: TableConfig, columns: Sequence[pa.Field], *, zone: str | None
) -> dict[str, pa.Scalar]:
    """Returns the values of `columns` in the path `partition`, whose levels are the table's partition columns. A lone
    column may span several levels; otherwise the result is empty when there are not as many levels as columns. `zone`
    is that of timestamps, UTC when None. Raises UnsupportedError naming the partition when a value is not of its
    column's type, ConfigError for an unknown zone.
    """
    parts = path_parts(partition, config.partition_fields)
    if has_slashed_dates(config):
        parts = {name: with_dashes(part) for name, part in parts.items()}
    texts = {name: _text(part, name) for name, part in parts.items()}
    return {field.name: _value(texts[field.name], field.type, partition, zone) for field in columns} if texts else {}


def path_parts(partition: str, names: Sequence[str]) -> dict[str, str]:
    """Returns the part of the path for each partition column, as it is; empty when path_values is empty."""
    parts = [partition] if len(names) == 1 else partition.split("/")
    return dict(zip(names, parts, strict=True)) if partition and len(parts) == len(names) else {}


def has_slashed_dates(config: TableConfig) -> bool:
    """Whether the table's only partition column is a date whose path has slashes instead of dashes, since Hudi 1.2.
    Raises ConfigError for a property that is neither true nor false.
    """
    return len(config.partition_fields) == 1 and SLASHED_DATES.read(config.raw, path=config.path)


def with_dashes(part: str) -> str:
    """Returns a slashed date of a path as it is read (HoodieSparkUtils). The writer escapes before it replaces."""
    return part.replace("/", "-")


def as_text(column: pa.Array, *, path: str) -> pa.Array:
    """Returns stored values of a partition column as text. Raises UnsupportedError naming `path` for other types."""
    try:
        return pc.cast(column, pa.string())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise UnsupportedError(f"a partition column of type {column.type} has no text", path=path) from error


def unescaped(text: str) -> str:
    """Returns the text with its %XX escapes resolved, each to the character of that number
    (ExternalCatalogUtils.unescapePathName). Spark does so whether or not the table's writer escaped.
    """
    return _ESCAPED.sub(lambda found: chr(int(found[1], 16)), text)


def _text(part: str, name: str) -> str | None:
    text = unescaped(part.removeprefix(f"{name}="))
    return None if text == DEFAULT_PARTITION else text


def _value(text: str | None, kind: pa.DataType, partition: str, zone: str | None) -> pa.Scalar:
    if text is None:
        return pa.scalar(None, kind)
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        return _moment(text, kind, zone)
    value: Any = pa.scalar(text)
    try:
        return value.cast(kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise UnsupportedError(f"partition value {text!r} is not of type {kind}: {error}", path=partition) from error


def _moment(text: str, kind: pa.DataType, zone: str | None) -> pa.Scalar:
    """Returns the text as Spark casts it without ANSI mode (castPartValueToDesiredType). It is null for a text that is
    no timestamp, such as the microseconds that writers of DataFrames put into the path; SQL writes local time.
    """
    try:
        wall = parse_timestamp(text)
    except ConfigError:
        return pa.scalar(None, kind)
    if wall.tzinfo is None:
        wall = wall.replace(tzinfo=zone_of(zone or "UTC"))
    return pa.scalar(wall, kind)
