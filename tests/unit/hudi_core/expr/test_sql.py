from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pytest
from hypothesis import given, settings

from hudi_core.errors import ConfigError
from hudi_core.expr.sql import parse_predicate
from hudi_core.expr.tree import (
    DIALECTS,
    NULL,
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
)
from tests.support.predicate_text import to_sql
from tests.support.random_predicates import predicates

A = Column(("a",))


def equals(value: object) -> Compare:
    return Compare("=", A, Literal.of(value))  # type: ignore[arg-type]


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(predicates())
def test_text_and_tree_say_the_same(expr: Expr) -> None:
    assert parse_predicate(to_sql(expr)) == expr


EVERYWHERE: list[tuple[str, Expr]] = [
    ("a = 1", equals(1)),
    ("1 = a", equals(1)),
    ("2 > a", Compare("<", A, Literal.of(2))),
    ("a <> 1.50", Compare("<>", A, Literal.of(Decimal("1.50")))),
    ("a != -1e3", Compare("<>", A, Literal.of(-1000.0))),
    ("a >= -5", Compare(">=", A, Literal.of(-5))),
    ("a.b.c.d.e <= 5", Compare("<=", Column(("a", "b", "c", "d", "e")), Literal.of(5))),
    ("a = 'it''s'", equals("it's")),
    ("a = TRUE", equals(True)),
    ("a", equals(True)),
    ("NOT a", Not(equals(True))),
    ("a = NULL", Compare("=", A, NULL)),
    ("a IS NULL", IsNull(A)),
    ("a IS NOT NULL", Not(IsNull(A))),
    ("a IS TRUE", Compare("<=>", A, Literal.of(True))),
    ("a IS NOT FALSE", Not(Compare("<=>", A, Literal.of(False)))),
    ("a IS NOT DISTINCT FROM 1", Compare("<=>", A, Literal.of(1))),
    ("a IS DISTINCT FROM 1", Not(Compare("<=>", A, Literal.of(1)))),
    ("a IN (1, 'x', NULL)", In(A, (Literal.of(1), Literal.of("x"), NULL))),
    ("a NOT IN (1)", Not(In(A, (Literal.of(1),)))),
    ("a BETWEEN 1 AND 2", And((Compare(">=", A, Literal.of(1)), Compare("<=", A, Literal.of(2))))),
    ("a NOT BETWEEN 1 AND 2", Not(And((Compare(">=", A, Literal.of(1)), Compare("<=", A, Literal.of(2)))))),
    ("a LIKE 'ab%'", StartsWith(A, "ab")),
    ("a NOT LIKE 'ab%'", Not(StartsWith(A, "ab"))),
    ("a LIKE 'ab'", equals("ab")),
    ("a LIKE ''", equals("")),
    ("a LIKE '%'", StartsWith(A, "")),
    ("a LIKE '%b_'", Like(A, "%b_")),
    ("a LIKE '%b_%' AND a LIKE 'a%b%'", And((Like(A, "%b_%"), Like(A, "a%b%")))),
    ("a LIKE 'a!%!!%' ESCAPE '!'", StartsWith(A, "a%!")),
    ("a NOT LIKE '_!_' ESCAPE '!'", Not(Like(A, "_\\_"))),
    ("starts_with(a, 'x')", StartsWith(A, "x")),
    ("a = 1 OR a = 2 OR a = 3", Or((equals(1), equals(2), equals(3)))),
    ("a = 1 OR (a = 2 OR a = 3)", Or((equals(1), equals(2), equals(3)))),
    ("a = 1 OR a = 2 AND a = 3", Or((equals(1), And((equals(2), equals(3)))))),
    ("NOT a = 1 AND a = 2", And((Not(equals(1)), equals(2)))),
    ("((a = 1))", equals(1)),
    ("TRUE", Constant(True)),
    ("1 = 1", Compare("=", Literal.of(1), Literal.of(1))),
    ("a = b", Compare("=", A, Column(("b",)))),
    ("a = DATE '2024-02-29'", equals(dt.date(2024, 2, 29))),
    ("a = TIMESTAMP '2024-02-29 01:02:03.4'", equals(dt.datetime(2024, 2, 29, 1, 2, 3, 400000))),
    (
        "a = TIMESTAMP '2024-02-29 01:02:03 +02:00'",
        equals(dt.datetime(2024, 2, 29, 1, 2, 3, tzinfo=dt.timezone(dt.timedelta(hours=2)))),
    ),
    ("a = CAST('5' AS BIGINT)", equals(5)),
    ("a = CAST(5 AS VARCHAR)", equals("5")),
    ("a = CAST('1.255' AS DECIMAL(5, 2))", equals(Decimal("1.26"))),
    ("a = CAST('1.255' AS DECIMAL(5))", equals(Decimal(1))),
    ("a = CAST(2.5 AS DECIMAL)", equals(Decimal(3))),
    ("a = CAST('1.5' AS DOUBLE)", equals(1.5)),
    ("a = CAST('2024-01-01' AS DATE)", equals(dt.date(2024, 1, 1))),
    ("a = CAST('2024-01-01 10:00:00' AS TIMESTAMP)", equals(dt.datetime(2024, 1, 1, 10))),
    ("a = CAST('true' AS BOOLEAN)", equals(True)),
    ("a = CAST(NULL AS DOUBLE)", Compare("=", A, NULL)),
    ("CAST(a AS DATE) = DATE '2024-01-01'", Compare("=", Call("to_date", (A,)), Literal.of(dt.date(2024, 1, 1)))),
    ("LOWER(a) = 'x'", Compare("=", Call("lower", (A,)), Literal.of("x"))),
    ("substr(a, 1, 2) = 'x'", Compare("=", Call("substring", (A, Literal.of(1), Literal.of(2))), Literal.of("x"))),
    ("year(a) IN (2023, 2024)", In(Call("year", (A,)), (Literal.of(2023), Literal.of(2024)))),
    ("date(a) IS NULL", IsNull(Call("to_date", (A,)))),
    ("lower(trim(a)) = 'x'", Compare("=", Call("lower", (Call("trim", (A,)),)), Literal.of("x"))),
    ("a = 1 -- a remark", equals(1)),
    (
        "date = 1 AND timestamp > 2",
        And((Compare("=", Column(("date",)), Literal.of(1)), Compare(">", Column(("timestamp",)), Literal.of(2)))),
    ),
]


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(("text", "expr"), EVERYWHERE, ids=[text for text, _ in EVERYWHERE])
def test_every_dialect(text: str, expr: Expr, dialect: str) -> None:
    if "''" in text and dialect in ("spark", "hive") and "it" in text:
        expr = equals("its")  # two texts side by side are one
    assert parse_predicate(text, dialect) == expr


