"""The order of the sources of a table's schema: its latest commit that may change it, its properties, its data files,
its archived commits (TableSchemaResolver). filegroup.read.schema_resolver reads them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from hudi_core.codec.avro.resolve import resolve
from hudi_core.codec.avro.schema import parse_schema
from hudi_core.errors import FormatError
from hudi_core.timeline.actions.commit import CommitMetadata, Operation, decode_commit
from hudi_core.timeline.instant import Instant
from hudi_core.timeline.timeline import Timeline

_KEEPS_SCHEMA: Final = frozenset({Operation.COMPACT, Operation.LOG_COMPACT, Operation.CLUSTER, Operation.INDEX})
"""Operations that rewrite rows and so carry a schema without setting it (WriteOperationType.canUpdateSchema)."""


def schema_of(
    timeline: Timeline,
    read: Callable[[Instant], bytes],
    *,
    create_schema: str | None = None,
    stored: Callable[[], dict[str, Any] | None] | None = None,
    archived: Callable[[], Iterable[tuple[Instant, CommitMetadata]]] | None = None,
    path_of: Callable[[Instant], str] | None = None,
) -> dict[str, Any]:
    """The table's Avro record schema, without meta fields.

    From the latest completed commit with a schema whose operation can set one; else from the latest that rewrote rows;
    from `create_schema` (`hoodie.table.create.schema`); from the data files, whose schema `stored` gives
    (schema_resolver.table_schema); from the archive's commits, which `archived` gives latest first. The last two are
    called only then. `read` gives a commit file's content, `path_of` its path for messages. For an older state of the
    table pass `timeline.up_to(instant)`. Raises FormatError without a schema, CorruptFileError for an unreadable commit
    file.
    """
    named = path_of or commit_label
    found = _latest_schema(_decoded(timeline, read, named), named)
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


def _decoded(
    timeline: Timeline, read: Callable[[Instant], bytes], named: Callable[[Instant], str]
) -> Iterator[tuple[Instant, CommitMetadata]]:
    for instant in reversed(timeline.commits().instants):
        yield instant, decode_commit(read(instant), path=named(instant), stats=False)


def _latest_schema(
    commits: Iterable[tuple[Instant, CommitMetadata]], named: Callable[[Instant], str]
) -> tuple[str, str] | None:
    """The schema's text and the file that records it."""
    rewritten: tuple[str, str] | None = None
    for instant, metadata in commits:
        if metadata.schema_text is None:
            continue
        if metadata.operation_type not in _KEEPS_SCHEMA:
            return metadata.schema_text, named(instant)
        rewritten = rewritten or (metadata.schema_text, named(instant))
    return rewritten


def commit_label(instant: Instant) -> str:
    """How messages name a commit whose file is not known."""
    return f"{instant.requested_time}.{instant.action}"
