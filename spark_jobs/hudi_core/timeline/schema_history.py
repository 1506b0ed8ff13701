"""Which schema with column ids the files of an instant have (FileBasedInternalSchemaStorageManager).

`.hoodie/.schema/` holds `<T>.schemacommit` (layout 2 too may put a completion time into the name), written before
instant T completes: a JSON list of every schema that the table ever had. It counts only when T is committed. Tables
that were never changed by schema-on-read have no such file.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from hudi_core.errors import CorruptFileError
from hudi_core.storage.base import Storage
from hudi_core.timeline.internal_schema import ColumnSource, InternalSchema, column_sources, parse_schema_history
from hudi_core.timeline.naming_v1 import is_time
from hudi_core.timeline.timeline import Timeline

SCHEMA_FOLDER: Final = ".hoodie/.schema"
_NAME = re.compile(r"^(?P<time>\d{1,40})(?:_\d{1,40})?\.schemacommit\Z", re.ASCII)


@dataclass(frozen=True, slots=True)
class SchemaHistory:
    """Every schema of a table by version, oldest first; never empty. The query's schema is the last one."""

    schemas: tuple[InternalSchema, ...]

    @property
    def latest(self) -> InternalSchema:
        """The schema that a query has."""
        return self.schemas[-1]

    def up_to(self, requested_time: str) -> SchemaHistory:
        """The history as a query of an older instant sees it (InternalSchemaUtils.searchSchema); never empty."""
        version = _version(requested_time)
        return SchemaHistory(tuple(schema for schema in self.schemas if schema.version <= version) or self.schemas[:1])

    def to_json(self) -> list[list[Any]]:
        """What a task needs: versions, each with the columns' sources in its files, as JSON."""
        return [
            [schema.version, [source.to_json() for source in column_sources(schema, self.latest)]]
            for schema in self.schemas
        ]


def sources_at(history: Sequence[Sequence[Any]], requested_time: str) -> tuple[ColumnSource, ...]:
    """Where the query's columns are in a file of the instant, from SchemaHistory.to_json; empty where names find them.

    The schemas may or may not list the `_hoodie_*` columns; what they do not list is read by name.
    """
    version = _version(requested_time)
    chosen = history[0]
    for entry in history:
        if entry[0] <= version:
            chosen = entry
    return tuple(ColumnSource.from_json(source) for source in chosen[1])


def _version(requested_time: str) -> int:
    """An instant as a schema version; what is no instant, as a file may claim, is older than all."""
    return int(requested_time) if is_time(requested_time) else 0


def internal_schema_history(storage: Storage, timeline: Timeline) -> SchemaHistory | None:
    """The schema history of the table; None, after one listing, when schema-on-read never changed it.

    `timeline` is the active timeline: a history file whose instant is not committed does not count. Raises
    CorruptFileError naming the file, StorageError.
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


def renamed_columns(history: Sequence[Sequence[Any]] | None) -> frozenset[str]:
    """The query's columns that files may have under another name or not at all, from SchemaHistory.to_json."""
    sources = (ColumnSource.from_json(source) for entry in history or () for source in entry[1])
    return frozenset(source.name for source in sources if source.children or source.source != source.name)
