"""What a source changes in the table's schema: columns that it adds, and numbers that it makes wider.

A writer of Hudi does the same by default (HoodieSchemaUtils.deduceWriterSchema, HoodieSparkSqlWriter): the schema of
its commit is the table's from then on, and older rows are null in a new column.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from hudi_core.codec.avro.arrow import arrow_schema
from hudi_core.codec.avro.arrow_types import avro_schema, spark_field
from hudi_core.codec.avro.bounds import check_bounds
from hudi_core.codec.avro.schema import AvroSchema
from hudi_core.codec.parquet.file import ParquetBaseFile
from hudi_core.errors import ConfigError, UnsupportedError
from hudi_core.model.names import OPERATION
from hudi_core.services.overwrite.source_types import fits, named_as, with_instants

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_WIDER: Final[Mapping[pa.DataType, Mapping[pa.DataType, str]]] = {
    pa.int32(): {pa.int64(): "long", pa.float64(): "double"},
    pa.float32(): {pa.float64(): "double"},
}
"""Avro's name of the wider type, by the table's type and the source's: those that hold every value of the former."""
_LOCAL_TIMES: Final = 9
"""The table version from which on Hudi has timestamps without a zone: 0.15.0 reads and writes no table with one, and
1.0.2 takes them for numbers.
"""


@dataclass(frozen=True, slots=True)
class Evolution:
    """The schema that the commit has, and the names of the columns that make the difference."""

    schema: AvroSchema
    added: tuple[str, ...] = ()
    widened: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.added or self.widened)


def evolve(table: AvroSchema, file: ParquetBaseFile, passed: Collection[str], version: int) -> Evolution:
    """The schema of a table of the version with what a file adds to it; `passed` are columns of the file that are
    not stored. New columns come last, are nullable, and of the types in which Spark reads them, as a writer of Hudi
    stores them: a commit with others would stop writers.

    Raises ConfigError for a new column with a name, its own or within it, that is none in Avro, and for that of Flink's
    change logs; UnsupportedError for one of a type that Avro, Spark or this table's Hudi has not, and for more columns
    than a schema may have.
    """
    path = file.path
    known = {field.name: field.type for field in arrow_schema(table, path=path)}
    added, widened, wider = [], [], {}
    for field in named_as([*known, *passed], with_instants(file)):
        if field.name in passed:
            continue
        if field.name not in known:
            if field.name.lower() == OPERATION:
                raise ConfigError(
                    f"the source has the column {OPERATION}, by which rows of a change log are marked as deleted",
                    path=path,
                    remedy="leave the column out, and the rows that it deletes",
                )
            _check_name(field.name, field.name, path)
            _check_type(field.type, field.name, version, path)
            added.append(spark_field(field).with_nullable(True))
            continue
        held = known[field.name]
        name = None if fits(field.type, held) else _WIDER.get(held, {}).get(field.type)
        if name is not None:
            widened.append(field.name)
            wider[field.name] = name
    fields = [_widened(entry, wider.get(entry["name"])) for entry in table["fields"]]
    schema = {**table, "fields": fields + _new_fields(table, added, path)}
    check_bounds(schema, path=path)  # of more columns no reader of ours would take the schema
    return Evolution(schema, tuple(field.name for field in added), tuple(widened))


def _check_name(name: str, column: str, path: str) -> None:
    """`column` is the name with those of the structs around it."""
    if _NAME.fullmatch(name) is None:
        raise ConfigError(
            f"the table has no column {column!r}, and {name!r} can be no name in its schema",
            path=path,
            remedy="rename it in the source to letters, digits and _",
        )


def _check_type(kind: pa.DataType, column: str, version: int, path: str) -> None:
    """The names and types within a type; `column` as in _check_name."""
    if pa.types.is_struct(kind):
        for inner in (kind.field(at) for at in range(kind.num_fields)):
            _check_name(inner.name, f"{column}.{inner.name}", path)
            _check_type(inner.type, f"{column}.{inner.name}", version, path)
    elif pa.types.is_map(kind):
        _check_type(kind.item_type, f"{column}.value", version, path)
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
        _check_type(kind.value_type, f"{column}.element", version, path)
    elif pa.types.is_time(kind) or (pa.types.is_timestamp(kind) and kind.unit == "ns"):
        raise UnsupportedError(
            f"the column {column!r} is of the type {kind}, which Spark does not read",
            path=path,
            remedy="cast it in the source to text, a number or a timestamp of microseconds",
        )
    elif pa.types.is_timestamp(kind) and kind.tz is None and version < _LOCAL_TIMES:
        raise UnsupportedError(
            f"the column {column!r} is of the type {kind}, without a zone, which Hudi has not before table version "
            f"{_LOCAL_TIMES}",
            path=path,
            remedy="cast it to a timestamp in UTC in the source",
        )


def _widened(entry: dict[str, Any], name: str | None) -> dict[str, Any]:
    if name is None:
        return entry
    kind = entry["type"]
    if isinstance(kind, list):
        return {**entry, "type": [branch if branch == "null" else name for branch in kind]}
    return {**entry, "type": name}


def _new_fields(table: AvroSchema, added: list[pa.Field], path: str) -> list[dict[str, Any]]:
    found = avro_schema(pa.schema(added), path=path)["fields"]
    namespace = ".".join(filter(None, (table.get("namespace"), table["name"])))
    return [{**entry, "type": _named(entry["type"], entry["name"], namespace)} for entry in found]


def _named(kind: Any, name: str, namespace: str) -> Any:
    """The type of the field `name` with the names that Spark's writers give (SchemaConverters.toAvroType), by which
    releases of Hudi compare them; decimals in as many bytes as their digits need.
    """
    if isinstance(kind, list):
        return [_named(item, name, namespace) for item in kind]
    if not isinstance(kind, dict):
        return kind
    if kind.get("logicalType") == "decimal":
        size = _bytes_of(kind["precision"])
        return {**kind, "type": "fixed", "name": "fixed", "namespace": f"{namespace}.{name}", "size": size}
    if kind["type"] == "record":
        inner = f"{namespace}.{name}"
        fields = [{**entry, "type": _named(entry["type"], entry["name"], inner)} for entry in kind["fields"]]
        return {**kind, "name": name, "namespace": namespace, "fields": fields}
    return {key: _named(value, name, namespace) if key in ("items", "values") else value for key, value in kind.items()}


def _bytes_of(precision: int) -> int:
    """Decimal.minBytesForPrecision of Spark."""
    size = 1
    while 2 ** (8 * size - 1) < 10**precision:
        size += 1
    return size
