"""Reads the schemas that a timeline records: that of a table's rows, in its commits (TableSchemaResolver), and, when
schema-on-read has changed columns, every schema that the table had, with column ids (InternalSchema, SerDeHelper,
FileBasedInternalSchemaStorageManager). filegroup/read/schema_resolver.py says which schema a reader takes.

`.hoodie/.schema/` holds `<T>.schemacommit`, written before instant T completes: a JSON list of every schema that the
table ever had. In layout 2, the name may have a completion time, too. The file counts only when T is committed. A
renamed column keeps its id; a column that is dropped and added again gets a new one. So old files are read by id, not
by name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from hudi_core.codec.avro.resolve import resolve
from hudi_core.codec.avro.schema import parse_schema
from hudi_core.errors import CorruptFileError, FormatError
from hudi_core.frozen import dataclass
from hudi_core.storage.base import Storage
from hudi_core.timeline.actions.commit import CommitMetadata, Operation, decode_commit
from hudi_core.timeline.actions.content import load_object, member
from hudi_core.timeline.instant import Instant
from hudi_core.timeline.naming import is_time
from hudi_core.timeline.timeline import Timeline

SCHEMA_FOLDER: Final = ".hoodie/.schema"
_NAME = re.compile(r"^(?P<time>\d{1,40})(?:_\d{1,40})?\.schemacommit\Z", re.ASCII)
_MAX_DEPTH: Final = 64
_MAX_BYTES: Final = 64 << 20
_KEEPS_SCHEMA: Final = frozenset({Operation.COMPACT, Operation.LOG_COMPACT, Operation.CLUSTER, Operation.INDEX})
"""Operations that rewrite rows, and so carry a schema without setting it (WriteOperationType.canUpdateSchema)."""


def schema_of(
    timeline: Timeline,
    read: Callable[[Instant], bytes],
    *,
    create_schema: str | None = None,
    stored: Callable[[], dict[str, Any] | None] | None = None,
    archived: Callable[[], Iterable[tuple[Instant, CommitMetadata]]] | None = None,
    path_of: Callable[[Instant], str] | None = None,
) -> dict[str, Any]:
    """Returns the table's Avro record schema, without meta fields. The sources, in this order, are: the latest
    completed commit with a schema whose operation can set one; the latest that rewrote rows; `create_schema`
    (`hoodie.table.create.schema`); the data files, whose schema `stored` returns (schema_resolver.table_schema); the
    archive's commits, which `archived` returns latest first. The last two are called only when the others have no
    schema. `read` returns a commit file's content, `path_of` its path for messages. For an older state of the table,
    pass `timeline.up_to(instant)`. Raises FormatError without a schema, CorruptFileError for an unreadable commit file.
    """
    named = path_of or commit_label
    commits = (
        (instant, decode_commit(read(instant), path=named(instant), stats=False))
        for instant in reversed(timeline.commits().instants)
    )
    found = _latest_schema(commits, named)
    if found is None and create_schema:
        found = create_schema, ".hoodie/hoodie.properties"
    if found is None and stored is not None:
        schema = stored()
        if schema is not None:
            return schema
    if found is None and archived is not None:
        found = _latest_schema(archived(), commit_label)
    if found is None:
        raise FormatError(
            "no completed commit records the table's schema", path=".hoodie", remedy="write to the table with Hudi once"
        )
    schema = parse_schema(found[0], path=found[1])
    resolve(schema, path=found[1])  # checked here, where it is known which commit records it
    return schema


def _latest_schema(
    commits: Iterable[tuple[Instant, CommitMetadata]], named: Callable[[Instant], str]
) -> tuple[str, str] | None:
    """Returns the schema's text and the file that records it."""
    rewritten: tuple[str, str] | None = None
    for instant, metadata in commits:
        if metadata.schema_text is None:
            continue
        if metadata.operation_type not in _KEEPS_SCHEMA:
            return metadata.schema_text, named(instant)
        rewritten = rewritten or (metadata.schema_text, named(instant))
    return rewritten


