"""Says which columns of a source a table takes: its types must hold no value that the table's types do not. Says also
what the source changes in the table's schema: the columns that it adds, and the numbers that it makes wider.

A writer of Hudi changes the schema by default as well (HoodieSchemaUtils.deduceWriterSchema, HoodieSparkSqlWriter): the
schema of its commit is the table's from then on, and older rows are null in a new column.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa

from hudi_core.codec.avro.arrow import arrow_schema
from hudi_core.codec.avro.arrow_types import avro_schema, spark_field
from hudi_core.codec.avro.schema import AvroSchema, check_bounds
from hudi_core.codec.columns import is_binary, is_list, is_string
from hudi_core.codec.parquet.file import ParquetBaseFile
from hudi_core.codec.parquet.footer import schema_of
from hudi_core.errors import ConfigError, UnsupportedError
from hudi_core.frozen import dataclass
from hudi_core.model.names import OPERATION, spelled

_INTEGERS: Final = {pa.int8(): 1, pa.int16(): 2, pa.int32(): 4, pa.int64(): 8}
_FLOATS: Final = {pa.float32(): 4, pa.float64(): 8}
_UNITS: Final = ("s", "ms", "us", "ns")
_INT96: Final = "INT96"
NO_COLUMN: Final = "add the column to the source"
"""The remedy for a file that lacks a column."""
_VECTOR: Final = (
    "the column may be a VECTOR of Hudi 1.2, which is taken as its bytes alone: overwrite with Hudi, or give a "
    "fixed-size binary of the numbers, the lowest byte of each first"
)


def check_names(fields: Iterable[pa.Field], *, path: str | None, around: str = "") -> None:
    """Raises ConfigError naming `path` for two fields with one name. `around` names the structs around them."""
    taken: dict[str, str] = {}
    for field in fields:
        name = f"{around}{field.name}"
        if field.name.lower() in taken:
            raise ConfigError(
                f"the columns {taken[field.name.lower()]!r} and {name!r} have one name for Spark, which ignores upper "
                "and lower case",
                path=path,
                remedy="rename one of them in the source",
            )
        taken[field.name.lower()] = name
        _check_within(field.type, path, name)


def _check_within(kind: pa.DataType, path: str | None, name: str) -> None:
    if pa.types.is_struct(kind):
        check_names((kind.field(at) for at in range(kind.num_fields)), path=path, around=f"{name}.")
    elif pa.types.is_map(kind):
        _check_within(kind.key_type, path, f"{name}.key")
        _check_within(kind.item_type, path, f"{name}.value")
    elif pa.types.is_nested(kind) and kind.num_fields == 1:
        _check_within(kind.value_type, path, f"{name}.element")


def named_as(known: Sequence[str], given: pa.Schema) -> pa.Schema:
    """Returns a source's columns under the names of `known`. Columns and nested fields match in any case."""
    names = spelled(given.names, known)
    return pa.schema([field.with_name(name) for field, name in zip(given, names, strict=True)])


def check_types(given: Sequence[pa.Field], table: pa.Schema, file: ParquetBaseFile) -> None:
    """Raises ConfigError for an unknown column, a missing required one, or a type that the table's does not hold."""
    names = {field.name for field in given}
    instants = named_as(table.names, with_instants(file))
    for field in given:
        if field.name not in table.names:
            raise ConfigError(
                f"the table has no column {field.name!r}",
                path=file.path,
                remedy="leave it out, or put the file with all columns first: the first by its name adds new ones",
            )
        expected = table.field(field.name)
        kind = field.type
        if not any(fits(one, expected.type) for one in (kind, instants.field(field.name).type)):
            may_be_vector = pa.types.is_fixed_size_binary(expected.type) and (
                is_list(kind) or pa.types.is_fixed_size_list(kind)
            )
            raise ConfigError(
                f"the column {field.name!r} is of type {kind}, and the table's of {expected.type}",
                path=file.path,
                remedy=_VECTOR if may_be_vector else "cast it in the source",
            )
    for field in table:
        if not field.nullable and field.name not in names:
            raise ConfigError(
                f"the source has no column {field.name!r}, which the table requires", path=file.path, remedy=NO_COLUMN
            )


