"""From a request to splits that may be read anywhere: planned once, where the timeline and the metadata table are."""

from __future__ import annotations

from hudi_core.query.cdc_plan import plan_cdc
from hudi_core.query.context import ReadContext
from hudi_core.query.incremental import plan_incremental
from hudi_core.query.read_plan import ReadPlan
from hudi_core.query.request import ReadRequest
from hudi_core.query.snapshot import plan_snapshot


def plan_read(context: ReadContext, request: ReadRequest) -> ReadPlan:
    """Plans `request` over the table as it is now.

    Raises ConfigError for an unknown column, a predicate that cannot be read, or a time that the table no longer holds; FormatError and
    StorageError as the table is read.
    """
    if request.query == "incremental":
        return plan_incremental(context, request)
    if request.query == "cdc":
        return plan_cdc(context, request)
    return plan_snapshot(context, request)