def commit_label(instant: Instant) -> str:
    """Returns the name that messages give a commit whose file is not known."""
    return f"{instant.requested_time}.{instant.action}"


@dataclass(frozen=True, slots=True)
class InternalField:
    """A field. `type` is a primitive's text, `record`, `array` (child `element`) or `map` (`key` and `value`)."""

    id: int
    name: str
    optional: bool
    type: str
    children: tuple[InternalField, ...] = ()


@dataclass(frozen=True, slots=True)
class InternalSchema:
    """One version of a table's schema. `version` is the instant that set it, as a number; 0 before the first change."""

    version: int
    fields: tuple[InternalField, ...]

    def walk(self) -> Iterator[InternalField]:
        """Yields every field, nested ones too."""
        pending = list(self.fields)
        while pending:
            field = pending.pop()
            yield field
            pending.extend(field.children)


@dataclass(frozen=True, slots=True)
class ColumnSource:
    """Where a column is in an older file: at `source`, or missing (None). No `children`: its fields are as needed."""

    name: str
    source: str | None
    children: tuple[ColumnSource, ...] = ()

    def to_json(self) -> list[Any]:
        """Returns the value as a JSON array."""
        return [self.name, self.source, [child.to_json() for child in self.children]]

    @staticmethod
    def from_json(value: list[Any]) -> ColumnSource:
        """Returns the value of an array of `to_json`."""
        name, source, children = value
        return ColumnSource(name, source, tuple(ColumnSource.from_json(child) for child in children))


@dataclass(frozen=True, slots=True)
class SchemaHistory:
    """Every schema of a table by version, oldest first; never empty. The query's schema is the last one."""

    schemas: tuple[InternalSchema, ...]

    @property
    def latest(self) -> InternalSchema:
        """The schema that a query has."""
        return self.schemas[-1]

    def up_to(self, requested_time: str) -> SchemaHistory:
        """Returns the history that a query of an older instant sees (InternalSchemaUtils.searchSchema); never empty."""
        version = _version(requested_time)
        return SchemaHistory(tuple(schema for schema in self.schemas if schema.version <= version) or self.schemas[:1])

    def to_json(self) -> list[list[Any]]:
        """Returns what a task needs as JSON: versions, each with the columns' sources in its files."""
        return [
            [schema.version, [source.to_json() for source in column_sources(schema, self.latest)]]
            for schema in self.schemas
        ]


def internal_schema_history(storage: Storage, timeline: Timeline) -> SchemaHistory | None:
    """Returns the schema history of the table; None, after one listing, when schema-on-read never changed it. A history
    file counts only when its instant is committed on `timeline`, the active one. Raises CorruptFileError naming the
    file, StorageError.
    """
    commits = timeline.commits()
    committed = [
        (match["time"], info.path)
        for info in storage.list_files(SCHEMA_FOLDER)
        for match in [_NAME.match(info.name)]
        if match is not None and commits.contains_or_before_start(match["time"])
    ]
    if not committed:
        return None
    _, path = max(committed)
    try:
        text = storage.read(path).decode()
    except UnicodeDecodeError as error:
        raise CorruptFileError(f"the schema history is not UTF-8: {error.reason}", path=path) from error
    schemas = parse_schema_history(text, path=path)
    if not schemas:
        raise CorruptFileError("the schema history is empty", path=path)
    return SchemaHistory(tuple(schemas))


def sources_at(history: Sequence[Sequence[Any]], requested_time: str) -> tuple[ColumnSource, ...]:
    """Returns where the query's columns are in a file of the instant, from SchemaHistory.to_json; empty when names find
    them. The schemas may or may not list the `_hoodie_*` columns; columns that they do not list are read by name.
    """
    version = _version(requested_time)
    chosen = history[0]
    for entry in history:
        if entry[0] <= version:
            chosen = entry
    return tuple(ColumnSource.from_json(source) for source in chosen[1])