def fits(given: pa.DataType, table: pa.DataType) -> bool:
    """Whether the type `table` holds every value of the type `given`, as Avro resolves schemas: wider numbers, the same
    kind of text, a finer unit of time, more digits. Bytes of one length fit too: Spark reads them as any others. A
    whole number becomes the nearest float that there is, as by Hudi. arrow_conform converts what fits.
    """
    if given.equals(table):
        return True
    if pa.types.is_dictionary(given):
        return fits(given.value_type, table)
    if given in _INTEGERS:
        return _INTEGERS[given] <= _INTEGERS.get(table, 0) or table in _FLOATS
    if given in _FLOATS:
        return _FLOATS[given] <= _FLOATS.get(table, 0)
    if is_string(given) and is_string(table):
        return True
    if is_binary(table) and (is_binary(given) or pa.types.is_fixed_size_binary(given)):
        return True
    if pa.types.is_timestamp(given) and pa.types.is_timestamp(table):
        same = (given.tz is None) == (table.tz is None)
        return same and _UNITS.index(given.unit) <= _UNITS.index(table.unit)
    if pa.types.is_decimal(given) and pa.types.is_decimal(table):
        return bool(given.scale == table.scale and given.precision <= table.precision)
    return _nested_fits(given, table)


def _nested_fits(given: pa.DataType, table: pa.DataType) -> bool:
    if pa.types.is_struct(given) and pa.types.is_struct(table):
        expected = [table.field(at) for at in range(table.num_fields)]
        columns = named_as([field.name for field in expected], pa.schema(list(given)))
        inner = dict(zip(columns.names, columns.types, strict=True))
        return inner.keys() <= {field.name for field in expected} and all(
            fits(inner[field.name], field.type) if field.name in inner else field.nullable for field in expected
        )
    if pa.types.is_map(given) and pa.types.is_map(table):
        return fits(given.key_type, table.key_type) and fits(given.item_type, table.item_type)
    if is_list(given) and is_list(table):
        return fits(given.value_type, table.value_type)
    return False


def with_instants(file: ParquetBaseFile) -> pa.Schema:
    """Returns the file's columns. Times of INT96, the default of Spark's writers, are instants, also in structs."""
    schema = schema_of(file.metadata)
    leaves = iter([schema.column(at).physical_type == _INT96 for at in range(len(schema))])
    return pa.schema([field.with_type(_instants(field.type, leaves)) for field in file.schema])


def _instants(kind: pa.DataType, are_int96: Iterator[bool]) -> pa.DataType:
    """Returns a type for with_instants. `are_int96` says of each leaf, in the file's order, whether it is INT96."""
    inner = [kind.field(at) for at in range(kind.num_fields)] if pa.types.is_nested(kind) else []
    fields = [field.with_type(_instants(field.type, are_int96)) for field in inner]
    if not inner:
        is_int96 = next(are_int96, False) and pa.types.is_timestamp(kind)
        return pa.timestamp(kind.unit, "UTC") if is_int96 else kind
    if pa.types.is_struct(kind):
        return pa.struct(fields)
    if pa.types.is_map(kind):
        return pa.map_(fields[0].type.field(0), fields[0].type.field(1), keys_sorted=kind.keys_sorted)
    return pa.list_(*fields) if pa.types.is_list(kind) else kind


_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_WIDER: Final[Mapping[pa.DataType, Mapping[pa.DataType, str]]] = {
    pa.int32(): {pa.int64(): "long", pa.float64(): "double"},
    pa.float32(): {pa.float64(): "double"},
}
"""Avro's name of the wider type, which holds every value, by the table's type and the source's."""
_LOCAL_TIMES: Final = 9
"""From this table version on Hudi has timestamps without a zone. Hudi 1.0.2 takes them for numbers."""


@dataclass(frozen=True, slots=True)
class Evolution:
    """The schema of the commit, and the names of the columns that make the difference."""

    schema: AvroSchema
    added: tuple[str, ...] = ()
    widened: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.added or self.widened)


