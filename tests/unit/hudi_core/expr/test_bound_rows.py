from __future__ import annotations

import math
import pickle

import pyarrow as pa
import pytest
from hypothesis import given, settings

from hudi_core.expr.bind import bind
from hudi_core.expr.bound import row_mask
from hudi_core.expr.sql import parse_predicate
from hudi_core.expr.tree import Expr
from tests.support.random_predicates import SCHEMA, holds, predicates, rows


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(batch=rows(), expr=predicates())
def test_the_mask_is_what_the_predicate_means_row_by_row(batch: pa.RecordBatch, expr: Expr) -> None:
    mask = row_mask(bind(expr, SCHEMA), batch)
    assert mask.null_count == 0
    assert mask.to_pylist() == [holds(expr, row) is True for row in batch.to_pylist()]


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(batch=rows(1), expr=predicates())
def test_a_bound_predicate_travels(batch: pa.RecordBatch, expr: Expr) -> None:
    bound = bind(expr, SCHEMA)
    assert row_mask(pickle.loads(pickle.dumps(bound)), batch) == row_mask(bound, batch)
    needed = batch.select(list(bound.columns))
    if needed.num_columns:
        assert row_mask(bound, needed) == row_mask(bound, batch)


def mask_of(text: str, **columns: pa.Array) -> list[bool]:
    batch = pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))
    return row_mask(bind(parse_predicate(text), batch.schema), batch).to_pylist()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a = b", [True, False, False, False, True]),
        ("a <> b", [False, True, False, False, False]),
        ("a <=> b", [True, False, False, True, True]),
        ("NOT (a <=> b)", [False, True, True, False, False]),
        ("a < b", [False, True, False, False, False]),
        ("a >= b", [True, False, False, False, True]),
        ("NOT (a >= b)", [False, True, False, False, False]),
    ],
)
def test_two_columns_compare_in_a_common_type(text: str, expected: list[bool]) -> None:
    left = pa.array([1.0, 1.5, None, None, math.nan])
    assert mask_of(text, a=left, b=pa.array([1.0, 2.0, 3.0, None, math.nan], pa.float32())) == expected
    assert mask_of(text, a=left[:4], b=pa.array([1, 2, 3, None], pa.int32())) == expected[:4]


def test_nan_is_above_all_in_two_columns_too() -> None:
    nan, one = pa.array([math.nan, math.nan, 1.0]), pa.array([1.0, math.nan, math.nan])
    assert mask_of("a > b", a=nan, b=one) == [True, False, False]
    assert mask_of("a >= b", a=nan, b=one) == [True, True, False]
    assert mask_of("a <> b", a=nan, b=one) == [True, False, True]
    assert mask_of("a <= b", a=nan, b=one) == [False, True, True]


def test_a_field_of_a_null_struct_is_null() -> None:
    structs = pa.array([{"x": 1}, {"x": None}, None])
    assert mask_of("u.x IS NULL", u=structs) == [False, True, True]
    assert mask_of("u.x = 1", u=structs.slice(1)) == [False, False]
