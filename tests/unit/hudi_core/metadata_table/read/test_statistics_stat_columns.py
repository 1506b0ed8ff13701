"""Statistics decoded in bulk, against the record rules: every type of bound, every type of column, and what only the
rules can read.
"""

from __future__ import annotations

from decimal import Decimal
from importlib import resources
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hudi_core.errors import CorruptFileError
from hudi_core.metadata_table.read import statistics
from hudi_core.metadata_table.read.statistics import StatColumns
from hudi_core.metadata_table.record import RecordEncoder
from hudi_core.metadata_table.records.bounds import Bound, ValueType, encode_bound

SCHEMAS = {
    version: resources.files("hudi_core.metadata_table").joinpath(f"schema_v{version}.avsc").read_text("utf-8").strip()
    for version in "689"
}
DAY = 19_700
BOUNDS: list[tuple[Bound, ValueType]] = [
    (Bound("boolean", True), ValueType(2)),
    (Bound("int", -5), ValueType(3)),
    (Bound("long", 1 << 40), ValueType(4)),
    (Bound("float", 1.5), ValueType(5)),
    (Bound("double", -2.25), ValueType(6)),
    (Bound("double", float("nan")), ValueType(6)),
    (Bound("string", "é😀"), ValueType(7)),
    (Bound("bytes", b"\0\xff"), ValueType(8)),
    (Bound("decimal", Decimal("12.34")), ValueType(10, "10,2")),
    (Bound("date", DAY), ValueType(12)),
    (Bound("time_micros", 5_000_000), ValueType(14)),
    (Bound("timestamp_micros", -1), ValueType(16)),
    (Bound("timestamp_millis", 1_700_000_000_123), ValueType(15)),
    (Bound("timestamp_nanos", 1_700_000_000_123_456_789), ValueType(17)),
    (Bound("time_millis", 77), ValueType(13)),
]
COLUMNS = [
    (pa.bool_(), "us"),
    (pa.int32(), "us"),
    (pa.int64(), "us"),
    (pa.float32(), "us"),
    (pa.float64(), "us"),
    (pa.string(), "us"),
    (pa.binary(), "us"),
    (pa.decimal128(12, 3), "us"),
    (pa.date32(), "us"),
    (pa.timestamp("us", "UTC"), "us"),
    (pa.timestamp("us"), "ms"),
    (pa.time64("us"), "us"),
    (pa.null(), "us"),
]


def datum(
    name: str,
    least: Any,
    greatest: Any,
    value_type: Any,
    nulls: int | None = 0,
    *,
    gone: bool = False,
    tight: bool = False,
) -> dict[str, Any]:
    body = {
        "fileName": name,
        "columnName": "c",
        "minValue": least,
        "maxValue": greatest,
        "valueCount": 9,
        "nullCount": nulls,
        "totalSize": 1,
        "totalUncompressedSize": None if nulls is None else 100 + len(name or ""),
        "isDeleted": gone,
        "isTightBound": tight,
        "valueType": value_type,
    }
    return {"type": 3, "ColumnStatsMetadata": body}


def bounded(version: str, bound: Bound, value_type: ValueType) -> tuple[Any, Any] | None:
    """The bound as a table of a version stores it, and the value type beside it; None where it does not."""
    if version != "9":
        if bound.logical in ("timestamp_millis", "timestamp_nanos", "time_millis"):
            return None
        return encode_bound(bound, ValueType(0)), None
    return encode_bound(bound, value_type), {"typeOrdinal": value_type.ordinal, "additionalInfo": value_type.info}


def cells(version: str, data: list[dict[str, Any]]) -> tuple[list[bytes], list[bytes]]:
    encoder = RecordEncoder(SCHEMAS[version])
    return [f"key{index:04d}".encode() for index in range(len(data))], [encoder.value(item) for item in data]


def both(
    version: str, data: list[dict[str, Any]], how: StatColumns, monkeypatch: pytest.MonkeyPatch
) -> tuple[pa.Table, pa.Table]:
    keys, values = cells(version, data)
    found = []
    for least in (0, 1 << 30):
        monkeypatch.setattr(statistics, "_LEAST_RUN", least)
        found.append(how.of_cells(SCHEMAS[version], keys, values, path="x.hfile"))
    return found[0], found[1]


def same(one: pa.Table, other: pa.Table) -> None:
    assert one.schema == other.schema
    for column, expected in zip(one.columns, other.columns, strict=True):
        if pa.types.is_temporal(column.type) and not pa.types.is_date32(column.type):
            # Not all are moments that Python has.
            column, expected = column.cast(pa.int64()), expected.cast(pa.int64())
        column.combine_chunks().validate(full=True)
        # repr shows NaN and -0.0 as they are.
        assert repr(column.to_pylist()) == repr(expected.to_pylist())


