"""Parses Avro schemas as JSON, bounds how much decoders nest, build and allocate for them, and adds the `_hoodie_*`
fields.

A schema comes from a file of the table and is untrusted. In a few kilobytes it can name a record within itself, double
its fields at each level, or make thousands of nulls from a byte. Decoders in C then overflow their stack or fill the
memory. The limits are far above what Hudi writes: a table of 10,000 columns has some 30,000 types.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from functools import lru_cache, wraps
from typing import Any, TypeVar

from hudi_core.errors import CorruptFileError, FormatError, HudiError, UnsupportedError
from hudi_core.frozen import dataclass
from hudi_core.model.names import META_FIELDS, OPERATION

AvroSchema = dict[str, Any]
"""The JSON object of a named or complex Avro type."""
_Type = TypeVar("_Type")
_Made = TypeVar("_Made")

MAX_SCHEMA_BYTES = 16 << 20
"""A larger schema is refused: a table of 10,000 columns needs about 2 MB."""
_KEPT, _KEPT_CHARACTERS = 128, 64 << 10
"""How many schemas `kept_by_schema` keeps, and the longest of them."""


def kept_by_schema(make: Callable[[Any, str], _Made]) -> Callable[[Any, str], _Made]:
    """Keeps what `make` returned for a schema and a path, which it may use in errors only. A small write asks 60 times
    for what follows from two schemas. What it returns must be immutable. Errors and long schemas are not kept.
    """

    @lru_cache(maxsize=_KEPT)
    def kept(text: str) -> _Made:
        return make(json.loads(text), "")

    @wraps(make)
    def kept_or_made(schema: Any, path: str) -> _Made:
        try:
            text = json.dumps(schema)
            if len(text) <= _KEPT_CHARACTERS:
                return kept(text)
        except (HudiError, RecursionError, TypeError, ValueError):
            pass  # below, the error names the path
        return make(schema, path)

    return kept_or_made


def parse_schema(text: str, *, path: str) -> AvroSchema:
    """Returns the record schema of `text`. Raises CorruptFileError naming `path`, and the errors of check_bounds."""
    if len(text) > MAX_SCHEMA_BYTES:
        message = f"Avro schema of {len(text)} characters is larger than the {MAX_SCHEMA_BYTES} allowed"
        raise CorruptFileError(message, path=path)
    try:
        schema = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise CorruptFileError(f"Avro schema is not JSON: {error}", path=path) from error
    if "\\ud" in text.lower():
        _check_surrogates(schema, path)
    if not isinstance(schema, dict):
        raise CorruptFileError(f"Avro schema is a JSON {type(schema).__name__}, not an object", path=path)
    fields = schema.get("fields")
    if not isinstance(fields, list) or not all(
        isinstance(entry, dict) and isinstance(entry.get("name"), str) for entry in fields
    ):
        message = "Avro schema is not that of a record: it has no fields, or some without a name"
        raise CorruptFileError(message, path=path)
    check_bounds(schema, path=path)
    return schema


def _check_surrogates(schema: Any, path: str) -> None:
    """Refuses escapes that are half of a surrogate pair: no name of an Arrow column can hold them."""
    try:
        json.dumps(schema, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise CorruptFileError("Avro schema has a \\u escape that is half of a surrogate pair", path=path) from error


def field_names(schema: AvroSchema) -> list[str]:
    return [field["name"] for field in schema["fields"]]


def field(schema: AvroSchema, name: str) -> dict[str, Any] | None:
    return next((entry for entry in schema["fields"] if entry["name"] == name), None)


def add_meta_fields(schema: AvroSchema, *, operation: bool = False) -> AvroSchema:
    """Returns the schema with the `_hoodie_*` fields first, as nullable strings (HoodieAvroUtils.addMetadataFields)."""
    names = (*META_FIELDS, OPERATION) if operation else META_FIELDS
    meta = [{"name": name, "type": ["null", "string"], "doc": "", "default": None} for name in names]
    return {**schema, "fields": meta + [entry for entry in schema["fields"] if entry["name"] not in names]}


def without_meta_fields(schema: AvroSchema) -> AvroSchema:
    """Returns the record schema without any `_hoodie_*` meta field (HoodieAvroUtils.removeMetadataFields)."""
    return without_fields(schema, {*META_FIELDS, OPERATION})


def without_fields(schema: AvroSchema, names: Collection[str]) -> AvroSchema:
    return {**schema, "fields": [entry for entry in schema["fields"] if entry["name"] not in names]}


MAX_DEPTH = 64
"""The most levels of nesting, with named types written out. Each level costs a stack frame in every decoder."""
MAX_TYPES = 100_000
"""The most types of a schema, with named types written out."""
VALUES_PER_BYTE = 4
"""The most values that a byte of a datum, or of an item, may become. Nulls, empty records and the record around a
single value take no bytes of their own.
"""
VALUES_PER_BYTE_OF_A_CONTAINER = 2
"""The same for plans and commit metadata, which are decoded as a whole. Hudi's own have at most 1.5."""
FREE_VALUES = 16
"""The values beyond that bound that a datum may become. An item may become none: there may be an item per byte."""

_PRIMITIVES = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})


