"""What must hold before a clustering writes its first byte, and still when it completes. Each check raises a typed
error that names the file and the remedy.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Set
from typing import Final

from hudi_core.codec.avro.schema import AvroSchema, without_fields
from hudi_core.codec.columns import column_named
from hudi_core.config.keys import name_list
from hudi_core.config.services.clustering_config import LAYOUT, SORT_COLUMNS, TARGET_FILE_BYTES
from hudi_core.errors import ConfigError, ConflictError, FormatError, UnsupportedError
from hudi_core.filegroup.merge.table_policy import MergePolicy
from hudi_core.filegroup.read.base_file import BOOTSTRAP_INSTANT
from hudi_core.filegroup.write.base_file_writer import rows_schema
from hudi_core.filegroup.write.buckets import are_buckets
from hudi_core.model.names import FileGroupId, parse_base_file, parse_log_file
from hudi_core.services.context import TableContext
from hudi_core.services.rewriting.checks import check_buckets
from hudi_core.services.rewriting.sort_order import SortOrder
from hudi_core.timeline.actions.replacecommit import ClusteringPlan
from hudi_core.timeline.instant import Action
from hudi_core.timeline.timeline import Timeline

SINGLE_FILE: Final = "SparkSingleFileSortExecutionStrategy"
STRATEGIES: Final = frozenset(
    {
        "",
        SINGLE_FILE,
        "SparkSortAndSizeExecutionStrategy",
        "SingleSparkJobExecutionStrategy",
        "SparkBinaryCopyClusteringExecutionStrategy",
        "SparkStreamCopyClusteringExecutionStrategy",
        "JavaSortAndSizeExecutionStrategy",
    }
)
"""Execution strategies by the last part of their class names whose plans are run here."""
_REMEDY: Final = "drop the plan with `hudictl unschedule`, or let Hudi run it"


def merge_policy(context: TableContext, plan: ClusteringPlan) -> MergePolicy | None:
    """How the slices of a plan are merged; None where none has log files. Raises as MergePolicy.for_table."""
    merges = any(item.data_logs for item in plan.slices)
    return MergePolicy.for_table(context.config, context.options) if merges else None


def check_plan(context: TableContext, plan: ClusteringPlan, *, path: str) -> None:
    """Raises FormatError for a plan without slices, UnsupportedError for one that only Hudi can run."""
    check_buckets(context, _REMEDY)
    if not plan.slices:
        raise FormatError("the clustering plan names no file slice", path=path, remedy=_REMEDY)
    strategy = plan.strategy_class.rpartition(".")[2]
    if strategy not in STRATEGIES:
        what = f"the clustering plan is for {strategy}, which is not run here"
        raise UnsupportedError(what, path=path, remedy=_REMEDY)
    if _are_in_buckets(context, plan):
        raise UnsupportedError(
            "the plan's file groups are buckets, whose rows stay together by the hash of their keys",
            path=path,
            remedy=f"leave buckets to compaction; {_REMEDY}",
        )
    for item in plan.slices:
        if item.base_file is None and not item.data_logs:
            raise FormatError(f"the clustering plan names no file of {item.file_id}", path=path, remedy=_REMEDY)
        if item.base_file is not None and parse_base_file(item.base_file).instant == BOOTSTRAP_INSTANT:
            raise UnsupportedError("the clustering plan names a file of a bootstrap", path=path, remedy=_REMEDY)


def _are_in_buckets(context: TableContext, plan: ClusteringPlan) -> bool:
    """Whether the plan's file groups are buckets: all of them, and as in planning all others of their partitions."""
    planned = [item.file_id for item in plan.slices]
    if not are_buckets(planned):
        return False
    view = context.view(context.active.load())
    beside = (view.latest_slices(partition) for partition in {item.partition for item in plan.slices})
    return are_buckets([*planned, *(item.file_group.file_id for slices in beside for item in slices)])


