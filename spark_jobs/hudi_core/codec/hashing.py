"""Java's string hash, by which a metadata-table key finds its file group."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

_MASK = 0xFFFFFFFF
_MIN_INT = -(1 << 31)
_FEW = 64
"""Below this many keys one after the other is as fast."""


def java_string_hash(text: str) -> int:
    """`String.hashCode()`: the 31-polynomial over UTF-16 units in wrapping 32-bit arithmetic, as a signed integer."""
    value = 0
    units = text.encode("utf-16-le", "surrogatepass")
    for index in range(0, len(units), 2):
        value = (31 * value + (units[index] | units[index + 1] << 8)) & _MASK
    return value - (1 << 32) if value >> 31 else value


def file_group_index(key: str, count: int) -> int:
    """Which of `count` file groups holds `key`, 0-based (HoodieTableMetadataUtil.mapRecordKeyToFileGroupIndex).

    Raises ValueError when `count` is not positive.
    """
    if count < 1:
        raise ValueError(f"a partition of the metadata table has at least one file group, not {count}")
    value = java_string_hash(key)
    # Java's Math.abs leaves the smallest int negative, and its % then keeps the sign; the outer abs makes it positive.
    magnitude = value if value == _MIN_INT else abs(value)
    return abs(_java_remainder(magnitude, count))


def _java_remainder(value: int, divisor: int) -> int:
    remainder = abs(value) % divisor
    return -remainder if value < 0 else remainder


def file_group_indexes(keys: Sequence[str], count: int) -> NDArray[np.int64]:
    """As file_group_index, for many keys at once: int64, in the keys' order.

    Raises ValueError when `count` is not positive.
    """
    if count < 1:
        raise ValueError(f"a partition of the metadata table has at least one file group, not {count}")
    if count == 1:
        return np.zeros(len(keys), dtype=np.int64)
    text = "".join(keys)
    encoded = text.encode("utf-16-le", "surrogatepass")
    # A character outside the Basic Multilingual Plane is two units in Java and one here.
    if len(keys) < _FEW or len(encoded) != 2 * len(text):
        return np.array([file_group_index(key, count) for key in keys], dtype=np.int64)
    lengths = np.fromiter(map(len, keys), dtype=np.int64, count=len(keys))
    units = np.frombuffer(encoded, dtype="<u2").astype(np.uint32)
    starts = np.cumsum(lengths) - lengths
    values = np.zeros(len(keys), dtype=np.uint32)
    for position in range(int(lengths.max())):
        longer = lengths > position
        values[longer] = values[longer] * np.uint32(31) + units[starts[longer] + position]
    signed = values.astype(np.int32).astype(np.int64)
    # The smallest int has no positive counterpart in Java; its remainder's sign is removed by the outer abs, as here.
    return np.abs(signed) % count
