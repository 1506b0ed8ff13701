"""Java's string hash, by which a metadata-table key finds its file group."""

from __future__ import annotations

_MASK = 0xFFFFFFFF
_MIN_INT = -(1 << 31)


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
