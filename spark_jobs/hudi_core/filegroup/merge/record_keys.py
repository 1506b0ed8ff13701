"""Reads record keys and delete marks from rows. filegroup/write/key_generator.py makes the keys of new rows."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hudi_core.codec.columns import column_named, column_of
from hudi_core.errors import CorruptFileError, UnsupportedError
from hudi_core.filegroup.merge.table_policy import DeleteMark, MergePolicy
from hudi_core.model.names import IS_DELETED

NULL_KEY = "__null__"
EMPTY_KEY = "__empty__"


def record_keys(batch: pa.RecordBatch, fields: Sequence[str], *, path: str) -> pa.Array:
    """Returns the rows' keys as a string array: the text of the one field, or `a:value,b:value` for several, by dotted
    name. A field that the rows lack is null (KeyGenerator.constructRecordKey, RecordContext.virtualKeyExtractor).
    Raises CorruptFileError for a row without a key and UnsupportedError for a type that makes no key.
    """
    stored = [column_of(batch, name) for name in fields]
    columns = [pa.nulls(batch.num_rows, pa.string()) if column is None else column for column in stored]
    if len(columns) == 1:
        return key_texts(columns[0], path=path)
    texts = [_text(column, path) for column in columns]
    empty = reduce(pc.and_, [pc.fill_null(pc.equal(text, ""), True) for text in texts])
    if pc.any(empty).as_py():
        message = f"{pc.sum(empty).as_py()} records have no value in any of the key fields {', '.join(fields)}"
        raise CorruptFileError(message, path=path)
    return labelled_keys(fields, texts)


def labelled_keys(fields: Sequence[str], texts: Sequence[pa.Array]) -> pa.Array:
    """Returns `field:value` for each field, joined by commas (KeyGenUtils.getRecordKey)."""
    parts = []
    for name, text in zip(fields, texts, strict=True):
        filled = pc.if_else(pc.equal(text, ""), EMPTY_KEY, text).fill_null(NULL_KEY)
        parts.append(pc.binary_join_element_wise(f"{name}:", filled, ""))
    return parts[0] if len(parts) == 1 else pc.binary_join_element_wise(*parts, ",")


def key_texts(column: pa.Array, *, path: str) -> pa.Array:
    """Returns record keys as a string array. Raises CorruptFileError for a null, UnsupportedError for other types."""
    if column.null_count:
        raise CorruptFileError(f"{column.null_count} records have no record key", path=path)
    return _text(column, path)


def _text(column: pa.Array, path: str) -> pa.Array:
    if pa.types.is_string(column.type):
        return column
    if pa.types.is_integer(column.type) or pa.types.is_large_string(column.type):
        return column.cast(pa.string())
    remedy = "keys without _hoodie_ columns are text or whole numbers"
    raise UnsupportedError(f"record keys of type {column.type}", path=path, remedy=remedy)


def delete_flags(batch: pa.RecordBatch, policy: MergePolicy) -> NDArray[np.bool_]:
    """Whether each row is marked as deleted. The column of a mark is found only in its own case, as in Hudi."""
    flags = np.zeros(batch.num_rows, dtype=np.bool_)
    for mark in policy.delete_marks:
        is_there = column_named(mark.column, batch.schema) == mark.column
        column = column_of(batch, mark.column) if is_there else None
        if column is not None and not (mark.column == IS_DELETED and not pa.types.is_boolean(column.type)):
            flags |= _marked(column, mark)
    return flags


def _marked(column: pa.Array, mark: DeleteMark) -> NDArray[np.bool_]:
    if not (pa.types.is_string(column.type) or pa.types.is_integer(column.type) or pa.types.is_boolean(column.type)):
        remedy = "text, whole numbers and booleans are supported"
        raise UnsupportedError(f"delete field {mark.column!r} of type {column.type}", remedy=remedy)
    texts = column.cast(pa.string())
    requested = [value.lower() for value in mark.values] if mark.any_case else list(mark.values)
    if mark.any_case:
        texts = pc.utf8_lower(texts)
    return as_mask(pc.is_in(texts, value_set=pa.array(requested, pa.string())))


def as_mask(values: pa.Array) -> NDArray[np.bool_]:
    """Returns a boolean array without nulls as a NumPy array."""
    result: NDArray[np.bool_] = values.to_numpy(zero_copy_only=False)
    return result
