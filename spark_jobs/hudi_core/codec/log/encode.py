"""A log block → bytes (HoodieLogFormatWriter.appendBlocks)."""

from __future__ import annotations

import struct
from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_core.codec.binary import encode_zigzag
from hudi_core.codec.log.blocks import FORMAT_VERSION, LAST_V6_HEADER, MAGIC, BlockType, HeaderKey
from hudi_core.codec.log.content import DELETE_BLOCK_VERSION, ORDERING_KINDS
from hudi_core.errors import FormatError

_DELETE_HEAD = struct.Struct(">ii")
_PRESENT = encode_zigzag(1)
"""The branch of a nullable text that is not null."""
_ZERO = encode_zigzag(ORDERING_KINDS.index("int")) + encode_zigzag(0)
"""The ordering value 0, an int, which wins over whatever was before."""
_END = b"\0"


def encode_natural_deletes(keys: pa.Array, partition: str) -> bytes:
    """A delete block of version 3 for a binary array of keys in UTF-8 without nulls.

    Each is of `partition` and has the ordering value 0.
    """
    if not len(keys):
        data = _END
    else:
        lengths, which = np.unique(pc.binary_length(keys).to_numpy(), return_inverse=True)
        starts = pa.array([_PRESENT + encode_zigzag(int(length)) for length in lengths], pa.binary()).take(
            pa.array(which)
        )
        name = partition.encode("utf-8")
        tail = pa.scalar(_PRESENT + encode_zigzag(len(name)) + name + _ZERO, pa.binary())
        joined = pc.binary_join_element_wise(starts, keys, tail, pa.scalar(b"", pa.binary()))
        _, offsets, buffer = joined.buffers()
        end = int(np.frombuffer(offsets, dtype=np.int32)[joined.offset + len(joined)])
        data = encode_zigzag(len(keys)) + memoryview(buffer)[:end].tobytes() + _END
    return _DELETE_HEAD.pack(DELETE_BLOCK_VERSION, len(data)) + data


_HEAD = struct.Struct(">qii")
_I32 = struct.Struct(">i")
_ENTRY = struct.Struct(">ii")
_I64 = struct.Struct(">q")
_MAX_CONTENT = (1 << 31) - 1
"""Java holds a block's content in one byte array."""


def encode_block(
    kind: BlockType, headers: Mapping[HeaderKey, str], content: bytes = b"", *, hudi_1_headers: bool = False
) -> bytes:
    """The whole block with its magic, an empty footer and the reverse pointer. Header entries are in ascending order.

    Raises FormatError for a type that is never written, for a header that readers may not know, and for content that
    Java could not hold. `hudi_1_headers`: readers know those that Hudi 1.x added (config.versions); Hudi 0.15 fails on
    an ordinal above 6.
    """
    if kind is BlockType.CORRUPT:
        raise FormatError("a CORRUPT block exists only in a reader's view of a damaged file")
    if not hudi_1_headers and any(key > LAST_V6_HEADER for key in headers):
        raise FormatError(f"log header {max(headers).name} is not known to readers before Hudi 1.0")
    if len(content) > _MAX_CONTENT:
        raise FormatError(f"log block content of {len(content)} bytes is above the {_MAX_CONTENT} that Hudi can read")
    entries = [(key, headers[key].encode()) for key in sorted(headers)]
    header = _I32.pack(len(entries)) + b"".join(_ENTRY.pack(key, len(text)) + text for key, text in entries)
    footer = _I32.pack(0)
    # The size counts everything after itself, the reverse pointer included; the pointer counts everything before
    # itself.
    size = 4 + 4 + len(header) + 8 + len(content) + len(footer) + 8
    head = MAGIC + _HEAD.pack(size, FORMAT_VERSION, kind)
    return b"".join((head, header, _I64.pack(len(content)), content, footer, _I64.pack(size + len(MAGIC))))
