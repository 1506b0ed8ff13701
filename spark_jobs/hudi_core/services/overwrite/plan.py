"""Plans an overwrite: it replaces all file groups of its partitions at its start (getPartitionToReplacedFileIds). Says
what stops an overwrite then, and at its commit. job.py makes sure that an overwrite is done once.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Set
from itertools import chain

from hudi_core.errors import ConfigError, ConflictError
from hudi_core.filegroup.merge.table_policy import MergePolicy
from hudi_core.frozen import dataclass
from hudi_core.metadata_table.partition_type import is_row_level
from hudi_core.metadata_table.records.file_statistics import REWRITES
from hudi_core.model.names import FileGroupId
from hudi_core.services.concurrent_changes import Seen, check_no_plans_on, check_none_rolled_back
from hudi_core.services.context import TableContext
from hudi_core.services.rewriting.checks import (
    check_buckets,
    check_schema_of_latest,
    check_table,
)
from hudi_core.services.source.files import Needs
from hudi_core.services.write.checks import check_buckets_of, check_not_nested
from hudi_core.services.write.work import Extent, Work
from hudi_core.timeline.actions.commit import CommitMetadata, Operation
from hudi_core.timeline.actions.replacecommit import encode_requested_overwrite
from hudi_core.timeline.instant import Action, Instant
from hudi_core.timeline.timeline import Timeline
from hudi_core.view.file_group import FileSlice

_NO_ROWS = (
    "the source has no rows, so no partition is replaced; name those to be emptied with --partition, or give "
    "--whole-table"
)


@dataclass(frozen=True, slots=True)
class Overwrite(Work):
    """The work of an overwrite. `partitions` are those to replace. None: those of the rows, or of the whole table where
    `operation` is INSERT_OVERWRITE_TABLE.
    """

    partitions: tuple[str, ...] | None = None

    def action(self, context: TableContext) -> str:
        return Action.REPLACE_COMMIT

    def needs(self) -> Needs:
        return Needs()

    def nothing(self) -> str | None:
        is_whole = self.operation == Operation.INSERT_OVERWRITE_TABLE
        return None if self.row_counts or is_whole or self.partitions else _NO_ROWS

    def extent(self, context: TableContext, timeline: Timeline) -> Extent:
        plan = plan_overwrite(context, timeline, self, with_slices=False)
        return Extent(plan.partitions, len(plan.file_groups()))

    def check_plans(self, context: TableContext, timeline: Timeline, extent: Extent) -> None:
        check_no_plans(context, timeline, extent.partitions)

    def requested(self, context: TableContext, process: Mapping[str, str]) -> bytes:
        is_named = context.config.features.conflict_release == "1.2"
        layout = context.active.layout
        return encode_requested_overwrite(
            self.operation, token=self.token, layout=layout, names_deletes=is_named, process=process
        )

    def other_partitions(self, metadata: CommitMetadata) -> frozenset[str]:
        if self.partitions is None:
            return frozenset()
        return frozenset(self.partitions) ^ frozenset(metadata.replaced_file_ids or ())


@dataclass(frozen=True, slots=True)
class OverwritePlan:
    """What an overwrite replaces: the file ids, sorted, by partition. Partitions without file groups are named too.
    `slices` are the file slices to replace, where an index has their rows. `new_partitions` are those that the table
    does not have yet, `known` the commits that it had.
    """

    replaced: Mapping[str, tuple[str, ...]]
    slices: tuple[FileSlice, ...] = ()
    new_partitions: frozenset[str] = frozenset()
    known: frozenset[str] = frozenset()

    @property
    def partitions(self) -> frozenset[str]:
        """All partitions of the overwrite."""
        return frozenset(self.replaced)

    def file_groups(self) -> frozenset[FileGroupId]:
        """Returns the file groups that are replaced."""
        return frozenset(FileGroupId(name, file_id) for name, ids in self.replaced.items() for file_id in ids)


def plan_overwrite(context: TableContext, timeline: Timeline, work: Overwrite, *, with_slices: bool) -> OverwritePlan:
    """Returns what an overwrite replaces.

    Raises UnsupportedError for a table that this engine does not write, and where an index needs rows of log files that
    this engine does not merge (MergePolicy.for_table). Raises ConfigError for a partition that the table does not have,
    a new one below or above another, and rows outside of the named partitions. Raises ConflictError where a table
    service is planned on what is replaced, or where its rows were changed while Spark evaluated the new ones.
    """
    check_table(context)
    check_schema_of_latest(context, timeline)
    # With consistent hashing even a deletion is wrong: the hashing metadata names the file groups, so that Hudi would
    # write later to those that are replaced (apache/hudi#7634).
    remedy = "delete its rows with Hudi's delete" if work.rows is None else "overwrite it with Hudi"
    check_buckets(context, remedy, refuses_numbers=work.rows is not None)
    view = context.view(timeline)
    known = frozenset(view.partitions())
    partitions = _partitions(context, work, known)
    new = partitions - known
    check_not_nested(context, new, known)
    check_no_plans(context, timeline, partitions)
    if work.seen is not None:
        _check_not_changed(context, timeline, work.seen, partitions)
    replaced: dict[str, tuple[str, ...]] = {}
    slices: list[FileSlice] = []
    reads_rows = any(map(is_row_level, context.config.metadata_partitions))
    for name in sorted(partitions):
        latest = view.latest_merged_slices(name) if name in known else []
        replaced[name] = tuple(item.file_group.file_id for item in latest)
        slices += latest if with_slices else []
        if reads_rows and any(item.log_files for item in latest):
            MergePolicy.for_table(context.config, context.options)
    if work.rows is not None:
        check_buckets_of(context, timeline, view, replaced, work.rows.rows.buckets)
    commits = timeline.commits().requested_times
    return OverwritePlan(replaced, tuple(slices), frozenset(new), frozenset(commits))


def _partitions(context: TableContext, work: Overwrite, known: frozenset[str]) -> frozenset[str]:
    row_partitions = frozenset(work.row_counts)
    if work.partitions is None:
        return row_partitions | known if work.operation == Operation.INSERT_OVERWRITE_TABLE else row_partitions
    named = frozenset(work.partitions)
    outside = row_partitions - named
    if outside:
        raise ConfigError(
            f"rows of the source belong to partition {min(outside)!r}, which is not among those to be replaced",
            path=context.uri,
            remedy="name the partition as well, or name none: then those of the rows are replaced",
        )
    absent = named - known - row_partitions
    if absent:
        raise ConfigError(
            f"the table has no partition {min(absent)!r}",
            path=context.uri,
            remedy="list the partitions with `hudictl files TABLE`",
        )
    return named


def check_no_plans(context: TableContext, timeline: Timeline, partitions: Collection[str]) -> None:
    """Raises ConflictError for pending plans there (DeletePartitionUtils.checkForPendingTableServiceActions)."""
    check_no_plans_on(context, timeline, lambda group: group.partition in partitions)


def check_not_written(context: TableContext, now: Timeline, instant: str, plan: OverwritePlan) -> None:
    """Raises ConflictError where a commit since the plan wrote or replaced in its partitions: its rows would stay
    beside the new ones. Also raises it where a commit that the plan knew was rolled back: rows would come back.
    """
    for item, _, partition in _written_since(context, now, plan.known, plan.partitions):
        raise ConflictError(
            f"{item.action} {item.requested_time} has written to partition {partition!r}, which {instant} overwrites, "
            "since that began",
            path=context.active.path_of(item),
            remedy="run it again",
        )
    check_none_rolled_back(context, now, instant, plan.known)


def _check_not_changed(context: TableContext, timeline: Timeline, seen: Seen, partitions: frozenset[str]) -> None:
    """Raises ConflictError where rows of the partitions came or went since what the query has `seen`: the new rows may
    have been made of the old ones. The plan knows such a commit, and so would replace its rows.
    """
    remedy = "run it again, so that the rows are evaluated again"
    archived = (
        (item, metadata, min(touched))
        for item, metadata in seen.archived_since(context, timeline)
        if (touched := _touched(metadata) & partitions)
    )
    for item, metadata, partition in chain(_written_since(context, timeline, seen.commits, partitions), archived):
        if not metadata.compacted and metadata.operation_type not in REWRITES:
            raise ConflictError(
                f"{item.action} {item.requested_time} has written to partition {partition!r} while the rows that are "
                "to replace it were evaluated",
                path=context.active.path_of(item),
                remedy=remedy,
            )
    rolled_back = context.rolled_back_among(seen.commits, timeline)
    if rolled_back is not None:
        raise ConflictError(
            f"commit {rolled_back} was rolled back while the rows were evaluated",
            path=context.active.folder,
            remedy=remedy,
        )


def _written_since(
    context: TableContext, now: Timeline, known: Set[str], partitions: Set[str]
) -> Iterator[tuple[Instant, CommitMetadata, str]]:
    """Yields the completed commits, except those `known`, that wrote or replaced in the partitions. Each comes with its
    metadata and the first of those partitions.
    """
    for item in now.commits():
        if item.requested_time not in known:
            metadata = context.active.read_commit(item)
            touched = _touched(metadata) & partitions
            if touched:
                yield item, metadata, min(touched)


def _touched(metadata: CommitMetadata) -> set[str]:
    """Returns the partitions that a commit wrote to, or replaced file groups of."""
    return {*metadata.partition_to_write_stats, *(metadata.replaced_file_ids or {})}
