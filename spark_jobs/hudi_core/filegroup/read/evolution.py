"""Files of an older schema read by column id, for tables that schema-on-read changed (InternalSchemaMerger).

A file's columns are renamed to the query's names first; after that it is read by name like any other. What each
function takes as `sources` is timeline.schemas's answer for the instant that wrote the file; empty sources
change nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from hudi_core.codec.avro.schema import AvroSchema
from hudi_core.model.column_names import places, spelled
from hudi_core.timeline.schemas import ColumnSource


def stored_names(
    names: Sequence[str], sources: Sequence[ColumnSource], stored: Sequence[str], *, path: str
) -> list[str]:
    """The names that the query's columns `names` have in the file of the columns `stored`; those that it lacks are
    omitted. Raises UnsupportedError naming `path` for a column that it has twice but for case.
    """
    by_name = {source.name: source.source for source in sources}
    found = (by_name.get(name, name) for name in names)
    return [stored[at] for at in places(stored, [name for name in found if name is not None], path=path) if at >= 0]


def apply_sources(batch: pa.RecordBatch, sources: Sequence[ColumnSource]) -> pa.RecordBatch:
    """The file's rows under the query's column names, nested ones too.

    A column that has the name of one of the query's but not its id is dropped. Columns that are not in `sources` stay.
    """
    if not sources:
        return batch
    have = dict(zip(_as_sources_have(batch.schema.names, sources), batch.columns, strict=True))
    arrays = {source.name: _renamed(have[source.source], source) for source in sources if source.source in have}
    taken = {source.source for source in sources} | {source.name for source in sources}
    kept = {name: array for name, array in have.items() if name not in taken}
    everything = arrays | kept
    if not everything:
        # A batch without columns has no rows, so one column that is not selected carries the count.
        return batch.rename_columns([f"_{position}" for position in range(batch.num_columns)])
    return pa.RecordBatch.from_arrays(list(everything.values()), names=list(everything))


def rename_fields(schema: AvroSchema, sources: Sequence[ColumnSource]) -> AvroSchema:
    """The Avro record schema of a log block with the query's field names.

    Avro data has no names, so its bytes fit both. A field that has the name of one of the query's but not its id is
    renamed.
    """
    if not sources:
        return schema
    renamed: AvroSchema = _record(schema, sources)
    return renamed


def _as_sources_have(names: Sequence[str], sources: Sequence[ColumnSource]) -> list[str]:
    return spelled(names, [name for source in sources for name in (source.source, source.name) if name is not None])


def _renamed(array: pa.Array, source: ColumnSource) -> pa.Array:
    """The array with its nested fields under the query's names."""
    if not source.children:
        return array
    if array.offset:
        # The nested forms below share whole buffers.
        array = pa.concat_arrays([array])
    kind = array.type
    if pa.types.is_struct(kind):
        fields = [array.field(position) for position in range(kind.num_fields)]
        inner = apply_sources(
            pa.RecordBatch.from_arrays(fields, names=[kind.field(i).name for i in range(kind.num_fields)]),
            source.children,
        )
        return pa.StructArray.from_arrays(
            inner.columns, names=inner.schema.names, mask=array.is_null() if array.null_count else None
        )
    if pa.types.is_map(kind):
        items = _renamed(array.items, source.children[-1])
        entries = pa.StructArray.from_arrays(
            [array.keys, items], fields=[kind.key_field, kind.item_field.with_type(items.type)]
        )
        return _with_offsets(array, pa.map_(kind.key_type, kind.item_field.with_type(items.type)), entries)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        values = _renamed(array.values, source.children[0])
        make = pa.list_ if pa.types.is_list(kind) else pa.large_list
        return _with_offsets(array, make(kind.value_field.with_type(values.type)), values)
    return array


def _with_offsets(array: pa.Array, kind: pa.DataType, values: pa.Array) -> pa.Array:
    """A list or map of new values with the validity and offsets of `array`, which starts at offset 0."""
    return pa.Array.from_buffers(kind, len(array), array.buffers()[:2], null_count=array.null_count, children=[values])


def _record(schema: dict[str, Any], sources: Sequence[ColumnSource]) -> dict[str, Any]:
    by_source = {source.source: source for source in sources if source.source is not None}
    names = {source.name for source in sources}
    fields = []
    stored = _as_sources_have([field["name"] for field in schema["fields"]], sources)
    for field, stored_name in zip(schema["fields"], stored, strict=True):
        source = by_source.get(stored_name)
        if source is not None:
            fields.append({**field, "name": source.name, "type": _type(field["type"], source), "aliases": []})
        elif stored_name in names:
            fields.append({**field, "name": f"_dropped_{len(fields)}_{field['name']}", "aliases": []})
        else:
            fields.append(field)
    return {**schema, "fields": fields}


def _type(kind: Any, source: ColumnSource) -> Any:
    if not source.children:
        return kind
    if isinstance(kind, list):
        return [_type(branch, source) for branch in kind]
    if not isinstance(kind, dict):
        return kind
    if kind["type"] == "record":
        return _record(kind, source.children)
    if kind["type"] == "array":
        return {**kind, "items": _type(kind["items"], source.children[0])}
    if kind["type"] == "map":
        return {**kind, "values": _type(kind["values"], source.children[-1])}
    if isinstance(kind["type"], dict | list):
        return {**kind, "type": _type(kind["type"], source)}
    return kind
