from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from hudi_core.errors import ConfigError
from hudi_core.expr.bind import bind, depends_on_zone, kind_of
from hudi_core.expr.bound import Bound, Comparison, Known, Membership, Node, NullCheck
from hudi_core.expr.sql import parse_predicate
from hudi_core.expr.tree import MAX_DEPTH, Column, Compare, Expr, In, Literal, Not, operands

SCHEMA = pa.schema(
    [
        pa.field("id", pa.int32()),
        pa.field("Name", pa.string()),
        pa.field("price", pa.decimal128(5, 2)),
        pa.field("rate", pa.float32()),
        pa.field("day", pa.date32()),
        pa.field("at", pa.timestamp("us", "UTC")),
        pa.field("local", pa.timestamp("ms")),
        pa.field("flag", pa.bool_()),
        pa.field("raw", pa.binary()),
        pa.field("tags", pa.list_(pa.string())),
        pa.field("place", pa.struct([pa.field("City", pa.string()), pa.field("zip", pa.int64())])),
        pa.field("x", pa.int8()),
        pa.field("X", pa.int8()),
    ]
)


def bound(text: str, zone: str | None = None) -> Bound:
    return bind(parse_predicate(text), SCHEMA, zone=zone)


def comparison(text: str, zone: str | None = None) -> tuple[str, Any]:
    node = bound(text, zone).node
    assert isinstance(node, Comparison)
    return node.operator, node.value.as_py()


def test_columns_are_found_as_written_or_in_any_case() -> None:
    assert bound("NAME = 'a' AND Place.CITY = 'b' AND x = 1").columns == ("Name", "place", "x")
    assert kind_of(Column(("place", "zip")), bound("id = 1")) == pa.int64()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nope = 1", "no column 'nope'.*columns are id, Name"),
        ("place.street = 1", "no column 'place.street'.*fields are City, zip"),
        ("id.x = 1", "no column 'id.x'"),
        ("Name.x = 1 OR id = 1", "no column 'Name.x'"),
        ("name = 5", "column 'Name' is string and cannot be compared with the integer 5.*as text"),
        ("id = 'five'", "column 'id' is int32.*'five'"),
        ("id = '2.5'", "column 'id' is int32"),
        ("id = TRUE", "column 'id'"),
        ("flag = 1", "column 'flag'"),
        ("day = 5", "column 'day'"),
        ("day = 'soon'", "no date"),
        ("at = 'soon'", "no timestamp"),
        ("price = 'much'", "column 'price'"),
        ("rate = 'fast'", "column 'rate'"),
        ("raw = 5", "column 'raw'"),
        ("tags = 'a'", "column 'tags'.*only be tested for NULL"),
        ("place = 'a'", "column 'place'.*column.field"),
        ("place.zip = 'a'", "column 'place.zip'"),
        ("id = name", "'id' is int32 and 'Name' is string"),
        ("tags = tags", "cannot be compared"),
        ("day = at", "cannot be compared"),
        ("at = local", "cannot be compared"),
        ("rate = day", "cannot be compared"),
        ("id LIKE 'a%'", "'id' is int32, and LIKE is of text"),
        ("'a' LIKE 'a%b'", "compares nothing"),
        ("lower(id) = 'a'", "cannot be computed of int32"),
        ("lower('a') = name", "lower is supported of a column"),
        ("substring(name, id, 1) = 'a'", "substring is supported of a column"),
        ("substring(name, -1, 1) = 'a'", "from the end"),
        ("substring(name) = 'a'", "takes 2 to 3 arguments"),
        ("date_format(at, 'EEE') = 'a'", "'EEE' is not supported from 'EEE' on"),
        ("'a' = 1", "cannot be compared"),
    ],
)
def test_errors_name_the_column_and_the_literal(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        bound(text)


def test_names_that_differ_in_case_only_need_their_case() -> None:
    schema = pa.schema([pa.field("aB", pa.int8()), pa.field("Ab", pa.int8())])
    assert bind(parse_predicate("Ab = 1"), schema).columns == ("Ab",)
    with pytest.raises(ConfigError, match=r"'ab' is ambiguous.*aB, Ab"):
        bind(parse_predicate("ab = 1"), schema)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("id < 2.5", ("<=", 2)),
        ("id <= 2.5", ("<=", 2)),
        ("id > 2.5", (">", 2)),
        ("id >= -2.5", (">", -3)),
        ("id = 2.0", ("=", 2)),
        ("id = '7'", ("=", 7)),
        ("5 > id", ("<", 5)),
        ("NOT (id < 5)", (">=", 5)),
        ("NOT (id = 5)", ("<>", 5)),
        ("price < 1.005", ("<=", Decimal("1.00"))),
        ("price = '1.5'", ("=", Decimal("1.50"))),
        ("price >= 999.99", (">=", Decimal("999.99"))),
        ("price < -1.005", ("<=", Decimal("-1.01"))),
        ("day < TIMESTAMP '2024-01-01 12:00:00'", ("<=", dt.date(2024, 1, 1))),
        ("day < TIMESTAMP '2024-01-01 00:00:00'", ("<", dt.date(2024, 1, 1))),
        ("day = '2024-1-5'", ("=", dt.date(2024, 1, 5))),
        ("at = DATE '2024-01-01'", ("=", dt.datetime(2024, 1, 1, tzinfo=dt.timezone.utc))),
        ("at > '2024-01-01 10:00:00+02:00'", (">", dt.datetime(2024, 1, 1, 8, tzinfo=dt.timezone.utc))),
        ("local < TIMESTAMP '2024-01-01 00:00:00.0005'", ("<=", dt.datetime(2024, 1, 1))),
        ("local = '2024-01-01'", ("=", dt.datetime(2024, 1, 1))),
        ("flag = 'TRUE'", ("=", 1)),
        ("flag", ("=", 1)),
        ("raw = 'é'", ("=", "é".encode())),
        ("rate = 0.5", ("=", 0.5)),
    ],
)
def test_literals_take_the_type_of_their_column(text: str, expected: tuple[str, Any]) -> None:
    assert comparison(text) == expected


