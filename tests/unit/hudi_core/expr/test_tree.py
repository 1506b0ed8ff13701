from __future__ import annotations

import datetime as dt
import decimal
import math

import pytest

from hudi_core.errors import ConfigError
from hudi_core.expr.tree import (
    FLIPPED,
    MAX_DEPTH,
    NEGATED,
    OPERATORS,
    SAME,
    And,
    Call,
    Column,
    Compare,
    Constant,
    Expr,
    In,
    IsNull,
    Literal,
    Not,
    Or,
    Value,
    conjunction,
    disjunction,
    operand_columns,
    operands,
    walk,
)

C, D = Column(("c",)), Column(("d", "e"))
A, B = IsNull(C), IsNull(D)


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (None, "null"),
        (True, "boolean"),
        (1, "integer"),
        (decimal.Decimal(1), "decimal"),
        (1.0, "double"),
        ("1", "text"),
        (b"1", "bytes"),
        (dt.date(2026, 1, 1), "date"),
        (dt.datetime(2026, 1, 1), "timestamp"),
    ],
)
def test_literals_of_python_values(value: Value, kind: str) -> None:
    assert Literal.of(value) == Literal(kind, value)


def test_no_literal() -> None:
    with pytest.raises(ConfigError, match="is no literal"):
        Literal.of([1])  # type: ignore[arg-type]


def test_equal_literals() -> None:
    assert Literal.of(float("nan")) == Literal.of(math.nan)
    assert len({Literal.of(1), Literal.of(1.0), Literal.of(True)}) == 3


def test_terms_are_flat() -> None:
    assert conjunction((And((A, B)), A)) == And((A, B, A))
    assert disjunction((Or((A, B)), A)) == Or((A, B, A))
    assert (conjunction((A,)), disjunction((B,))) == (A, B)
    assert (conjunction(()), disjunction(())) == (Constant(True), Constant(False))


def test_operators_that_change_sides_or_meaning() -> None:
    assert set(FLIPPED) == OPERATORS
    assert all(FLIPPED[FLIPPED[operator]] == operator for operator in OPERATORS)
    assert set(NEGATED) == OPERATORS - {SAME}
    assert all(NEGATED[NEGATED[operator]] == operator for operator in NEGATED)


def test_columns_of_a_predicate() -> None:
    call = Call("substring", (C, Literal.of(1), Call("lower", (D,))))
    assert list(operand_columns(call)) == [("c",), ("d", "e")]
    assert operands(Compare("=", C, D)) == (C, D)
    assert operands(In(C, (Literal.of(1),))) == (C,)
    assert operands(Not(A)) == ()


def test_parents_come_before_their_children() -> None:
    tree = And((Not(A), Or((B,))))
    assert list(walk(tree)) == [tree, Not(A), A, Or((B,)), B]


def test_a_tree_has_a_greatest_depth() -> None:
    tree: Expr = A
    for _ in range(MAX_DEPTH - 1):
        tree = Not(tree)
    assert len(list(walk(tree))) == MAX_DEPTH
    with pytest.raises(ConfigError, match="deeper than"):
        list(walk(Not(tree)))
