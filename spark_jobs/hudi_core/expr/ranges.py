"""Decides which of many files, partitions or row groups may hold a matching row, by the ranges of their values (RFC-27,
DataSkippingUtils). All are decided at once: a range is one element of Arrow arrays.

The answer errs one way only: whatever is not known may match. Bounds need not be tight; counts of nulls must be exact,
or absent.
"""

from __future__ import annotations

import bisect
from collections.abc import Mapping
from dataclasses import replace
from typing import Any as Anything
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hudi_core.expr.bound import (
    All,
    Any,
    Bound,
    Comparison,
    Known,
    Membership,
    Node,
    NullCheck,
    Pair,
    Pattern,
    Prefix,
    as_type,
    compare,
)
from hudi_core.expr.tree import EQ, GE, LE, LT, NE, Operand
from hudi_core.frozen import dataclass

Mask: TypeAlias = NDArray[np.bool_]
_FEW_VALUES: Final = 16
"""Up to so many members of a list are compared one by one with all ranges; more are searched for in order."""


@dataclass(frozen=True, slots=True)
class ColumnRange:
    """Bounds of one operand's values in n files: arrays of length n, null where not known. `minimum` and `maximum` have
    the operand's type (or one that casts to it in order); NaN counts as the greatest value. `null_count` and
    `value_count` (rows, nulls included) are int64, or None when no count is known.
    """

    minimum: pa.Array
    maximum: pa.Array
    null_count: pa.Array | None = None
    value_count: pa.Array | None = None

    def take(self, indices: pa.Array) -> ColumnRange:
        """Returns the elements at `indices`; unknown where an index is null."""
        counts = (None if array is None else array.take(indices) for array in (self.null_count, self.value_count))
        return ColumnRange(self.minimum.take(indices), self.maximum.take(indices), *counts)

    def only_nulls(self) -> Mask:
        if self.null_count is None or self.value_count is None:
            return np.zeros(len(self.minimum), dtype=np.bool_)
        # Writers that do not count put down a count of no values at all.
        return _mask(
            pc.and_(pc.greater(self.value_count, 0), pc.greater_equal(self.null_count, self.value_count)), unknown=False
        )


def may_match(bound: Bound, ranges: Mapping[Operand, ColumnRange], count: int) -> Mask:
    """Whether each of `count` files may hold a matching row. An operand without `ranges` is unknown for every file."""
    return _mask_of(bound.node, ranges, count)


def operands_of(node: Node) -> frozenset[Operand]:
    """Returns the operands whose ranges can decide something."""
    if isinstance(node, (All, Any)):
        return frozenset(operand for inner in node.nodes for operand in operands_of(inner))
    return frozenset() if isinstance(node, (Known, Pair)) else frozenset((node.operand,))


def _mask_of(node: Node, ranges: Mapping[Operand, ColumnRange], count: int) -> Mask:
    if isinstance(node, Known):
        return np.full(count, node.value)
    if isinstance(node, (All, Any)):
        masks = [_mask_of(inner, ranges, count) for inner in node.nodes]
        return _fold(np.logical_and if isinstance(node, All) else np.logical_or, masks)
    if isinstance(node, Pair) or (known := ranges.get(node.operand)) is None:
        return np.ones(count, dtype=np.bool_)
    if isinstance(node, NullCheck) and not node.negated:
        return np.ones(count, dtype=np.bool_) if known.null_count is None else _mask(pc.greater(known.null_count, 0))
    return _leaf(node, known) & ~known.only_nulls()


def _leaf(leaf: Comparison | Membership | NullCheck | Prefix | Pattern, known: ColumnRange) -> Mask:
    """Whether a value that is not null may match."""
    if isinstance(leaf, Comparison):
        low, high = _bounds(known, leaf.kind)
        return _comparison(low, leaf.operator, leaf.value, high)
    if isinstance(leaf, Membership):
        return _not_member(known, leaf.values) if leaf.negated else _member(known, leaf.values)
    if isinstance(leaf, (Prefix, Pattern)) and not leaf.negated:
        return _starts_with(known, leaf.prefix)
    if isinstance(leaf, Prefix):
        ends = (known.minimum, known.maximum)
        return ~_fold(np.logical_and, [_mask(pc.starts_with(end, leaf.prefix), unknown=False) for end in ends])
    # A check for not null, or a negated pattern: a range does not show that all texts match it.
    return np.ones(len(known.minimum), dtype=np.bool_)


def _comparison(low: pa.Array, operator: str, value: pa.Scalar, high: pa.Array) -> Mask:
    if operator == EQ:
        return _mask(compare(low, LE, value)) & _mask(compare(high, GE, value))
    if operator == NE:
        return ~(_mask(compare(low, EQ, value), unknown=False) & _mask(compare(high, EQ, value), unknown=False))
    return _mask(compare(low if operator in (LT, LE) else high, operator, value))


def _member(known: ColumnRange, values: pa.Array) -> Mask:
    low, high = _bounds(known, values.type)
    if len(values) <= _FEW_VALUES:
        return _fold(np.logical_or, [_comparison(low, EQ, value, high) for value in values])
    if pa.types.is_floating(values.type) and pc.any(pc.is_nan(values)).as_py():
        # NaN has no place in Python's order.
        numbers = pc.drop_null(values.filter(pc.invert(pc.is_nan(values))))
        return _member(replace(known, minimum=low, maximum=high), numbers) | _comparison(
            low, EQ, pa.scalar(float("nan"), values.type), high
        )
    ordered: list[Anything] = _sortable(values.sort()).to_pylist()
    result = np.ones(len(low), dtype=np.bool_)
    for index, (least, most) in enumerate(zip(_sortable(low).to_pylist(), _sortable(high).to_pylist(), strict=True)):
        first = 0 if least is None else bisect.bisect_left(ordered, least)
        result[index] = first < len(ordered) and (most is None or most != most or ordered[first] <= most)
    return result


def _not_member(known: ColumnRange, values: pa.Array) -> Mask:
    """Excludes a file when all its values are one of the list: its range then has equal ends."""
    low, high = _bounds(known, values.type)
    inside = np.zeros(len(low), dtype=np.bool_)
    for value in values:
        inside |= ~_comparison(low, NE, value, high)
    return ~inside


def _sortable(array: pa.Array) -> pa.Array:
    """Returns timestamps as integers: Python's datetime has no nanoseconds."""
    return array.cast(pa.int64()) if pa.types.is_timestamp(array.type) else array


def _starts_with(known: ColumnRange, prefix: str) -> Mask:
    upper = _mask(pc.greater_equal(known.maximum, prefix))
    if not prefix:
        return upper
    return upper & _mask(pc.less_equal(pc.utf8_slice_codeunits(known.minimum, 0, len(prefix)), prefix))


def _bounds(known: ColumnRange, kind: pa.DataType) -> tuple[pa.Array, pa.Array]:
    return as_type(known.minimum, kind), as_type(known.maximum, kind)


def _fold(by: np.ufunc, masks: list[Mask]) -> Mask:
    result: Mask = by.reduce(masks)
    return result


def _mask(array: pa.Array, *, unknown: bool = True) -> Mask:
    """Returns a NumPy array, with `unknown` for null."""
    result: Mask = pc.fill_null(array, unknown).to_numpy(zero_copy_only=False)
    return result
