"""Drops indexes from the metadata table, removes pending indexing actions (deletePendingIndexingInstant), and delists
row-level indexes for a rebuild where missing actions cannot be applied to them. A row-level index is delisted first;
its files are deleted when no writer can hold the older properties. docs/guarantees/metadata-table.md says why.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Collection, Iterable
from typing import Final

from hudi_core.config.table_config import METADATA, TableConfig, update_properties
from hudi_core.errors import ConflictError, CorruptFileError, StorageNotFoundError
from hudi_core.metadata_table.indexed_table import load_index_definitions, put_index_definitions
from hudi_core.metadata_table.initialize.indexing import IndexBuild
from hudi_core.metadata_table.initialize.initialize import MetadataCreation
from hudi_core.metadata_table.partition_type import FILES_PARTITION, RECORD_INDEX, is_row_level, needs_definition
from hudi_core.metadata_table.read.file_group import ROOT
from hudi_core.metadata_table.services.compaction import MetadataCompaction
from hudi_core.metadata_table.timeline import MetadataTimeline
from hudi_core.metadata_table.write.lifetime import drop_partitions, with_dependents
from hudi_core.model.names import WriteToken
from hudi_core.model.partition import check_file_name
from hudi_core.services.context import TableContext
from hudi_core.services.lifecycle import claimed
from hudi_core.services.metadata.row_changes import RowsUnknownError
from hudi_core.services.waiting import is_at_work, pending_writers, wait_for_writers, writers_at_work
from hudi_core.storage.base import Storage
from hudi_core.timeline.actions.indexing import IndexedPartition, decode_index_plan
from hudi_core.timeline.instant import Action, State
from hudi_core.timeline.timeline import Timeline
from hudi_core.transaction.claim_file import current_claim, forget_claims, is_live
from hudi_core.transaction.owner import Owner

log = logging.getLogger(__name__)

PLAN: Final = ".hoodie/.airflow_hudi/metadata_rebuild.json"
_INDEXES: Final = "indexes"
_FINISH: Final = "finish it with `hudictl metadata update TABLE`, or by a write of Hudi, then run this again"


def drop_metadata(context: TableContext, names: Collection[str], owner: Owner) -> TableConfig:
    """Drops the named indexes, with `files` the whole metadata table; returns the new properties. `partition_stats`
    goes with `column_stats`. Pending indexing actions of one of the indexes go first, with their files. The definitions
    go last: Hudi's writer would rebuild the indexes by them. Row-level indexes are delisted first; then the command
    waits, without the lock, for the writes that may use them (index_drop). Raises ConflictError while an indexing runs,
    and for an index while a compaction of the metadata table is pending, whose plan names its files; as
    wait_for_writers, after which this can be run again; LockError.
    """
    names = with_dependents(names)
    refuse_running_builds(context, names)
    with context.lock(owner):
        users = delist_row_level(context, names)
    wait_for_writers(context, users)
    abandon_builds(context, names, owner)
    with context.lock(owner):
        initialized = inflight_build(context, names)
        if initialized is not None:
            raise ConflictError(
                f"indexing {initialized} began meanwhile", path=context.active.folder, remedy="run this again"
            )
        config = TableConfig.load(context.storage)
        again = [name for name in row_level_among(context, config, names) if name in config.metadata_partitions]
        if again:
            message = f"a writer rebuilt {', '.join(again)} meanwhile"
            remedy = "take the index out of the options of all writers, then run this again"
            raise ConflictError(message, path=config.path, remedy=remedy)
        if FILES_PARTITION not in names and (
            left_over(context.storage, config, names) or not config.metadata_partitions.isdisjoint(names)
        ):
            refuse_compacting(context, config, names)
        config = drop_partitions(context.storage, config, names)
        forget_rebuild(context, names)
        gone = load_index_definitions(context.storage, config).keys() if FILES_PARTITION in names else names
        return put_index_definitions(context.storage, config, [], [*gone])


def delist(context: TableContext, names: Collection[str]) -> TableConfig:
    """Takes indexes off the list in the properties; files and definitions stay. The caller holds the table lock."""
    config = TableConfig.load(context.storage)
    return update_properties(
        context.storage, {METADATA.name: ",".join(sorted(config.metadata_partitions.difference(names)))}
    )


def refuse_compacting(context: TableContext, config: TableConfig, names: Iterable[str]) -> None:
    """Raises ConflictError while a compaction of the metadata table is pending: its plan may name files of `names`."""
    metadata_timeline = MetadataTimeline(context.storage, config, context.clock()).active
    timeline = metadata_timeline.load()
    pending = [*timeline.pending_compactions(), *timeline.pending_log_compactions()]
    if pending:
        message = (
            f"compaction {pending[0].requested_time} of the metadata table is pending, and its plan may name files of "
            f"{', '.join(sorted(names))}"
        )
        raise ConflictError(message, path=metadata_timeline.path_of(pending[0]), remedy=_FINISH)


def counts_early(config: TableConfig, names: Iterable[str]) -> bool:
    """Whether file groups of `names` count while they are built. Then a compaction plan may name their files."""
    return config.features.metadata_needs_rest and not config.metadata_partitions_inflight.isdisjoint(names)


def left_over(storage: Storage, config: TableConfig, names: Iterable[str]) -> list[str]:
    """Returns those of `names` that are delisted and still have files: a writer may hold older properties."""
    unknown = set(names) - config.metadata_partitions - config.metadata_partitions_inflight
    return sorted(name for name in unknown if storage.list_files(f"{ROOT}/{name}"))


def users_of(context: TableContext, names: Iterable[str]) -> frozenset[str]:
    """The pending instants with a live writer that may use delisted indexes with files."""
    if not left_over(context.storage, TableConfig.load(context.storage), names):
        return frozenset()
    alive = writers_at_work(context, pending_writers(context.active.load()), is_at_work)
    return frozenset(item.requested_time for item in alive)


def row_level_among(context: TableContext, config: TableConfig, names: Collection[str]) -> list[str]:
    """The row-level indexes among `names`, sorted; with `files`, all that are listed or have a folder."""
    found = set(names)
    if FILES_PARTITION in names:
        found.update(
            config.metadata_partitions, (folder.rpartition("/")[2] for folder in context.storage.list_folders(ROOT))
        )
    return sorted(filter(is_row_level, found))


def refuse_in_use(context: TableContext, names: Collection[str]) -> None:
    """Raises ConflictError while a write is at work that may use one of the delisted indexes among `names`."""
    indexes = sorted(filter(is_row_level, names))
    users = sorted(users_of(context, indexes))
    if users:
        message = f"{', '.join(indexes)} may be in use by {users[0]}, which began before"
        remedy = "run this again when that write has ended"
        raise ConflictError(message, path=context.active.folder, remedy=remedy)


def delist_row_level(context: TableContext, names: Collection[str]) -> frozenset[str]:
    """Delists the row-level indexes among `names`, with `files` all. Returns the pending instants that may use them:
    the deletion of the files waits for these. Runs under the table lock. May be repeated. Raises as refuse_compacting.
    """
    config = TableConfig.load(context.storage)
    rows = row_level_among(context, config, names)
    listed = config.metadata_partitions.intersection(rows)
    if listed:
        if FILES_PARTITION not in names:
            refuse_compacting(context, config, listed)
        log.info(
            "the indexes %s are delisted; their files are deleted when no writer can use them",
            ", ".join(sorted(listed)),
        )
        delist(context, listed)
    return users_of(context, rows)


def delist_for_rebuild(
    context: TableContext, error: RowsUnknownError, token: WriteToken, guard: Callable[[], None]
) -> frozenset[str]:
    """Delists the row-level indexes that `error` names, for a rebuild. Returns the pending instants that may use them.
    The caller holds the table lock and loaded `context.config` under it; `guard` raises when the lock is lost. Raises,
    before anything is written, as MetadataCreation.check, and as MetadataCompaction.finish: the plan of a pending
    compaction names files that are to be deleted.
    """
    names = frozenset(filter(is_row_level, context.config.metadata_partitions))
    names = names if error.indexes is None else names.intersection(error.indexes)
    MetadataCreation(context.storage, token, context.clock()).check()
    MetadataCompaction(context.storage, context.config, token, context.clock(), guard=guard).finish()
    _put(context, names.union(_read(context)))
    log.warning("the indexes %s are delisted, to be rebuilt: %s", ", ".join(sorted(names)), error.message)
    delist(context, names)
    return users_of(context, names)


def planned_rebuild(context: TableContext) -> frozenset[str]:
    """The indexes that an update dropped and did not rebuild. Raises CorruptFileError for a damaged file."""
    planned = _read(context)
    defined = load_index_definitions(context.storage, context.config).keys() if planned else frozenset[str]()
    there = context.config.metadata_partitions | context.config.metadata_partitions_inflight
    return frozenset(name for name in planned - there if name == RECORD_INDEX or name in defined)


def forget_rebuild(context: TableContext, names: Collection[str] = (FILES_PARTITION,)) -> None:
    """Takes the named indexes, with `files` all, out of the planned rebuild. The caller holds the table lock."""
    planned = _read(context)
    left = frozenset[str]() if FILES_PARTITION in names else planned.difference(names)
    if left:
        _put(context, left)
    elif planned:
        context.storage.delete(PLAN)


def _put(context: TableContext, names: Collection[str]) -> None:
    context.storage.write(PLAN, json.dumps({_INDEXES: sorted(names)}).encode())


def _read(context: TableContext) -> frozenset[str]:
    try:
        data = context.storage.read(PLAN)
    except StorageNotFoundError:
        return frozenset()
    try:
        document = json.loads(data)
        names = document[_INDEXES]
        if not isinstance(names, list) or not all(isinstance(name, str) and is_row_level(name) for name in names):
            raise ValueError(f"{_INDEXES} are {names!r}")
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise CorruptFileError(
            f"it does not say which indexes are to be built: {error!r}", path=PLAN, remedy="delete it"
        ) from error
    return frozenset(check_file_name(name, source=PLAN) for name in names)


def read_index_plan(context: TableContext, instant: str) -> tuple[IndexedPartition, ...]:
    """Reads the plan of a pending indexing action. Raises as decode_index_plan; StorageNotFoundError without it."""
    path = context.active.path(instant, Action.INDEXING, State.REQUESTED)
    return decode_index_plan(context.active.read_requested(instant, Action.INDEXING), path=path)


def pending_builds(context: TableContext, timeline: Timeline) -> dict[str, tuple[IndexedPartition, ...]]:
    """The pending indexing actions, oldest first, with what they build: nothing where the plan is damaged."""
    found: dict[str, tuple[IndexedPartition, ...]] = {}
    for item in timeline.pending().of_actions(Action.INDEXING):
        try:
            found[item.requested_time] = read_index_plan(context, item.requested_time)
        except CorruptFileError as error:
            log.warning("the plan of indexing %s cannot be read: %s", item.requested_time, error)
            found[item.requested_time] = ()
    return found


def inflight_build(context: TableContext, names: Collection[str]) -> str | None:
    """An inflight indexing action that builds one of the named partitions, with `files` any."""
    timeline = context.active.load()
    builds = _builds_of(context, timeline, names)
    return next((time for time in builds if timeline.get(time, Action.INDEXING).state is State.INFLIGHT), None)


def planned_partitions(context: TableContext, timeline: Timeline, instant: str) -> tuple[str, ...]:
    """Returns what a pending indexing action builds; for a damaged plan what is inflight and no other builds."""
    builds = pending_builds(context, timeline)
    mine = tuple(item.name for item in builds.pop(instant, ()))
    others = {item.name for partitions in builds.values() for item in partitions}
    return mine or tuple(sorted(TableConfig.load(context.storage).metadata_partitions_inflight - others))


def remove_build(context: TableContext, instant: str, names: Collection[str], *, all_goes: bool = False) -> None:
    """Removes what attempts at a pending indexing action built of unlisted partitions, and the definitions of such
    indexes. An index that the action has listed already is complete. It stays, with its deltacommit in the metadata
    table. The caller holds the claim of the instant, and the table lock. May be repeated. Raises as refuse_compacting,
    unless the metadata table goes with all its plans (`all_goes`).
    """
    config = TableConfig.load(context.storage)
    if FILES_PARTITION not in config.metadata_partitions:
        return
    unlisted = sorted(set(names) - config.metadata_partitions)
    index = IndexBuild(context.storage, instant, WriteToken(0, 0, 0), context.clock())
    may_be_planned = (
        counts_early(config, unlisted)
        or (config.features.metadata_needs_rest and left_over(context.storage, config, unlisted))
        or (unlisted and index.has_completed())
    )
    if may_be_planned and not all_goes:
        refuse_compacting(context, config, unlisted)
    config = index.roll_back(unlisted, context.active.load())
    put_index_definitions(context.storage, config, [], [name for name in unlisted if needs_definition(name)])


def refuse_running_builds(context: TableContext, names: Collection[str]) -> None:
    """Raises ConflictError while an indexing action runs that builds one of the named partitions, with `files` any."""
    for instant in _builds_of(context, context.active.load(), names):
        claim = current_claim(context.storage, instant)
        if claim is not None and is_live(context.storage, instant, claim.epoch):
            message = f"indexing {instant} is run by {claim.owner.describe()}"
            remedy = "wait for it to end, or end it, then run this again"
            raise ConflictError(message, path=claim.path, remedy=remedy)


def abandon_builds(context: TableContext, names: Collection[str], owner: Owner) -> None:
    """Takes the pending indexing actions of `names` off the timeline. Raises ConflictError while one is running."""
    for instant, planned in _builds_of(context, context.active.load(), names).items():
        with claimed(context, instant, owner) as found:
            if found.completed is None:
                with context.lock(owner) as lock:
                    found.held.check()
                    remove_build(context, instant, planned, all_goes=FILES_PARTITION in names)
                    lock.check()
                    context.active.drop(instant, Action.INDEXING)
        forget_claims(context.storage, instant)
        log.info("indexing %s of %s was abandoned", instant, ", ".join(planned))


def _builds_of(context: TableContext, timeline: Timeline, names: Collection[str]) -> dict[str, list[str]]:
    """Returns the pending indexing actions that build a named partition, with `files` all, and what they build."""
    builds = {time: [item.name for item in found] for time, found in pending_builds(context, timeline).items()}
    return {
        time: built for time, built in builds.items() if FILES_PARTITION in names or not set(built).isdisjoint(names)
    }
