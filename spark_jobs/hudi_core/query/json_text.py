"""Writes rows as JSON text, the way Hudi's change-data query writes row images. Vectorised by column, at every nesting.

Two writers make the images, and differ in blanks and nulls. Avro prints a change-data log (GenericData.toString);
Jackson prints images computed from slices (InternalRowToJsonStringConverter). Numbers are Java's (`100.0`, `1.0E7`).
Dates are days, and timestamps their unit's count, since 1970, as both writers see them. The two print decimals and
bytes as Java objects, which no reader could use: here decimals are numbers, and bytes base64 text.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_core.codec.avro.arrow_conform import java_text
from hudi_core.errors import UnsupportedError
from hudi_core.frozen import dataclass


@dataclass(frozen=True, slots=True)
class JsonStyle:
    """How a writer prints: separators, whether null members are printed, and which characters it escapes. Quotes,
    backslashes and control characters below U+0020 are always escaped.
    """

    comma: str
    colon: str
    nulls: bool
    escaped: str


AVRO: Final = JsonStyle(", ", ": ", nulls=True, escaped="\x7f-\x9f\u2000-\u20ff")
COMPACT: Final = JsonStyle(",", ":", nulls=False, escaped="")

_LITERAL: Final = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t", "\b": "\\b", "\f": "\\f"}


def json_rows(rows: pa.RecordBatch | pa.StructArray, style: JsonStyle) -> pa.StringArray:
    """Returns a JSON object for each row, null for a null row. Raises UnsupportedError for a type without a form."""
    if isinstance(rows, pa.StructArray):
        texts = _object(
            [(field.name, column) for field, column in zip(rows.type, rows.flatten(), strict=True)], len(rows), style
        )
        return pc.if_else(rows.is_valid(), texts, pa.scalar(None, pa.string())) if rows.null_count else texts
    return _object(list(zip(rows.schema.names, rows.columns, strict=True)), rows.num_rows, style)


def _object(members: list[tuple[str, pa.Array]], count: int, style: JsonStyle) -> pa.StringArray:
    if not members:
        return pa.array(["{}"] * count, pa.string())
    parts: list[pa.Array | pa.Scalar] = []
    for name, column in members:
        lead = f"{style.comma}{json.dumps(name, ensure_ascii=False)}{style.colon}"
        text = _texts(column, style)
        if style.nulls:
            parts += [pa.scalar(lead), text.fill_null("null")]
        else:
            parts.append(pc.binary_join_element_wise(pa.scalar(lead), text, "").fill_null(""))
    joined = pc.binary_join_element_wise(*parts, "")
    # Removes the leading comma. A slice of text would look at its characters, and a text may not be UTF-8.
    return _framed("{", pc.replace_substring(joined, style.comma, "", max_replacements=1), "}")


def _texts(column: pa.Array, style: JsonStyle) -> pa.StringArray:
    """Returns each value as JSON text; null where the value is null."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        return _texts(column.cast(kind.value_type), style)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return _framed('"', _escape(column.cast(pa.string()), style), '"')
    if pa.types.is_floating(kind):
        return _floats(column)
    if pa.types.is_date32(kind):
        return column.cast(pa.int32()).cast(pa.string())
    if pa.types.is_timestamp(kind) or pa.types.is_time(kind):
        return column.cast(pa.int32() if pa.types.is_time32(kind) else pa.int64()).cast(pa.string())
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind) or pa.types.is_decimal(kind) or pa.types.is_null(kind):
        return column.cast(pa.string())
    if pa.types.is_struct(kind):
        return json_rows(column, style)
    if pa.types.is_map(kind):
        return _map(column, style)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return _list(column, style)
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind):
        # Arrow has no base64; the codec is C and a value costs 0.2 µs.
        return pa.array(
            [None if value is None else f'"{base64.b64encode(value).decode()}"' for value in column.to_pylist()],
            pa.string(),
        )
    raise UnsupportedError(f"values of type {kind} have no JSON form")


def _list(column: pa.Array, style: JsonStyle) -> pa.StringArray:
    values = _texts(pc.list_flatten(column), style).fill_null("null")
    return _bracketed(column, pc.list_value_length(column), values, "[", "]", style)


def _map(column: pa.Array, style: JsonStyle) -> pa.StringArray:
    entries = column.cast(pa.list_(pa.struct([("key", column.type.key_type), ("value", column.type.item_type)])))
    keys, items = pc.list_flatten(entries).flatten()
    quoted = keys if pa.types.is_string(keys.type) else _texts(keys, style)
    names = _framed('"', _escape(quoted, style), f'"{style.colon}')
    values = pc.binary_join_element_wise(names, _texts(items, style).fill_null("null"), "")
    return _bracketed(column, pc.list_value_length(entries), values, "{", "}", style)


def _bracketed(
    column: pa.Array, lengths: pa.Array, values: pa.StringArray, begin: str, end: str, style: JsonStyle
) -> pa.StringArray:
    counts = lengths.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int32)
    offsets = np.concatenate([np.zeros(1, np.int32), np.cumsum(counts, dtype=np.int32)])
    lists = pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), values)
    texts = _framed(begin, pc.binary_join(lists, style.comma), end)
    return pc.if_else(column.is_valid(), texts, pa.scalar(None, pa.string())) if column.null_count else texts


def _framed(begin: str, texts: pa.StringArray, end: str) -> pa.StringArray:
    return pc.binary_join_element_wise(pa.scalar(begin), texts, pa.scalar(end), "")


def _escape(texts: pa.StringArray, style: JsonStyle) -> pa.StringArray:
    """Returns text to put between quotes. Goes row by row only where rows have rare characters."""
    if not pc.any(pc.match_substring_regex(texts, f'[\\x00-\\x1f"\\\\{style.escaped}]')).as_py():
        return texts
    for character, escape in _LITERAL.items():
        texts = pc.replace_substring(texts, character, escape)
    rare = f"[\\x00-\\x1f{style.escaped}]"
    hits = np.flatnonzero(pc.match_substring_regex(texts, rare).fill_null(False).to_numpy(zero_copy_only=False))
    if not len(hits):
        return texts
    pattern = re.compile(rare)
    # Bytes that are not UTF-8 stay as they are.
    rows = (texts[int(hit)].as_buffer().to_pybytes().decode(errors="surrogateescape") for hit in hits)
    fixed = [pattern.sub(lambda found: f"\\u{ord(found[0]):04X}", text) for text in rows]
    return _put(texts, hits, [text.encode(errors="surrogateescape") for text in fixed])


def _floats(column: pa.Array) -> pa.StringArray:
    texts, finite = java_text(column), pc.is_finite(column).fill_null(True)
    return texts if pc.all(finite).as_py() else pc.if_else(finite, texts, _framed('"', texts, '"'))


def _put(texts: pa.StringArray, places: np.ndarray, values: Sequence[str | bytes]) -> pa.StringArray:
    mask = np.zeros(len(texts), dtype=np.bool_)
    mask[places] = True
    return pc.replace_with_mask(texts, pa.array(mask), pa.array(values, pa.binary()).view(pa.string()))
