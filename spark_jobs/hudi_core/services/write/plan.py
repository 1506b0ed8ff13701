"""Plans a write of rows: bulk_insert, insert, upsert, delete. Says which tables are refused, and where rows go: to the
file groups of their keys, to small file groups, and to new ones (UpsertPartitioner).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Final

from hudi_core.config.rows_config import (
    BUCKET_ENGINE,
    COMBINE_UPSERTS,
    DROP_DUPLICATES,
    DUPLICATE_INSERTS,
    DUPLICATE_POLICY,
    INDEX_TYPE,
    LOG_BLOCK_FORMAT,
    NUM_BUCKETS,
    WRITE_RECORD_POSITIONS,
)
from hudi_core.errors import FormatError, UnsupportedError
from hudi_core.filegroup.merge.table_policy import Fill, MergePolicy, Rules
from hudi_core.filegroup.write.buckets import Buckets, Ring
from hudi_core.filegroup.write.hashing_metadata import ring_of
from hudi_core.frozen import dataclass
from hudi_core.model.partition import join
from hudi_core.services.concurrent_changes import check_not_replaced
from hudi_core.services.context import TableContext
from hudi_core.services.rewriting.checks import (
    check_buckets,
    check_schema_of_latest,
    check_table,
)
from hudi_core.services.source.files import Needs
from hudi_core.services.source.key_scope import INDEX_TYPES, KNOW_POSITIONS, KeyScope, index_type
from hudi_core.services.write.checks import check_buckets_of, check_not_nested, check_rings
from hudi_core.services.write.log_keys import slices_with_own_keys_in_logs
from hudi_core.services.write.work import Extent, Work
from hudi_core.timeline.actions.commit import Operation
from hudi_core.timeline.actions.replacecommit import TOKEN_KEY, encode_requested_write
from hudi_core.timeline.instant import Action
from hudi_core.timeline.timeline import Timeline
from hudi_core.view.file_group import FileSlice

TAGGING: Final = frozenset({Operation.UPSERT, Operation.DELETE})
"""Operations that look for the file groups of their keys."""
_BY_HUDI: Final = "write with Hudi"
_BY_HASH: Final = f"give {INDEX_TYPE.name}=BUCKET, {NUM_BUCKETS.name} and {BUCKET_ENGINE.name} as its writers have them"
_NO_ROWS: Final = "the source has no rows"
_NONE_SELECTED: Final = "the predicate selects no rows"


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
        return Needs(
            keys_only=is_delete,
            one_of_a_key=is_tagged,
            one_in_logs=self.operation == Operation.INSERT,
            few_keys=is_tagged,
            takes_hashing=True,
        )

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
    """Returns the plan. Raises UnsupportedError for tables and file groups that the operation does not write,
    ConfigError for buckets and for a new partition below or above another.
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
        check_not_replaced(context, timeline, (), {*partitions})
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
    if by_keys:
        _check_base_files(slices)
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


def _check_base_files(slices: Sequence[FileSlice]) -> None:
    """Raises UnsupportedError for log files without a base file, as Flink writes them: no index of base files has their
    keys, and Hudi's would take these for new.
    """
    for item in slices:
        if item.base_file is None and item.log_files:
            raise UnsupportedError(
                f"file group {item.file_group.file_id} has log files alone, whose keys are in no base file",
                path=item.log_files[0].path,
                remedy="compact the table, then write again",
            )


def _check_supported(context: TableContext, work: Work) -> None:
    path = context.config.path
    index = index_type(context.options)
    if work.operation == Operation.INSERT and not DUPLICATE_INSERTS.read(context.options):
        raise UnsupportedError(f"{DUPLICATE_INSERTS.name}=false", path=path, remedy=f"use upsert, or {_BY_HUDI}")
    for key in (DROP_DUPLICATES, DUPLICATE_POLICY) if work.operation != Operation.DELETE else ():
        asked = key.read(context.options)
        if asked != key.default:
            message = f"{work.operation} with {key.name}={str(asked).lower()}"
            raise UnsupportedError(message, path=path, remedy=f"leave it out, or {_BY_HUDI}")
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