def test_wall_time_is_of_the_zone() -> None:
    summer = dt.datetime(2024, 7, 1, 10, tzinfo=dt.timezone.utc)
    assert comparison("at = '2024-07-01 12:00:00'", "Europe/Berlin") == ("=", summer)
    assert comparison("at = '2024-07-01 12:00:00'", "+02:00") == ("=", summer)
    assert comparison("at = '2024-07-01 10:00:00'") == ("=", summer)
    assert comparison("local = '2024-07-01 10:00:00Z'", "Europe/Berlin") == ("=", dt.datetime(2024, 7, 1, 12))
    assert comparison("day < TIMESTAMP '2024-06-30 22:00:00Z'", "Europe/Berlin") == ("<", dt.date(2024, 7, 1))
    # In Havana midnight of that day does not exist: the day begins at one.
    assert comparison("day = TIMESTAMP '2024-03-10 05:00:00Z'", "America/Havana") == ("=", dt.date(2024, 3, 10))
    with pytest.raises(ConfigError, match="no time zone"):
        bound("id = 1", "Nowhere")


@pytest.mark.parametrize(
    ("text", "node"),
    [
        ("id = 2.5", Known(False)),
        ("id <> 2.5", NullCheck(Column(("id",)), True)),
        ("id < 3000000000", NullCheck(Column(("id",)), True)),
        ("id > 3000000000", Known(False)),
        ("id > -3000000000.5", NullCheck(Column(("id",)), True)),
        ("price < 1000", NullCheck(Column(("price",)), True)),
        ("price > 1000", Known(False)),
        ("price < -999.995", Known(False)),
        ("id = NULL", Known(False)),
        ("NOT (id = NULL)", Known(False)),
        ("id <=> NULL", NullCheck(Column(("id",)), False)),
        ("NOT (id <=> NULL)", NullCheck(Column(("id",)), True)),
        ("id IN (NULL)", Known(False)),
        ("id NOT IN (1, NULL)", Known(False)),
        ("id IN (2.5)", Known(False)),
        ("id NOT IN (2.5)", NullCheck(Column(("id",)), True)),
        ("1 = 1", Known(True)),
        ("1 < 1.5", Known(True)),
        ("'a' >= 'b'", Known(False)),
        ("NULL <=> NULL", Known(True)),
        ("NOT (NULL <=> 1)", Known(True)),
        ("1 = NULL", Known(False)),
        ("1 IN (1, 2)", Known(True)),
        ("1 IS NULL", Known(False)),
        ("TRUE OR id = 1", Known(True)),
        ("NULL AND id = 1", Known(False)),
        ("NOT NULL", Known(False)),
    ],
)
def test_what_is_known_without_rows(text: str, node: Node) -> None:
    found = bound(text)
    assert found.node == node


def test_timestamps_with_a_zone_and_without_one_are_compared_as_moments() -> None:
    text = "TIMESTAMP '2024-01-01 01:00:00' {} TIMESTAMP '2024-01-01 00:00:00Z'"
    operators = ("=", "<>", "<", "<=", "<=>")
    berlin = {operator: bound(text.format(operator), "Europe/Berlin").node for operator in operators}
    assert berlin == {operator: Known(operator in ("=", "<=", "<=>")) for operator in berlin}
    assert bound(text.format(">")).node == Known(True)


def test_membership_by_the_types_that_spark_compares_in() -> None:
    node = bound("id IN (1, 1, 2.0, 2.5, 3000000000)").node
    assert isinstance(node, Membership)
    assert node.values.to_pylist() == [1, 2]
    mixed = bound("id IN (1, 2e0)").node
    assert {str(leaf.values.type) for leaf in mixed.nodes} == {"int32", "double"}  # type: ignore[union-attr]
    assert bind(In(Column(("id",)), ()), SCHEMA).node == Known(False)
    assert bind(Not(In(Column(("id",)), ())), SCHEMA).node == Known(True)


def test_decimals_of_many_digits_compare_exactly() -> None:
    schema = pa.schema([pa.field("a", pa.decimal128(38, 0)), pa.field("b", pa.decimal128(38, 30))])
    node = bind(parse_predicate("a = b"), schema).node
    assert node.kind == pa.decimal256(68, 30)  # type: ignore[union-attr]


def test_an_operator_that_does_not_exist() -> None:
    with pytest.raises(ConfigError, match="unknown operator"):
        bind(Compare("~", Column(("id",)), Literal.of(1)), SCHEMA)


def test_a_deep_tree_is_refused() -> None:
    expr: Expr = Compare("=", Column(("id",)), Literal.of(1))
    for _ in range(MAX_DEPTH):
        expr = Not(expr)
    with pytest.raises(ConfigError, match="deeper than"):
        bind(expr, SCHEMA)


def test_functions_of_local_time_depend_on_the_zone() -> None:
    found = bound("id = 1")
    for text, expected in [
        ("from_unixtime(id) = 'x'", True),
        ("year(at) = 1", True),
        ("year(local) = 1", False),
        ("year(day) = 1", False),
        ("length(date_format(at, 'yyyy')) = 4", True),
        ("lower(name) = 'x'", False),
    ]:
        (operand, _) = operands(parse_predicate(text))
        resolved = bound(text).node.operand  # type: ignore[union-attr]
        assert depends_on_zone(resolved, found) is expected, operand
