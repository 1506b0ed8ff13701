"""The values, and so the record keys, that a predicate leaves possible, for a lookup in an index by key.

As SparkBaseIndexSupport.filterQueriesWithRecordKey and RecordLevelIndexSupport.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Set
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from hudi_core.expr.bound import All, Any, Bound, Comparison, Known, Membership, Node
from hudi_core.expr.tree import EQ, Column, Operand
from hudi_core.filegroup.merge.record_keys import EMPTY_KEY
from hudi_core.filegroup.read.partition_values import has_keys_in_rows
from hudi_core.model.names import RECORD_KEY

if TYPE_CHECKING:
    from hudi_core.config.table_config import TableConfig

MAX_VALUES: Final = 100_000
"""More values than that are not looked up one by one."""


def key_candidates(bound: Bound, config: TableConfig, hidden: Set[str]) -> frozenset[str] | None:
    """Keys among which is that of every row that matches; None when the predicate does not name them. They come from
    `_hoodie_record_key`, and from the key columns when each of them is compared for equality with text or whole
    numbers, and none is one of `hidden`, whose values in the query are not those that keys were made of. Keys of a
    user's own key generator cannot be derived from columns.
    """
    if bound.node == Known(False):
        return frozenset()
    direct = equal_texts(bound.node, Column((RECORD_KEY,)))
    unrecorded = has_keys_in_rows(config) or hidden & set(config.record_key_fields)
    fields = None if unrecorded else _of_fields(bound, config.record_key_fields)
    if direct is None or fields is None:
        return fields if direct is None else direct
    return direct & fields


def _of_fields(bound: Bound, fields: tuple[str, ...]) -> frozenset[str] | None:
    found = [equal_texts(bound.node, Column((name,))) for name in fields]
    values = [item for item in found if item is not None]
    if not values or len(values) < len(found):
        return None
    if len(fields) == 1:
        # A complex key generator with one field wrote `field:value` up to 0.14 and from 1.1 on, and the bare value
        # between.
        bare = frozenset(value for value in values[0] if value)
        return bare | frozenset(f"{fields[0]}:{value or EMPTY_KEY}" for value in values[0])
    if math.prod(len(item) for item in values) > MAX_VALUES:
        return None
    parts = [
        [f"{name}:{value or EMPTY_KEY}" for value in sorted(item)] for name, item in zip(fields, values, strict=True)
    ]
    return frozenset(",".join(combination) for combination in itertools.product(*parts))


def equal_texts(node: Node, operand: Operand) -> frozenset[str] | None:
    """The values, in Java's text form, one of which the operand has in every matching row; None when not known. Only
    text and whole numbers: of other types the printed form depends on the writer.
    """
    if isinstance(node, All):
        found = [values for inner in node.nodes if (values := equal_texts(inner, operand)) is not None]
        return frozenset.intersection(*found) if found else None
    if isinstance(node, Any):
        parts = [equal_texts(inner, operand) for inner in node.nodes]
        known = [part for part in parts if part is not None]
        return frozenset().union(*known) if len(known) == len(parts) else None
    if isinstance(node, Known):
        return None if node.value else frozenset()
    return _of_leaf(node, operand) if isinstance(node, (Comparison, Membership)) else None


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