SPARK: list[tuple[str, Expr]] = [
    ("`a b`.`c``d` = 1", Compare("=", Column(("a b", "c`d")), Literal.of(1))),
    ('a = "text"', equals("text")),
    ("a <=> NULL", Compare("<=>", A, NULL)),
    ("a == 1", equals(1)),
    ("a = 5L", equals(5)),
    ("a = 1.5D", equals(1.5)),
    ("a = 1.50BD", equals(Decimal("1.5"))),
    ("a = 'a\\'b\\\\'", equals("a'b\\")),
    ("a LIKE 'a\\\\%%'", StartsWith(A, "a%")),
    ("startswith(a, 'x')", StartsWith(A, "x")),
    (
        "from_unixtime(a, 'yyyy-MM-dd') = 'x'",
        Compare("=", Call("from_unixtime", (A, Literal.of("yyyy-MM-dd"))), Literal.of("x")),
    ),
    ("date_format(a, 'yyyy') = 'x'", Compare("=", Call("date_format", (A, Literal.of("yyyy"))), Literal.of("x"))),
]


@pytest.mark.parametrize("dialect", ["spark", "hive"])
@pytest.mark.parametrize(("text", "expr"), SPARK, ids=[text for text, _ in SPARK])
def test_spark_and_hive(text: str, expr: Expr, dialect: str) -> None:
    assert parse_predicate(text, dialect) == expr


TRINO: list[tuple[str, Expr]] = [
    ('"a b"."c""d" = 1', Compare("=", Column(("a b", 'c"d')), Literal.of(1))),
    ("a = 'a\\'", equals("a\\")),
    ("a LIKE 'a\\%'", StartsWith(A, "a\\")),
    ("a LIKE '\\_'", Like(A, "\\\\_")),
    ("a = DECIMAL '1.50'", equals(Decimal("1.50"))),
    ("a = TIMESTAMP '2024-01-01 00:00:00 UTC'", equals(dt.datetime(2024, 1, 1, tzinfo=dt.timezone.utc))),
    (
        "date_format(a, '%Y-%m-%d %H:%i:%s') = 'x'",
        Compare("=", Call("date_format", (A, Literal.of("yyyy-MM-dd HH:mm:ss"))), Literal.of("x")),
    ),
    (
        "date_format(a, 'it''s %Y%%') = 'x'",
        Compare("=", Call("date_format", (A, Literal.of("'it''s' yyyy%"))), Literal.of("x")),
    ),
    ("format_datetime(a, 'yyyy') = 'x'", Compare("=", Call("date_format", (A, Literal.of("yyyy"))), Literal.of("x"))),
    ("day_of_month(a) = 1", Compare("=", Call("day", (A,)), Literal.of(1))),
]


@pytest.mark.parametrize("dialect", ["spark", "presto", "trino"])
def test_bytes_in_hexadecimal(dialect: str) -> None:
    assert parse_predicate("a = X'00ff'", dialect) == equals(b"\x00\xff")


@pytest.mark.parametrize("dialect", ["presto", "trino"])
@pytest.mark.parametrize(("text", "expr"), TRINO, ids=[text for text, _ in TRINO])
def test_presto_and_trino(text: str, expr: Expr, dialect: str) -> None:
    assert parse_predicate(text, dialect) == expr


