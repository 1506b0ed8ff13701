from __future__ import annotations

import datetime as dt
import math
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hudi_core.expr.bind import bind
from hudi_core.expr.ranges import may_match
from hudi_core.expr.sql import parse_predicate
from hudi_core.expr.tree import Column
from hudi_core.index.row_group_skipping import in_order_of
from hudi_core.index.skipping import SkippingPlan
from hudi_core.index.value_ranges import slice_ranges
from hudi_core.model.names import FileGroupId
from hudi_core.view.file_group import DataFile, FileSlice
from tests.support.random_predicates import holds
from tests.support.slice_readers import made_up_spec
from tests.support.table_configs import config_of

STATISTICS = pa.schema(
    [
        pa.field("partition", pa.string()),
        pa.field("file", pa.string()),
        pa.field("min", pa.int64()),
        pa.field("max", pa.int64()),
        pa.field("null_count", pa.int64()),
        pa.field("value_count", pa.int64()),
        pa.field("uncompressed_size", pa.int64()),
        pa.field("is_tight", pa.bool_()),
    ]
)
SCHEMA = pa.schema([pa.field("k", pa.int64()), pa.field("a", pa.int64()), pa.field("b", pa.int64())])
Row = dict[str, Any]


class Statistics:
    """As metadata_table.read.metadata_table.MetadataTable with column statistics alone, of files whose rows are
    given.
    """

    partition_types = frozenset({"column_stats"})

    def __init__(self, files: Mapping[str, Sequence[Row]]) -> None:
        self._files = files

    def has_index(self, name: str) -> bool:
        return name in self.partition_types

    @property
    def definitions(self) -> dict[str, Any]:
        return {}

    def column_stats(self, columns: Sequence[str], files: Mapping[str, Sequence[str]]) -> dict[str, pa.Table]:
        return {column: pa.Table.from_pylist(self._rows(column, files[""]), schema=STATISTICS) for column in columns}

    def _rows(self, column: str, names: Sequence[str]) -> list[Row]:
        found = []
        for name in names:
            values = [row[column] for row in self._files.get(name, []) if column in row]
            present = [value for value in values if value is not None]
            if values:
                bounds = {"min": min(present, default=None), "max": max(present, default=None)}
                found.append(
                    {
                        "partition": "",
                        "file": name,
                        **bounds,
                        "null_count": len(values) - len(present),
                        "value_count": len(values),
                        "uncompressed_size": 100,
                    }
                )
        return found


def slice_of(base: str | None, *logs: str) -> FileSlice:
    files = tuple(DataFile("", name, 1) for name in logs)
    return FileSlice(
        FileGroupId("", f"group-{base or logs[0]}"), "001", None if base is None else DataFile("", base, 1), files
    )


def kept(text: str, slices: list[FileSlice], files: Mapping[str, Sequence[Row]], **options: str) -> list[bool]:
    config = config_of({"hoodie.table.type": "MERGE_ON_READ"})
    chosen = {name.replace("__", "."): value for name, value in options.items()}
    metadata: Any = Statistics(files)
    spec = made_up_spec(config, options=chosen)
    plan = SkippingPlan(bind(parse_predicate(text), SCHEMA), spec, current=True, metadata=metadata)
    left, _ = plan.prune(slices)
    return [item in left for item in slices]


