from __future__ import annotations

import datetime as dt
import decimal

import pytest

from hudi_core.expr.sql import parse_predicate
from hudi_core.expr.tree import (
    And,
    Call,
    Column,
    Compare,
    Constant,
    Expr,
    In,
    IsNull,
    Like,
    Literal,
    Not,
    Or,
    StartsWith,
    Value,
)
from tests.support.predicate_text import to_sql

C = Column(("c",))


def equals(value: Value) -> Compare:
    return Compare("=", C, Literal.of(value))


TREES = [
    (equals(5), "`c` = 5"),
    (equals("it's"), r"`c` = 'it\'s'"),
    (equals(decimal.Decimal("1.50")), "`c` = 1.50BD"),
    (equals(1.5), "`c` = 1.5D"),
    (equals(float("inf")), "`c` = CAST('inf' AS DOUBLE)"),
    (equals(b"\x01"), "`c` = X'01'"),
    (equals(dt.date(2026, 2, 1)), "`c` = DATE '2026-02-01'"),
    (equals(dt.datetime(2026, 2, 1)), "`c` = TIMESTAMP '2026-02-01 00:00:00'"),
    (Compare("<", Column(("a`b", "c")), Literal.of(True)), "`a``b`.`c` < TRUE"),
    (In(C, (Literal.of(1), Literal.of(2))), "`c` IN (1, 2)"),
    (Not(IsNull(C)), "NOT (`c` IS NULL)"),
    (StartsWith(C, "a"), "startswith(`c`, 'a')"),
    (Like(Call("lower", (C,)), "a_%"), "lower(`c`) LIKE 'a_%'"),
    (And((equals(1), Or((equals(2), IsNull(C))))), "`c` = 1 AND (`c` = 2 OR `c` IS NULL)"),
]


@pytest.mark.parametrize(("tree", "text"), TREES, ids=[text for _, text in TREES])
def test_text_that_reads_back_as_the_same_tree(tree: Expr, text: str) -> None:
    assert to_sql(tree) == text
    assert parse_predicate(text, "spark") == tree


@pytest.mark.parametrize(
    ("tree", "text"),
    [(And(()), "TRUE"), (Or(()), "FALSE"), (In(C, ()), "FALSE"), (Constant(None), "NULL"), (Constant(True), "TRUE")],
)
def test_trees_without_terms(tree: Expr, text: str) -> None:
    assert to_sql(tree) == text
