"""From a request to splits that may be read anywhere: planned once, where the timeline and the metadata table are."""

from __future__ import annotations

from hudi_core.filegroup.read.schema_resolver import table_schema
from hudi_core.query.cdc_plan import plan_cdc
from hudi_core.query.context import ReadContext
from hudi_core.query.incremental import plan_incremental
from hudi_core.query.read_plan import ReadPlan
from hudi_core.query.request import ReadRequest
from hudi_core.query.slices_plan import SlicesPlanner, reader_spec
from hudi_core.query.time_travel import as_of_instant
from hudi_core.view.file_group import slice_of_base


def plan_read(context: ReadContext, request: ReadRequest) -> ReadPlan:
    """Plans `request` over the table as it is now. Raises ConfigError for an unknown column, a predicate that cannot be
    read, or a time that the table no longer holds; FormatError and StorageError as the table is read.
    """
    if request.query == "incremental":
        return plan_incremental(context, request)
    if request.query == "cdc":
        return plan_cdc(context, request)
    return plan_snapshot(context, request)


def plan_snapshot(context: ReadContext, request: ReadRequest) -> ReadPlan:
    """The plan of a query that reads the latest slice of every file group, now or as of the request's time."""
    timeline = context.active.load()
    as_of = None if request.as_of is None else as_of_instant(context, timeline, request.as_of)
    schema = table_schema(context.storage, context.config, timeline, as_of)
    metadata = context.metadata_table(request.metadata, timeline, schema)
    merged = request.query == "snapshot"
    spec = reader_spec(context, schema, timeline, merge_logs=merged, up_to=as_of)
    planner = SlicesPlanner(context, request, spec, metadata, current=as_of is None)
    view = context.view(timeline, listing=context.listing(metadata))
    partitions = planner.partitions(view.partitions())
    if merged:
        return planner.plan([item for name in partitions for item in view.latest_merged_slices(name, as_of)])
    return planner.plan([slice_of_base(base) for name in partitions for base in view.latest_base_files(name, as_of)])
