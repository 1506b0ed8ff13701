"""Which types a column takes: every value must be one of the table's."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_core.codec.parquet.file import ParquetBaseFile
from hudi_core.errors import ConfigError
from hudi_core.services.overwrite.source_types import check_types, fits
from hudi_core.storage.local import LocalStorage

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


def test_lists_for_a_vector_are_refused_by_its_name(tmp_path: Path) -> None:
    pq.write_table(pa.table({"v": pa.array([[1.0, 2.0]], pa.list_(pa.float32()))}), tmp_path / "a.parquet")
    with (
        LocalStorage(tmp_path).open_input("a.parquet") as stream,
        ParquetBaseFile(stream, "a") as file,
        pytest.raises(ConfigError, match="'v' is of type list") as caught,
    ):
        check_types(list(file.schema), pa.schema([("v", pa.binary(8))]), file)
    assert "VECTOR" in str(caught.value.remedy)
