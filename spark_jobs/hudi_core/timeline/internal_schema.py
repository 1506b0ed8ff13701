"""Schemas whose columns have ids, which tables record after schema-on-read changes (InternalSchema, SerDeHelper).

A renamed column keeps its id, a dropped and re-added one gets a new id. So old files are read by id, not by name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from hudi_core.errors import CorruptFileError
from hudi_core.timeline.actions.pretty_json import load_object, member

_MAX_DEPTH: Final = 64
_MAX_BYTES: Final = 64 << 20


@dataclass(frozen=True, slots=True)
class InternalField:
    """A column or nested field. `type` is a primitive's text (`int`, `decimal(10, 2)`) or `record`, `array`, `map`.

    `children` are a record's fields, an array's one field `element`, or a map's fields `key` and `value`.
    """

    id: int
    name: str
    optional: bool
    type: str
    children: tuple[InternalField, ...] = ()


@dataclass(frozen=True, slots=True)
class InternalSchema:
    """One version of a table's schema: the instant that set it as a number, 0 before the first change."""

    version: int
    fields: tuple[InternalField, ...]

    def walk(self) -> Iterator[InternalField]:
        """Every field, nested ones too."""
        pending = list(self.fields)
        while pending:
            field = pending.pop()
            yield field
            pending.extend(field.children)


@dataclass(frozen=True, slots=True)
class ColumnSource:
    """Where a column of the query's schema is in an older file: under `source`, or missing (None: all null).

    `children` are the nested fields likewise; empty where the whole column is as the query needs it.
    """

    name: str
    source: str | None
    children: tuple[ColumnSource, ...] = ()

    def to_json(self) -> list[Any]:
        """The value as a JSON array."""
        return [self.name, self.source, [child.to_json() for child in self.children]]

    @staticmethod
    def from_json(value: list[Any]) -> ColumnSource:
        """The value of `to_json`."""
        name, source, children = value
        return ColumnSource(name, source, tuple(ColumnSource.from_json(child) for child in children))


def column_sources(file: InternalSchema, query: InternalSchema) -> tuple[ColumnSource, ...]:
    """Where the query's columns are in a file of schema `file` (InternalSchemaMerger); empty where names find them."""
    return _sources({field.id: field for field in file.walk()}, file.fields, query.fields)


def _sources(
    by_id: Mapping[int, InternalField], theirs: tuple[InternalField, ...], ours: tuple[InternalField, ...]
) -> tuple[ColumnSource, ...]:
    names = {field.name for field in theirs}
    found: list[ColumnSource] = []
    differs = False
    for field in ours:
        old = by_id.get(field.id)
        if old is None:
            found.append(ColumnSource(field.name, None))
            differs = differs or field.name in names
            continue
        children = _sources(by_id, old.children, field.children) if old.children and field.children else ()
        found.append(ColumnSource(field.name, old.name, children))
        differs = differs or bool(children) or old.name != field.name
    return tuple(found) if differs else ()


def parse_schema_history(text: str, *, path: str) -> list[InternalSchema]:
    """The schemas of a `.schemacommit` file, oldest first. Raises CorruptFileError naming `path`."""
    if len(text) > _MAX_BYTES:
        raise CorruptFileError(f"{len(text)} characters are too many for a schema", path=path)
    items = load_object(text.encode(), path=path).get("schemas")
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise CorruptFileError("the schema history has no list of schemas", path=path)
    by_version = {schema.version: schema for schema in reversed([_schema(item, path) for item in items])}
    return [by_version[version] for version in sorted(by_version)]


def _schema(raw: dict[str, Any], path: str) -> InternalSchema:
    version = member(raw, "version_id", int, path=path, default=0)
    _, fields = _type(raw, path, 0)
    schema = InternalSchema(version, fields)
    ids = [field.id for field in schema.walk()]
    if len(set(ids)) != len(ids):
        raise CorruptFileError("the schema gives two columns one id", path=path)
    return schema


def _type(raw: Any, path: str, depth: int) -> tuple[str, tuple[InternalField, ...]]:
    if depth > _MAX_DEPTH:
        raise CorruptFileError(f"the schema is nested more than {_MAX_DEPTH} deep", path=path)
    if isinstance(raw, str):
        return raw.lower(), ()
    if not isinstance(raw, dict):
        raise CorruptFileError(f"the schema has a {type(raw).__name__} where a type is due", path=path)
    type_ = member(raw, "type", str, path=path)
    if type_ == "record":
        items = member(raw, "fields", list, path=path, default=[])
        return type_, tuple(_field(item, path, depth) for item in items)
    if type_ == "array":
        return type_, (_part(raw, "element", "element_id", "element_optional", path, depth),)
    if type_ == "map":
        key = _part(raw, "key", "key_id", "", path, depth)
        return type_, (key, _part(raw, "value", "value_id", "value_optional", path, depth))
    raise CorruptFileError(f"the schema has an unknown type {type_!r}", path=path)


def _field(raw: Any, path: str, depth: int) -> InternalField:
    if not isinstance(raw, dict):
        raise CorruptFileError("a field of the schema is not a JSON object", path=path)
    type_, children = _type(raw.get("type"), path, depth + 1)
    name, optional = _required(raw, "name", str, path), member(raw, "optional", bool, path=path, default=True)
    return InternalField(_required(raw, "id", int, path), name, optional, type_, children)


def _part(raw: dict[str, Any], name: str, identity: str, optional: str, path: str, depth: int) -> InternalField:
    type_, children = _type(raw.get(name), path, depth + 1)
    is_optional = member(raw, optional, bool, path=path, default=False)
    return InternalField(_required(raw, identity, int, path), name, is_optional, type_, children)


def _required(raw: dict[str, Any], name: str, of: type, path: str) -> Any:
    value = member(raw, name, of, path=path)
    if value is None:
        raise CorruptFileError(f"a field of the schema has no {name}", path=path)
    return value
