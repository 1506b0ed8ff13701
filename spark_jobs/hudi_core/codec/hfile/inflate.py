"""Inflating the gzip members of HFile blocks, which is most of what a lookup in a large file group costs.

The native `isal` is used when it is installed: it takes half of zlib's time. Both verify a member's checksum and length.
"""

from __future__ import annotations

import zlib
from types import ModuleType

FASTEST: ModuleType
try:
    from isal import isal_zlib as FASTEST
except ImportError:
    FASTEST = zlib

_GZIP_WINDOW = 31


def inflate(member: bytes | memoryview, size: int, library: ModuleType = FASTEST) -> bytes:
    """The `size` bytes of a gzip member, at most one more of which are ever made. Raises ValueError with the reason, without a full stop."""
    inflater = library.decompressobj(_GZIP_WINDOW)
    try:
        data: bytes = inflater.decompress(member, size + 1)
    except library.error as error:
        raise ValueError(f"HFile block does not decompress ({error})") from error
    if len(data) != size or not inflater.eof:
        raise ValueError(f"HFile block decompresses to another size than the {size} bytes it claims")
    return data