def evolve(table: AvroSchema, file: ParquetBaseFile, passed: Collection[str], version: int) -> Evolution:
    """Returns the schema of a table of the version with the columns that a file adds. `passed` are columns that are not
    stored. New columns come last, nullable, with Spark's types, as in Hudi. Raises ConfigError for a name, its own or
    within it, that Avro does not allow, and for the column of Flink's change logs. Raises UnsupportedError for a type
    that Avro, Spark or this table's Hudi does not have, and too many columns.
    """
    path = file.path
    known = {field.name: field.type for field in arrow_schema(table, path=path)}
    added, widened, wider = [], [], {}
    for field in named_as([*known, *passed], with_instants(file)):
        if field.name in passed:
            continue
        if field.name not in known:
            check_column(field, version, path=path)
            added.append(field.with_nullable(True))
            continue
        known_type = known[field.name]
        name = None if fits(field.type, known_type) else _WIDER.get(known_type, {}).get(field.type)
        if name is not None:
            widened.append(field.name)
            wider[field.name] = name
    fields = [_widened(entry, wider.get(entry["name"])) for entry in table["fields"]]
    schema = {**table, "fields": [*fields, *spark_fields(table, added, path=path)]}
    check_bounds(schema, path=path)  # this engine reads no schema with more columns
    return Evolution(schema, tuple(field.name for field in added), tuple(widened))


def spark_fields(record: AvroSchema, columns: Iterable[pa.Field], *, path: str) -> list[dict[str, Any]]:
    """Returns the Avro fields that Spark's writers give further columns of a record. What is within a column may be
    null, as in all that Spark reads of Parquet files. Raises UnsupportedError for a type that Avro does not have.
    """
    namespace = ".".join(filter(None, (record.get("namespace"), record["name"])))
    given = pa.schema([field.with_type(_null_within(field.type)) for field in map(spark_field, columns)])
    fields = avro_schema(given, path=path)["fields"]
    return [{**entry, "type": _named(entry["type"], entry["name"], namespace)} for entry in fields]


def _null_within(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(kind):
        inner = (kind.field(at) for at in range(kind.num_fields))
        return pa.struct([field.with_type(_null_within(field.type)).with_nullable(True) for field in inner])
    if pa.types.is_map(kind):
        return pa.map_(kind.key_type, kind.item_field.with_type(_null_within(kind.item_type)).with_nullable(True))
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_null_within(kind.value_type)).with_nullable(True))
    return kind


def check_column(field: pa.Field, version: int, *, path: str) -> None:
    """Raises ConfigError for a name that Avro does not allow, of the column or within it, and for the column of Flink's
    change logs; UnsupportedError for a type that Spark, or the Hudi of the table version, does not have.
    """
    if field.name.lower() == OPERATION:
        raise ConfigError(
            f"the source has the column {OPERATION}, by which rows of a change log are marked as deleted",
            path=path,
            remedy="leave the column out, and the rows that it deletes",
        )
    _check_name(field.name, field.name, path)
    _check_type(field.type, field.name, version, path)


def _check_name(name: str, column: str, path: str) -> None:
    """Raises ConfigError for a name that Avro does not allow. `column` has the names of structs around it."""
    if _NAME.fullmatch(name) is None:
        raise ConfigError(
            f"the table has no column {column!r}, and {name!r} can be no name in its schema",
            path=path,
            remedy="rename it in the source to letters, digits and _",
        )


def _check_type(kind: pa.DataType, column: str, version: int, path: str) -> None:
    """Checks the names and types within a type. `column` is as in _check_name."""
    if pa.types.is_struct(kind):
        for inner in (kind.field(at) for at in range(kind.num_fields)):
            _check_name(inner.name, f"{column}.{inner.name}", path)
            _check_type(inner.type, f"{column}.{inner.name}", version, path)
    elif pa.types.is_map(kind):
        _check_type(kind.item_type, f"{column}.value", version, path)
    elif is_list(kind):
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


def _named(kind: Any, name: str, namespace: str) -> Any:
    """Returns the type of the field `name` with the names that Spark's writers give (SchemaConverters.toAvroType):
    releases of Hudi compare types by them. Decimals have as many bytes as their digits need.
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
    """Returns the bytes of a decimal of this precision (Decimal.minBytesForPrecision of Spark)."""
    size = 1
    while 2 ** (8 * size - 1) < 10**precision:
        size += 1
    return size
