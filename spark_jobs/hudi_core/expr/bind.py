"""Binds a predicate to an Arrow schema: finds columns, types literals, and moves each `NOT` to the leaves."""

from __future__ import annotations

import datetime as dt
import itertools
import re
from collections.abc import Sequence
from typing import Final

import pyarrow as pa

from hudi_core.errors import ConfigError
from hudi_core.expr import tree
from hudi_core.expr.bound import (
    DIFFERENT,
    Bound,
    Comparison,
    Known,
    Membership,
    Node,
    NullCheck,
    Pair,
    Pattern,
    Prefix,
    all_of,
    any_of,
)
from hudi_core.expr.functions import evaluate, needs_zone
from hudi_core.expr.literals import fold, instant, place
from hudi_core.expr.wall_time import zone_of
from hudi_core.model.names import alike

_INTEGERS: Final = (pa.int8(), pa.int16(), pa.int32(), pa.int64())
_MAX_PRECISION: Final = 38


def bind(expr: tree.Expr, schema: pa.Schema, *, zone: str | None = None) -> Bound:
    """Binds the predicate to the columns of `schema`, by names as written, else in any case. `zone` is that of local
    time, UTC when it is None. Raises ConfigError naming a column that is unknown or ambiguous, a literal that its
    column cannot be compared with, or a function that is not supported.
    """
    wall = "UTC" if zone is None or zone in ("Z", "GMT") else zone
    zone_of(wall)
    for node in tree.walk(expr):
        if isinstance(node, tree.Compare) and node.operator not in tree.OPERATORS:
            remedy = f"known are {', '.join(sorted(tree.OPERATORS))}"
            raise ConfigError(f"unknown operator {node.operator!r}", remedy=remedy)
    binder = _Binder(schema, wall)
    used = {
        path[0]
        for node in tree.walk(expr)
        for operand in tree.operands(node)
        for path in tree.operand_columns(resolve(operand, schema))
    }
    columns = tuple(name for name in schema.names if name in used)
    return Bound(binder.node(expr, negated=False), schema, wall, zone is not None, columns)


def resolve(operand: tree.Operand, schema: pa.Schema) -> tree.Operand:
    """Returns the operand with columns as in `schema`. Raises ConfigError naming an unknown or ambiguous one."""
    if isinstance(operand, tree.Column):
        return tree.Column(_resolve_path(operand.path, schema))
    if isinstance(operand, tree.Call):
        return tree.Call(operand.name, tuple(resolve(argument, schema) for argument in operand.arguments))
    return operand


def kind_of(operand: tree.Operand, bound: Bound) -> pa.DataType:
    return evaluate(operand, _empty(bound.schema), bound.zone).type


def depends_on_zone(operand: tree.Operand, bound: Bound) -> bool:
    """Whether the operand's values depend on the zone that the predicate is bound with."""
    return needs_zone(operand, _empty(bound.schema), bound.zone)


def _empty(schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array([], field.type) for field in schema], schema=schema)


