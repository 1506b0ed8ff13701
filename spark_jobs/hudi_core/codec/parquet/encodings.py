"""Which encoding each column of a base file gets, from a sample of its first row group.

A dictionary where few values are distinct. Delta encodings where neighbours are alike: keys in order, sequence numbers,
times; and of other texts for their lengths. Plain otherwise. Those are the encodings that parquet-mr of Hudi 0.15 and
the vectorised reader of Spark since 3.3 read.
"""

from __future__ import annotations

import io
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from hudi_core.codec.parquet.footer import empty_file, schema_of

_FEW_VALUES: Final = 0.5
"""A dictionary pays when at most this share of the sampled values are distinct."""
_SAMPLE_RUNS, _RUN_ROWS = 64, 64
"""The sample: this many runs of this many rows, spread over the column, since equal values may be adjacent."""
_FEWER_BITS: Final = 0.7
"""Delta packing pays when differences take less than this share of the bits of the values, or of their numbers in a
dictionary."""
_SHARED: Final = 0.3
"""Delta of strings pays when neighbours share at least this share of their bytes, as a prefix."""
_PREFIX: Final = 64
"""Bytes of a value in which the shared prefix is looked for."""
_MINIBLOCK: Final = 32
"""Values whose differences are packed with one width."""
DELTA_INTEGERS, DELTA_STRINGS, DELTA_LENGTHS = "DELTA_BINARY_PACKED", "DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY"


def chosen_encodings(table: pa.Table, *, delta: bool = True) -> tuple[list[str], dict[str, str]]:
    """The columns that get a dictionary, and the encodings of others, in files whose rows are like those of `table`: by
    the dotted names of leaf columns. Without `delta` every other column is plain.

    Leaves of nested columns always get a dictionary: Parquet gives it up by itself when it grows beyond a page.
    """
    flat = {field.name: field.type for field in table.schema if not pa.types.is_nested(field.type)}
    dictionaries: list[str] = []
    encodings: dict[str, str] = {}
    for path in _leaf_paths(table.schema):
        if path not in flat:
            dictionaries.append(path)
            continue
        kind = flat[path]
        sample = _sample(table.column(path))
        distinct = pc.count_distinct(sample).as_py()
        few = 0 < distinct <= len(sample) * _FEW_VALUES and not pa.types.is_boolean(kind)  # which have a bit each
        encoding = _delta_encoding(kind, sample, distinct if few else None) if delta and "." not in path else None
        if encoding is not None:
            encodings[path] = encoding
        elif few:
            dictionaries.append(path)
    return dictionaries, encodings


def _delta_encoding(kind: pa.DataType, sample: pa.Array, distinct: int | None) -> str | None:
    """The delta encoding of a column; None where it has none, or where a dictionary of `distinct` values is smaller."""
    if pa.types.is_signed_integer(kind) or pa.types.is_timestamp(kind) or pa.types.is_date32(kind):
        width = kind.bit_width if distinct is None else np.log2(distinct)
        bits = _bits_of_differences(sample)
        return DELTA_INTEGERS if bits is not None and bits < width * _FEWER_BITS else None
    if distinct is None and (pa.types.is_string(kind) or pa.types.is_binary(kind)):
        return DELTA_STRINGS if _neighbours_share(sample) else DELTA_LENGTHS
    return None


def _sample(column: pa.ChunkedArray) -> pa.Array:
    """Runs of neighbouring rows, one behind the other, without nulls."""
    step = max(_RUN_ROWS, len(column) // _SAMPLE_RUNS)
    runs = [chunk for start in range(0, len(column), step) for chunk in column.slice(start, _RUN_ROWS).chunks]
    return pa.chunked_array(runs, column.type).combine_chunks().drop_null()


def _bits_of_differences(sample: pa.Array) -> float | None:
    """The bits that the differences in a miniblock need, by the median. That between two runs counts as any other."""
    width = sample.type.bit_width
    numbers = sample.cast(pa.int32() if width == 32 else pa.int64()).to_numpy(zero_copy_only=False)
    differences = np.diff(numbers.astype(np.float64))
    whole = len(differences) // _MINIBLOCK * _MINIBLOCK
    blocks = (differences[:whole] if whole else differences).reshape(max(1, whole // _MINIBLOCK), -1)
    return float(np.median(np.log2(np.ptp(blocks, axis=1) + 1))) if blocks.size else None


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
    parquet = schema_of(pq.read_metadata(io.BytesIO(empty_file(schema))))
    return [parquet.column(index).path for index in range(len(parquet))]
