"""Data skipping by expression indexes: which a predicate can use, and what they exclude (ExpressionIndexSupport)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import partial
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hudi_core.codec.avro.arrow_types import counts_millis, field_at
from hudi_core.expr.bind import depends_on_zone, kind_of
from hudi_core.expr.bound import Bound
from hudi_core.expr.functions import FUNCTIONS
from hudi_core.expr.ranges import ColumnRange, may_match, operands_of
from hudi_core.expr.tree import Call, Column, Literal, Operand
from hudi_core.index.key_lookups import equal_texts
from hudi_core.index.row_group_skipping import filter_mask
from hudi_core.index.slice_ranges import slice_ranges
from hudi_core.metadata_table.indexed_table import IndexDefinition
from hudi_core.metadata_table.partition_type import BLOOM_FILTERS, COLUMN_STATS
from hudi_core.metadata_table.read.metadata_table import MetadataTable
from hudi_core.view.file_group import FileSlice

_FORMATTED: Final = frozenset({"date_format", "from_unixtime"})
_PLAIN: Final = frozenset(FUNCTIONS) - {*_FORMATTED, "substring"}


def indexed_operand(definition: IndexDefinition) -> Operand | None:
    """The expression that the index is built over; None for an index without one that predicates can name."""
    if len(definition.source_fields) != 1:
        return None
    column = Column(tuple(definition.source_fields[0].split(".")))
    if definition.function in _PLAIN:
        # An option makes it another function, such as to_date with a format.
        return Call(definition.function, (column,)) if set(definition.options) <= {"expr"} else None
    if definition.function in _FORMATTED and set(definition.options) <= {"expr", "format"}:
        pattern = definition.options.get("format")
        return Call(definition.function, (column,) if pattern is None else (column, Literal("text", pattern)))
    return None


def expression_mask(
    slices: Sequence[FileSlice], bound: Bound, metadata: MetadataTable, hidden: Collection[str]
) -> NDArray[np.bool_]:
    """Which slices may hold a matching row, by statistics and bloom filters of expressions of the predicate. `hidden`
    are columns whose values in the query are not those that the indexes are built over.
    """
    requested = {operand for operand in operands_of(bound.node) if _applies(operand, bound, hidden)}
    mask = np.ones(len(slices), dtype=np.bool_)
    ranges: dict[Operand, ColumnRange] = {}
    for name, definition in sorted(metadata.index_definitions().items()):
        operand = indexed_operand(definition)
        if operand is None or operand not in requested or not metadata.has_index(name):
            continue
        if definition.type == COLUMN_STATS:
            known = slice_ranges(slices, _computed(metadata.expression_stats(name)), kind_of(operand, bound))
            if known is not None:
                ranges[operand] = known
        elif definition.type == BLOOM_FILTERS:
            values = equal_texts(bound.node, operand)
            if values is not None:
                mask &= filter_mask(slices, values, partial(metadata.expression_blooms, name))
    return mask & may_match(bound, ranges, len(slices)) if ranges else mask


def _computed(statistics: pa.Table) -> pa.Table:
    """As column_stats has them: these count values without the nulls, and their sizes are the file's
    (SparkMetadataWriterUtils.getExprIndexRecords). They are of rows, which is size 0.
    """
    counts = pc.add(statistics["value_count"], statistics["null_count"])
    rest = statistics.drop_columns(["value_count", "uncompressed_size"])
    return rest.append_column("value_count", counts).append_column("uncompressed_size", pc.multiply(counts, 0))


def _applies(operand: Operand, bound: Bound, hidden: Collection[str]) -> bool:
    """Whether an index of the expression answers as this query would: same zone, and columns that it reads. Not of
    milliseconds: an index that is older than their label in the table's schema took them for microseconds.
    """
    column = operand.arguments[0] if isinstance(operand, Call) else None
    if not isinstance(column, Column):
        return False
    stored = field_at(bound.schema, column.path)
    return (
        column.path[0] not in hidden
        and (stored is None or not counts_millis(stored))
        and (bound.zone_given or not depends_on_zone(operand, bound))
    )
