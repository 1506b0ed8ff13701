"""The content of a delete block with many keys, from an Arrow column (HoodieDeleteBlock; facts 5.4, 8.4).

0.1 µs a key; codec.log.content.encode_delete_block, which takes any ordering value, needs 5.
"""

from __future__ import annotations

import struct

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_core.codec.binary import encode_zigzag
from hudi_core.codec.log.content import DELETE_BLOCK_VERSION, ORDERING_KINDS

_HEAD = struct.Struct(">ii")
_PRESENT = encode_zigzag(1)
"""The branch of a nullable text that is not null."""
_ZERO = encode_zigzag(ORDERING_KINDS.index("int")) + encode_zigzag(0)
"""The ordering value 0, an int, which wins over whatever was before."""
_END = b"\0"


def encode_natural_deletes(keys: pa.Array, partition: str) -> bytes:
    """A delete block of version 3 for a binary array of keys in UTF-8 without nulls, each of `partition` and with the ordering value 0."""
    if not len(keys):
        data = _END
    else:
        lengths, which = np.unique(pc.binary_length(keys).to_numpy(), return_inverse=True)
        starts = pa.array([_PRESENT + encode_zigzag(int(length)) for length in lengths], pa.binary()).take(pa.array(which))
        name = partition.encode("utf-8")
        tail = pa.scalar(_PRESENT + encode_zigzag(len(name)) + name + _ZERO, pa.binary())
        joined = pc.binary_join_element_wise(starts, keys, tail, pa.scalar(b"", pa.binary()))
        _, offsets, buffer = joined.buffers()
        end = int(np.frombuffer(offsets, dtype=np.int32)[joined.offset + len(joined)])
        data = encode_zigzag(len(keys)) + memoryview(buffer)[:end].tobytes() + _END
    return _HEAD.pack(DELETE_BLOCK_VERSION, len(data)) + data
