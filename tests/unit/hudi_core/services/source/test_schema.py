"""Which types a column takes: every value must be one of the table's."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_core.codec.avro.arrow_conform import conform_array
from hudi_core.codec.parquet.file import ParquetBaseFile
from hudi_core.errors import ConfigError, FormatError
from hudi_core.services.source.schema import check_types, fits, with_instants
from hudi_core.storage.local import LocalStorage
from tests.support.golden_data import GoldenCase
from tests.support.overwrites import overwrite, own_rows, within
from tests.support.rows import assert_same_rows
from tests.support.table_invariants import read_rows

Golden = Callable[[str, str], GoldenCase]
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
        (pa.binary(4), pa.binary()),
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


OF_TABLES = [
    pa.bool_(),
    pa.int32(),
    pa.int64(),
    pa.float32(),
    pa.float64(),
    pa.date32(),
    pa.string(),
    pa.binary(),
    pa.binary(3),
    pa.decimal128(5, 2),
    pa.decimal128(10, 2),
    *(pa.timestamp(unit, zone) for unit in ("ms", "us") for zone in (None, "UTC")),
]
PLAIN = [
    *OF_TABLES,
    pa.int8(),
    pa.int16(),
    pa.large_string(),
    pa.string_view(),
    pa.large_binary(),
    pa.binary_view(),
    *(pa.timestamp(unit, zone) for unit in ("s", "ms", "us", "ns") for zone in ("Europe/Berlin", "+01:00")),
]
OF_SOURCES = PLAIN + [pa.dictionary(pa.int32(), kind) for kind in PLAIN]


@pytest.mark.parametrize("shape", ["plain", "list", "large list", "struct", "map"])
def test_whatever_fits_is_converted(shape: str) -> None:
    """A type that fits is not refused later, when the run has started."""

    shapes: dict[str, Callable[[pa.DataType], pa.DataType]] = {
        "plain": lambda kind: kind,
        "list": pa.list_,
        "large list": pa.large_list,
        "struct": lambda kind: pa.struct([("a", kind)]),
        "map": lambda kind: pa.map_(pa.string(), kind),
    }
    converted = 0
    for kind in OF_SOURCES:
        for inner in OF_TABLES:
            given, table = shapes[shape](kind), shapes[shape.removeprefix("large ")](inner)
            if fits(given, table):
                converted += 1
                found = conform_array(pa.nulls(2, given), pa.field("c", table), path="T")
                assert (found.type, found.null_count) == (table, 2)
    assert converted > 2 * len(OF_TABLES)


def test_times_of_another_zone_are_the_same_instants() -> None:
    given = pa.array([0, None], pa.timestamp("ms", "Europe/Berlin"))
    assert conform_array(given, pa.field("t", UTC), path="T").equals(pa.array([0, None], UTC))


def test_categories_are_taken_as_their_values() -> None:
    given = pa.array(["b", None, "a"], pa.large_string()).dictionary_encode()
    assert conform_array(given, pa.field("c", pa.string()), path="T").equals(pa.array(["b", None, "a"]))
    with_null = pa.DictionaryArray.from_arrays(pa.array([0, 1]), pa.array(["a", None], pa.string()))
    with pytest.raises(FormatError, match="holds nulls"):
        conform_array(with_null, pa.field("c", pa.string(), nullable=False), path="T")


def test_a_source_of_another_zone_and_of_categories_is_written(golden: Golden, tmp_path: Path) -> None:
    """As pyarrow and polars write them, and as Spark answers a query in a session of another zone than UTC."""
    table = golden("9", "types_cow").table
    before = read_rows(table)
    name = min(before.column("_hoodie_partition_path").to_pylist())
    given = own_rows(table, within(before, name))
    berlin = given.column("c_ts").cast(pa.timestamp("us", "Europe/Berlin"))
    texts = given.column("c_str").cast(pa.large_string()).dictionary_encode()
    for column, values in (("c_ts", berlin), ("c_str", texts)):
        given = given.set_column(given.schema.get_field_index(column), column, values)
    (tmp_path / "source").mkdir()
    pq.write_table(given, tmp_path / "source" / "rows.parquet")
    found = pq.read_schema(tmp_path / "source" / "rows.parquet")
    assert found.field("c_ts").type == berlin.type
    assert pa.types.is_dictionary(found.field("c_str").type)
    overwrite(table, tmp_path / "source")
    assert_same_rows(own_rows(table, read_rows(table)), own_rows(table, before))


def nested_times(zone: str | None) -> pa.Schema:
    at = pa.timestamp("us", zone)
    inner = pa.struct([("n", pa.int32()), ("at", at), ("all", pa.list_(at))])
    return pa.schema(
        [
            ("id", pa.string()),
            ("top", at),
            ("event", inner),
            ("events", pa.list_(inner)),
            ("by_name", pa.map_(pa.string(), at)),
            ("name", pa.string()),
        ]
    )


@pytest.mark.parametrize("is_int96", [True, False])
def test_times_of_old_writers_are_instants(tmp_path: Path, is_int96: bool) -> None:
    """INT96, as Spark writes by default, also within structs, lists and maps; other times without a zone are local."""
    rows = pa.Table.from_batches([], nested_times(None))
    pq.write_table(rows, tmp_path / "a.parquet", use_deprecated_int96_timestamps=is_int96)
    with LocalStorage(tmp_path).open_input("a.parquet") as stream, ParquetBaseFile(stream, "a") as file:
        given = list(file.schema)
        assert with_instants(file) == nested_times("UTC" if is_int96 else None)
        check_types(given, nested_times(None), file)
        if is_int96:
            check_types(given, nested_times("UTC"), file)
            return
        with pytest.raises(ConfigError, match="'top' is of type timestamp"):
            check_types(given, nested_times("UTC"), file)


def test_lists_for_a_vector_are_refused_by_its_name(tmp_path: Path) -> None:
    pq.write_table(pa.table({"v": pa.array([[1.0, 2.0]], pa.list_(pa.float32()))}), tmp_path / "a.parquet")
    with (
        LocalStorage(tmp_path).open_input("a.parquet") as stream,
        ParquetBaseFile(stream, "a") as file,
        pytest.raises(ConfigError, match="'v' is of type list") as caught,
    ):
        check_types(list(file.schema), pa.schema([("v", pa.binary(8))]), file)
    assert "VECTOR" in str(caught.value.remedy)
