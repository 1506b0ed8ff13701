"""A predicate that is bound to a schema: a tree without NOT whose leaves know their types. Decides for which rows of a
batch it is true, with the semantics of Spark SQL. sql.py reads predicates from SQL text.

NOT is pushed down to the leaves, each of which has a form for being false. So a leaf that is NULL counts as one that is
false, and the reverse, as in WHERE. NaN equals NaN and is greater than every other number, -0.0 equals 0.0, texts and
bytes compare byte by byte, false is less than true.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from hudi_core.expr.functions import evaluate
from hudi_core.expr.tree import EQ, GE, GT, LE, LT, NE, SAME, Operand
from hudi_core.frozen import dataclass

DIFFERENT: Final = "<!>"
"""The negation of <=>: not equal, and not both null."""

Leaf: TypeAlias = "Comparison | Pair | Membership | NullCheck | Prefix | Pattern"
Node: TypeAlias = "All | Any | Known | Leaf"


@dataclass(frozen=True, slots=True)
class All:
    """True when all nodes are true."""

    nodes: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Any:
    """True when one node is true."""

    nodes: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Known:
    value: bool


@dataclass(frozen=True, slots=True)
class Comparison:
    """`operand operator value`, both as `kind`; `operator` is one of = <> < <= > >=, `value` is not null."""

    operand: Operand
    operator: str
    value: pa.Scalar
    kind: pa.DataType


@dataclass(frozen=True, slots=True)
class Pair:
    """`left operator right` of two columns or calls, both as `kind`; the operator may be <=> and its negation `<!>`."""

    left: Operand
    operator: str
    right: Operand
    kind: pa.DataType


@dataclass(frozen=True, slots=True)
class Membership:
    """Whether the operand, as the values' type, is one (`negated`: none) of the distinct, non-null `values`."""

    operand: Operand
    values: pa.Array
    negated: bool


@dataclass(frozen=True, slots=True)
class NullCheck:
    operand: Operand
    negated: bool


@dataclass(frozen=True, slots=True)
class Prefix:
    operand: Operand
    prefix: str
    negated: bool


@dataclass(frozen=True, slots=True)
class Pattern:
    """Whether the whole text matches the regex (RE2), or (`negated`) does not. A match starts with `prefix`."""

    operand: Operand
    expression: str
    prefix: str
    negated: bool


def all_of(nodes: tuple[Node, ...]) -> Node:
    """Returns the conjunction, without constant terms."""
    return _joined(All, nodes, neutral=True)


def any_of(nodes: tuple[Node, ...]) -> Node:
    """Returns the disjunction, without constant terms."""
    return _joined(Any, nodes, neutral=False)


def _joined(make: type[All] | type[Any], nodes: tuple[Node, ...], *, neutral: bool) -> Node:
    kept = tuple(node for node in nodes if node != Known(neutral))
    if Known(not neutral) in kept:
        return Known(not neutral)
    return make(kept) if len(kept) > 1 else kept[0] if kept else Known(neutral)


@dataclass(frozen=True, slots=True)
class Bound:
    """A predicate for rows of `schema` (`row_mask`) and for ranges of values (`ranges.may_match`)."""

    node: Node
    schema: pa.Schema
    zone: str
    zone_given: bool
    """Whether the caller named the zone; otherwise it is the default UTC."""
    columns: tuple[str, ...]


COMPARE: Final[dict[str, Callable[[pa.Array, pa.Array | pa.Scalar], pa.Array]]] = {
    EQ: pc.equal,
    NE: pc.not_equal,
    LT: pc.less,
    LE: pc.less_equal,
    GT: pc.greater,
    GE: pc.greater_equal,
}


def row_mask(bound: Bound, batch: pa.RecordBatch) -> pa.BooleanArray:
    """Whether the predicate is true for each row; false where it is NULL. `batch` holds at least `bound.columns`."""
    return _mask(bound.node, batch, bound.zone)


def _mask(node: Node, batch: pa.RecordBatch, zone: str) -> pa.BooleanArray:
    if isinstance(node, Known):
        return pa.repeat(pa.scalar(node.value), batch.num_rows)
    if isinstance(node, (All, Any)):
        masks = (_mask(inner, batch, zone) for inner in node.nodes)
        return functools.reduce(pc.and_ if isinstance(node, All) else pc.or_, masks)
    return pc.fill_null(_leaf_mask(node, batch, zone), False)


def _leaf_mask(leaf: Leaf, batch: pa.RecordBatch, zone: str) -> pa.BooleanArray:
    if isinstance(leaf, Pair):
        left, right = (as_type(evaluate(side, batch, zone), leaf.kind) for side in (leaf.left, leaf.right))
        return _compare_pair(left, leaf.operator, right)
    array = evaluate(leaf.operand, batch, zone)
    if isinstance(leaf, NullCheck):
        return pc.is_valid(array) if leaf.negated else pc.is_null(array)
    if isinstance(leaf, Comparison):
        return compare(as_type(array, leaf.kind), leaf.operator, leaf.value)
    if isinstance(leaf, Membership):
        is_member = pc.is_in(_one_zero(as_type(array, leaf.values.type)), value_set=_one_zero(leaf.values))
        return pc.and_(pc.invert(is_member), pc.is_valid(array)) if leaf.negated else is_member
    if isinstance(leaf, Prefix):
        matched = pc.starts_with(array, leaf.prefix)
    else:
        matched = pc.match_substring_regex(array, leaf.expression)
    return pc.invert(matched) if leaf.negated else matched


def as_type(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """Returns the array as the type in which it is compared. Integers become the nearest double, as in Java."""
    return array if array.type == kind else pc.cast(array, kind, safe=not pa.types.is_floating(kind))


def compare(left: pa.Array, operator: str, right: pa.Array | pa.Scalar) -> pa.BooleanArray:
    """Returns `left operator right`, null where one side is. NaN is equal to itself and greater than all else."""
    result = COMPARE[operator](left, right)
    if not pa.types.is_floating(left.type):
        return result
    right_nan = pc.is_nan(right)
    if operator not in (GT, GE) and isinstance(right, pa.Scalar) and not right_nan.as_py():
        return result
    left_nan = pc.is_nan(left)
    both = pc.and_(left_nan, right_nan)
    if operator == NE:
        return pc.and_not(result, both)
    above = both if operator == EQ else left_nan if operator in (GT, GE) else right_nan
    return pc.or_(result, pc.and_not(above, both) if operator in (GT, LT) else above)


def _compare_pair(left: pa.Array, operator: str, right: pa.Array) -> pa.BooleanArray:
    if operator not in (SAME, DIFFERENT):
        return compare(left, operator, right)
    nulls = pc.and_(pc.is_null(left), pc.is_null(right))
    same = pc.or_(pc.fill_null(compare(left, EQ, right), False), nulls)
    return pc.invert(same) if operator == DIFFERENT else same


def _one_zero(array: pa.Array) -> pa.Array:
    """Returns -0.0 as 0.0: membership compares bits."""
    return pc.add(array, pa.scalar(0.0, array.type)) if pa.types.is_floating(array.type) else array
