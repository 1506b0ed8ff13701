"""Checks that compactions, clusterings and overwrites share, most of them before the first byte is written. Each raises
a typed error that names the file and the remedy. Checks of one service alone are in its own modules.
concurrent_changes.py checks for what others have done or planned since, other_writers.py for writers that may not see a
plan; proof.py checks that the output is whole.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache, lru_cache

from hudi_core.config.rows_config import PARTITION_BUCKETS
from hudi_core.errors import FormatError, StorageNotFoundError, UnsupportedError
from hudi_core.filegroup.merge.table_policy import MergePolicy
from hudi_core.filegroup.read.log_scan import CommittedInstants
from hudi_core.filegroup.read.planned_slices import PlanCheck, PlannedSlice
from hudi_core.filegroup.write.buckets import BUCKETS_FOLDER, PARTITION_BUCKETS_FOLDER, are_by_hash
from hudi_core.history.archived import CompletionTimes
from hudi_core.metadata_table.extract.data_file import StatisticsRequirements
from hudi_core.metadata_table.read.metadata_table import MetadataTable
from hudi_core.model.partition import join
from hudi_core.services.context import TableContext
from hudi_core.timeline.actions.commit import CommitMetadata
from hudi_core.timeline.actions.compaction import CompactionOperation
from hudi_core.timeline.actions.replacecommit import ClusteringSlice
from hudi_core.timeline.schemas import SCHEMA_FOLDER, internal_schema_history
from hudi_core.timeline.timeline import Timeline
from hudi_core.transaction.claim_file import is_decided
from hudi_core.transaction.reconcile import list_partitions

_EVOLUTION_KEY = "latest_schema"
"""Extra metadata of tables with schema-on-read evolution, where renames are not in the Avro schema."""

_REMEDY = (
    "restore it from a copy, or drop the plan with `hudictl unschedule`; never just delete a plan, as log files "
    "written since belong to it"
)

_BY_HUDI = "use Hudi's own service"


def check_table(context: TableContext) -> StatisticsRequirements | None:
    """Returns what the metadata table needs of each new file; None without a metadata table. Raises UnsupportedError
    for metadata partitions that this engine cannot update, for base files other than Parquet, and for a storage that
    cannot create a file exclusively.
    """
    config, publisher = context.config, context.metadata_publisher()
    if not context.storage.supports_exclusive_create:
        raise UnsupportedError(
            f"{context.uri} cannot create a file exclusively, so it cannot carry a timeline", path=config.path
        )
    if config.base_file_format != "PARQUET":
        what = f"base files of format {config.base_file_format} are not supported"
        raise UnsupportedError(what, path=config.path, remedy=_BY_HUDI)
    return None if publisher is None else publisher.check_commit()


def check_merged_table(context: TableContext) -> StatisticsRequirements | None:
    """Checks like check_table. Raises UnsupportedError also for an unknown payload class or merge strategy."""
    required = check_table(context)
    MergePolicy.for_table(context.config, context.options)
    return required


def check_schema_of_latest(context: TableContext, timeline: Timeline) -> None:
    """Raises UnsupportedError for a table with schema-on-read evolution. The latest commit shows it, or else the schema
    history, because Hudi's clusterings do not record it (TableSchemaResolver.getTableInternalSchemaFromCommitMetadata).
    """
    recorded_in = None
    latest = timeline.commits().last()
    if latest is not None and context.active.read_commit(latest, stats=False).extra_metadata.get(_EVOLUTION_KEY):
        recorded_in = context.active.path_of(latest)
    elif internal_schema_history(context.storage, timeline) is not None:
        recorded_in = SCHEMA_FOLDER
    if recorded_in is not None:
        what = "the table uses schema-on-read evolution (hoodie.schema.on.read.enable)"
        raise UnsupportedError(what, path=recorded_in, remedy=_BY_HUDI)


def planned_slices(items: Iterable[CompactionOperation | ClusteringSlice]) -> list[PlannedSlice]:
    return [PlannedSlice(item.file_group, item.base_file, item.data_logs) for item in items]


def check_planned(
    context: TableContext,
    timeline: Timeline,
    instant: str,
    items: Iterable[CompactionOperation | ClusteringSlice],
    *,
    path: str,
    before: str | None = None,
) -> dict[str, int]:
    """Checks that the files of the plan in `path`, at `instant`, are there, and that its `items` are the table's slices
    then (planned_slices.py). Returns the bytes of all files of its partitions by path. Log blocks of instants from
    `before` on do not count: in layout 1 later writes may append to what a log compaction merges. Raises
    StorageNotFoundError naming the first missing file, base files first; FormatError naming a file group;
    CorruptFileError naming a damaged file of the metadata table. A task finds a file that is no log file.
    """
    named: dict[str, list[str]] = {}
    planned = planned_slices(items)
    for item in planned:
        names = named.setdefault(item.file_group.partition, [])
        names += filter(None, (item.base_file, *item.log_files))
    listed = dict(list_partitions(context.storage, named))
    for partition, files in listed.items():
        absent = set(named[partition]) - {info.name for info in files}
        if absent:
            first = next(name for name in sorted(named[partition], key=lambda name: name[0] == ".") if name in absent)
            what = "a plan names this file, but it is not there"
            raise StorageNotFoundError(what, path=join(partition, first), remedy=_REMEDY)
    remedy = f"drop the plan, so that a writer plans again: hudictl unschedule TABLE {instant}"
    try:
        _plan_check(context, timeline, before).check(planned, listed, instant=instant, path=path, remedy=remedy)
    except FormatError:
        if not is_decided(context.storage, instant):
            raise  # once decided, the new files are final: the claim's next owner only writes the commit
    if context.has_metadata_table:
        reader = MetadataTable(context.storage, context.config, timeline)
        for partition in sorted(named):
            reader.list_files(partition)
    return {info.path: info.size for files in listed.values() for info in files}


def _plan_check(context: TableContext, timeline: Timeline, before: str | None) -> PlanCheck:
    history, committed = cache(context.history), CommittedInstants.of(timeline)

    @lru_cache(maxsize=4)
    def commit_of(requested: str) -> CommitMetadata | None:
        commit = next((item for item in timeline.commits() if item.requested_time == requested), None)
        return history().commit(requested) if commit is None else context.active.read_commit(commit)

    return PlanCheck(
        context.storage,
        timeline,
        context.active.layout,
        CompletionTimes(timeline, history).of,
        committed if before is None else committed.up_to(before, inclusive=False),
        commit_of,
    )


def check_operations(operations: tuple[CompactionOperation, ...], *, path: str) -> None:
    """Raises FormatError for a plan without operations. Hudi writes none, and its completion would have no effect."""
    if not operations:
        raise FormatError("the compaction plan has no operations", path=path, remedy=_REMEDY)


def check_buckets(
    context: TableContext,
    remedy: str = "let Hudi plan and run it",
    *,
    refuses_numbers: bool = True,
    refuses_hashing: bool = True,
    hashing_remedy: str | None = None,
) -> None:
    """Raises UnsupportedError for consistent hashing with `refuses_hashing`, and for numbers of buckets per partition
    with `refuses_numbers`. `hashing_remedy` is that for consistent hashing, where it is another one.
    """
    folders = context.storage.list_folders(BUCKETS_FOLDER)
    by_hash = refuses_hashing and are_by_hash(folders)
    if by_hash or (refuses_numbers and PARTITION_BUCKETS_FOLDER in folders):
        raise UnsupportedError(
            "the table has buckets by consistent hashing, which only Hudi's clustering resizes"
            if by_hash
            else f"the table has a number of buckets for each partition ({PARTITION_BUCKETS.name})",
            path=BUCKETS_FOLDER if by_hash else PARTITION_BUCKETS_FOLDER,
            remedy=hashing_remedy if by_hash and hashing_remedy else remedy,
        )


def resizes_buckets(context: TableContext) -> bool:
    """Whether the table's clusterings resize buckets, by consistent hashing."""
    return are_by_hash(context.storage.list_folders(BUCKETS_FOLDER))
