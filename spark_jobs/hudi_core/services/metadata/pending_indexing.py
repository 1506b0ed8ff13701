"""Pending indexing actions, and their removal: with their index, or because they will not be run
(deletePendingIndexingInstant).
"""

from __future__ import annotations

import logging
from collections.abc import Collection

from hudi_core.config.table_config import TableConfig
from hudi_core.errors import ConflictError, CorruptFileError
from hudi_core.metadata_table.index_definitions import put_index_definitions
from hudi_core.metadata_table.initialize.indexing import IndexBuild
from hudi_core.metadata_table.partition_type import FILES_PARTITION, needs_definition
from hudi_core.model.names import WriteToken
from hudi_core.services.context import TableContext
from hudi_core.services.lifecycle import claimed
from hudi_core.services.metadata.index_drop import counts_early, left_over, refuse_compacting
from hudi_core.timeline.actions.indexing import IndexedPartition, decode_index_plan
from hudi_core.timeline.instant import Action, State
from hudi_core.timeline.timeline import Timeline
from hudi_core.transaction.claim_file import current_claim, forget_claims, is_live
from hudi_core.transaction.owner import Owner

log = logging.getLogger(__name__)


def read_index_plan(context: TableContext, instant: str) -> tuple[IndexedPartition, ...]:
    """Of a requested or inflight indexing action; errors as decode_index_plan, StorageNotFoundError when it is gone."""
    path = context.active.path(instant, Action.INDEXING, State.REQUESTED)
    return decode_index_plan(context.active.read_requested(instant, Action.INDEXING), path=path)


def pending_builds(context: TableContext, timeline: Timeline) -> dict[str, tuple[IndexedPartition, ...]]:
    """The pending indexing actions, oldest first, with what they build; nothing of one whose plan is damaged."""
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
    """What a pending indexing action builds; of one whose plan is damaged, what is inflight and no other one builds."""
    builds = pending_builds(context, timeline)
    mine = tuple(item.name for item in builds.pop(instant, ()))
    others = {item.name for partitions in builds.values() for item in partitions}
    return mine or tuple(sorted(TableConfig.load(context.storage).metadata_partitions_inflight - others))


def remove_build(context: TableContext, instant: str, names: Collection[str], *, all_goes: bool = False) -> None:
    """Removes what attempts at a pending indexing action built of partitions that are not listed, and the definitions
    of such indexes.

    An index that the action has listed already is complete and stays, with its deltacommit in the metadata table. The
    caller holds the claim of the instant, and the table lock. May be repeated. Raises as refuse_compacting, unless the
    metadata table goes with all its plans (`all_goes`).
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
            raise ConflictError(
                f"indexing {instant} is run by {claim.owner.describe()}",
                path=claim.path,
                remedy="wait for it to end, or end it, then run this again",
            )


def abandon_builds(context: TableContext, names: Collection[str], owner: Owner) -> None:
    """Takes the pending indexing actions of `names` off the timeline; ConflictError while one is running."""
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
    """The pending indexing actions that build one of the named partitions, with `files` all, with what they build."""
    builds = {time: [item.name for item in found] for time, found in pending_builds(context, timeline).items()}
    return {
        time: built for time, built in builds.items() if FILES_PARTITION in names or not set(built).isdisjoint(names)
    }
