"""Hypothesis strategies of delete records with every type of ordering value."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Any

from hypothesis import strategies as st

from hudi_core.codec.log import content
from hudi_core.codec.log.content import DeleteRecord, OrderingValue
from hudi_core.errors import FormatError

_I32 = st.integers(-(1 << 31), (1 << 31) - 1)
_I64 = st.integers(-(1 << 63), (1 << 63) - 1)
_DECIMAL = st.integers(-(10**30 - 1), 10**30 - 1).map(
    lambda value: value.to_bytes((value.bit_length() + 8) // 8, "big", signed=True)
)

VALUES = {
    "boolean": st.booleans(),
    "int": _I32,
    "long": _I64,
    "float": st.floats(width=32, allow_nan=False),
    "double": st.floats(allow_nan=False),
    "bytes": st.binary(max_size=8),
    "string": st.text(max_size=8),
    "date": _I32,
    "decimal": _DECIMAL,
    "time_micros": _I64,
    "timestamp_micros": _I64,
}


def of_kind(kind: str) -> st.SearchStrategy[OrderingValue]:
    return VALUES[kind].map(lambda value: OrderingValue(kind, value))


SCALAR = st.sampled_from(sorted(VALUES)).flatmap(of_kind)
LOCAL_DATE = _I32.map(lambda days: OrderingValue("local_date", days))
ARRAY = st.none() | st.lists(st.none() | SCALAR | LOCAL_DATE, max_size=3).map(tuple)
ANY = st.none() | SCALAR | ARRAY.map(lambda items: OrderingValue("array", items))
TEXT = st.none() | st.text(max_size=10)


def records(ordering: st.SearchStrategy[OrderingValue | None]) -> st.SearchStrategy[list[DeleteRecord]]:
    return st.lists(st.builds(DeleteRecord, TEXT, TEXT, ordering), max_size=6)


def encode_delete_block(records: Iterable[DeleteRecord]) -> bytes:
    """The content of a DELETE block of version 3. Raises FormatError when an ordering value does not fit its type."""
    entries = [
        {"recordKey": record.key, "partitionPath": record.partition, "orderingVal": _wrapped(record.ordering)}
        for record in records
    ]
    data = content._codecs()[0].encode(entries)
    return struct.pack(">ii", content.DELETE_BLOCK_VERSION, len(data)) + data


def _wrapped(ordering: OrderingValue | None) -> tuple[str, dict[str, Any]] | None:
    if ordering is None:
        return None
    if ordering.kind == "array":
        return content._ARRAY, {
            "wrappedValues": None if ordering.value is None else [_wrapped(item) for item in ordering.value]
        }
    names = {kind: name for name, kind in content._KIND_OF.items()}
    if ordering.kind not in names:
        raise FormatError(f"unknown kind of ordering value {ordering.kind!r}")
    return names[ordering.kind], {"value": ordering.value}
