"""Random rows and predicates over them, and what the predicates mean, row by row in plain Python with SQL's three
values.
"""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from hudi_core.expr.tree import (
    OPERATORS,
    And,
    Column,
    Compare,
    Constant,
    Expr,
    In,
    IsNull,
    Like,
    Literal,
    Not,
    Operand,
    Or,
    StartsWith,
    like_tokens,
)

UTC = dt.timezone.utc
SCHEMA = pa.schema(
    [
        pa.field("i", pa.int32()),
        pa.field("l", pa.int64()),
        pa.field("d", pa.float64()),
        pa.field("f", pa.float32()),
        pa.field("n", pa.decimal128(7, 2)),
        pa.field("s", pa.string()),
        pa.field("y", pa.binary()),
        pa.field("b", pa.bool_()),
        pa.field("day", pa.date32()),
        pa.field("at", pa.timestamp("us", tz="UTC")),
        pa.field("u", pa.struct([pa.field("x", pa.int64()), pa.field("t", pa.string())])),
    ]
)
_TEXTS = ["", "a", "ab", "abc", "b", "B", "ä", "a%", "a_b", "a\\", "𝄞", "\uffff", "x'y", "new\nline"]
_DOUBLES = [0.0, -0.0, 0.5, -1.5, 2.0, 1e300, math.inf, -math.inf, math.nan]
_DAYS = [dt.date(1969, 12, 31), dt.date(1970, 1, 1), dt.date(2024, 2, 29), dt.date(9999, 12, 31)]
_MOMENTS = [
    dt.datetime(1969, 12, 31, 23, 59, 59, 999999, UTC),
    dt.datetime(1970, 1, 1, tzinfo=UTC),
    dt.datetime(2024, 2, 29, tzinfo=UTC),
    dt.datetime(2024, 2, 29, 12, 30, 0, 1, UTC),
]
_NUMBERS = [Decimal("0"), Decimal("1.10"), Decimal("-2.00"), Decimal("99999.99"), Decimal("-99999.99"), Decimal("2")]

VALUES: dict[str, st.SearchStrategy[Any]] = {
    "i": st.sampled_from([-(2**31), -1, 0, 1, 2, 2**31 - 1]),
    "l": st.sampled_from([-(2**63), -1, 0, 1, 2, 2**53 + 1, 2**63 - 1]),
    "d": st.sampled_from(_DOUBLES),
    "f": st.sampled_from([0.0, -0.0, 0.5, -1.5, 2.0, math.inf, math.nan]),
    "n": st.sampled_from(_NUMBERS),
    "s": st.sampled_from(_TEXTS),
    "y": st.sampled_from([b"", b"\x00", b"a", b"ab", b"\xff"]),
    "b": st.booleans(),
    "day": st.sampled_from(_DAYS),
    "at": st.sampled_from(_MOMENTS),
}
_NUMERIC = st.one_of(
    st.sampled_from([-(2**70), -(2**31) - 1, -1, 0, 1, 2, 2**31, 2**63, 2**90]),
    st.sampled_from([*_NUMBERS, Decimal("1.105"), Decimal("-0.5"), Decimal("1E+30"), Decimal("-1E-30")]),
    st.sampled_from([value for value in _DOUBLES if not math.isinf(value)]),
)
_TIMES = st.one_of(st.sampled_from(_DAYS), st.sampled_from(_MOMENTS))
LITERALS: dict[str, st.SearchStrategy[Any]] = {
    **dict.fromkeys(("i", "l", "d", "f", "n"), _NUMERIC),
    "s": st.sampled_from(_TEXTS),
    "y": VALUES["y"],
    "b": st.booleans(),
    "day": _TIMES,
    "at": _TIMES,
}


def rows(least: int = 0, most: int = 25) -> st.SearchStrategy[pa.RecordBatch]:
    """Batches of SCHEMA."""
    columns = {name: st.none() | values for name, values in VALUES.items()}
    struct = st.none() | st.fixed_dictionaries({"x": st.none() | VALUES["l"], "t": st.none() | VALUES["s"]})
    return st.lists(st.fixed_dictionaries({**columns, "u": struct}), min_size=least, max_size=most).map(
        lambda found: pa.RecordBatch.from_pylist(found, schema=SCHEMA)
    )


