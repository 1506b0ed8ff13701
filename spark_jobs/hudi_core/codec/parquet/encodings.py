"""Which encoding each column of a base file gets, from a sample of its first row group.

A dictionary where few values are distinct. Delta encodings where neighbours are alike: keys in order, sequence numbers,
times. Plain otherwise. Those are the encodings that parquet-mr of Hudi 0.15 and the vectorised reader of Spark since
3.3 read.
"""

from __future__ import annotations

import io
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

_FEW_VALUES: Final = 0.5
"""A dictionary pays when at most this share of the sampled values are distinct."""
_SAMPLE_RUNS, _RUN_ROWS = 64, 64
"""The sample: this many runs of this many rows, spread over the column, since equal values may be adjacent."""
_FEWER_BITS: Final = 0.7
"""Delta packing pays when differences take at most this share of the bits of the values."""
_SHARED: Final = 0.3
"""Delta of strings pays when neighbours share at least this share of their bytes, as a prefix."""
_PREFIX: Final = 64
"""Bytes of a value in which the shared prefix is looked for."""
_MINIBLOCK: Final = 32
"""Values whose differences are packed with one width."""
DELTA_INTEGERS, DELTA_STRINGS = "DELTA_BINARY_PACKED", "DELTA_BYTE_ARRAY"


def dictionary_columns(table: pa.Table) -> list[str]:
    """The dotted names of the leaf columns that get a dictionary in files whose rows are like those of `table`.

    Leaves of nested columns always do: Parquet gives it up by itself when it grows beyond a page.
    """
    flat = {field.name: field.type for field in table.schema if not pa.types.is_nested(field.type)}
    return [path for path in _leaf_paths(table.schema) if path not in flat or _few_values(table.column(path))]


def delta_columns(table: pa.Table, dictionaries: list[str]) -> dict[str, str]:
    """The encoding of each column, by its name, that is written as differences; none of `dictionaries` is."""
    found = {}
    for field in table.schema:
        if field.name in dictionaries or "." in field.name:
            continue
        if _is_integer(field.type):
            if _integers_are_near(_sample(table.column(field.name))):
                found[field.name] = DELTA_INTEGERS
        elif _is_text(field.type) and _neighbours_share(_sample(table.column(field.name))):
            found[field.name] = DELTA_STRINGS
    return found


def _is_integer(kind: pa.DataType) -> bool:
    return bool(pa.types.is_signed_integer(kind) or pa.types.is_timestamp(kind) or pa.types.is_date32(kind))


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_binary(kind))


def _few_values(column: pa.ChunkedArray) -> bool:
    if pa.types.is_boolean(column.type):
        return False  # a bit each is less than any dictionary
    sample = _sample(column)
    return bool(len(sample) and pc.count_distinct(sample).as_py() <= len(sample) * _FEW_VALUES)


def _sample(column: pa.ChunkedArray) -> pa.Array:
    """Runs of neighbouring rows, one behind the other, without nulls."""
    step = max(_RUN_ROWS, len(column) // _SAMPLE_RUNS)
    runs = [chunk for start in range(0, len(column), step) for chunk in column.slice(start, _RUN_ROWS).chunks]
    return pa.chunked_array(runs, column.type).combine_chunks().drop_null()


def _integers_are_near(sample: pa.Array) -> bool:
    """Whether the differences in a miniblock need few bits; the one between two runs counts as any other."""
    width = sample.type.bit_width
    numbers = sample.cast(pa.int32() if width == 32 else pa.int64()).to_numpy(zero_copy_only=False)
    differences = np.diff(numbers.astype(np.float64))
    whole = len(differences) // _MINIBLOCK * _MINIBLOCK
    blocks = (differences[:whole] if whole else differences).reshape(max(1, whole // _MINIBLOCK), -1)
    if not blocks.size:
        return False
    bits = np.log2(np.ptp(blocks, axis=1) + 1)
    return bool(np.median(bits) <= width * _FEWER_BITS)


def _neighbours_share(sample: pa.Array) -> bool:
    if len(sample) < 2:
        return False
    values = sample.cast(pa.binary())
    lengths = pc.binary_length(values).to_numpy()
    starts = pc.binary_slice(values, 0, _PREFIX).to_numpy(zero_copy_only=False).astype(f"S{_PREFIX}")
    octets = starts.view(np.uint8).reshape(len(values), _PREFIX)
    same = np.logical_and.accumulate(octets[1:] == octets[:-1], axis=1).sum(axis=1)
    shared = int(np.minimum(same, np.minimum(lengths[1:], lengths[:-1])).sum())
    return shared >= int(lengths[1:].sum()) * _SHARED


def _leaf_paths(schema: pa.Schema) -> list[str]:
    """The dotted names that Parquet gives the leaf columns, which Arrow's per-column options go by."""
    buffer = io.BytesIO()
    pq.write_table(schema.empty_table(), buffer, store_schema=False)
    parquet = pq.ParquetFile(buffer).schema
    return [parquet.column(index).path for index in range(len(parquet))]
