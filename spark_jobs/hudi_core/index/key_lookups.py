"""File groups that can hold the rows of some keys, by the row-level indexes of the metadata table."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from hudi_core.errors import CorruptFileError, StorageNotFoundError
from hudi_core.expr.bound import Bound
from hudi_core.expr.tree import Column
from hudi_core.index.key_candidates import equal_texts
from hudi_core.metadata_table.partition_type import RECORD_INDEX, SECONDARY_INDEX
from hudi_core.model.names import FileGroupId

if TYPE_CHECKING:
    from hudi_core.metadata_table.read.metadata_table import MetadataTable

log = logging.getLogger(__name__)

T = TypeVar("T")


def groups_of_keys(
    metadata: MetadataTable, keys: Collection[str], current: Collection[FileGroupId]
) -> frozenset[FileGroupId] | None:
    """The file groups of the keys, by the record index; None when there is none that can be believed, or it was dropped
    meanwhile. `current` are the file groups of the partitions that are read. A location in one of these partitions that
    is no file group of it is not believed: behind an insert_overwrite by rows of Spark, 0.15.0 has recorded the file
    groups of another attempt. Where the index does not have a key, file groups are added that may have its row
    nevertheless. A partitioned index may have the key in another partition alone.
    """
    if not metadata.has_index(RECORD_INDEX) or not metadata.has_true_locations:
        return None
    requested = {key for key in keys if key}
    found = _requested(metadata, RECORD_INDEX, lambda: metadata.record_locations(requested))
    if found is None:
        return None
    groups = frozenset(FileGroupId(place.partition, place.file_id) for places in found.values() for place in places)
    read = {group.partition for group in current}
    if any(group.partition in read and group not in current for group in groups):
        return None
    if requested and (metadata.record_index.is_partitioned or any(not found.get(key) for key in requested)):
        doubt = metadata.groups_in_doubt(RECORD_INDEX)
        return None if doubt is None else groups | doubt
    return groups


def groups_of_values(
    metadata: MetadataTable, bound: Bound, hidden: Collection[str], current: Collection[FileGroupId]
) -> frozenset[FileGroupId] | None:
    """The file groups of the rows with values of an indexed column; None when no secondary index applies. The values
    are those that the predicate leaves the column. A secondary index gives the record keys, the record index their
    locations; file groups of which it may lack rows are added. Of several indexes each narrows the answer. `hidden` are
    columns whose values in the query are not those of the rows, `current` as in groups_of_keys.
    """
    if RECORD_INDEX not in metadata.partition_types:
        return None
    result: frozenset[FileGroupId] | None = None
    for name, definition in sorted(metadata.index_definitions().items()):
        if definition.type != SECONDARY_INDEX or len(definition.source_fields) != 1:
            continue
        column = Column(tuple(definition.source_fields[0].split(".")))
        values = None if column.path[0] in hidden else equal_texts(bound.node, column)
        if values is None or not metadata.has_index(name):
            continue
        by_value = _requested(metadata, name, partial(metadata.secondary_keys, name, sorted(values)))
        groups = (
            None
            if by_value is None
            else groups_of_keys(metadata, {key for found in by_value.values() for key in found}, current)
        )
        doubt = None if groups is None else metadata.groups_in_doubt(name)
        if groups is not None and doubt is not None:
            groups |= doubt
            result = groups if result is None else result & groups
    return result


def _requested(metadata: MetadataTable, index: str, question: Callable[[], T]) -> T | None:
    """The index's answer; None where it changed meanwhile and may lack rows (MetadataTable.current)."""
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
