"""Timestamps that a file labels otherwise than its table's schema: what their numbers count (HoodieSchemaRepair).

Releases before 1.1 knew one sort of timestamp where they evolved schemas: they labelled milliseconds
`timestamp-micros`, and local timestamps plain longs. Where the table's schema has the right label again, the numbers
of such files count what the schema says.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pyarrow as pa

_MILLIS: Final = {b"avro.millis": b""}
"""Metadata of an Arrow field of microseconds whose Avro field counts milliseconds."""


def marked(field: pa.Field, stored: pa.DataType) -> pa.Field:
    """The field, marked where its Avro type, which Arrow holds as `stored`, counts milliseconds."""
    if not (pa.types.is_timestamp(stored) and stored.unit == "ms"):
        return field
    return field.with_metadata({**(field.metadata or {}), **_MILLIS})


def only_mark(field: pa.Field) -> pa.Field:
    """The field without any other metadata."""
    bare = field.remove_metadata()
    return bare.with_metadata(_MILLIS) if counts_millis(field) else bare


def counts_millis(field: pa.Field) -> bool:
    """Whether the table's schema says that the numbers of the field's column are milliseconds."""
    if pa.types.is_timestamp(field.type) and field.type.unit == "ms":
        return True
    return _MILLIS.keys() <= (field.metadata or {}).keys()


def type_meant(have: pa.DataType, field: pa.Field | None) -> pa.DataType:
    """What values of the type `have` in a file are, where `field` is the table's column, if any; nested types too."""
    if field is None:
        return have
    want = field.type
    if pa.types.is_timestamp(want):
        if pa.types.is_timestamp(have):
            is_wrong = have.unit == "us" and have.tz is not None and want.tz is not None and counts_millis(field)
            return pa.timestamp("ms", tz=have.tz) if is_wrong else have
        if pa.types.is_int64(have) and want.tz is None:
            return pa.timestamp("ms" if counts_millis(field) else "us")
        return have
    if pa.types.is_struct(have) and pa.types.is_struct(want):
        return pa.struct([_meant(have.field(at), _named(want, have.field(at).name)) for at in range(have.num_fields)])
    if pa.types.is_map(have) and pa.types.is_map(want):
        return pa.map_(have.key_field, _meant(have.item_field, want.item_field))
    if pa.types.is_list(have) and pa.types.is_list(want):
        return pa.list_(_meant(have.value_field, want.value_field))
    return have


def as_meant(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The rows of a file with timestamps as the table's `schema` labels them. No value is copied."""
    found = [_meant(field, _column(schema, field.name)) for field in batch.schema]
    if all(new.type == old.type for new, old in zip(found, batch.schema, strict=True)):
        return batch
    columns = [column.view(field.type) for column, field in zip(batch.columns, found, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=pa.schema(found))


def mislabelled(file: pa.Schema, table: pa.Schema) -> list[str]:
    """The columns of a file in which a timestamp has another label than in the table's schema."""
    pairs = ((field, _column(table, field.name)) for field in file)
    return [field.name for field, column in pairs if _meant(field, column).type != field.type]


def has_doubtful_times(schema: pa.Schema) -> bool:
    """Whether older files of a table may have other labels: it has milliseconds, or timestamps without a zone."""
    return any(_is_doubtful(field.type) for field in schema)


def _is_doubtful(kind: pa.DataType) -> bool:
    if pa.types.is_nested(kind):
        return any(_is_doubtful(kind.field(at).type) for at in range(kind.num_fields))
    return bool(pa.types.is_timestamp(kind) and (kind.unit == "ms" or kind.tz is None))


def field_at(schema: pa.Schema, path: Sequence[str]) -> pa.Field | None:
    """A column, or a field within structs; None where there is none."""
    found = _column(schema, path[0])
    for name in path[1:]:
        found = None if found is None or not pa.types.is_struct(found.type) else _named(found.type, name)
    return found


def _meant(have: pa.Field, want: pa.Field | None) -> pa.Field:
    return have.with_type(type_meant(have.type, want))


def _column(schema: pa.Schema, name: str) -> pa.Field | None:
    at = _place(schema.names, name)
    return None if at < 0 else schema.field(at)


def _named(kind: pa.DataType, name: str) -> pa.Field | None:
    at = _place([kind.field(at).name for at in range(kind.num_fields)], name)
    return None if at < 0 else kind.field(at)


def _place(names: Sequence[str], name: str) -> int:
    """Where the name is, in any case; -1 for nowhere, or several that differ by their case."""
    if name in names:
        return names.index(name)
    found = [at for at, other in enumerate(names) if other.lower() == name.lower()]
    return found[0] if len(found) == 1 else -1