_VALUE = st.none() | st.integers(0, 4)
_FULL = st.fixed_dictionaries({"k": st.integers(0, 3), "a": _VALUE, "b": _VALUE})
_PART = st.one_of(
    _FULL,
    st.fixed_dictionaries({"k": st.integers(0, 3), "a": _VALUE}),
    st.fixed_dictionaries({"k": st.integers(0, 3), "b": _VALUE}),
)
_TEXTS = st.sampled_from(
    [
        "a = 1 AND b = 2",
        "a = 1 OR b = 2",
        "a IS NULL",
        "a IS NOT NULL AND b IS NULL",
        "a < 1",
        "a <> b",
        "NOT (a = 1)",
        "a IN (1, 2) AND b > 3",
    ]
)


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(
    base=st.lists(_FULL, max_size=4),
    logs=st.lists(st.lists(_PART, min_size=1, max_size=3), max_size=3),
    text=_TEXTS,
    keep_old=st.booleans(),
)
def test_a_row_merged_from_several_files_is_found(
    base: list[Row], logs: list[list[Row]], text: str, keep_old: bool
) -> None:
    """Updates of some columns only, and updates whose nulls keep what was there, make rows that no file holds."""
    files = {"base": base, **{f"log{number}": rows for number, rows in enumerate(logs)}}
    merged: dict[int, Row] = {}
    for rows in files.values():
        for row in rows:
            update = {name: value for name, value in row.items() if value is not None or not keep_old}
            merged[row["k"]] = {**merged.get(row["k"], {"k": row["k"], "a": None, "b": None}), **update}
    expr = parse_predicate(text)
    if any(holds(expr, row) for row in merged.values()):
        assert kept(text, [slice_of("base", *list(files)[1:])], files) == [True]


FILES = {
    "base": [{"a": 1, "b": 5}],
    "log1": [{"a": 10, "b": None}],
    "log2": [{"a": 20, "b": 2}],
    "nulls": [{"a": None, "b": None}],
}
SLICES = [
    slice_of("base"),
    slice_of("base", "log1"),
    slice_of("base", "log1", "log2"),
    slice_of(None, "log2"),
    slice_of("base", "unknown"),
    slice_of("nulls"),
]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a = 1", [True, True, True, False, True, False]),
        ("a = 15", [False, False, True, False, True, False]),
        ("a > 15", [False, False, True, True, True, False]),
        ("a > 100", [False, False, False, False, True, False]),
        ("a = 1 AND b = 2", [False, True, True, False, True, False]),
        ("a IS NULL", [False, True, True, True, True, True]),
        ("a IS NOT NULL", [True, True, True, True, True, False]),
    ],
)
def test_the_range_of_a_slice_is_that_of_all_its_files(text: str, expected: list[bool]) -> None:
    assert kept(text, SLICES, FILES) == expected


def test_a_merge_function_may_make_any_value() -> None:
    assert kept("a > 100", SLICES, FILES, airflow_hudi__merge__function="mine") == [
        False,
        True,
        True,
        True,
        True,
        False,
    ]


def test_skipping_can_be_switched_off() -> None:
    assert kept("a > 100", SLICES, FILES, hoodie__enable__data__skipping="false") == [True] * 6


def test_the_report_counts_files() -> None:
    spec = made_up_spec(config_of({"hoodie.table.type": "MERGE_ON_READ"}))
    metadata: Any = Statistics(FILES)
    plan = SkippingPlan(bind(parse_predicate("a > 100"), SCHEMA), spec, current=True, metadata=metadata)
    left, report = plan.prune(SLICES)
    assert [item.base_file.name for item in left if item.base_file] == ["base"]
    assert report.to_json() == {
        "partitions": 1,
        "partitions_pruned": 0,
        "files": 10,
        "files_pruned": 8,
        "by_kind": {"column_stats": 8},
    }
    none, all_of_it = SkippingPlan(bind(parse_predicate("1 = 2"), SCHEMA), spec, current=True).prune(SLICES)
    assert none == []
    assert all_of_it.to_json() == {
        "partitions": 1,
        "partitions_pruned": 1,
        "files": 10,
        "files_pruned": 10,
        "by_kind": {"partition_path": 10},
    }


def statistics(kind: pa.DataType, *bounds: tuple[Any, Any]) -> pa.Table:
    names = [f"f{number}" for number in range(len(bounds))]
    return pa.table(
        {
            "partition": pa.array([""] * len(bounds)),
            "file": pa.array(names),
            "min": pa.array([low for low, _ in bounds], kind),
            "max": pa.array([high for _, high in bounds], kind),
            "null_count": pa.array([0] * len(bounds), pa.int64()),
            "value_count": pa.array([1] * len(bounds), pa.int64()),
            "uncompressed_size": pa.array([100] * len(bounds), pa.int64()),
        }
    )


