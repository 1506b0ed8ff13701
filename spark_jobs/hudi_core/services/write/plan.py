"""Plans a write of rows: bulk_insert, insert, upsert, delete. Says which tables are refused, and where rows go: to the
file groups of their keys, to small file groups, and to new ones (UpsertPartitioner).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import Final

from hudi_core.config.rows_config import (
    BUCKET_ENGINE,
    COMBINE_UPSERTS,
    DUPLICATE_INSERTS,
    INDEX_TYPE,
    LOG_BLOCK_FORMAT,
    NUM_BUCKETS,
    SMALL_FILE_BYTES,
    WRITE_RECORD_POSITIONS,
)
from hudi_core.config.services.compaction_config import MAX_FILE_BYTES
from hudi_core.errors import ConflictError, FormatError, UnsupportedError
from hudi_core.filegroup.merge.table_policy import Fill, MergePolicy, Rules
from hudi_core.filegroup.write.buckets import Buckets, Ring
from hudi_core.filegroup.write.hashing_metadata import ring_of
from hudi_core.metadata_table.records.file_statistics import REWRITES
from hudi_core.model.names import FileGroupId
from hudi_core.model.partition import join
from hudi_core.services.context import TableContext
from hudi_core.services.rewriting.checks import (
    check_buckets,
    check_no_plans_on,
    check_none_rolled_back,
    check_schema_of_latest,
    check_table,
)
from hudi_core.services.source.files import CountedRows, Needs
from hudi_core.services.source.key_scope import INDEX_TYPES, KNOW_POSITIONS, KeyScope, index_type
from hudi_core.services.write.checks import check_buckets_of, check_not_nested, check_rings
from hudi_core.services.write.log_keys import slices_with_own_keys_in_logs
from hudi_core.services.write.row_shards import Spread, spread_of
from hudi_core.services.write.tag import Tagged
from hudi_core.services.write.work import Extent, Work
from hudi_core.timeline.actions.commit import Operation
from hudi_core.timeline.actions.replacecommit import TOKEN_KEY, encode_requested_write
from hudi_core.timeline.instant import REPLACING_ACTIONS, Action, State
from hudi_core.timeline.pending_plans import PLANS_OF_FILE_GROUPS, planned_file_groups
from hudi_core.timeline.timeline import Timeline
from hudi_core.view.file_group import FileSlice
from hudi_core.view.file_system_view import PendingWork

TAGGING: Final = frozenset({Operation.UPSERT, Operation.DELETE})
"""Operations that look for the file groups of their keys."""
_BY_HUDI: Final = "write with Hudi"
_BY_HASH: Final = f"give {INDEX_TYPE.name}=BUCKET, {NUM_BUCKETS.name} and {BUCKET_ENGINE.name} as its writers have them"
_NO_ROWS: Final = "the source has no rows"
_NONE_SELECTED: Final = "the predicate selects no rows"
FRACTIONS: Final = 4096
"""Parts of the hash range of keys, of which file groups get some."""


@dataclass(frozen=True, slots=True)
class RowsWork(Work):
    """The work of a bulk_insert, insert, upsert or delete."""

    @property
    def selects(self) -> bool:
        """Whether a predicate selects the rows of the table."""
        return self.rows_from is not None and bool(self.rows_from.where)

    def action(self, context: TableContext) -> str:
        return Action.DELTA_COMMIT if context.config.is_merge_on_read else Action.COMMIT

    def needs(self) -> Needs:
        is_tagged = self.operation in TAGGING
        is_delete = self.operation == Operation.DELETE
        return Needs(keys_only=is_delete, one_of_a_key=is_tagged, few_keys=is_tagged, takes_hashing=True)

    def nothing(self) -> str | None:
        return None if self.row_counts else _NONE_SELECTED if self.selects else _NO_ROWS

    def extent(self, context: TableContext, timeline: Timeline) -> Extent:
        return Extent(frozenset(plan_write(context, timeline, self).partitions))

    def check_plans(self, context: TableContext, timeline: Timeline, extent: Extent) -> None:
        """Does nothing: the file groups are known once the rows are tagged (job.py)."""

    def requested(self, context: TableContext, process: Mapping[str, str]) -> bytes:
        token = {} if self.token is None else {TOKEN_KEY: self.token}
        return encode_requested_write(self.operation, {**token, **process}, layout=context.active.layout)


@dataclass(frozen=True, slots=True)
class WritePlan:
    """The table as a write finds it. `slices` are where rows may go, in its partitions or in all (KeyScope). A key is
    looked for in base files (HoodieSimpleIndex), so they have one, but for the buckets of a bucket index. `buckets`
    are the numbers of the slices by their places (Buckets.places). New log files belong to the `log_instants`, one of
    each slice: that of its pending compaction, or the instant of the slice. `logged` are the numbers of the slices
    whose log files may have keys of their own (log_keys.py). `known` are the commits that the table had.
    `new_partitions` are those that it does not have yet. `rings` are the buckets of partitions by consistent hashing,
    without those that have none yet. With `positions` log blocks name the rows of base files.
    """

    partitions: tuple[str, ...]
    slices: tuple[FileSlice, ...] = ()
    log_instants: tuple[str, ...] = ()
    logged: frozenset[int] = frozenset()
    new_partitions: frozenset[str] = frozenset()
    known: frozenset[str] = frozenset()
    buckets: Mapping[str, int] | None = None
    rings: Mapping[str, Ring] = field(default_factory=dict)
    positions: bool = False


def plan_write(context: TableContext, timeline: Timeline, work: Work) -> WritePlan:
    """Returns the plan. Raises UnsupportedError for tables that the operation does not write, ConfigError for buckets
    and for a new partition below or above another.
    """
    check_table(context)
    check_schema_of_latest(context, timeline)
    buckets = None if work.rows is None else work.rows.rows.buckets
    by_hash = buckets is not None and buckets.by_hash
    check_buckets(context, _BY_HUDI, refuses_hashing=not by_hash, hashing_remedy=_BY_HASH)
    _check_supported(context, work)
    view = context.view(timeline)
    known = frozenset(view.partitions())
    partitions = tuple(sorted(work.row_counts))
    check_not_nested(context, frozenset(partitions) - known, known)
    is_global = work.rows is not None and work.rows.rows.scope.is_global
    looked_in = sorted(known) if is_global else [name for name in partitions if name in known]
    slices = [item for name in looked_in for item in view.latest_merged_slices(name)]
    file_ids: dict[str, list[str]] = {}
    for item in slices:
        file_ids.setdefault(item.file_group.partition, []).append(item.file_group.file_id)
    rings: dict[str, Ring] = {}
    if by_hash:
        _check_not_replaced(context, timeline, (), {*partitions})
        rings = {name: ring for name in partitions if (ring := ring_of(context.storage, view, name)) is not None}
        check_rings(view, file_ids, rings)
    else:
        check_buckets_of(context, timeline, view, file_ids, buckets)
    if buckets is not None:
        found = [item for item in slices if not item.is_empty]
    else:
        is_bulk = work.operation == Operation.BULK_INSERT
        found = [item for item in slices if item.base_file is not None and not is_bulk]
    by_keys = buckets is None and work.operation in TAGGING
    return WritePlan(
        partitions,
        tuple(found),
        tuple(view.pending.compaction_of(item.file_group) or item.base_instant for item in found),
        slices_with_own_keys_in_logs(context, timeline, found) if by_keys else frozenset(),
        frozenset(partitions) - known,
        timeline.commits().requested_times,
        None if buckets is None else _places(found, buckets),
        rings,
        by_keys and _names_positions(context),
    )


def _places(slices: Sequence[FileSlice], buckets: Buckets) -> dict[str, int]:
    """Returns the number of each bucket's slice by its place. Raises FormatError for a bucket with two file groups
    (apache/hudi#9303): a key of it may be in either.
    """
    places: dict[str, int] = {}
    for number, item in enumerate(slices):
        group = item.file_group
        other = places.setdefault(buckets.place_of_group(group), number)
        if other != number:
            raise FormatError(
                f"the file groups {slices[other].file_group.file_id} and {group.file_id} are of one bucket",
                path=join(group.partition, group.file_id),
                remedy="remove one of them: hudictl delete-partition, then write the partition again",
            )
    return places


def _check_supported(context: TableContext, work: Work) -> None:
    path = context.config.path
    index = index_type(context.options)
    if work.operation == Operation.INSERT and not DUPLICATE_INSERTS.read(context.options):
        raise UnsupportedError(f"{DUPLICATE_INSERTS.name}=false", path=path, remedy=f"use upsert, or {_BY_HUDI}")
    changes_groups = work.operation in TAGGING or (work.rows is not None and work.rows.rows.buckets is not None)
    if changes_groups and context.config.is_merge_on_read and LOG_BLOCK_FORMAT.read(context.options) == "HFILE":
        message = f"{work.operation} with {LOG_BLOCK_FORMAT.name}=hfile"
        raise UnsupportedError(message, path=path, remedy=f"use avro or parquet, or {_BY_HUDI}")
    if work.operation not in TAGGING:
        return
    if index not in INDEX_TYPES:
        message = f"{work.operation} by {INDEX_TYPE.name}={index}"
        raise UnsupportedError(message, path=path, remedy=f"use one of {', '.join(sorted(INDEX_TYPES))}, or {_BY_HUDI}")
    if not COMBINE_UPSERTS.read(context.options):
        raise UnsupportedError(f"{work.operation} with {COMBINE_UPSERTS.name}=false", path=path, remedy=_BY_HUDI)


def _names_positions(context: TableContext) -> bool:
    """Whether log blocks name the rows of base files that their records change (HoodieAppendHandle)."""
    options = context.options
    knows = index_type(options) in KNOW_POSITIONS and not KeyScope.of(options).moves
    has_blocks = context.config.is_merge_on_read and context.config.features.hudi_1_log_headers
    return has_blocks and knows and WRITE_RECORD_POSITIONS.read(options)


def merges_fields(policy: MergePolicy) -> bool:
    """Whether a merge makes one row of two."""
    return policy.rules is Rules.FUNCTION or policy.fill is not Fill.NOTHING


@dataclass(frozen=True, slots=True)
class Routes:
    """Where rows go. The shard i writes the file group `touched[i]`, a number of WritePlan.slices. Later shards write
    new files by `spread`. `small` are the shares that file groups take of a partition's new rows: with each its number,
    and the part of FRACTIONS where its share ends. In a merge-on-read table `appended` are the file groups whose rows
    go to log files, with their `positions` (places.POSITION) where these are known; the others are merged.
    """

    touched: tuple[int, ...]
    spread: Spread
    appended: frozenset[int] = frozenset()
    small: Mapping[str, tuple[tuple[int, int], ...]] = field(default_factory=dict)
    positions: bool = False

    @property
    def shards(self) -> int:
        return len(self.touched) + self.spread.shards


def routes_of(
    context: TableContext, timeline: Timeline, plan: WritePlan, rows: CountedRows, tagged: Sequence[Tagged] | None
) -> Routes:
    """Returns the routes of `tagged` rows, or where None of all `rows` as new ones."""
    new = Counter(rows.by_partition)
    if tagged is not None:
        new = sum((Counter(item.new) for item in tagged), Counter())
    touched = set() if tagged is None else {int(number) for item in tagged for number in item.in_groups}
    row_bytes = rows.size / max(1, rows.count)
    small = {} if plan.buckets is not None else _small_shares(context, timeline, plan, new, row_bytes)
    left = {name: count * (FRACTIONS - _end(small.get(name, ()))) // FRACTIONS for name, count in new.items()}
    filled = {number for shares in small.values() for number, _ in shares}
    appended = touched - filled if context.config.is_merge_on_read else set()
    touched |= filled
    spread = spread_of(
        replace(rows, by_partition={name: max(1, count) for name, count in left.items()}, row_bytes=row_bytes),
        MAX_FILE_BYTES.read(context.options),
    )
    return Routes(tuple(sorted(touched)), spread, frozenset(appended), small, plan.positions)


def _end(shares: Sequence[tuple[int, int]]) -> int:
    return shares[-1][1] if shares else 0


def _small_shares(
    context: TableContext, timeline: Timeline, plan: WritePlan, new: Mapping[str, int], row_bytes: float
) -> dict[str, tuple[tuple[int, int], ...]]:
    """Returns Routes.small: small file groups are filled first (UpsertPartitioner.getSmallFiles), but none with a
    pending plan or log files. In a merge-on-read table change logs count as such (SparkUpsertDeltaCommitPartitioner).
    """
    limit, full = SMALL_FILE_BYTES.read(context.options), MAX_FILE_BYTES.read(context.options)
    pending = timeline.pending().of_actions(*PLANS_OF_FILE_GROUPS)
    planned = frozenset().union(*(planned_file_groups(context.active, item) or () for item in pending))
    shares: dict[str, list[tuple[int, int]]] = {}
    for number, item in sorted(enumerate(plan.slices), key=lambda numbered: numbered[1].size):
        partition = item.file_group.partition
        count, start = new.get(partition, 0), _end(shares.get(partition, ()))
        has_logs = item.log_files or (item.cdc_files and context.config.is_merge_on_read)
        is_small = item.size < min(limit, full) and not has_logs and item.file_group not in planned
        room = int((full - item.size) / max(1.0, row_bytes))
        if not count or not is_small or start >= FRACTIONS or room < 1:
            continue
        end = min(FRACTIONS, start + -(-FRACTIONS * room // count))
        shares.setdefault(partition, []).append((number, end))
    return {name: tuple(of_partition) for name, of_partition in shares.items()}


@dataclass(frozen=True, slots=True)
class Groups:
    """The file groups of a write: those whose rows are `merged` to base files, and those whose rows are `appended` to
    log files, each with its log instant (WritePlan). `new_buckets` are the places of buckets that the write makes, and
    `buckets` make these places. In the partitions `hashed` a clustering may resize any bucket.
    """

    merged: frozenset[FileGroupId] = frozenset()
    appended: Mapping[FileGroupId, str] = field(default_factory=dict)
    new_buckets: frozenset[str] = frozenset()
    buckets: Buckets | None = None
    hashed: frozenset[str] = frozenset()

    @staticmethod
    def of(plan: WritePlan, routes: Routes, buckets: Buckets | None = None) -> Groups:
        merged = (plan.slices[number].file_group for number in routes.touched if number not in routes.appended)
        appended = {plan.slices[number].file_group: plan.log_instants[number] for number in routes.appended}
        hashed = frozenset(plan.partitions if buckets is not None and buckets.by_hash else ())
        return Groups(frozenset(merged), appended, buckets=buckets, hashed=hashed)

    def makes(self, group: FileGroupId) -> bool:
        """Whether the write makes the bucket of this file group."""
        buckets = self.buckets if self.new_buckets else None
        return buckets is not None and buckets.place_of_group(group) in self.new_buckets

    @property
    def all(self) -> frozenset[FileGroupId]:
        return self.merged | self.appended.keys()


def check_no_plans(context: TableContext, timeline: Timeline, groups: Groups) -> None:
    """Raises ConflictError where a pending plan is on a file group of the write (SparkRejectUpdateStrategy), or resizes
    buckets of its partitions: these may have no file group yet. Log files may be appended beside compactions. In layout
    1 a compaction that was planned since would not see them.
    """
    check_no_plans_on(context, timeline, lambda group: group in groups.merged)
    _check_not_replaced(context, timeline, groups.appended, groups.hashed)
    if not groups.appended or context.active.layout > 1:
        return
    pending = PendingWork.read(context.active, timeline)
    for group, instant in groups.appended.items():
        planned = pending.compaction_of(group)
        if planned not in (None, instant):
            raise ConflictError(
                f"compaction {planned} was planned on file group {group.file_id} of partition {group.partition!r} "
                "while rows were written to its log",
                path=context.active.path(str(planned), Action.COMPACTION, State.REQUESTED),
                remedy="run it again",
            )


def _check_not_replaced(
    context: TableContext, timeline: Timeline, appended: Container[FileGroupId], hashed: Set[str]
) -> None:
    check_no_plans_on(
        context, timeline, lambda group: group in appended or group.partition in hashed, REPLACING_ACTIONS
    )


def check_not_changed(
    context: TableContext, now: Timeline, instant: str, groups: Groups, known: Set[str], seen: Set[str] | None = None
) -> None:
    """Raises ConflictError where a commit that is not `known` changed a file group of the write: its rows would be lost
    behind the new base file (apache/hudi#19763), or ours in a group that was replaced, or that got a base file in
    layout 1, by a compaction or by rows that filled it; or where it made a bucket that the write makes
    (apache/hudi#7838), or resized buckets of its partitions. Also raises it where a known commit was rolled back. The
    rows that Spark or a predicate took from the table are of the commits `seen`: another commit that changed rows of
    the file groups counts, too. None for rows of files.
    """
    for item in now.commits():
        is_known, is_seen = item.requested_time in known, seen is None or item.requested_time in seen
        if is_known and is_seen:
            continue
        metadata = context.active.read_commit(item)
        is_rewrite = metadata.compacted or metadata.operation_type in REWRITES
        if is_known and is_rewrite:
            continue
        files = [(FileGroupId(stat.partition_path, stat.file_id), stat) for stat in metadata.write_stats()]
        written, replaced = {group for group, _ in files}, {*metadata.replaced_file_groups()}
        based = {group for group, stat in files if stat.log_version is None}
        hiding = replaced | (based if context.active.layout == 1 else set())
        if not is_seen and not is_rewrite:
            hiding |= written
        changed = (written | replaced) & groups.merged | hiding & groups.appended.keys()
        changed |= {group for group in written if groups.makes(group)}
        changed |= {group for group in replaced if group.partition in groups.hashed}
        if changed:
            group = min(changed)
            raise ConflictError(
                f"{item.action} {item.requested_time} has changed file group {group.file_id} of partition "
                f"{group.partition!r}, which {instant} writes, since that began",
                path=context.active.path_of(item),
                remedy="run it again",
            )
    check_none_rolled_back(context, now, instant, known)
