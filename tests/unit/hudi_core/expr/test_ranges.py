from __future__ import annotations

import math
import time
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hudi_core.expr.bind import bind
from hudi_core.expr.bound import row_mask
from hudi_core.expr.ranges import ColumnRange, may_match, operands_of
from hudi_core.expr.sql import parse_predicate
from hudi_core.expr.tree import Column, Expr, Operand
from tests.support.random_predicates import SCHEMA, predicates, rows

_PATHS = [(field.name,) for field in SCHEMA if not pa.types.is_nested(field.type)] + [("u", "x"), ("u", "t")]


def _values(batch: pa.RecordBatch, path: tuple[str, ...]) -> list[Any]:
    found = batch.column(path[0]).to_pylist()
    for name in path[1:]:
        found = [None if value is None else value[name] for value in found]
    return found


def _order(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode()
    return (
        (1, 0.0)
        if isinstance(value, float) and math.isnan(value)
        else (0, value)
        if isinstance(value, float)
        else value
    )


def _range_of(files: list[pa.RecordBatch], path: tuple[str, ...], unknown: st.DataObject) -> ColumnRange | None:
    """The true range of each file, with some of it missing."""
    kind = SCHEMA.field(path[0]).type
    for name in path[1:]:
        kind = kind.field(name).type
    forget = unknown.draw(st.sampled_from(["nothing", "all", "lower", "upper", "counts", "some"]))
    lower, upper, nulls, counts = [], [], [], []
    for batch in files:
        values = _values(batch, path)
        present = sorted((value for value in values if value is not None), key=_order)
        known = forget != "some" or unknown.draw(st.booleans())
        lower.append(present[0] if present and known and forget != "lower" else None)
        upper.append(present[-1] if present and known and forget != "upper" else None)
        nulls.append(len(values) - len(present) if known else None)
        counts.append(len(values) if known else None)
    if forget == "all":
        return None
    counted = forget != "counts"
    return ColumnRange(
        pa.array(lower, kind),
        pa.array(upper, kind),
        pa.array(nulls, pa.int64()) if counted else None,
        pa.array(counts, pa.int64()) if counted else None,
    )


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(files=st.lists(rows(1, 6), min_size=1, max_size=4), expr=predicates(), data=st.data())
def test_a_file_with_a_row_that_matches_is_never_ruled_out(
    files: list[pa.RecordBatch], expr: Expr, data: st.DataObject
) -> None:
    bound = bind(expr, SCHEMA)
    ranges: dict[Operand, ColumnRange] = {}
    for path in _PATHS:
        known = _range_of(files, path, data)
        if known is not None:
            ranges[Column(path)] = known
    mask = may_match(bound, ranges, len(files))
    for batch, kept in zip(files, mask, strict=True):
        assert kept or not row_mask(bound, batch).true_count


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("a = 5", [True, False, True, False]),
        ("a = 10", [True, True, True, False]),
        ("a < 10", [True, False, True, False]),
        ("a <= 10", [True, True, True, False]),
        ("a > 10", [False, True, True, False]),
        ("a >= 10.5", [False, True, True, False]),
        ("a <> 5", [True, True, True, False]),
        ("a IN (1, 20)", [True, True, True, False]),
        ("a IN (-1, 21)", [False, False, True, False]),
        ("a IS NULL", [False, True, True, True]),
        ("a IS NOT NULL", [True, True, True, False]),
        ("a <=> NULL", [False, True, True, True]),
        ("NOT (a > 10)", [True, True, True, False]),
        ("a = 5 OR a = 15", [True, True, True, False]),
        ("a = 5 AND a = 15", [False, False, True, False]),
        ("a = 5 AND b = 1", [True, False, True, False]),
        ("b = 1", [True, True, True, True]),
        ("lower(c) = 'x'", [True, True, True, True]),
        ("a = b", [True, True, True, True]),
        ("1 = 2", [False, False, False, False]),
    ],
)
def test_ranges_rule_out_what_they_can(text: str, kept: list[bool]) -> None:
    """Files with 0..10 and no null, 10..20 with nulls, nothing known, only nulls."""
    schema = pa.schema([pa.field("a", pa.int64()), pa.field("b", pa.int64()), pa.field("c", pa.string())])
    known = ColumnRange(
        pa.array([0, 10, None, None], pa.int64()),
        pa.array([10, 20, None, None], pa.int64()),
        pa.array([0, 1, None, 7], pa.int64()),
        pa.array([3, 3, 3, 7], pa.int64()),
    )
    assert may_match(bind(parse_predicate(text), schema), {Column(("a",)): known}, 4).tolist() == kept


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("s LIKE 'ab%'", [True, False, True, False]),
        ("s LIKE 'b%'", [False, True, True, False]),
        ("s NOT LIKE 'ab%'", [False, True, True, True]),
        ("s LIKE 'ab%x'", [True, False, True, False]),
        ("s LIKE '%ab'", [True, True, True, True]),
        ("s = 'abc'", [True, False, True, False]),
        ("s <> 'ab'", [True, True, False, True]),
    ],
)
def test_texts_by_prefix(text: str, kept: list[bool]) -> None:
    schema = pa.schema([pa.field("s", pa.string())])
    known = ColumnRange(
        pa.array(["ab", "b", "ab", "aaa"]), pa.array(["abz", "bz", "ab" if "<>" in text else "b", "aaz"])
    )
    assert may_match(bind(parse_predicate(text), schema), {Column(("s",)): known}, 4).tolist() == kept


