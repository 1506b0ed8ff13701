"""The table's Avro schema, as the latest commit that may change it recorded it (TableSchemaResolver of 0.15)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from hudi_core.errors import FormatError
from hudi_core.timeline.commit_metadata import Operation, decode_commit
from hudi_core.timeline.instant import Instant
from hudi_core.timeline.pretty_json import load_object
from hudi_core.timeline.query import Timeline

_KEEPS_SCHEMA: Final = frozenset({Operation.COMPACT, Operation.LOG_COMPACT, Operation.CLUSTER, Operation.INDEX})
"""Operations that rewrite rows and so carry a schema without setting it (WriteOperationType.canUpdateSchema)."""


def schema_of(timeline: Timeline, read: Callable[[Instant], bytes], *, create_schema: str | None = None) -> dict[str, Any]:
    """The table's Avro record schema, without meta fields.

    Taken from the latest completed commit with a schema whose operation can set one; if the timeline holds only rewrites, from the latest
    of these; with no commit at all, from `create_schema` (`hoodie.table.create.schema`). `read` gives a commit file's content
    (ActiveTimeline.read_details). Raises FormatError when there is none, CorruptFileError when a commit file is not readable.
    """
    rewritten: tuple[str, str] | None = None
    for instant in reversed(timeline.commits().instants):
        source = f"{instant.requested_time}.{instant.action}"
        metadata = decode_commit(read(instant), path=source)
        text = metadata.schema_text
        if text is None:
            continue
        if metadata.operation_type not in _KEEPS_SCHEMA:
            return load_object(text.encode(), path=source)
        rewritten = rewritten or (text, source)
    if rewritten is None and create_schema:
        rewritten = (create_schema, ".hoodie/hoodie.properties")
    if rewritten is None:
        raise FormatError("no completed commit records the table's schema", path=".hoodie", remedy="write to the table with Hudi once")
    return load_object(rewritten[0].encode(), path=rewritten[1])
