"""What keeps or drops rows after the merge: a mask over a batch, and the columns that it needs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from hudi_core.expr.bind import bind
from hudi_core.expr.json_form import from_json
from hudi_core.expr.rows import row_mask
from hudi_core.model.meta_fields import COMMIT_TIME

if TYPE_CHECKING:
    from hudi_core.engine.protocol import Json


@dataclass(frozen=True, slots=True)
class RowFilter:
    """Keeps the rows for which `mask` is true; null drops a row, as in SQL.

    `mask` gets a batch with at least `columns`, in the types that a query returns, and gives a boolean array of its
    length.
    """

    columns: frozenset[str]
    mask: Callable[[pa.RecordBatch], pa.Array]

    def apply(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The rows kept."""
        return batch.filter(self.mask(batch), null_selection_behavior="drop")


def of_commit_times(times: frozenset[str]) -> RowFilter:
    """Keeps the rows that one of these instants wrote."""
    values = pa.array(sorted(times), pa.string())

    def mask(batch: pa.RecordBatch) -> pa.Array:
        return pc.is_in(batch.column(batch.schema.get_field_index(COMMIT_TIME)), value_set=values)

    return RowFilter(frozenset({COMMIT_TIME}), mask)


def of_predicate(predicate: Json, schema: pa.Schema, zone: str | None = None) -> RowFilter:
    """Keeps the rows that satisfy an expression (expr.json_form) over the columns of `schema`.

    `zone` is that of local times, UTC when None. Raises ConfigError for an expression that is none, names a column that
    does not exist, or compares it with a value of another type.
    """
    bound = bind(from_json(predicate), schema, zone=zone)

    def mask(batch: pa.RecordBatch) -> pa.Array:
        return row_mask(bound, batch)

    return RowFilter(frozenset(bound.columns), mask)
