"""What the rows of a table must be, said by the SQL script that made it: a small interpreter of its own, independent of
the engine.

It knows just what the scripts of Hudi-rs's test tables say: CREATE TABLE, INSERT INTO … VALUES, INSERT OVERWRITE (table
or partition) from SELECTs of literals, UPDATE and DELETE with conditions `column = literal` and IN, a rollback of the
last write, and statements that change no row (indexes, compaction, clustering). sqlglot parses; any other statement or
expression is an error. INSERT INTO replaces the row of the same partition and key, unless its ordering value is older:
Hudi before 1.0 upserts, and later ones merge into small files. Only where the script sets 1.x's limit for small files
to 0 do inserted rows go to new files, and a key that is inserted twice is there twice.
"""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import sqlglot
from sqlglot import exp

Row = dict[str, Any]
Kind = exp.DataType.Type

_PLAIN = {
    Kind.TINYINT: pa.int32(),  # Avro has no shorter integers, and Hudi reads its columns as int
    Kind.SMALLINT: pa.int32(),
    Kind.INT: pa.int32(),
    Kind.BIGINT: pa.int64(),
    Kind.FLOAT: pa.float32(),
    Kind.DOUBLE: pa.float64(),
    Kind.BOOLEAN: pa.bool_(),
    Kind.TEXT: pa.string(),
    Kind.BINARY: pa.binary(),
    Kind.DATE: pa.date32(),
    Kind.TIMESTAMP: pa.timestamp("us", "UTC"),
    Kind.TIMESTAMPTZ: pa.timestamp("us", "UTC"),
}


@dataclass
class Script:
    """A table's schema (partition columns last), and its rows after each write that the timeline still holds.

    `zone` is that of the session that wrote the timestamps; `upserts` whether its INSERT INTO was an upsert.
    """

    zone: ZoneInfo
    upserts: bool
    schema: pa.Schema = field(default_factory=lambda: pa.schema([]))
    states: list[list[Row]] = field(default_factory=lambda: [[]])
    _keys: tuple[str, ...] = ()
    _partitions: tuple[str, ...] = ()
    _ordering: str | None = None
    _small_files: bool = True

    def table(self, write: int = -1) -> pa.Table:
        """The rows after the write of that index, 0 being the first; -1 is the last."""
        return pa.Table.from_pylist(self.states[write + 1 if write >= 0 else write], self.schema)

    @property
    def writes(self) -> int:
        """How many writes there were, those rolled back not counted."""
        return len(self.states) - 1

    def run(self, text: str) -> Script:
        """Interprets a whole script."""
        for statement in sqlglot.parse(text, read="spark"):
            if isinstance(statement, exp.Create) and statement.kind == "TABLE":
                self._create(statement)
            elif isinstance(statement, exp.Insert):
                self._insert(statement)
            elif isinstance(statement, exp.Update):
                self._update(statement)
            elif isinstance(statement, exp.Delete):
                keep = _condition(statement.args["where"].this)
                self.states.append([row for row in self.states[-1] if not keep(row)])
            elif statement is not None:
                self._other(statement)
        return self

    def _create(self, statement: exp.Create) -> None:
        properties = {
            item.name: item.args["value"] for item in statement.find_all(exp.Property) if type(item) is exp.Property
        }
        self._keys = tuple(properties["primaryKey"].name.split(","))
        self._ordering = properties["preCombineField"].name if "preCombineField" in properties else None
        self._small_files = properties.get("hoodie.parquet.small.file.limit") != exp.Literal.string("0")
        partitioned = statement.find(exp.PartitionedByProperty)
        self._partitions = tuple(item.name for item in partitioned.this.expressions) if partitioned else ()
        columns = {item.name: _type_of(item.args["kind"]) for item in statement.this.expressions}
        ordered = [name for name in columns if name not in self._partitions] + list(self._partitions)
        keygen = properties.get("hoodie.table.keygenerator.class")
        if keygen is not None and keygen.name.endswith(".TimestampBasedKeyGenerator"):
            columns.update(dict.fromkeys(self._partitions, pa.string()))  # whatever was stored, Hudi reads it as text
        self.schema = pa.schema([(name, columns[name]) for name in ordered])

    def _insert(self, statement: exp.Insert) -> None:
        static = {}
        partition = statement.args.get("partition") or (
            statement.this.args.get("partition") if isinstance(statement.this, exp.Table) else None
        )
        for item in partition.expressions if partition else ():
            static[item.this.name] = _literal(item.expression)
        names = [name for name in self.schema.names if name not in static]
        rows = [
            self._typed({**dict(zip(names, values, strict=True)), **static}) for values in _tuples(statement.expression)
        ]
        before = self.states[-1]
        if not statement.args.get("overwrite") and not (self.upserts or self._small_files):
            self.states.append([*before, *rows])
            return
        if statement.args.get("overwrite"):
            kept = [row for row in before if static and any(row[name] != value for name, value in static.items())]
            self.states.append([*kept, *rows])
            return
        merged = {self._identity(row): row for row in before}
        for row in rows:
            old = merged.get(self._identity(row))
            if old is None or self._ordering is None or row[self._ordering] >= old[self._ordering]:
                merged[self._identity(row)] = row
        self.states.append(list(merged.values()))

    def _update(self, statement: exp.Update) -> None:
        hit = _condition(statement.args["where"].this)
        change = {item.this.name: _literal(item.expression) for item in statement.expressions}
        self.states.append([self._typed({**row, **change}) if hit(row) else row for row in self.states[-1]])

    def _other(self, statement: Any) -> None:
        words = statement.sql(dialect="spark").upper()
        if "ROLLBACK_TO_INSTANT" in words:
            self.states.pop()
        elif not (
            isinstance(statement, (exp.Create, exp.Set)) or "RUN_COMPACTION" in words or "RUN_CLUSTERING" in words
        ):
            raise ValueError(f"the script says something unknown: {words[:200]}")

    def _identity(self, row: Row) -> tuple[Any, ...]:
        return tuple(row[name] for name in (*self._partitions, *self._keys))

    def _typed(self, row: Row) -> Row:
        return {column.name: _fit(row[column.name], column.type, self.zone) for column in self.schema}


