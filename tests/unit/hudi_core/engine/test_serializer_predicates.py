"""A predicate's tree comes back from the text of the class that holds it, and nothing else is read as one."""

from __future__ import annotations

import datetime as dt
import json
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings

from hudi_core.engine.serializer import from_text, to_text
from hudi_core.errors import ConfigError
from hudi_core.expr.bind import bind
from hudi_core.expr.bound import row_mask
from hudi_core.expr.sql import parse_predicate
from hudi_core.expr.tree import Call, Column, Compare, Expr, Literal
from tests.support.random_predicates import SCHEMA, predicates, rows


@dataclass(frozen=True, slots=True)
class Holder:
    predicate: Expr


def travelled(expr: Expr) -> Expr:
    return from_text(Holder, to_text(Holder(expr))).predicate


@settings(max_examples=100, deadline=None)
@given(predicates())
def test_a_tree_comes_back(expr: Expr) -> None:
    assert travelled(expr) == expr


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(batch=rows(1), expr=predicates())
def test_it_keeps_the_same_rows(batch: Any, expr: Expr) -> None:
    assert row_mask(bind(travelled(expr), SCHEMA), batch) == row_mask(bind(expr, SCHEMA), batch)


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
        dt.datetime(2024, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=2))),
        None,
    ],
)
def test_every_kind_of_literal(value: Any) -> None:
    expr = Compare("=", Call("lower", (Column(("a", "b")),)), Literal.of(value))
    back = travelled(expr)
    assert back == expr
    assert isinstance(back, Compare)
    assert isinstance(back.right, Literal)
    assert back.right.kind == Literal.of(value).kind
    assert repr(back.right.value) == repr(value)


@pytest.mark.parametrize("text", ["NOT " * 100 + "a = 1", "(b = 1 OR (b = 2 AND " * 20 + "a = 1" + "))" * 20])
def test_a_tree_as_deep_as_sql_text_makes_it(text: str) -> None:
    expr = parse_predicate(text)
    assert travelled(expr) == expr


@pytest.mark.parametrize(
    "data",
    [
        None,
        [],
        ["Xor", [[]]],
        ["And", [1]],
        ["Not", [None]],
        ["IsNull", [["Column", [["a", 1]]]]],
        ["IsNull", [["Literal", ["integer", ["int", "1"]]]]],
        ["IsNull", [["Literal", ["date", ["date", "x"]]]]],
        ["IsNull", [["Literal", ["decimal", ["Decimal", "x"]]]]],
        ["In", [["Column", [["a"]]], [["Column", [["b"]]]]]],
        ["Constant", [1]],
    ],
)
def test_what_is_no_predicate_is_refused(data: Any) -> None:
    with pytest.raises(ConfigError, match="a Holder is not what this version writes"):
        from_text(Holder, json.dumps([data]))
