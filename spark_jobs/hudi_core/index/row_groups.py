"""Row groups of Parquet base files that a predicate rules out, by the statistics in the file's footer."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from hudi_core.codec.parquet.statistics import chunk_ranges, leaf_columns
from hudi_core.expr.bind import Bound, kind_of
from hudi_core.expr.ranges import ColumnRange, may_match, operands_of
from hudi_core.expr.tree import Column, Operand
from hudi_core.filegroup.read.partition_columns import partition_columns
from hudi_core.index.value_order import in_order_of

if TYPE_CHECKING:
    from hudi_core.config.table_config import TableConfig

RowGroups = Callable[[pq.FileMetaData], "list[int] | None"]
"""Of a footer: the numbers of the row groups that may hold a row that matches; None for all of them."""


def row_group_chooser(
    bound: Bound, config: TableConfig, *, merged: bool, incremental: bool = False, by_other_name: Collection[str] = ()
) -> RowGroups | None:
    """The filter for row groups of a base file that is read alone; None when no footer statistics can help.

    Not for base files that log files are merged with: a row that does not match may decide the result of its key.
    `merged` and `incremental` are as for filegroup.read.partition_columns; columns that are read from the path are not
    filtered by the file. `by_other_name` are columns that older files may hold under another name, or not at all under
    theirs (schema-on-read).
    """
    hidden = {
        *partition_columns(config, merged=merged and config.is_merge_on_read, incremental=incremental).from_path,
        *by_other_name,
    }
    columns = [
        operand for operand in operands_of(bound.node) if isinstance(operand, Column) and operand.path[0] not in hidden
    ]
    kinds = {column: kind_of(column, bound) for column in sorted(columns, key=lambda column: column.path)}
    flat = {column: kind for column, kind in kinds.items() if not pa.types.is_nested(kind)}
    if not flat:
        return None

    def choose(metadata: pq.FileMetaData) -> list[int] | None:
        mask = may_match(bound, footer_ranges(metadata, flat), metadata.num_row_groups)
        return None if bool(mask.all()) and len(mask) else [int(number) for number in mask.nonzero()[0]]

    return choose


def footer_ranges(metadata: pq.FileMetaData, kinds: dict[Column, pa.DataType]) -> dict[Operand, ColumnRange]:
    """The ranges of columns, in the types of the query, per row group; those without statistics are omitted."""
    leaves = leaf_columns(metadata)
    schema = metadata.schema.to_arrow_schema()
    ranges: dict[Operand, ColumnRange] = {}
    for column, kind in kinds.items():
        number = leaves.get(column.path)
        if number is None:
            continue
        chunks = chunk_ranges(metadata, number, _type_at(schema, column.path))
        if chunks is None:
            continue
        lower, upper = in_order_of(chunks.minimum, kind), in_order_of(chunks.maximum, kind)
        if lower is not None and upper is not None:
            ranges[column] = ColumnRange(lower, upper, chunks.null_count, chunks.value_count)
    return ranges


def _type_at(schema: pa.Schema, path: tuple[str, ...]) -> pa.DataType:
    kind = schema.field(path[0]).type
    for name in path[1:]:
        kind = kind.field(name).type
    return kind