def renamed_columns(history: Sequence[Sequence[Any]] | None) -> frozenset[str]:
    """Returns the query's columns that files may lack, or have under another name, from SchemaHistory.to_json."""
    sources = (ColumnSource.from_json(source) for entry in history or () for source in entry[1])
    return frozenset(source.name for source in sources if source.children or source.source != source.name)


def _version(requested_time: str) -> int:
    """Returns an instant as a schema version. A text that is no instant, as a file may claim, is older than all."""
    return int(requested_time) if is_time(requested_time) else 0


def column_sources(file: InternalSchema, query: InternalSchema) -> tuple[ColumnSource, ...]:
    """Returns where columns are in a file of schema `file` (InternalSchemaMerger); empty when names find them."""
    return _sources({field.id: field for field in file.walk()}, file.fields, query.fields)


def _sources(
    by_id: Mapping[int, InternalField], theirs: tuple[InternalField, ...], ours: tuple[InternalField, ...]
) -> tuple[ColumnSource, ...]:
    names = {field.name for field in theirs}
    sources: list[ColumnSource] = []
    differs = False
    for field in ours:
        old = by_id.get(field.id)
        if old is None:
            sources.append(ColumnSource(field.name, None))
            differs = differs or field.name in names
            continue
        children = _sources(by_id, old.children, field.children) if old.children and field.children else ()
        sources.append(ColumnSource(field.name, old.name, children))
        differs = differs or bool(children) or old.name != field.name
    return tuple(sources) if differs else ()


def parse_schema_history(text: str, *, path: str) -> list[InternalSchema]:
    """Returns the schemas of a `.schemacommit` file, oldest first. Raises CorruptFileError naming `path`."""
    if len(text) > _MAX_BYTES:
        raise CorruptFileError(f"{len(text)} characters are too many for a schema", path=path)
    items = load_object(text.encode(), path=path).get("schemas")
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise CorruptFileError("the schema history has no list of schemas", path=path)
    by_version = {schema.version: schema for schema in reversed([_schema(item, path) for item in items])}
    return [by_version[version] for version in sorted(by_version)]


def _schema(raw: dict[str, Any], path: str) -> InternalSchema:
    _, fields = _type(raw, path, 0)
    schema = InternalSchema(member(raw, "version_id", int, path=path, default=0), fields)
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
    kind = member(raw, "type", str, path=path)
    if kind == "record":
        items = member(raw, "fields", list, path=path, default=[])
        return kind, tuple(_field(item, path, depth) for item in items)
    if kind == "array":
        return kind, (_part(raw, "element", "element_id", "element_optional", path, depth),)
    if kind == "map":
        key = _part(raw, "key", "key_id", "", path, depth)
        return kind, (key, _part(raw, "value", "value_id", "value_optional", path, depth))
    raise CorruptFileError(f"the schema has an unknown type {kind!r}", path=path)


def _field(raw: Any, path: str, depth: int) -> InternalField:
    if not isinstance(raw, dict):
        raise CorruptFileError("a field of the schema is not a JSON object", path=path)
    kind, children = _type(raw.get("type"), path, depth + 1)
    name, optional = _required(raw, "name", str, path), member(raw, "optional", bool, path=path, default=True)
    return InternalField(_required(raw, "id", int, path), name, optional, kind, children)


def _part(raw: dict[str, Any], name: str, identity: str, optional: str, path: str, depth: int) -> InternalField:
    kind, children = _type(raw.get(name), path, depth + 1)
    is_optional = member(raw, optional, bool, path=path, default=False)
    return InternalField(_required(raw, identity, int, path), name, is_optional, kind, children)


def _required(raw: dict[str, Any], name: str, of: type, path: str) -> Any:
    value = member(raw, name, of, path=path)
    if value is None:
        raise CorruptFileError(f"a field of the schema has no {name}", path=path)
    return value