def test_nan_counts_as_the_greatest_value() -> None:
    schema = pa.schema([pa.field("d", pa.float64())])
    known = {Column(("d",)): ColumnRange(pa.array([1.0, 1.0, math.nan]), pa.array([2.0, math.nan, math.nan]))}

    def kept(text: str) -> list[bool]:
        return may_match(bind(parse_predicate(text), schema), known, 3).tolist()

    assert kept("d > 5") == [False, True, True]
    assert kept("d < 5") == [True, True, False]
    assert kept("d = CAST('NaN' AS DOUBLE)") == [False, True, True]
    assert kept("d <> CAST('NaN' AS DOUBLE)") == [True, True, False]
    assert kept(f"d IN ({', '.join(str(value) for value in range(100, 120))}, CAST('NaN' AS DOUBLE))") == [
        False,
        True,
        True,
    ]


def test_negative_zero_is_zero() -> None:
    schema = pa.schema([pa.field("d", pa.float64())])
    known = {Column(("d",)): ColumnRange(pa.array([-0.0, 0.0]), pa.array([-0.0, 0.0]))}
    for text in ("d = 0", "d = -0.0D", "d >= 0", "d <= -0.0D"):
        assert may_match(bind(parse_predicate(text), schema), known, 2).tolist() == [True, True]


def test_counts_of_nothing_say_nothing() -> None:
    """Some writers put down zero for what they did not count."""
    schema = pa.schema([pa.field("a", pa.int64())])
    known = ColumnRange(
        pa.nulls(1, pa.int64()), pa.nulls(1, pa.int64()), pa.array([0], pa.int64()), pa.array([0], pa.int64())
    )
    assert may_match(bind(parse_predicate("a = 5"), schema), {Column(("a",)): known}, 1).tolist() == [True]


def test_operands_that_ranges_can_decide() -> None:
    schema = pa.schema([pa.field("a", pa.int64()), pa.field("b", pa.int64()), pa.field("c", pa.int64())])
    assert operands_of(bind(parse_predicate("a = 1 AND (b > 2 OR a = c)"), schema).node) == {
        Column(("a",)),
        Column(("b",)),
    }


def test_many_files_at_once() -> None:
    """100,000 files in a fraction of a second: nothing is done file by file."""
    count = 100_000
    lower = pa.array(np.arange(count, dtype=np.int64) * 10)
    known = {Column(("a",)): ColumnRange(lower, pa.array(np.arange(count, dtype=np.int64) * 10 + 9))}
    bound = bind(
        parse_predicate("a = 777 OR (a BETWEEN 5000 AND 5015 AND a <> 5000)"), pa.schema([pa.field("a", pa.int64())])
    )
    start = time.perf_counter()
    mask = may_match(bound, known, count)
    assert mask.nonzero()[0].tolist() == [77, 500, 501]
    assert time.perf_counter() - start < 1.0
