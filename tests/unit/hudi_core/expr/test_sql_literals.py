from __future__ import annotations

import datetime as dt
import decimal

import pytest

from hudi_core.errors import ConfigError
from hudi_core.expr.sql_literals import cast_literal, number
from hudi_core.expr.tree import NULL, Literal, Value


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [("5", "integer", 5), ("5.0", "decimal", decimal.Decimal("5.0")), ("5e0", "double", 5.0), ("1E-2", "double", 0.01)],
)
def test_numbers_by_their_spelling(text: str, kind: str, value: Value) -> None:
    assert number(text) == Literal(kind, value)


@pytest.mark.parametrize("text", ["five", "1.2.3", "e", "9" * 1001])
def test_what_is_no_number(text: str) -> None:
    with pytest.raises(ConfigError, match="is no number"):
        number(text)


@pytest.mark.parametrize(
    ("value", "target", "sizes", "expected"),
    [
        ("5", "INT", (), 5),
        (2.9, "BIGINT", (), 2),
        (0.1, "FLOAT", (), 0.10000000149011612),
        ("1.005", "DECIMAL", (5, 2), decimal.Decimal("1.01")),
        ("1.50", "DECIMAL", (), decimal.Decimal("1.50")),
        ("True", "BOOLEAN", (), True),
        (5, "VARCHAR", (), "5"),
        ("ab", "BINARY", (), b"ab"),
        ("2026-02-01", "DATE", (), dt.date(2026, 2, 1)),
        ("2026-02-01 03:04:05", "TIMESTAMP", (), dt.datetime(2026, 2, 1, 3, 4, 5)),
    ],
)
def test_casts(value: Value, target: str, sizes: tuple[int, ...], expected: Value) -> None:
    found = cast_literal(Literal.of(value), target, sizes)
    assert found is not None
    assert found == Literal.of(expected)


@pytest.mark.parametrize(
    ("value", "target"),
    [
        (128, "TINYINT"),
        ("x", "INT"),
        ("5_000", "INT"),
        ("1_0.5", "DOUBLE"),
        ("\u0665", "DECIMAL"),
        ("maybe", "BOOLEAN"),
        ("x", "DATE"),
        (dt.date(2026, 2, 1), "DOUBLE"),
        (dt.datetime(2026, 2, 1), "FLOAT"),
        (b"1", "DOUBLE"),
    ],
)
def test_values_that_the_type_does_not_take(value: Value, target: str) -> None:
    with pytest.raises(ConfigError):
        cast_literal(Literal.of(value), target, ())


def test_null_is_of_every_type_and_others_are_not_supported() -> None:
    assert cast_literal(NULL, "GEOGRAPHY", ()) is NULL
    assert cast_literal(Literal.of(5), "DATE", ()) is None
    assert cast_literal(Literal.of(dt.date(2026, 2, 1)), "DATE", ()) == Literal.of(dt.date(2026, 2, 1))