def _type_of(kind: exp.DataType) -> pa.DataType:
    if kind.this == Kind.DECIMAL:
        precision, scale = (int(item.name) for item in kind.expressions)
        return pa.decimal128(precision, scale)
    if kind.this == Kind.ARRAY:
        return pa.list_(_type_of(kind.expressions[0]))
    if kind.this == Kind.MAP:
        return pa.map_(*(_type_of(item) for item in kind.expressions))
    if kind.this == Kind.STRUCT:
        return pa.struct([(item.name, _type_of(item.args["kind"])) for item in kind.expressions])
    return _PLAIN[kind.this]


def _tuples(source: Any) -> list[list[Any]]:
    """The rows of VALUES, of a SELECT of literals, or of columns of a UNION ALL of such SELECTs."""
    if isinstance(source, exp.Values):
        return [[_literal(item) for item in row.expressions] for row in source.expressions]
    if isinstance(source, exp.Union):
        return [*_tuples(source.left), *_tuples(source.right)]
    inner = source.args.get("from_") or source.args.get("from")
    if inner is None:
        return [[_literal(item) for item in source.expressions]]
    below = inner.this.this
    first = below
    while isinstance(first, exp.Union):
        first = first.left
    names = [item.alias for item in first.expressions]
    places = [names.index(item.name) for item in source.expressions]
    return [[row[place] for place in places] for row in _tuples(below)]


def _literal(node: Any) -> Any:
    if isinstance(node, exp.Alias):
        return _literal(node.this)
    if isinstance(node, exp.PropertyEQ):
        return _literal(node.expression)  # an unnamed field of a struct
    if isinstance(node, exp.Null):
        return None
    if isinstance(node, exp.Boolean):
        return bool(node.this)
    if isinstance(node, exp.Neg):
        return -_literal(node.this)
    if isinstance(node, exp.Literal):
        return node.name if node.is_string else decimal.Decimal(node.name)
    if isinstance(node, exp.Cast):
        return _literal(node.this)  # the column's type says the rest
    if isinstance(node, (exp.Array, exp.Struct)):
        return [_literal(item) for item in node.expressions]
    if isinstance(node, exp.VarMap):
        return list(zip(_literal(node.args["keys"]), _literal(node.args["values"]), strict=True))
    raise ValueError(f"not a literal: {node.sql(dialect='spark')} ({type(node).__name__})")


def _condition(node: Any) -> Callable[[Row], bool]:
    if isinstance(node, exp.And):
        left, right = _condition(node.left), _condition(node.right)
        return lambda row: left(row) and right(row)
    if isinstance(node, exp.EQ):
        name, value = node.left.name, _literal(node.right)
        return lambda row: bool(row[name] == value)
    if isinstance(node, exp.In):
        among = [_literal(item) for item in node.expressions]
        return lambda row: row[node.this.name] in among
    raise ValueError(f"not a known condition: {node.sql(dialect='spark')}")


def _fit(value: Any, kind: pa.DataType, zone: ZoneInfo) -> Any:
    """The value as Spark stores it in a column of that type."""
    if value is None or isinstance(value, (datetime.date, bytes)):
        return value
    if pa.types.is_integer(kind):
        return int(value)
    if pa.types.is_floating(kind):
        return float(value)
    if pa.types.is_decimal(kind):
        return decimal.Decimal(value).quantize(decimal.Decimal(1).scaleb(-kind.scale))
    if pa.types.is_binary(kind):
        return value.encode()
    if pa.types.is_date(kind):
        return datetime.date.fromisoformat(value)
    if pa.types.is_timestamp(kind):
        return datetime.datetime.fromisoformat(value).replace(tzinfo=zone)
    if pa.types.is_map(kind):
        return [(_fit(key, kind.key_type, zone), _fit(item, kind.item_type, zone)) for key, item in value]
    if pa.types.is_struct(kind):
        items = value.values() if isinstance(value, dict) else value
        return {column.name: _fit(item, column.type, zone) for column, item in zip(kind, items, strict=True)}
    if pa.types.is_list(kind):
        return [_fit(item, kind.value_type, zone) for item in value]
    return str(value) if pa.types.is_string(kind) else value
