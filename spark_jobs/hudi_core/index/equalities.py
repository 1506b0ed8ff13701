"""The few values that a predicate leaves possible for an operand, for a lookup in an index by key."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pyarrow as pa

from hudi_core.expr.leaves import All, Any, Comparison, Known, Membership, Node
from hudi_core.expr.tree import EQ, Operand

MAX_VALUES: Final = 100_000
"""More values than that are not looked up one by one."""


def equal_texts(node: Node, operand: Operand) -> frozenset[str] | None:
    """The values, in Java's text form, one of which the operand has in every matching row; None when not known.

    Only text and whole numbers: of other types the printed form depends on the writer.
    """
    return _values(node, lambda leaf: _of_leaf(leaf, operand))


def _values(node: Node, of_leaf: Callable[[Comparison | Membership], frozenset[str] | None]) -> frozenset[str] | None:
    if isinstance(node, All):
        found = [values for inner in node.nodes if (values := _values(inner, of_leaf)) is not None]
        return frozenset.intersection(*found) if found else None
    if isinstance(node, Any):
        parts = [_values(inner, of_leaf) for inner in node.nodes]
        known = [part for part in parts if part is not None]
        return frozenset().union(*known) if len(known) == len(parts) else None
    if isinstance(node, Known):
        return None if node.value else frozenset()
    return of_leaf(node) if isinstance(node, (Comparison, Membership)) else None


def _of_leaf(leaf: Comparison | Membership, operand: Operand) -> frozenset[str] | None:
    if leaf.operand != operand:
        return None
    if isinstance(leaf, Comparison):
        return frozenset({str(leaf.value.as_py())}) if leaf.operator == EQ and _printable(leaf.kind) else None
    if leaf.negated or not _printable(leaf.values.type) or len(leaf.values) > MAX_VALUES:
        return None
    return frozenset(str(value) for value in leaf.values.to_pylist())


def _printable(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or kind in (pa.int16(), pa.int32(), pa.int64())
    )
