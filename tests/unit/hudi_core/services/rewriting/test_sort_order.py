"""Sort keys order rows as their columns do, and curves are curves."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hudi_core.config.services.clustering_config import Layout
from hudi_core.errors import ConfigError, UnsupportedError
from hudi_core.model.names import RECORD_KEY
from hudi_core.services.rewriting.sort_order import SortOrder, hilbert, interleaved

TYPES: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "bool": (pa.bool_(), st.booleans()),
    "int": (pa.int32(), st.integers(-(2**31), 2**31 - 1)),
    "long": (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "float": (pa.float32(), st.floats(width=32, allow_nan=False)),
    "double": (pa.float64(), st.floats(allow_nan=False)),
    "decimal": (pa.decimal128(30, 4), st.integers(-(10**29), 10**29).map(lambda value: Decimal(value).scaleb(-4))),
    "wide decimal": (pa.decimal256(76, 15), st.integers(-(10**61), 10**61).map(lambda value: Decimal(f"{value}E-15"))),
    "string": (pa.string(), st.text(st.sampled_from("\0a\x01é😀\U0010ffff"), max_size=4)),
    "binary": (pa.binary(), st.binary(max_size=4)),
    "fixed": (pa.binary(3), st.binary(min_size=3, max_size=3)),
    "date": (pa.date32(), st.dates()),
    "timestamp": (pa.timestamp("us"), st.datetimes(datetime.datetime(1700, 1, 1), datetime.datetime(2200, 1, 1))),
}
COLUMNS = {name: st.lists(st.none() | values, min_size=1, max_size=30) for name, (_, values) in TYPES.items()}


def rows_of(columns: dict[str, pa.Array]) -> pa.RecordBatch:
    count = len(next(iter(columns.values())))
    return pa.record_batch({RECORD_KEY: pa.array([f"k{row:04d}" for row in range(count)]), **columns})


def comparable(value: Any, kind: pa.DataType) -> tuple[Any, ...]:
    """Nulls come first; text compares by its bytes, floats with one zero."""
    if value is None:
        return (0,)
    if isinstance(value, str):
        return 1, value.encode()
    return 1, value + 0.0 if pa.types.is_floating(kind) else value


@pytest.mark.parametrize("layout", list(Layout))
def test_rows_without_a_record_key_are_ordered_too(layout: Layout) -> None:
    """Those of tables without meta columns; in older files the key is an empty text."""
    rows = pa.record_batch({RECORD_KEY: pa.array([None, "", None], pa.string()), "c": pa.array([3, 1, 2])})
    keys = SortOrder(("c",), layout).sampled(rows, np.ones(3)).keys(rows)
    assert keys.null_count == 0
    assert np.argsort(np.array(keys.to_pylist(), object)).tolist() == [1, 2, 0]


@pytest.mark.parametrize("name", list(TYPES))
@given(data=st.data())
@settings(max_examples=40)
def test_keys_order_rows_as_the_column_does(name: str, data: st.DataObject) -> None:
    kind, _ = TYPES[name]
    column = pa.array(data.draw(COLUMNS[name]), kind)
    keys = SortOrder(("c",)).keys(rows_of({"c": column})).to_pylist()
    found = sorted(range(len(column)), key=lambda row: keys[row])
    wanted = sorted(range(len(column)), key=lambda row: (comparable(column[row].as_py(), kind), row))
    assert found == wanted


@given(
    rows=st.lists(
        st.tuples(st.text(st.sampled_from("\0a"), max_size=3), st.integers(-3, 3) | st.none()), min_size=1, max_size=30
    )
)
def test_columns_count_one_after_the_other(rows: list[tuple[str, int | None]]) -> None:
    columns = {"a": pa.array([row[0] for row in rows]), "b": pa.array([row[1] for row in rows], pa.int64())}
    keys = SortOrder(("a", "b")).keys(rows_of(columns)).to_pylist()
    found = sorted(range(len(rows)), key=lambda row: keys[row])
    wanted = sorted(
        range(len(rows)), key=lambda row: (rows[row][0].encode(), comparable(rows[row][1], pa.int64()), row)
    )
    assert found == wanted


def test_nan_comes_last_and_slices_have_the_keys_of_their_rows() -> None:
    column = pa.array([float("nan"), 1.0, float("inf"), None])
    keys = SortOrder(("c",)).keys(rows_of({"c": column})).to_pylist()
    assert sorted(range(4), key=lambda row: keys[row]) == [3, 1, 2, 0]
    for kind, values in ((pa.decimal128(9, 2), [Decimal(row) for row in range(9)]), (pa.binary(2), [b"ab"] * 9)):
        rows = rows_of({"c": pa.array(values, kind)})
        whole = SortOrder(("c",)).keys(rows)
        assert SortOrder(("c",)).keys(rows.slice(4, 3)).equals(whole.slice(4, 3))


def test_nested_columns_are_named_by_a_dot() -> None:
    rows = rows_of({"s": pa.array([{"x": 2}, None, {"x": 1}])})
    keys = SortOrder(("s.x",)).keys(rows).to_pylist()
    assert sorted(range(3), key=lambda row: keys[row]) == [1, 2, 0]
    assert SortOrder(("s.x", "s.x")).read_columns == ["s", RECORD_KEY]


@pytest.mark.parametrize(
    ("columns", "layout", "error"),
    [
        (("nothing",), Layout.LINEAR, ConfigError),
        (("s.nothing",), Layout.LINEAR, ConfigError),
        (("c.x",), Layout.LINEAR, ConfigError),
        (("s",), Layout.LINEAR, UnsupportedError),
        (("l",), Layout.HILBERT, UnsupportedError),
        (tuple(f"c{number}" for number in range(64)), Layout.Z_ORDER, ConfigError),
    ],
)
def test_columns_that_give_no_order_are_refused(
    columns: tuple[str, ...], layout: Layout, error: type[Exception]
) -> None:
    schema = pa.schema(
        [
            pa.field(RECORD_KEY, pa.string()),
            ("c", pa.int32()),
            ("s", pa.struct([("x", pa.int32())])),
            ("l", pa.list_(pa.int32())),
        ]
    )
    with pytest.raises(error, match=r"sort\.columns"):
        SortOrder(columns, layout).check(schema)


@pytest.mark.parametrize(("dimensions", "bits"), [(2, 5), (3, 3), (4, 2)])
def test_curves_visit_every_point_once_and_hilbert_by_steps_of_one(dimensions: int, bits: int) -> None:
    axes = np.meshgrid(*[np.arange(2**bits)] * dimensions, indexing="ij")
    points = np.stack(axes).reshape(dimensions, -1).astype(np.uint64)
    places = hilbert(points, bits)
    assert sorted(places.tolist()) == list(range(2 ** (bits * dimensions)))
    path = points[:, np.argsort(places)].astype(np.int64)
    assert (np.abs(np.diff(path, axis=1)).sum(axis=0) == 1).all()
    assert sorted(interleaved(points, bits).tolist()) == list(range(2 ** (bits * dimensions)))
    assert interleaved(np.array([[0b101], [0b011]], np.uint64), 3).tolist() == [0b100111]


@pytest.mark.parametrize("layout", [Layout.Z_ORDER, Layout.HILBERT])
def test_a_part_of_a_curve_has_a_part_of_every_column(layout: Layout) -> None:
    """Whatever the columns' types and spread: a sixteenth of the rows spans about a quarter of each."""
    random = np.random.default_rng(7)
    rows = rows_of(
        {
            "small": pa.array(random.integers(0, 1000, 4096)),
            "wide": pa.array([f"{value:020d}" for value in random.integers(0, 2**62, 4096)]),
        }
    )
    order = SortOrder(("small", "wide"), layout).sampled(rows, np.ones(4096))
    keys = order.keys(rows)
    by_key = rows.take(pa.compute.sort_indices(keys))
    spans = []
    for part in range(0, 4096, 256):
        piece = by_key.slice(part, 256)
        small, wide = piece.column("small").to_pylist(), [int(text) for text in piece.column("wide").to_pylist()]
        spans.append(((max(small) - min(small)) / 1000, (max(wide) - min(wide)) / 2**62))
    assert (np.mean(spans, axis=0) < 0.45).all()


def test_bounds_tell_as_many_values_apart_as_the_bits_of_a_column() -> None:
    rows = rows_of({"c": pa.array(range(8))})
    order = SortOrder(("c",) * 21, Layout.Z_ORDER)
    assert order.bits == 3
    places = [key[:8] for key in order.sampled(rows, np.ones(8)).keys(rows).to_pylist()]
    assert places == [
        int(f"{value:03b}".replace("0", "0" * 21).replace("1", "1" * 21), 2).to_bytes(8, "big") for value in range(8)
    ]


def test_bounds_of_nothing_are_none() -> None:
    rows = rows_of({"c": pa.array([None, None], pa.int32())})
    order = SortOrder(("c",), Layout.Z_ORDER).sampled(rows, np.ones(2))
    assert order.keys(rows).to_pylist() == [bytes(8) + b"k0000", bytes(8) + b"k0001"]