@dataclass(frozen=True, slots=True)
class _Shape:
    """A schema's levels and types, a datum's least bytes, and how many more values than bytes it may become."""

    depth: int
    types: int
    size: int
    excess: int


_NULL = _Shape(1, 1, 0, 1)


def check_bounds(
    schema: Any,
    *,
    path: str | None = None,
    names: Mapping[str, Any] | None = None,
    values_per_byte: int = VALUES_PER_BYTE,
) -> None:
    """Checks a schema given as JSON. `names` are types that were checked before. Raises UnsupportedError for a type
    that contains itself, and for too many levels or types; FormatError when the bytes of data do not bound what
    decoding allocates; both name `path`. The decoder finds other faults of a schema.
    """
    root = _Bounds(path, names or {}, values_per_byte).shape(schema, "", 0)
    if root.excess > FREE_VALUES:
        raise _unbounded("data", path)


class _Bounds:
    def __init__(self, path: str | None, names: Mapping[str, Any], values_per_byte: int) -> None:
        self._path = path
        self._rate = values_per_byte
        self._plain = _Shape(1, 1, 1, 1 - values_per_byte)
        self._named: dict[str, _Shape | None] = dict.fromkeys(names, self._plain)

    def shape(self, schema: Any, namespace: str, depth: int) -> _Shape:
        if depth > MAX_DEPTH:
            raise self._too_deep()
        if isinstance(schema, str):
            if schema in _PRIMITIVES:
                return _NULL if schema == "null" else self._plain
            return named_type(self._named, schema, namespace, self._path) or self._plain
        if isinstance(schema, list):
            branches = [self.shape(branch, namespace, depth + 1) for branch in schema]
            most = max((branch.excess for branch in branches), default=0)
            least = min((branch.size for branch in branches), default=0)
            # The number of the branch takes a byte and is no value.
            return self._around(branches, 1 + least, most - self._rate)
        if not isinstance(schema, dict):
            return self._plain
        kind = schema.get("type")
        if kind in ("array", "map"):
            return self._many(kind, schema, namespace, depth)
        if kind in ("record", "error", "enum", "fixed"):
            return self._defined(kind, schema, namespace, depth)
        return self.shape(kind, namespace, depth + 1)

    def _many(self, kind: str, schema: dict[str, Any], namespace: str, depth: int) -> _Shape:
        item = self.shape(schema.get("items" if kind == "array" else "values"), namespace, depth + 1)
        if kind == "array" and item.size == 0:
            message = "the Avro schema has an array of items that take no bytes: nothing bounds their number"
            raise FormatError(message, path=self._path)
        # An entry of a map has a key, which is a value of a byte at least.
        if item.excess + (1 - self._rate if kind == "map" else 0) > 0:
            raise _unbounded(f"{kind} items", self._path)
        return self._around([item], 1, 1 - self._rate)

    def _defined(self, kind: str, schema: dict[str, Any], namespace: str, depth: int) -> _Shape:
        name, space = schema.get("name"), schema.get("namespace", namespace)
        full = name if not isinstance(name, str) or "." in name or not space else f"{space}.{name}"
        if kind == "fixed":
            size = schema.get("size")
            size = size if isinstance(size, int) and size > 0 else 0
            made = _Shape(1, 1, size, 1 - self._rate * size)
        elif kind == "enum":
            made = self._plain
        else:
            self._named[str(full)] = None
            inner = full.rpartition(".")[0] if isinstance(full, str) else ""
            made = self._record(schema.get("fields"), inner, depth)
        self._named[str(full)] = made
        return made

    def _record(self, fields: Any, namespace: str, depth: int) -> _Shape:
        entries = [entry for entry in fields if isinstance(entry, dict)] if isinstance(fields, list) else []
        shapes = [self.shape(entry.get("type"), namespace, depth + 1) for entry in entries]
        return self._around(shapes, sum(field.size for field in shapes), 1 + sum(field.excess for field in shapes))

    def _around(self, inner: list[_Shape], size: int, excess: int) -> _Shape:
        depth = 1 + max((shape.depth for shape in inner), default=0)
        types = 1 + sum(shape.types for shape in inner)
        if depth > MAX_DEPTH + 1:
            raise self._too_deep()
        if types > MAX_TYPES:
            message = f"Avro schema has more than {MAX_TYPES} types, its named types written out"
            raise UnsupportedError(message, path=self._path)
        return _Shape(depth, types, size, excess)

    def _too_deep(self) -> UnsupportedError:
        return UnsupportedError(f"Avro schema nests deeper than {MAX_DEPTH} levels", path=self._path)


def named_type(named: Mapping[str, _Type | None], name: str, namespace: str, path: str | None) -> _Type | None:
    """Returns the type that a name means, or None. Raises UnsupportedError within the type's own definition."""
    for candidate in (name,) if "." in name or not namespace else (f"{namespace}.{name}", name):
        if candidate in named:
            known = named[candidate]
            if known is None:
                raise UnsupportedError(f"Avro type {candidate!r} contains itself", path=path)
            return known
    return None


def _unbounded(what: str, path: str | None) -> FormatError:
    message = f"the Avro schema has {what} of so many values without bytes that nothing bounds their number"
    return FormatError(message, path=path)
