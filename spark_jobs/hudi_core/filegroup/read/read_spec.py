"""What a query's tasks need to read its slices, in a form that travels to wherever a task runs; what filters rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from hudi_core.codec.avro.schema import AvroSchema
from hudi_core.config.table_config import TableConfig
from hudi_core.engine.protocol import Json
from hudi_core.errors import UnsupportedError
from hudi_core.expr.bind import bind
from hudi_core.expr.json_form import from_json
from hudi_core.expr.rows import row_mask
from hudi_core.filegroup.read.log_scan import CommittedInstants
from hudi_core.filegroup.read.output_columns import OutputColumns
from hudi_core.filegroup.read.partition_values import partition_columns
from hudi_core.model.names import COMMIT_TIME


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
    return RowFilter(frozenset({COMMIT_TIME}), lambda batch: pc.is_in(batch.column(COMMIT_TIME), value_set=values))


def of_predicate(predicate: Json, schema: pa.Schema, zone: str | None = None) -> RowFilter:
    """Keeps the rows that satisfy an expression (expr.json_form) over the columns of `schema`.

    `zone` is that of local times, UTC when None. Raises ConfigError for an expression that is none, names a column that
    does not exist, or compares it with a value of another type.
    """
    bound = bind(from_json(predicate), schema, zone=zone)
    return RowFilter(frozenset(bound.columns), partial(row_mask, bound))


@dataclass(frozen=True)
class ReaderSpec:
    """One query, as its tasks see it.

    `schema` is the table's Avro schema without meta fields. `latest_instant` is the newest requested time whose log
    blocks are read; None reads none. `merge_logs` is off for a read-optimized query, which reads base files alone.
    `columns` None is all columns. `commit_times`, of an incremental query, are the requested times of the instants
    whose rows are kept. `predicate` is an expression (expr.json_form) that every row must satisfy; it may name columns
    that are not among `columns`; its local times are of `zone`, None is UTC. `history` is SchemaHistory.to_json of a
    table that schema-on-read changed: old files are then read by column id.
    """

    config: TableConfig
    schema: AvroSchema
    committed: CommittedInstants
    latest_instant: str | None
    merge_logs: bool
    columns: tuple[str, ...] | None = None
    commit_times: frozenset[str] | None = None
    predicate: Json | None = None
    zone: str | None = None
    history: list[list[Any]] | None = None
    options: Mapping[str, str] = field(default_factory=dict)

    def up_to(self, instant: str) -> ReaderSpec:
        """The same query without log blocks that were requested after `instant`."""
        return replace(self, latest_instant=instant)

    @cached_property
    def output(self) -> OutputColumns:
        """The columns of the query's rows.

        Computed once: for a wide table that takes longer than reading a small slice.
        """
        merged = self.merge_logs and self.config.is_merge_on_read
        rule = partition_columns(self.config, merged=merged, incremental=self.commit_times is not None)
        return OutputColumns(self.config, self.schema, rule, self.zone)

    @cached_property
    def filters(self) -> tuple[RowFilter, ...]:
        """The condition that every row must satisfy.

        Raises UnsupportedError for commit times of a table whose rows do not have theirs.
        """
        found = []
        if self.commit_times is not None:
            if not self.config.populate_meta_fields:
                raise UnsupportedError(
                    "the table has no _hoodie_ columns, so its rows do not record their commit",
                    path=self.config.path,
                    remedy="an incremental query needs hoodie.populate.meta.fields=true",
                )
            found.append(of_commit_times(self.commit_times))
        if self.predicate is not None:
            found.append(of_predicate(self.predicate, self.output.all, self.zone))
        return tuple(found)
