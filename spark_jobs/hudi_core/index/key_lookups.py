"""Finds the values, and so the record keys, that a predicate leaves possible (SparkBaseIndexSupport.
filterQueriesWithRecordKey, RecordLevelIndexSupport). Finds the file groups that can hold their rows, by the row-level
indexes of the metadata table.
"""

from __future__ import annotations

import itertools
import logging
import math
from collections.abc import Callable, Collection, Set
from functools import partial
from typing import Final, TypeVar

import pyarrow as pa

from hudi_core.config.table_config import TableConfig
from hudi_core.errors import CorruptFileError, StorageNotFoundError
from hudi_core.expr.bound import All, Any, Bound, Comparison, Known, Membership, Node
from hudi_core.expr.tree import EQ, Column, Operand
from hudi_core.filegroup.merge.record_keys import EMPTY_KEY
from hudi_core.filegroup.read.partition_values import has_keys_in_rows
from hudi_core.metadata_table.partition_type import RECORD_INDEX, SECONDARY_INDEX
from hudi_core.metadata_table.read.metadata_table import MetadataTable
from hudi_core.model.names import RECORD_KEY, FileGroupId

T = TypeVar("T")

MAX_VALUES: Final = 100_000
"""More values than this are not looked up one by one."""

log = logging.getLogger(__name__)


def key_candidates(bound: Bound, config: TableConfig, hidden: Set[str]) -> frozenset[str] | None:
    """Returns keys that include the key of every matching row; None when the predicate does not name them. They come
    from `_hoodie_record_key`, and from the key columns when each of them is compared for equality with text or whole
    numbers, and none is one of `hidden`. Keys were not made of the values that hidden columns have in the query. Keys
    of a user's own key generator cannot be derived from columns.
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
    by_field = [equal_texts(bound.node, Column((name,))) for name in fields]
    values = [item for item in by_field if item is not None]
    if not values or len(values) < len(by_field):
        return None
    if len(fields) == 1:
        # A complex key generator with one field wrote the bare value after 0.14 until 1.1, else `field:value`.
        bare = frozenset(value for value in values[0] if value)
        return bare | frozenset(f"{fields[0]}:{value or EMPTY_KEY}" for value in values[0])
    if math.prod(len(item) for item in values) > MAX_VALUES:
        return None
    parts = [
        [f"{name}:{value or EMPTY_KEY}" for value in sorted(item)] for name, item in zip(fields, values, strict=True)
    ]
    return frozenset(",".join(combination) for combination in itertools.product(*parts))


def equal_texts(node: Node, operand: Operand) -> frozenset[str] | None:
    """Returns the values, in Java's text form, one of which the operand has in every matching row; None when not known.
    Takes only text and whole numbers: the printed form of other types depends on the writer.
    """
    if isinstance(node, All):
        known_values = [values for inner in node.nodes if (values := equal_texts(inner, operand)) is not None]
        return frozenset.intersection(*known_values) if known_values else None
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


def groups_of_keys(
    metadata: MetadataTable, keys: Collection[str], current: Collection[FileGroupId]
) -> frozenset[FileGroupId] | None:
    """Returns the file groups of the keys, by the record index; None when no index can be believed.

    `current` are the file groups of the partitions that are read. The index is not believed where it has a location in
    one of these partitions outside of `current`: after an insert_overwrite by rows of Spark, 0.15.0 has recorded the
    file groups of another attempt. Where the index does not have a key, file groups are added that may have its row
    nevertheless. A partitioned index may have the key only in another partition.
    """
    if not metadata.has_index(RECORD_INDEX) or not metadata.completeness.has_true_locations:
        return None
    requested = {key for key in keys if key}
    locations = _requested(metadata, RECORD_INDEX, lambda: metadata.record_locations(requested))
    if locations is None:
        return None
    groups = frozenset(FileGroupId(place.partition, place.file_id) for places in locations.values() for place in places)
    read = {group.partition for group in current}
    if any(group.partition in read and group not in current for group in groups):
        return None
    if requested and (metadata.record_index.is_partitioned or any(not locations.get(key) for key in requested)):
        doubt = metadata.groups_in_doubt(RECORD_INDEX)
        return None if doubt is None else groups | doubt
    return groups


def groups_of_values(
    metadata: MetadataTable, bound: Bound, hidden: Collection[str], current: Collection[FileGroupId]
) -> frozenset[FileGroupId] | None:
    """Returns the file groups of rows with the values that the predicate leaves to an indexed column; None when no
    secondary index applies. Looks record keys up in a secondary index, and adds file groups whose rows it may lack.
    `hidden` are columns whose values in the query are not those of the rows; `current` is as in groups_of_keys.
    """
    if RECORD_INDEX not in metadata.partition_types:
        return None
    result: frozenset[FileGroupId] | None = None
    for name, definition in sorted(metadata.definitions.items()):
        if definition.type != SECONDARY_INDEX or len(definition.source_fields) != 1:
            continue
        column = Column(tuple(definition.source_fields[0].split(".")))
        values = None if column.path[0] in hidden else equal_texts(bound.node, column)
        if values is None or not metadata.has_index(name):
            continue
        by_value = _requested(metadata, name, partial(metadata.secondary_keys, name, sorted(values)))
        if by_value is None:
            continue
        groups = groups_of_keys(metadata, {key for keys in by_value.values() for key in keys}, current)
        doubt = None if groups is None else metadata.groups_in_doubt(name)
        if groups is not None and doubt is not None:
            groups |= doubt
            result = groups if result is None else result & groups
    return result


def _requested(metadata: MetadataTable, index: str, question: Callable[[], T]) -> T | None:
    """Returns the index's answer; None where the index changed meanwhile and may lack rows (MetadataTable.current)."""
    try:
        answer = question()
    except (CorruptFileError, StorageNotFoundError):
        if metadata.current(index):
            raise
    else:
        if metadata.current(index):
            return answer
    log.warning("the index %s was dropped while it was read: the query does not use it", index)
    return None
