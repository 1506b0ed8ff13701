"""Which types a column takes: every value must be one of the table's."""

from __future__ import annotations

import pyarrow as pa
import pytest

from hudi_core.services.overwrite.source_types import fits

UTC = pa.timestamp("us", "UTC")


@pytest.mark.parametrize(
    ("given", "table"),
    [
        (pa.int8(), pa.int32()),
        (pa.int32(), pa.int64()),
        (pa.int64(), pa.float64()),
        (pa.float32(), pa.float64()),
        (pa.large_string(), pa.string()),
        (pa.dictionary(pa.int32(), pa.string()), pa.string()),
        (pa.large_binary(), pa.binary()),
        (pa.decimal128(5, 2), pa.decimal128(10, 2)),
        (pa.timestamp("ms", "Asia/Tokyo"), UTC),
        (pa.struct([("a", pa.int32())]), pa.struct([("a", pa.int64()), ("b", pa.string())])),
        (pa.list_(pa.int32()), pa.list_(pa.int64())),
        (pa.map_(pa.string(), pa.int32()), pa.map_(pa.string(), pa.int64())),
    ],
)
def test_wider_types_take_narrower_ones_and_not_the_other_way(given: pa.DataType, table: pa.DataType) -> None:
    assert fits(given, table)
    same = {pa.large_string(), pa.large_binary(), pa.timestamp("ms", "Asia/Tokyo")}
    assert fits(table, given) == (given in same and not pa.types.is_timestamp(given))


@pytest.mark.parametrize(
    ("given", "table"),
    [
        (pa.int64(), pa.string()),
        (pa.uint32(), pa.int64()),
        (pa.string(), pa.date32()),
        (pa.decimal128(10, 3), pa.decimal128(10, 2)),
        (pa.timestamp("ns", "UTC"), UTC),
        (pa.timestamp("us"), UTC),
        (pa.struct([("a", pa.int32()), ("z", pa.int32())]), pa.struct([("a", pa.int32())])),
        (pa.struct([]), pa.struct([pa.field("a", pa.int32(), nullable=False)])),
        (pa.list_(pa.string()), pa.list_(pa.int32())),
        (pa.int32(), pa.list_(pa.int32())),
    ],
)
def test_other_types_are_not_taken(given: pa.DataType, table: pa.DataType) -> None:
    assert not fits(given, table)


def test_times_of_old_writers_are_instants() -> None:
    assert fits(pa.timestamp("us"), UTC, naive_is_utc=True)
    assert not fits(UTC, pa.timestamp("us"), naive_is_utc=True)
