"""What must hold before a clustering writes its first byte, and still when it completes. Each check raises a typed
error that names the file and the remedy.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence, Set
from typing import Final

from hudi_core.codec.avro.schema import AvroSchema, without_fields
from hudi_core.codec.column_paths import column_named
from hudi_core.config.keygen_config import PARTITION_BUCKETS
from hudi_core.config.keys import name_list
from hudi_core.config.services.clustering_config import LAYOUT, SORT_COLUMNS, TARGET_FILE_BYTES
from hudi_core.errors import ConfigError, ConflictError, FormatError, UnsupportedError
from hudi_core.filegroup.merge.table_policy import MergePolicy
from hudi_core.filegroup.read.base_file import BOOTSTRAP_INSTANT
from hudi_core.filegroup.write.base_file_writer import rows_schema
from hudi_core.filegroup.write.buckets import BUCKETS_FOLDER, PARTITION_BUCKETS_FOLDER, are_buckets
from hudi_core.model.names import FileGroupId, parse_base_file, parse_log_file
from hudi_core.services.clustering.sort_order import SortOrder
from hudi_core.services.context import TableContext
from hudi_core.timeline.actions.replacecommit import ClusteringPlan
from hudi_core.timeline.instant import Action, Instant
from hudi_core.timeline.pending_plans import PLANS_OF_FILE_GROUPS, pending_plan_on
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


def check_buckets(
    context: TableContext, remedy: str = "let Hudi plan and run it", *, refuses_numbers: bool = True
) -> None:
    """Raises UnsupportedError for a table of buckets by consistent hashing, and with `refuses_numbers` for one with
    numbers of buckets of single partitions.
    """
    folders = context.storage.list_folders(BUCKETS_FOLDER)
    by_hash = _are_by_hash(folders)
    if folders and (refuses_numbers or by_hash):
        raise UnsupportedError(
            "the table has buckets by consistent hashing, which only Hudi's clustering resizes"
            if by_hash
            else f"the table has a number of buckets for each partition ({PARTITION_BUCKETS.name})",
            path=BUCKETS_FOLDER if by_hash else PARTITION_BUCKETS_FOLDER,
            remedy=remedy,
        )


def resizes_buckets(context: TableContext) -> bool:
    """Whether the table's clusterings resize buckets, by consistent hashing."""
    return _are_by_hash(context.storage.list_folders(BUCKETS_FOLDER))


def _are_by_hash(folders: Sequence[str]) -> bool:
    return bool(folders) and [*folders] != [PARTITION_BUCKETS_FOLDER]


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
        raise UnsupportedError(
            f"the clustering plan is for {strategy}, which is not run here", path=path, remedy=_REMEDY
        )
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
    """The order of the rows that a plan's parameters ask for, None for none; a layout among `options` comes first, as
    in Hudi. `schema` is the table's, without meta fields.

    Names may be in another case, as in Spark. The columns `dropped` (TableConfig.dropped_columns) are left out: they
    have one value in a partition, and so among the rows that are sorted together. Raises ConfigError for an unknown
    layout or column, UnsupportedError for a column of a type without order.
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
        if not (TARGET_FILE_BYTES.is_set(options) or LAYOUT.is_set(options)):
            error.path = path
            error.remedy = f"drop the plan, and correct what planned it: hudictl unschedule TABLE {instant}"
        raise


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
            raise _taken(item, min(shared), instant, context.active.path_of(item))


def _taken(item: Instant, group: FileGroupId, instant: str, path: str) -> ConflictError:
    return ConflictError(
        f"{item.action} {item.requested_time} has changed file group {group.file_id} in {group.partition!r}, which "
        f"clustering {instant} was planned to replace",
        path=path,
        remedy=f"drop the plan, so that it is planned again: hudictl unschedule TABLE {instant}",
    )


def check_no_plans_on(
    context: TableContext,
    timeline: Timeline,
    is_ours: Callable[[FileGroupId], bool],
    actions: Collection[str] = PLANS_OF_FILE_GROUPS,
) -> None:
    """Raises ConflictError where a plan of one of these pending actions is on a file group of ours: both would replace
    what is there.
    """
    found = pending_plan_on(context.active, timeline, is_ours, actions)
    if found is not None:
        item, shared = found
        action = Action.CLUSTERING if item.pending_action == Action.REPLACE_COMMIT else item.pending_action
        raise ConflictError(
            f"{action} {item.requested_time} is pending on file groups of partition {shared.partition!r}, such as "
            f"{shared.file_id}",
            path=context.active.path_of(item),
            remedy=f"run it first, or drop it: hudictl unschedule TABLE {item.requested_time}",
        )


def source_commits(context: TableContext, timeline: Timeline, plan: ClusteringPlan) -> Set[str]:
    """The commits on the timeline that rows of the plan may be of: those that its file names tell, and where there are
    log files of layout 1, which do not tell their writers, every deltacommit. What is archived is not rolled back.
    """
    commits, logs = timeline.commits(), [name for item in plan.slices for name in item.data_logs]
    named = {parse_base_file(item.base_file).instant for item in plan.slices if item.base_file is not None}
    named |= {parse_log_file(name).instant for name in logs}
    if logs and context.active.layout == 1:
        named |= commits.of_actions(Action.DELTA_COMMIT).requested_times
    return named & commits.requested_times


def check_not_undone(context: TableContext, now: Timeline, instant: str, known: Set[str]) -> None:
    """Raises ConflictError where one of the commits `known`, which were completed when the work of `instant` began, is
    neither on the timeline nor archived, or a pending rollback or restore is going to take it back: the rows that it
    wrote would come back, what it had replaced is there again. A writer that cleans failed writes lazily may do so
    whatever came later (BaseRollbackActionExecutor.validateRollbackCommitSequence).
    """
    undone = context.undone_among(known, now)
    if undone is not None:
        raise ConflictError(
            f"commit {undone} was rolled back since {instant} began",
            path=context.active.folder,
            remedy="run it again once the rollback is complete",
        )
