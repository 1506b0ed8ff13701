"""Resolves an Avro schema to a tree of types for the Arrow side: names are resolved, a union with null is a flag."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from hudi_core.codec.avro.schema import MAX_DEPTH, kept_by_schema, named_type
from hudi_core.errors import CorruptFileError, FormatError, UnsupportedError
from hudi_core.frozen import dataclass
from hudi_core.model.names import check_distinct

PRIMITIVES = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})
MAX_FIXED_BYTES = 1 << 16
MAX_DECIMAL_PRECISION = 38

_LOGICAL_OF = {
    "int": frozenset({"date", "time-millis"}),
    "long": frozenset(
        {"time-micros", "timestamp-millis", "timestamp-micros", "local-timestamp-millis", "local-timestamp-micros"}
    ),
    "string": frozenset({"uuid"}),
    "bytes": frozenset({"decimal"}),
    "fixed": frozenset({"decimal"}),
}
"""Logical types that change how a value is read. Any other is ignored, as the specification demands of unknown ones."""
_NAME = re.compile(r"[^\x00-\x1f\x7f]{1,1024}")


@dataclass(frozen=True, slots=True)
class AvroField:
    name: str
    type: AvroType


@dataclass(frozen=True, slots=True)
class AvroType:
    """A type in the tree. `kind` is a primitive's name, or record, enum, array, map, fixed, union. `null_at` is the
    branch number of null in a union of null and one other type, else -1. `lone_union` marks a union of one branch,
    whose branch number is written too. A union of several types that are not null has the kind `union` and its
    `branches`.
    """

    kind: str
    logical: str = ""
    null_at: int = -1
    lone_union: bool = False
    fields: tuple[AvroField, ...] = ()
    item: AvroType | None = None
    symbols: tuple[str, ...] = ()
    size: int = 0
    precision: int = 0
    scale: int = 0
    branches: tuple[AvroType, ...] = ()

    @property
    def nullable(self) -> bool:
        return self.null_at >= 0 or self.kind == "null" or any(branch.kind == "null" for branch in self.branches)

    def describe(self) -> str:
        if self.logical == "decimal":
            return f"decimal({self.precision},{self.scale})"
        if self.kind == "fixed":
            return f"fixed({self.size})"
        return f"{self.kind} ({self.logical})" if self.logical else self.kind


def resolve(schema: Any, *, path: str) -> AvroType:
    """Returns the tree of a schema given as JSON. Raises CorruptFileError when it is not an Avro schema,
    UnsupportedError when it contains itself, nests deeper than MAX_DEPTH or has two fields that differ in case alone;
    both name `path`.
    """
    return _resolved(schema, path)


@kept_by_schema
def _resolved(schema: Any, path: str) -> AvroType:
    return _Resolver(path).type_of(schema, "", 0)


class _Resolver:
    def __init__(self, path: str) -> None:
        self._path = path
        self._named: dict[str, AvroType | None] = {}

    def type_of(self, schema: Any, namespace: str, depth: int) -> AvroType:
        if depth > MAX_DEPTH:
            raise UnsupportedError(f"Avro schema nests deeper than {MAX_DEPTH} levels", path=self._path)
        if isinstance(schema, str):
            return AvroType(schema) if schema in PRIMITIVES else self._lookup(schema, namespace)
        if isinstance(schema, list):
            return self._union(schema, namespace, depth)
        if not isinstance(schema, dict) or "type" not in schema:
            raise self._bad(f"{_short(schema)} is not a type")
        kind = schema["type"]
        if not isinstance(kind, str):
            return self.type_of(kind, namespace, depth + 1)
        if kind == "array":
            return AvroType("array", item=self.type_of(schema.get("items"), namespace, depth + 1))
        if kind == "map":
            return AvroType("map", item=self.type_of(schema.get("values"), namespace, depth + 1))
        if kind in ("record", "error", "enum", "fixed"):
            return self._named_type(kind, schema, namespace, depth)
        plain = self.type_of(kind, namespace, depth + 1)
        return self._with_logical(plain, schema) if plain.kind in PRIMITIVES else plain

    def _lookup(self, name: str, namespace: str) -> AvroType:
        known = named_type(self._named, name, namespace, self._path)
        if known is None:
            raise self._bad(f"unknown type {name!r}")
        return known

    def _union(self, branches: list[Any], namespace: str, depth: int) -> AvroType:
        types = [self.type_of(branch, namespace, depth + 1) for branch in branches]
        if not types or any(isinstance(branch, list) for branch in branches):
            raise self._bad("a union is empty or holds a union")
        kinds = [branch.kind for branch in types]
        if len(types) == 1 and kinds != ["null"]:
            return replace(types[0], lone_union=True)
        if len(types) == 2 and kinds.count("null") == 1:
            null_at = kinds.index("null")
            return replace(types[1 - null_at], null_at=null_at)
        return AvroType("union", branches=tuple(types))

    def _named_type(self, kind: str, schema: dict[str, Any], namespace: str, depth: int) -> AvroType:
        name = self._checked_name(schema.get("name"))
        full = name if "." in name or not (space := schema.get("namespace", namespace)) else f"{space}.{name}"
        inner = full.rsplit(".", 1)[0] if "." in full else ""
        if full in self._named:
            raise self._bad(f"type {full!r} is defined twice")
        self._named[full] = None
        if kind == "enum":
            symbols = schema.get("symbols")
            if not isinstance(symbols, list) or not symbols or not all(isinstance(symbol, str) for symbol in symbols):
                raise self._bad(f"enum {full!r} has no symbols")
            made = AvroType("enum", symbols=tuple(symbols))
        elif kind == "fixed":
            size = schema.get("size")
            if not isinstance(size, int) or isinstance(size, bool) or not 0 < size <= MAX_FIXED_BYTES:
                raise self._bad(f"fixed {full!r} has size {size!r}")
            made = self._with_logical(AvroType("fixed", size=size), schema)
        else:
            made = AvroType("record", fields=self._fields(schema.get("fields"), full, inner, depth))
        self._named[full] = made
        return made

    def _fields(self, fields: Any, record: str, namespace: str, depth: int) -> tuple[AvroField, ...]:
        if not isinstance(fields, list) or not all(isinstance(entry, dict) and "type" in entry for entry in fields):
            raise self._bad(f"record {record!r} has no fields")
        made = [
            AvroField(self._checked_name(entry.get("name")), self.type_of(entry["type"], namespace, depth + 1))
            for entry in fields
        ]
        if len({child.name for child in made}) != len(made):
            raise self._bad(f"record {record!r} has two fields of one name")
        check_distinct((child.name for child in made), path=self._path)
        return tuple(made)

    def _with_logical(self, plain: AvroType, schema: dict[str, Any]) -> AvroType:
        logical = schema.get("logicalType")
        if not isinstance(logical, str) or logical not in _LOGICAL_OF.get(plain.kind, frozenset()):
            return plain
        if logical != "decimal":
            return replace(plain, logical=logical)
        precision, scale = schema.get("precision"), schema.get("scale", 0)
        if not isinstance(precision, int) or not isinstance(scale, int) or not 0 <= scale <= precision or precision < 1:
            raise self._bad(f"decimal with precision {precision!r} and scale {scale!r}")
        if precision > MAX_DECIMAL_PRECISION:
            message = f"decimal of precision {precision}; at most {MAX_DECIMAL_PRECISION} is supported"
            raise UnsupportedError(message, path=self._path)
        return replace(plain, logical=logical, precision=precision, scale=scale)

    def _checked_name(self, name: Any) -> str:
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise self._bad(f"{_short(name)} is not a name")
        return name

    def _bad(self, message: str) -> FormatError:
        return CorruptFileError(f"not an Avro schema: {message}", path=self._path)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."