@pytest.mark.parametrize("version", list(SCHEMAS))
@pytest.mark.parametrize(("kind", "unit"), COLUMNS)
def test_every_type_of_bound_for_every_type_of_column(
    version: str, kind: pa.DataType, unit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = [datum("nothing.parquet", None, None, None, 9), datum(".", None, None, None, None, tight=True)]
    for number, (bound, value_type) in enumerate(BOUNDS):
        stored = bounded(version, bound, value_type)
        if stored is not None:
            wrapped, typed = stored
            data += [
                datum(f"f{number}", wrapped, wrapped, typed, number),
                datum("gone", wrapped, wrapped, typed, gone=True),
            ]
            data.append(datum("half.parquet", wrapped, None, typed, tight=number % 2 == 0))
    bulk, plain = both(version, data, StatColumns(kind, unit), monkeypatch)
    same(bulk, plain)
    assert "gone" not in bulk["file"].to_pylist()
    assert bulk["file"].to_pylist()[:2] == ["nothing.parquet", ""]
    if not pa.types.is_null(kind) and not (pa.types.is_time(kind) and version != "9"):
        assert bulk["min"].null_count < len(bulk), "a bound of the column's own kind is there"


@pytest.mark.parametrize("version", list(SCHEMAS))
@pytest.mark.parametrize(("bound", "value_type"), BOUNDS)
def test_bounds_of_one_kind_alone(
    version: str, bound: Bound, value_type: ValueType, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored = bounded(version, bound, value_type)
    if stored is None:
        assert version != "9"
        return
    wrapped, typed = stored
    for kind, unit in COLUMNS:
        same(*both(version, [datum("f", wrapped, wrapped, typed)] * 3, StatColumns(kind, unit), monkeypatch))


@settings(deadline=None, max_examples=60)
@given(
    st.lists(
        st.tuples(st.none() | st.integers(-(1 << 63), (1 << 63) - 1), st.none() | st.integers(0, 9), st.booleans()),
        max_size=30,
    )
)
def test_runs_with_gaps(rows: list[tuple[int | None, int | None, bool]]) -> None:
    wrapper = "org.apache.hudi.avro.model.LongWrapper"
    data = [
        datum(
            f"f{index}",
            None if value is None else (wrapper, {"value": value}),
            (wrapper, {"value": 3}),
            None,
            nulls,
            gone=gone,
        )
        for index, (value, nulls, gone) in enumerate(rows)
    ]
    for kind, unit in ((pa.int64(), "us"), (pa.int32(), "us"), (pa.timestamp("us", "UTC"), "us")):
        with pytest.MonkeyPatch.context() as patch:
            same(*both("8", data, StatColumns(kind, unit), patch))


@pytest.mark.parametrize("version", list(SCHEMAS))
def test_what_the_rules_refuse_is_refused_in_a_run(version: str) -> None:
    keys, values = cells(version, [datum("f", None, None, None)] * 100)
    other = RecordEncoder(SCHEMAS[version]).value({"type": 2, "filesystemMetadata": {}})
    how = StatColumns(pa.int64(), "us")
    nameless = RecordEncoder(SCHEMAS[version]).value(datum(None, None, None, None))  # type: ignore[arg-type]
    for bad in (other, nameless, values[0][:-1], values[0] + b"\0"):
        with pytest.raises(CorruptFileError) as caught:
            how.of_cells(SCHEMAS[version], keys, [*values[:-1], bad], path="x.hfile")
        assert caught.value.path == "x.hfile"
    with pytest.raises(CorruptFileError):
        how.of_cells(SCHEMAS[version], [*keys[:-1], b"\xff"], values, path="x.hfile")
    with pytest.raises(CorruptFileError):
        how.of_cells('{"type": "record"}', keys, values, path="x.hfile")


def test_a_value_type_that_is_none_is_refused_in_a_run() -> None:
    wrapper = "org.apache.hudi.avro.model.LongWrapper"
    keys, values = cells(
        "9", [datum("f", (wrapper, {"value": 3}), None, {"typeOrdinal": 99, "additionalInfo": None})] * 100
    )
    with pytest.raises(CorruptFileError, match="99"):
        StatColumns(pa.int64(), "us").of_cells(SCHEMAS["9"], keys, values, path="x.hfile")
    keys, values = cells(
        "9", [datum("f", (wrapper, {"value": 3}), None, {"typeOrdinal": 7, "additionalInfo": None})] * 100
    )
    with pytest.raises(CorruptFileError, match="string 3"):
        StatColumns(pa.string(), "us").of_cells(SCHEMAS["9"], keys, values, path="x.hfile")


def test_a_list_among_the_bounds_has_no_order() -> None:
    """Version 9's ArrayWrapper: the run goes by the rules."""
    wrapper = "org.apache.hudi.avro.model.LongWrapper"
    nested: tuple[str, dict[str, Any]] = ("org.apache.hudi.avro.model.ArrayWrapper", {"wrappedValues": []})
    data = [datum("f", (wrapper, {"value": 3}), None, {"typeOrdinal": 4, "additionalInfo": None})] * 80
    try:
        keys, values = cells("9", [*data, datum("list", nested, None, {"typeOrdinal": 4, "additionalInfo": None})])
    except Exception as error:
        raise AssertionError(f"the schema of version 9 has no ArrayWrapper: {error}") from error
    found = StatColumns(pa.int64(), "us").of_cells(SCHEMAS["9"], keys, values, path="x.hfile")
    assert found["min"].to_pylist() == [3] * 80 + [None]