def test_nan_in_one_file_is_the_upper_end_of_the_slice() -> None:
    table = statistics(pa.float64(), (1.0, 2.0), (3.0, math.nan))
    known = slice_ranges([slice_of("f0", "f1"), slice_of("f1", "f0"), slice_of("f0")], table, pa.float64())
    assert known is not None
    bound = bind(parse_predicate("d > 10"), pa.schema([pa.field("d", pa.float64())]))
    assert may_match(bound, {Column(("d",)): known}, 3).tolist() == [True, True, False]


@pytest.mark.parametrize(
    ("kind", "low", "high"),
    [
        (pa.bool_(), False, True),
        (pa.string(), "a", "가"),
        (pa.decimal128(5, 2), Decimal("-1.00"), Decimal("1.00")),
        (pa.date32(), dt.date(1969, 1, 1), dt.date(2024, 1, 1)),
        (
            pa.timestamp("us", "UTC"),
            dt.datetime(1969, 1, 1, tzinfo=dt.timezone.utc),
            dt.datetime(2024, 1, 1, tzinfo=dt.timezone.utc),
        ),
        (pa.timestamp("us"), dt.datetime(1969, 1, 1), dt.datetime(2024, 1, 1)),
        (pa.int32(), -1, 1),
        (pa.float32(), -0.5, 0.5),
    ],
)
def test_ranges_of_every_type_join(kind: pa.DataType, low: Any, high: Any) -> None:
    known = slice_ranges([slice_of("f0", "f1"), slice_of("f1", "f0")], statistics(kind, (low, low), (high, high)), kind)
    assert known is not None
    assert [value.as_py() for value in known.minimum] == [low, low]
    assert [value.as_py() for value in known.maximum] == [high, high]


def test_statistics_of_another_type_than_the_column() -> None:
    assert slice_ranges([slice_of("f0")], statistics(pa.int64(), (9, 10)), pa.string()) is None
    assert slice_ranges([slice_of("f0")], statistics(pa.null(), (None, None)), pa.string()) is None


def test_bounds_in_the_order_of_java_are_none() -> None:
    """UTF-16 puts U+1D11E before U+FFFF, UTF-8 behind it; and Java's bytes are signed."""
    table = statistics(pa.string(), ("a", "\uffff"), ("\U0001d11e", "\uffff"), ("a", "힣"))
    known = slice_ranges([slice_of(f"f{number}") for number in range(3)], table, pa.string())
    assert known is not None
    assert known.minimum.to_pylist() == ["a", None, "a"]
    assert known.maximum.to_pylist() == [None, None, "힣"]
    assert slice_ranges([slice_of("f0")], statistics(pa.binary(), (b"\xff", b"a")), pa.binary()) is None


def test_counts_that_cannot_be_are_not_used() -> None:
    table = statistics(pa.int64(), (None, None), (None, None))
    table = table.set_column(4, "null_count", pa.array([-1, 5], pa.int64()))
    known = slice_ranges([slice_of("f0"), slice_of("f1")], table, pa.int64())
    assert known is not None
    assert known.null_count is not None
    assert known.null_count.to_pylist() == [None, None]


@pytest.mark.parametrize(
    ("have", "kind", "keeps"),
    [
        (pa.int32(), pa.int64(), True),
        (pa.int64(), pa.int32(), False),
        (pa.int32(), pa.float32(), True),
        (pa.float32(), pa.float64(), True),
        (pa.float64(), pa.float32(), False),
        (pa.int64(), pa.string(), False),
        (pa.date32(), pa.string(), False),
        (pa.string(), pa.binary(), True),
        (pa.decimal128(5, 2), pa.decimal128(7, 3), True),
        (pa.decimal128(5, 2), pa.decimal128(5, 3), False),
        (pa.timestamp("ms"), pa.timestamp("us", "UTC"), True),
        (pa.timestamp("ns"), pa.timestamp("us"), False),
        (pa.timestamp("us", "UTC"), pa.timestamp("us"), False),
    ],
)
def test_which_types_order_alike(have: pa.DataType, kind: pa.DataType, keeps: bool) -> None:
    found = in_order_of(pa.nulls(1, have), kind)
    assert (found is not None and found.type == kind) is keeps