def order_of(
    params: Mapping[str, str], options: Mapping[str, str], schema: AvroSchema, dropped: Collection[str] = ()
) -> SortOrder | None:
    """The order that a plan's parameters ask for, None for none; a layout among `options` comes first, as in Hudi.
    `schema` is the table's, without meta fields; names may be in another case. The columns `dropped` have one value in
    a partition. Raises ConfigError for an unknown layout or column, UnsupportedError for a type without order.
    """
    stored = rows_schema(without_fields(schema, dropped), path=SORT_COLUMNS.name)
    constant = {name.lower() for name in dropped}
    names = (column_named(name, stored) for name in name_list(SORT_COLUMNS.read(params) or ""))
    columns = tuple(dict.fromkeys(name for name in names if name.lower() not in constant))
    layout = LAYOUT.read(options if LAYOUT.is_set(options) else params)
    if not columns:
        return None
    order = SortOrder(columns, layout)
    order.check(stored)
    return order


def check_parameters(
    plan: ClusteringPlan,
    options: Mapping[str, str],
    schema: AvroSchema,
    dropped: Collection[str] = (),
    *,
    path: str,
    instant: str,
) -> None:
    """Raises what target_bytes and order_of raise; the plan in `path` is named, unless options came before it."""
    try:
        target_bytes(plan, options)
        order_of(plan.strategy_params, options, schema, dropped)
    except (ConfigError, UnsupportedError) as error:
        if TARGET_FILE_BYTES.is_set(options) or LAYOUT.is_set(options):
            raise
        remedy = f"drop the plan, and correct what planned it: hudictl unschedule TABLE {instant}"
        raise type(error)(error.message, path=path, remedy=remedy) from error


def target_bytes(plan: ClusteringPlan, options: Mapping[str, str]) -> int:
    """The bytes of a new file at which it ends. Raises ConfigError for what is no positive number."""
    return TARGET_FILE_BYTES.read(options if TARGET_FILE_BYTES.is_set(options) else plan.strategy_params)


def check_untouched(
    context: TableContext, timeline: Timeline, instant: str, groups: Collection[FileGroupId], known: Timeline | None
) -> None:
    """Raises ConflictError where a commit has changed or replaced one of the plan's file groups since the plan, which
    was compared with the slices in `known` (None: it will be). The new files would lack the rows of that commit.
    """
    seen = frozenset() if known is None else known.completed().requested_times
    planned = frozenset(groups)
    for item in timeline.commits():
        is_new = item.completed_at > instant or (known is not None and item.requested_time not in seen)
        if not is_new and item.action != Action.REPLACE_COMMIT:
            continue
        metadata = context.active.read_commit(item)
        touched = set(metadata.replaced_file_groups())
        if is_new:
            touched.update(FileGroupId(stat.partition_path, stat.file_id) for stat in metadata.write_stats())
        shared = planned & touched
        if shared:
            group = min(shared)
            raise ConflictError(
                f"{item.action} {item.requested_time} has changed file group {group.file_id} in {group.partition!r}, "
                f"which clustering {instant} was planned to replace",
                path=context.active.path_of(item),
                remedy=f"drop the plan, so that it is planned again: hudictl unschedule TABLE {instant}",
            )


def source_commits(context: TableContext, timeline: Timeline, plan: ClusteringPlan) -> Set[str]:
    """The commits on the timeline that rows of the plan may be of: those that its file names tell, and for log files of
    layout 1, which do not tell their writers, every deltacommit.
    """
    commits, logs = timeline.commits(), [name for item in plan.slices for name in item.data_logs]
    named = {parse_base_file(item.base_file).instant for item in plan.slices if item.base_file is not None}
    named |= {parse_log_file(name).instant for name in logs}
    if logs and context.active.layout == 1:
        named |= commits.of_actions(Action.DELTA_COMMIT).requested_times
    return named & commits.requested_times
