"""File groups that can hold the rows of some keys, by the indexes of the metadata table that know where each row is now."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Final

from hudi_core.expr.bind import Bound
from hudi_core.expr.tree import Column
from hudi_core.index.equalities import equal_texts
from hudi_core.metadata_table.record_index import PARTITION as RECORD_INDEX
from hudi_core.model.ids import FileGroupId

if TYPE_CHECKING:
    from hudi_core.metadata_table.reader import MetadataTable

SECONDARY: Final = "secondary_index"


def groups_of_keys(metadata: MetadataTable, keys: Collection[str]) -> frozenset[FileGroupId] | None:
    """The file groups in which the keys are, by the record index; None when there is none."""
    if RECORD_INDEX not in metadata.kinds:
        return None
    found = metadata.record_locations([key for key in keys if key])
    return frozenset(FileGroupId(place.partition, place.file_id) for places in found.values() for place in places)


def groups_of_values(metadata: MetadataTable, bound: Bound, hidden: Collection[str]) -> frozenset[FileGroupId] | None:
    """The file groups with rows that have the values that the predicate leaves an indexed column; None when no secondary index is asked.

    A secondary index tells the record keys, the record index where they are. Of several indexes each narrows the answer.
    `hidden` are columns whose values in the query are not those of the rows.
    """
    if RECORD_INDEX not in metadata.kinds:
        return None
    result: frozenset[FileGroupId] | None = None
    for name, definition in sorted(metadata.index_definitions().items()):
        if definition.type != SECONDARY or name not in metadata.kinds or len(definition.source_fields) != 1 or not metadata.covers_all_rows(name):
            continue
        column = Column(tuple(definition.source_fields[0].split(".")))
        values = None if column.path[0] in hidden else equal_texts(bound.node, column)
        if values is None:
            continue
        keys = {key for found in metadata.secondary_keys(name, sorted(values)).values() for key in found}
        groups = groups_of_keys(metadata, keys)
        if groups is not None:
            result = groups if result is None else result & groups
    return result
