from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings

from hudi_core.errors import ConfigError
from hudi_core.expr.json_form import from_json, to_json
from hudi_core.expr.tree import MAX_DEPTH, Call, Column, Compare, Expr, Like, Literal, Not
from tests.support.random_predicates import predicates


@settings(max_examples=100, deadline=None)
@given(predicates())
def test_a_tree_comes_back_from_json_text(expr: Expr) -> None:
    assert from_json(json.loads(json.dumps(to_json(expr), allow_nan=False))) == expr


@pytest.mark.parametrize(
    "value",
    [
        True,
        1,
        10**40,
        Decimal("1.100"),
        0.1,
        float("nan"),
        float("inf"),
        "é'\\",
        b"\x00\xff",
        dt.date(1, 1, 1),
        dt.datetime(2024, 1, 1, 1, 2, 3, 4),
        None,
    ],
)
def test_every_kind_of_literal(value: Any) -> None:
    expr = Compare("=", Call("lower", (Column(("a", "b")),)), Literal.of(value))
    back = from_json(json.loads(json.dumps(to_json(expr))))
    assert back == expr
    assert isinstance(back, Compare)
    assert isinstance(back.right, Literal)
    assert back.right.kind == Literal.of(value).kind
    assert str(back.right.value) == str(value)


def test_a_timestamp_keeps_its_zone() -> None:
    at = dt.datetime(2024, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=2)))
    back = from_json(to_json(Compare("<", Column(("a",)), Literal.of(at))))
    assert isinstance(back, Compare)
    assert isinstance(back.right, Literal)
    assert back.right.value == at


@pytest.mark.parametrize(
    "data",
    [
        None,
        [],
        {},
        {"op": "xor"},
        {"op": "and"},
        {"op": "and", "terms": [1]},
        {"op": "not", "term": None},
        {"op": "=", "left": {"column": []}, "right": {"literal": "null"}},
        {"op": "=", "left": {"column": ["a", 1]}, "right": {"literal": "null"}},
        {"op": "=", "left": {"column": ["a"]}, "right": {"literal": "integer", "value": 1}},
        {"op": "=", "left": {"column": ["a"]}, "right": {"literal": "integer", "value": "x"}},
        {"op": "=", "left": {"column": ["a"]}, "right": {"literal": "decimal", "value": "x"}},
        {"op": "=", "left": {"column": ["a"]}, "right": {"literal": "boolean", "value": "true"}},
        {"op": "=", "left": {"column": ["a"]}, "right": {"literal": "pickle", "value": "x"}},
        {"op": "=", "left": {"call": "f", "arguments": None}, "right": {"literal": "null"}},
        {"op": "in", "operand": {"column": ["a"]}, "values": [{"column": ["b"]}]},
        {"op": "starts_with", "operand": {"column": ["a"]}, "prefix": 1},
        {"op": "constant", "value": 1},
    ],
)
def test_what_is_no_predicate_is_refused(data: Any) -> None:
    with pytest.raises(ConfigError, match="not a predicate"):
        from_json(data)


def test_a_deep_tree_is_refused() -> None:
    expr: Expr = Like(Column(("a",)), "x")
    for _ in range(MAX_DEPTH + 1):
        expr = Not(expr)
    data: Any = to_json(expr)
    with pytest.raises(ConfigError, match="deeper than"):
        from_json(data)
    operand: Any = {"column": ["a"]}
    for _ in range(MAX_DEPTH + 1):
        operand = {"call": "lower", "arguments": [operand]}
    with pytest.raises(ConfigError, match="deeper than"):
        from_json({"op": "is_null", "operand": operand})


def test_literals_of_python_values() -> None:
    with pytest.raises(ConfigError, match="no literal"):
        Literal.of([1])  # type: ignore[arg-type]
    assert Literal.of(True) != Literal.of(1)
    assert Literal.of(1) != Literal.of(1.0)
