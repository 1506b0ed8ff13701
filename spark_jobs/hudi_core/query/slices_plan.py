"""Plans a query that reads file slices: binds the predicate, prunes slices, and puts the rest into JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from hudi_core.engine.protocol import Json
from hudi_core.engine.serializer import to_text
from hudi_core.expr.sql import parse_predicate
from hudi_core.expr.tree import Expr
from hudi_core.filegroup.read.read_spec import ReaderSpec
from hudi_core.index.skipping import PruneReport, SkippingPlan
from hudi_core.metadata_table.read.metadata_table import MetadataTable
from hudi_core.query.context import ReadContext
from hudi_core.query.read_plan import ReadPlan, split_of
from hudi_core.query.request import ReadRequest
from hudi_core.view.file_group import FileSlice

COUNTED_PARTITIONS: Final = 1000
"""In a table with more partitions, those that the predicate excludes by path are not listed or counted."""


def predicate_of(request: ReadRequest) -> Expr | None:
    """Returns the request's predicate, if any. Raises ConfigError naming the fragment that cannot be read."""
    return None if request.where is None else parse_predicate(request.where, request.dialect)


class SlicesPlanner:
    """Plans one query over slices that its caller chooses. `spec` is the query's reader without predicate. `current`:
    the slices are the latest of the table; some indexes describe only these.
    """

    def __init__(
        self,
        context: ReadContext,
        request: ReadRequest,
        spec: ReaderSpec,
        metadata: MetadataTable | None,
        *,
        current: bool,
    ) -> None:
        """Raises ConfigError for a column or a predicate that does not fit the table."""
        self._context = context
        self.spec = replace(spec, columns=request.columns, predicate=predicate_of(request))
        self.schema = self.spec.output.select(request.columns)
        self._skipping = None
        if self.spec.bound is not None:
            self._skipping = SkippingPlan(
                self.spec.bound, self.spec, current=current, metadata=metadata, storage=context.storage
            )

    def partitions(self, names: Sequence[str]) -> list[str]:
        """Returns the partitions to list: of many, only those that may hold rows of the query."""
        if self._skipping is None or len(names) <= COUNTED_PARTITIONS:
            return list(names)
        return self._skipping.partitions(names)

    def plan(self, slices: Sequence[FileSlice]) -> ReadPlan:
        kept, report = (slices, PruneReport()) if self._skipping is None else self._skipping.prune(slices)
        files = sum(len(item.data_files) for item in kept)
        common = common_part(self._context, self.spec)
        return ReadPlan(self.schema, common, tuple(map(split_of, kept)), files, report.files_pruned, report.to_json())


def common_part(context: ReadContext, spec: ReaderSpec) -> Json:
    return {"uri": context.uri, "storage_options": dict(context.storage_options), "reader": to_text(spec)}
