"""The buffers of Arrow arrays: the bytes of texts as NumPy has them, and nested arrays over other children."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray


def octets(array: pa.Array) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """Where each value of a string or binary array begins and the last ends, and all values one after the other.

    A null is as long as what its place holds, mostly nothing. The bytes are not copied.
    """
    _, offset_buffer, data_buffer = array.buffers()
    if not len(array) or data_buffer is None:
        return np.zeros(len(array) + 1, dtype=np.int64), np.zeros(0, dtype=np.uint8)
    wide = pa.types.is_large_binary(array.type) or pa.types.is_large_string(array.type)
    offsets = np.frombuffer(offset_buffer, dtype=np.int64 if wide else np.int32)
    offsets = offsets[array.offset : array.offset + len(array) + 1].astype(np.int64)
    data = np.frombuffer(data_buffer, dtype=np.uint8)[offsets[0] : offsets[-1]]
    return offsets - offsets[0] if offsets[0] else offsets, data


def unsliced(array: pa.Array) -> pa.Array:
    """The array from the start of its buffers, for what works on whole buffers."""
    return pa.concat_arrays([array]) if array.offset else array


def with_children(array: pa.Array, kind: pa.DataType, children: Sequence[pa.Array]) -> pa.Array:
    """A struct, list or map of the type `kind` over `children`, with the nulls and offsets of an unsliced array."""
    buffers = array.buffers()[:1]
    if not pa.types.is_struct(kind):
        offsets = pc.cast(array.offsets, pa.int64() if pa.types.is_large_list(kind) else pa.int32())
        buffers.append(offsets.buffers()[1])
    return pa.Array.from_buffers(kind, len(array), buffers, children=list(children))