class _Binder:
    def __init__(self, schema: pa.Schema, zone: str) -> None:
        self._schema = schema
        self._zone = zone
        self._empty = _empty(schema)

    def node(self, expr: tree.Expr, *, negated: bool) -> Node:
        if isinstance(expr, tree.Not):
            return self.node(expr.term, negated=not negated)
        if isinstance(expr, (tree.And, tree.Or)):
            nodes = tuple(self.node(term, negated=negated) for term in expr.terms)
            return all_of(nodes) if isinstance(expr, tree.And) is not negated else any_of(nodes)
        if isinstance(expr, tree.Constant):
            return Known(expr.value is not None and expr.value is not negated)
        if isinstance(expr, tree.Compare):
            return self._compare(expr, negated)
        return self._of_operand(expr, negated)

    def _of_operand(self, expr: tree.In | tree.IsNull | tree.StartsWith | tree.Like, negated: bool) -> Node:
        operand = resolve(expr.operand, self._schema)
        if isinstance(operand, tree.Literal):
            return self._of_literal(expr, operand, negated)
        kind = self._kind(operand)
        if isinstance(expr, tree.IsNull):
            return NullCheck(operand, negated)
        if isinstance(expr, tree.In):
            return self._membership(operand, kind, expr.values, negated)
        if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
            remedy = "compare it with a literal of its type"
            raise ConfigError(f"{name_of(operand)!r} is {kind}, and LIKE is of text", remedy=remedy)
        return _text_match(expr, operand, negated)

    def _of_literal(
        self, expr: tree.In | tree.IsNull | tree.StartsWith | tree.Like, literal: tree.Literal, negated: bool
    ) -> Node:
        if isinstance(expr, tree.IsNull):
            return Known((literal.value is None) is not negated)
        if isinstance(expr, tree.In):
            # Literal IN (literals) is rare; as alternatives it needs no rule of its own.
            return self.node(
                tree.Or(tuple(tree.Compare(tree.EQ, literal, value) for value in expr.values)), negated=negated
            )
        remedy = "name a column"
        raise ConfigError(f"LIKE of the literal {literal.value!r} compares nothing of the table", remedy=remedy)

    def _compare(self, expr: tree.Compare, negated: bool) -> Node:
        left, operator, right = resolve(expr.left, self._schema), expr.operator, resolve(expr.right, self._schema)
        if isinstance(left, tree.Literal):
            if isinstance(right, tree.Literal):
                return Known(_compare_literals(left, operator, right, negated, self._zone))
            left, operator, right = right, tree.FLIPPED[operator], left
        if not isinstance(right, tree.Literal):
            return self._pair(left, operator, right, negated)
        kind = self._kind(left)
        if right.value is None:
            return NullCheck(left, negated) if operator == tree.SAME else Known(False)
        if operator == tree.SAME:
            same = self._with_literal(left, kind, tree.NE if negated else tree.EQ, right)
            return any_of((same, NullCheck(left, False))) if negated else same
        return self._with_literal(left, kind, tree.NEGATED[operator] if negated else operator, right)

    def _with_literal(self, operand: tree.Operand, kind: pa.DataType, operator: str, literal: tree.Literal) -> Node:
        at = place(kind, literal, self._zone, where=name_of(operand))
        folded = fold(operator, at)
        if isinstance(folded, bool):
            return NullCheck(operand, True) if folded else Known(False)
        return Comparison(operand, folded[0], folded[1], at.kind)

    def _membership(
        self, operand: tree.Operand, kind: pa.DataType, literals: Sequence[tree.Literal], negated: bool
    ) -> Node:
        if not literals:
            return Known(negated)
        if negated and any(literal.value is None for literal in literals):
            return Known(False)  # NOT IN with a NULL is false or NULL
        values: dict[pa.DataType, list[pa.Scalar]] = {}
        for literal in literals:
            at = None if literal.value is None else place(kind, literal, self._zone, where=name_of(operand))
            if at is not None and at.exact and not at.side:
                values.setdefault(at.kind, []).append(at.value)
        nodes = tuple(Membership(operand, _distinct(scalars, common), negated) for common, scalars in values.items())
        if negated:
            return all_of(nodes) if nodes else NullCheck(operand, True)
        return any_of(nodes)

    def _pair(self, left: tree.Operand, operator: str, right: tree.Operand, negated: bool) -> Node:
        kinds = self._kind(left), self._kind(right)
        kind = _common(*kinds)
        if kind is None:
            message = f"{name_of(left)!r} is {kinds[0]} and {name_of(right)!r} is {kinds[1]}, which cannot be compared"
            raise ConfigError(message, remedy="compare columns of one type, or of numeric types")
        if negated:
            operator = DIFFERENT if operator == tree.SAME else tree.NEGATED[operator]
        return Pair(left, operator, right, kind)

    def _kind(self, operand: tree.Operand) -> pa.DataType:
        return evaluate(operand, self._empty, self._zone).type


def name_of(operand: tree.Operand) -> str:
    """Returns the operand for people: `a.b`, `lower(name)`."""
    if isinstance(operand, tree.Column):
        return ".".join(operand.path)
    if isinstance(operand, tree.Call):
        return f"{operand.name}({', '.join(name_of(argument) for argument in operand.arguments)})"
    return repr(operand.value)


