"""Columns of Arrow tables as one array, and strings as the bloom filter takes them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray


def one_array(column: pa.ChunkedArray) -> pa.Array:
    """The column in one piece."""
    array = column.combine_chunks()
    if isinstance(array, pa.ChunkedArray):
        return pa.concat_arrays(array.chunks) if array.num_chunks else pa.array([], array.type)
    return array


def buffers_of(texts: pa.Array) -> tuple[NDArray[np.int32], NDArray[np.uint8]]:
    """Offsets (n + 1) and bytes of a string array without nulls."""
    if not len(texts):
        return np.zeros(1, dtype=np.int32), np.zeros(0, dtype=np.uint8)
    _, offsets, data = texts.buffers()
    positions = np.frombuffer(offsets, dtype=np.int32)[texts.offset : texts.offset + len(texts) + 1]
    return positions, np.frombuffer(b"" if data is None else data, dtype=np.uint8)
