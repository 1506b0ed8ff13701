"""What a predicate becomes when it is bound to a schema: a tree without NOT whose leaves know their types.

NOT is pushed down to the leaves, and every leaf has a form for being false that is true of the same rows. So a leaf
that is NULL and one that is false may be taken for each other, as WHERE takes them, and And and Or need two values
only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa

from hudi_core.expr.tree import Operand

Leaf: TypeAlias = "Comparison | Pair | Membership | NullCheck | Prefix | Pattern | Known"
Node: TypeAlias = "All | Any | Leaf"


@dataclass(frozen=True, slots=True)
class All:
    """True when all nodes are."""

    nodes: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Any:
    """True when one node is."""

    nodes: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Known:
    """The same for every row."""

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
    """Whether the operand, as the values' type, is one of distinct `values` without null, or (`negated`) none."""

    operand: Operand
    values: pa.Array
    negated: bool


@dataclass(frozen=True, slots=True)
class NullCheck:
    """Whether the operand is null, or (`negated`) is not."""

    operand: Operand
    negated: bool


@dataclass(frozen=True, slots=True)
class Prefix:
    """Whether the text starts with `prefix`, or (`negated`) does not."""

    operand: Operand
    prefix: str
    negated: bool


@dataclass(frozen=True, slots=True)
class Pattern:
    """Whether the whole text matches the regular expression (RE2), or not; a match starts with `prefix`."""

    operand: Operand
    expression: str
    prefix: str
    negated: bool


def all_of(nodes: tuple[Node, ...]) -> Node:
    """The conjunction, without constant terms."""
    return _joined(All, nodes, neutral=True)


def any_of(nodes: tuple[Node, ...]) -> Node:
    """The disjunction, without constant terms."""
    return _joined(Any, nodes, neutral=False)


def _joined(make: type[All] | type[Any], nodes: tuple[Node, ...], *, neutral: bool) -> Node:
    left = tuple(node for node in nodes if node != Known(neutral))
    if Known(not neutral) in left:
        return Known(not neutral)
    return make(left) if len(left) > 1 else left[0] if left else Known(neutral)