def _resolve_path(path: tuple[str, ...], schema: pa.Schema) -> tuple[str, ...]:
    spelled: list[str] = []
    fields = list(schema)
    for depth, name in enumerate(path):
        at = ".".join(path[: depth + 1])
        named = alike((field.name for field in fields), name)
        same = [field for field in fields if field.name in named]
        if not same:
            known = ", ".join(field.name for field in fields) or "none"
            raise ConfigError(f"no column {at!r}", remedy=f"the {'columns' if depth == 0 else 'fields'} are {known}")
        if len(same) > 1:
            remedy = f"write one of {', '.join(field.name for field in same)}"
            raise ConfigError(f"column {at!r} is ambiguous", remedy=remedy)
        spelled.append(same[0].name)
        kind = same[0].type
        fields = [kind.field(index) for index in range(kind.num_fields)] if pa.types.is_struct(kind) else []
    return tuple(spelled)


def _distinct(scalars: list[pa.Scalar], kind: pa.DataType) -> pa.Array:
    if pa.types.is_timestamp(kind):
        # Python's datetime has no nanoseconds and no year beyond 9999.
        return pa.array([scalar.cast(pa.int64()).as_py() for scalar in scalars], pa.int64()).cast(kind).unique()
    return pa.array([scalar.as_py() for scalar in scalars], kind).unique()


def _compare_literals(left: tree.Literal, operator: str, right: tree.Literal, negated: bool, zone: str) -> bool:
    if left.value is None or right.value is None:
        return ((left.value is None and right.value is None) is not negated) if operator == tree.SAME else False
    numbers = ("integer", "decimal", "double")
    if left.kind != right.kind and not (left.kind in numbers and right.kind in numbers):
        remedy = "compare literals of one type"
        raise ConfigError(f"the literals {left.value!r} and {right.value!r} cannot be compared", remedy=remedy)
    # Python compares no timestamp that has a zone with one that has none.
    values = (left.value, right.value)
    a, b = (instant(value, zone) if isinstance(value, dt.datetime) else value for value in values)
    result = {tree.EQ: a == b, tree.SAME: a == b, tree.NE: a != b}.get(operator)
    if result is None:
        result = {"<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b}[operator]  # type: ignore[operator]
    return bool(result) is not negated


def _text_match(expr: tree.StartsWith | tree.Like, operand: tree.Operand, negated: bool) -> Node:
    if isinstance(expr, tree.StartsWith):
        return Prefix(operand, expr.prefix, negated)
    tokens = tree.like_tokens(expr.pattern)
    parts = [re.escape(token) if literal else ".*" if token == "%" else "." for token, literal in tokens]
    fixed = itertools.takewhile(lambda token: token[1], tokens)
    return Pattern(operand, f"(?s)^{''.join(parts)}$", "".join(token for token, _ in fixed), negated)


def _common(left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    """Returns the type in which Spark compares two columns; None when it cannot."""
    if left == right:
        return None if pa.types.is_nested(left) else pa.int8() if pa.types.is_boolean(left) else left
    if left in _INTEGERS and right in _INTEGERS:
        return max(left, right, key=_INTEGERS.index)
    kinds = (left, right)
    if any(pa.types.is_floating(kind) for kind in kinds):
        if not all(pa.types.is_floating(kind) or kind in _INTEGERS or pa.types.is_decimal(kind) for kind in kinds):
            return None
        wide = any(pa.types.is_float64(kind) or pa.types.is_decimal(kind) for kind in kinds)
        return pa.float64() if wide else pa.float32()
    shapes = [
        (19, 0) if kind in _INTEGERS else (kind.precision, kind.scale) if pa.types.is_decimal(kind) else None
        for kind in kinds
    ]
    if shapes[0] is not None and shapes[1] is not None:
        scale = max(shapes[0][1], shapes[1][1])
        digits = max(shapes[0][0] - shapes[0][1], shapes[1][0] - shapes[1][1])
        make = pa.decimal128 if digits + scale <= _MAX_PRECISION else pa.decimal256
        return make(digits + scale, scale)
    if all(pa.types.is_timestamp(kind) for kind in kinds) and (left.tz is None) == (right.tz is None):
        units = ("s", "ms", "us", "ns")
        return pa.timestamp(max(left.unit, right.unit, key=units.index), left.tz)
    return None