def _leaf(path: tuple[str, ...], values: st.SearchStrategy[Any]) -> st.SearchStrategy[Expr]:
    column = Column(path)
    literals = values.map(Literal.of)
    compare = st.builds(
        Compare, st.sampled_from(sorted(OPERATORS)), st.just(column), st.one_of(literals, st.just(Literal.of(None)))
    )
    member = st.builds(
        In,
        st.just(column),
        st.lists(st.one_of(literals, literals, st.just(Literal.of(None))), min_size=1, max_size=4).map(tuple),
    )
    many = st.builds(In, st.just(column), st.lists(literals, min_size=17, max_size=20).map(tuple))
    leaves: list[st.SearchStrategy[Expr]] = [compare, compare, member, many, st.just(IsNull(column))]
    if values is VALUES["s"] or values is LITERALS["s"]:
        patterns = st.sampled_from(["%a", "a%b", "_", "a\\%_", "%\\\\", "%\\_%", "ab%c", "%line"])
        leaves += [
            st.builds(StartsWith, st.just(column), st.sampled_from(_TEXTS)),
            st.builds(Like, st.just(column), patterns),
        ]
    return st.one_of(leaves)


def predicates() -> st.SearchStrategy[Expr]:
    """Predicates over SCHEMA, as a parser gives them."""
    leaves = st.one_of(
        [_leaf((name,), values) for name, values in LITERALS.items()]
        + [_leaf(("u", "x"), LITERALS["l"]), _leaf(("u", "t"), LITERALS["s"])]
        + [st.sampled_from([Constant(True), Constant(False), Constant(None), IsNull(Column(("u",)))])]
    )
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            inner.map(Not),
            st.lists(inner.filter(lambda term: not isinstance(term, And)), min_size=2, max_size=3).map(
                lambda terms: And(tuple(terms))
            ),
            st.lists(inner.filter(lambda term: not isinstance(term, Or)), min_size=2, max_size=3).map(
                lambda terms: Or(tuple(terms))
            ),
        ),
        max_leaves=6,
    )


def holds(expr: Expr, row: Mapping[str, Any]) -> bool | None:
    """The predicate of one row (as `to_pylist` gives it): true, false, or None for NULL."""
    if isinstance(expr, Constant):
        return expr.value
    if isinstance(expr, Not):
        inner = holds(expr.term, row)
        return None if inner is None else not inner
    if isinstance(expr, (And, Or)):
        found = [holds(term, row) for term in expr.terms]
        decisive = isinstance(expr, Or)
        return decisive if decisive in found else None if None in found else not decisive
    if isinstance(expr, IsNull):
        return _value(expr.operand, row) is None
    if isinstance(expr, Compare):
        return _compare(_value(expr.left, row), expr.operator, _value(expr.right, row), _is_float(expr.left))
    value = _value(expr.operand, row)
    if isinstance(expr, In):
        answers = [_compare(value, "=", literal.value, _is_float(expr.operand)) for literal in expr.values]
        return True if True in answers else None if None in answers else False
    if value is None:
        return None
    return value.startswith(expr.prefix) if isinstance(expr, StartsWith) else _like(value, expr.pattern)


def _is_float(operand: Operand) -> bool:
    return operand in (Column(("d",)), Column(("f",)))


def _value(operand: Operand, row: Mapping[str, Any]) -> Any:
    if isinstance(operand, Literal):
        return operand.value
    assert isinstance(operand, Column)
    found: Any = row
    for name in operand.path:
        found = None if found is None else found[name]
    return found


def _like(value: str, pattern: str) -> bool:
    parts = [re.escape(token) if literal else {"%": ".*", "_": "."}[token] for token, literal in like_tokens(pattern)]
    return re.fullmatch("".join(parts), value, re.DOTALL) is not None


def _compare(left: Any, operator: str, right: Any, as_floats: bool) -> bool | None:
    if operator == "<=>" and (left is None or right is None):
        return left is None and right is None
    if left is None or right is None:
        return None
    a, b = _keys(left, right, as_floats)
    return {"=": a == b, "<=>": a == b, "<>": a != b, "<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b}[operator]


def _keys(left: Any, right: Any, as_floats: bool) -> tuple[Any, Any]:
    if isinstance(left, str):
        return left.encode(), right.encode()
    if isinstance(left, (dt.date, dt.datetime)):
        return _moment(left), _moment(right)
    if isinstance(left, (int, float, Decimal)) and not isinstance(left, bool):
        # Spark compares as doubles as soon as one side is one; otherwise exactly.
        exact = not as_floats and not isinstance(right, float)
        return _number(left, exact), _number(right, exact)
    return left, right


def _moment(value: Any) -> Any:
    return value if isinstance(value, dt.datetime) else dt.datetime.combine(value, dt.time(), UTC)


def _number(value: Any, exact: bool) -> tuple[int, Any]:
    """NaN is one value, above all others."""
    if exact:
        return 0, Fraction(value)
    number = float(value)
    return (1, 0) if math.isnan(number) else (0, number)