def test_a_decimal_without_digits_has_those_of_the_dialect() -> None:
    for dialect in ("presto", "trino"):
        assert parse_predicate("a = CAST(12345678901.5 AS DECIMAL)", dialect) == equals(Decimal("12345678902"))
    for dialect in ("spark", "hive"):
        with pytest.raises(ConfigError, match="cannot be cast"):
            parse_predicate("a = CAST(12345678901.5 AS DECIMAL)", dialect)


REFUSED = [
    ("a + 1 = 2", "a \\+ 1"),
    ("a = (SELECT 1)", "SELECT 1"),
    ("a IN (SELECT 1)", "IN"),
    ("EXISTS (SELECT 1)", "EXISTS"),
    ("a IN (1, b)", "IN"),
    ("a LIKE b", "LIKE"),
    ("a BETWEEN SYMMETRIC 1 AND 2", "BETWEEN"),
    ("a ILIKE 'x'", "LIKE"),
    ("count(*) > 1", "\\*"),
    ("row_number() OVER () = 1", "OVER"),
    ("lower(DISTINCT a) = 'x'", "DISTINCT"),
    ("sha256(a) = 'x'", "(?i)sha256"),
    ("CAST(a AS INT) = 1", "CAST"),
    ("a = CAST('x' AS INT)", "cannot be cast"),
    ("a = CAST(DATE '2024-01-01' AS DOUBLE)", "cannot be cast"),
    ("a = CAST(1 AS DECIMAL(39, 2))", "DECIMAL"),
    ("a = CAST(1 AS DECIMAL(5, -2))", "DECIMAL"),
    ("a = CAST(1 AS DECIMAL(99999999999999999999))", "DECIMAL"),
    ("a = CAST(1 AS DECIMAL(5, 2, 1))", "DECIMAL|no predicate"),
    ("a = CAST(300 AS TINYINT)", "cannot be cast"),
    ("a = DATE 'soon'", "no date"),
    ("a = DATE '2024-13-01'", "no date"),
    ("a = TIMESTAMP '2024-01-01 25:00:00'", "no timestamp"),
    ("a = TIMESTAMP '2024-01-01 00:00:00 Mars/Base'", "no time zone"),
    ("a = INTERVAL '1' DAY", "INTERVAL"),
    ("a = ARRAY[1]", "ARRAY|no predicate"),
    ("a = - b", "b"),
    ("", "not one predicate"),
    ("a = 1; DROP TABLE x", "not one predicate|no predicate"),
    ("a =", "no predicate"),
    ("a = 'open", "no predicate"),
    ("(a = 1", "no predicate"),
    ("a LIKE 'x' ESCAPE 'ab'", "LIKE|ESCAPE"),
    ("a LIKE 'x!' ESCAPE '!'", "ends in its escape"),
    ("a AND", "no predicate"),
    ("WHERE a = 1", "no predicate"),
    ("SELECT 1", "SELECT"),
    ("a = 1 b", "not supported|no predicate"),
]


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(("text", "message"), REFUSED, ids=[text for text, _ in REFUSED])
def test_what_is_not_supported_is_named(text: str, message: str, dialect: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse_predicate(text, dialect)


@pytest.mark.parametrize(
    ("text", "dialect"),
    [
        ("from_unixtime(a) = 'x'", "trino"),
        ("date_format(a, '%W') = 'x'", "presto"),
        ("`a` = 1", "trino"),
        ("a = X'00'", "hive"),
        ("to_date(a) = 'x'", "presto"),
    ],
)
def test_what_another_dialect_has(text: str, dialect: str) -> None:
    with pytest.raises(ConfigError):
        parse_predicate(text, dialect)


def test_unknown_dialect_and_long_text() -> None:
    with pytest.raises(ConfigError, match="known are spark, hive, presto, trino"):
        parse_predicate("a = 1", "mysql")
    with pytest.raises(ConfigError, match="at most"):
        parse_predicate("a = '" + "x" * (1 << 20) + "'")


@pytest.mark.slow
def test_thousands_of_alternatives_and_deep_nesting() -> None:
    many = parse_predicate(" OR ".join(f"a = {number}" for number in range(5000)))
    assert isinstance(many, Or)
    assert len(many.terms) == 5000
    with pytest.raises(ConfigError, match="deeper than"):
        parse_predicate("NOT (" * 5000 + "a = 1" + ")" * 5000)


def test_text_for_people() -> None:
    expr = parse_predicate("lower(a.b) IN ('x', 'y') AND (c < 5 OR NOT d LIKE '%z')")
    assert to_sql(expr) == "lower(`a`.`b`) IN ('x', 'y') AND (`c` < 5 OR NOT (`d` LIKE '%z'))"
    assert to_sql(In(A, ())) == "FALSE"
    assert (to_sql(And(())), to_sql(Or(()))) == ("TRUE", "FALSE")
