"""Statistics in one type as bounds of a column in another: only where the two order values alike."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

_BEYOND_JAVA = "[\ue000-\U0010ffff]"
"""Characters that UTF-16, the order of Java's strings, and UTF-8, that of Spark's, put in different places."""
_INTEGERS = (pa.int8(), pa.int16(), pa.int32(), pa.int64())
_UNITS = ("s", "ms", "us", "ns")


def in_order_of(bounds: pa.Array, kind: pa.DataType) -> pa.Array | None:
    """The bounds as type `kind`; None unless values of `kind` made from such values have the same order.

    Those of a column that was widened (int to long to double, decimals, finer timestamps) do; those of one that became
    text do not.
    """
    have = bounds.type
    if have == kind:
        return bounds
    if not _keeps_order(have, kind):
        return None
    if pa.types.is_float32(have):
        # Rows are read by the float's text (codec.avro.arrow_conform): 1.1, not 1.10000002384.
        return pc.cast(pc.cast(bounds, pa.string()), kind)
    return pc.cast(bounds, kind, safe=not pa.types.is_floating(kind))


def indexed_in_order_of(bounds: pa.Array, kind: pa.DataType) -> pa.Array | None:
    """As in_order_of, of bounds that the metadata table holds, of which writers took some by Java's order of values.

    A text with a character beyond those that all orders agree on is no bound, and nor are bytes, which Java takes for
    signed.
    """
    if any(pa.types.is_binary(have) or pa.types.is_large_binary(have) for have in (bounds.type, kind)):
        return None
    found = in_order_of(bounds, kind)
    if found is None or not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        return found
    return pc.if_else(pc.match_substring_regex(found, _BEYOND_JAVA), pa.scalar(None, kind), found)


def _keeps_order(have: pa.DataType, kind: pa.DataType) -> bool:
    if have in _INTEGERS:
        return pa.types.is_floating(kind) or (kind in _INTEGERS and _INTEGERS.index(have) < _INTEGERS.index(kind))
    if pa.types.is_float32(have):
        return bool(pa.types.is_float64(kind))
    if pa.types.is_decimal(have) and pa.types.is_decimal(kind):
        return bool(kind.scale >= have.scale and kind.precision - kind.scale >= have.precision - have.scale)
    if pa.types.is_timestamp(have) and pa.types.is_timestamp(kind):
        # A column without a zone is read as UTC (codec.avro.arrow_conform).
        zones = have.tz == kind.tz or (have.tz is None and kind.tz == "UTC")
        return zones and _UNITS.index(have.unit) <= _UNITS.index(kind.unit) and kind.unit != "ns"
    texts = (pa.string(), pa.large_string(), pa.binary(), pa.large_binary())
    return have in texts and kind in texts
