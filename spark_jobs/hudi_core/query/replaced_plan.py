"""Incremental queries that also report replaced rows, planned: see query.replaced_report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pyarrow as pa

from hudi_core.model.ids import FileGroupId
from hudi_core.model.meta_fields import IS_DELETED
from hudi_core.query.read_plan import ReadPlan
from hudi_core.query.replaced_report import REPLACED_BY
from hudi_core.query.request import ReadRequest


def with_flag_column(request: ReadRequest, schema: pa.Schema) -> ReadRequest:
    """The request, also for the table's own flag of deleted rows, if it has one; `schema` is that of all columns."""
    if request.columns is None:
        return request
    columns = tuple(name for name in request.columns if name != IS_DELETED)
    return replace(request, columns=(*columns, IS_DELETED) if IS_DELETED in schema.names else columns)


def combined(written: ReadPlan, replaced: ReadPlan, instants: Mapping[FileGroupId, str]) -> ReadPlan:
    """One plan of the two: the rows that were written and those that were replaced, by the group's instant."""
    fields = [field for field in written.schema if field.name != IS_DELETED]
    splits = [{**split, REPLACED_BY: None} for split in written.splits]
    splits += [{**split, REPLACED_BY: instants[FileGroupId(split["partition"], split["file_id"])]} for split in replaced.splits]
    return ReadPlan(
        pa.schema([*fields, pa.field(IS_DELETED, pa.bool_())]),
        {**written.common, REPLACED_BY: True},
        tuple(splits),
        written.files_read + replaced.files_read,
        written.files_pruned + replaced.files_pruned,
        written.report,
    )
