"""Indexing as a service: an index is planned, then built while writers go on."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from contextlib import nullcontext
from typing import Final

from hudi_core.config.engine_config import EngineConfig
from hudi_core.config.table_config import TableConfig
from hudi_core.engine.local import LocalEngine
from hudi_core.errors import ConfigError, HudiError
from hudi_core.metadata_table.index_definitions import (
    IndexDefinition,
    load_index_definitions,
    put_index_definitions,
)
from hudi_core.metadata_table.timeline import MetadataTimeline
from hudi_core.services.context import TableContext
from hudi_core.services.engine_choice import Extent
from hudi_core.services.indexing.job import IndexingJob
from hudi_core.services.indexing.requested_indexes import NONE_NAMED, RequestedIndexes, requested_indexes
from hudi_core.services.indexing.resize import GROUPS, misfits, requested_counts
from hudi_core.services.lifecycle import Run
from hudi_core.services.metadata.initialization import Initializations, index_warnings
from hudi_core.services.metadata.pending_indexing import pending_builds
from hudi_core.services.service import InstantService, Scheduled
from hudi_core.timeline.actions.indexing import IndexedPartition, encode_index_plan
from hudi_core.timeline.instant import Action, State
from hudi_core.timeline.timeline import Timeline
from hudi_core.transaction.owner import Owner

log = logging.getLogger(__name__)

_NO_METADATA_TABLE: Final = (
    "the table has no metadata table that an index could be added to: create one with `hudictl metadata create TABLE`, "
    "or let its writers by hoodie.metadata.enable=true"
)


class IndexingService(InstantService):
    """Plans an index, and builds it while writers go on. The options name the indexes
    (requested_indexes.requested_indexes).
    """

    name = "indexing"
    action = Action.INDEXING

    def schedule(self, context: TableContext, owner: Owner, *, dry_run: bool) -> Scheduled:
        """Requests an indexing action for the named indexes that are neither listed nor planned
        (ScheduleIndexActionExecutor).

        A listed row-level index with another number of file groups than `airflow_hudi.indexing.file_groups` is planned
        as well and resized (see resize). The plan names the last indexed instant: the last write before the first one
        that is pending. As in Hudi nothing is built yet, and the partitions become inflight when a run starts; the
        definition of a secondary or expression index is put first, by which Hudi's indexer finds it. Raises as
        requested_indexes; ConfigError for a number of file groups that no named index can have; UnsupportedError for an
        index that this release does not keep; LockError.
        """
        requested = requested_indexes(
            context.config, load_index_definitions(context.storage, context.config), context.options
        )
        counts = requested_counts(requested.names, context.options)
        if not requested.names:
            return Scheduled(None, None, NONE_NAMED)
        if not context.has_metadata_table:
            return Scheduled(None, None, _NO_METADATA_TABLE)
        Initializations(context, context.workers(LocalEngine(1), 0), requested.definitions).check(requested.names)
        with nullcontext() if dry_run else context.lock(owner) as lock:
            config, timeline = TableConfig.load(context.storage), context.active.load()
            left = self._left(context, config, requested, counts, timeline)
            plan = _plan(left, timeline, counts)
            if not plan:
                return Scheduled(None, None, _nothing(requested, left))
            if lock is None:
                return Scheduled(None, _document(plan, config))
            for warning in index_warnings(config, left):
                log.warning("%s", warning)
            instant = _instant(context, config, timeline)
            lock.check()
            # A listed index keeps the definition that its files are by.
            new = [
                item
                for name, item in requested.definitions.items()
                if name in left and name not in config.metadata_partitions
            ]
            _request(context, instant, encode_index_plan(plan, extra=config.features.index_plan_extra), config, new)
        log.info("indexing %s requested: %s", instant, ", ".join(left))
        return Scheduled(instant, _document(plan, config))

    def extent(self, context: TableContext, instant: str, config: EngineConfig) -> Extent:
        """See InstantService. Every file of the table is read, and listed until that is too much."""
        return Extent.of(context.slice_sizes(), config)

    def job(self, run: Run) -> IndexingJob:
        """See InstantService."""
        return IndexingJob(run)

    def _left(
        self,
        context: TableContext,
        config: TableConfig,
        requested: RequestedIndexes,
        counts: Mapping[str, int],
        timeline: Timeline,
    ) -> tuple[str, ...]:
        resized = misfits(context, config, counts)
        known = load_index_definitions(context.storage, config)
        for name in resized:
            mine = requested.definitions.get(name)
            if mine is not None and name in known and mine.is_partitioned != known[name].is_partitioned:
                raise ConfigError(
                    f"the index {name} is {'' if known[name].is_partitioned else 'not '}partitioned by the table's "
                    "partitions",
                    path=config.path,
                    remedy="drop it with `hudictl metadata drop`, then build it again",
                )
        planned = {item.name for partitions in pending_builds(context, timeline).values() for item in partitions}
        # One that is inflight without a plan was abandoned by a dead process: it is rebuilt.
        there = config.metadata_partitions.difference(resized) | planned
        return tuple(name for name in requested.names if name not in there)


def _instant(context: TableContext, config: TableConfig, timeline: Timeline) -> str:
    """Of the action: just before the latest completed write, so that it is never the latest completed action itself.

    A writer of Hudi 1.x that begins an index takes the latest completed action of the data table, and where that is an
    indexing, its name (generateUniqueInstantTime of HoodieBackedTableMetadataWriter and of its version for table
    version 6). It rolls back what the metadata table has of that name, which is the index of the action, and with each
    further index the one that it began before it. A write leaves the timeline only by a later action.
    """
    of_metadata = MetadataTimeline(context.storage, config).active.load().requested_times
    return context.clock().before(max(timeline.commits().requested_times), timeline, of_metadata)


def _request(
    context: TableContext, instant: str, plan: bytes, config: TableConfig, definitions: Collection[IndexDefinition]
) -> None:
    """Puts the definitions and then the plan, under the lock. A writer of Hudi builds what is defined in its next
    write, so nothing remains defined where the plan could not be put.
    """
    known = load_index_definitions(context.storage, config)
    config = put_index_definitions(context.storage, config, definitions)
    try:
        context.active.create_requested(instant, Action.INDEXING, plan)
    except HudiError:
        if not context.storage.exists(context.active.path(instant, Action.INDEXING, State.REQUESTED)):
            new = [item.name for item in definitions if item.name not in known]
            put_index_definitions(context.storage, config, [], new)
        raise


def _plan(names: tuple[str, ...], timeline: Timeline, counts: Mapping[str, int]) -> tuple[IndexedPartition, ...]:
    """Up to the last write completed before the first pending one (getContiguousCompletedWriteTimeline), if any."""
    writes = timeline.commits()
    first = timeline.filter(lambda item: not item.is_completed and item.action != Action.INDEXING).first()
    last = (writes if first is None else writes.before(first.requested_time)).last()
    if last is None:
        return ()
    return tuple(
        IndexedPartition(name, last.requested_time, {GROUPS: str(counts[name])} if name in counts else {})
        for name in names
    )


def _document(plan: tuple[IndexedPartition, ...], config: TableConfig) -> dict[str, object]:
    warnings = index_warnings(config, [item.name for item in plan])
    return {
        "partitions": [
            {"name": item.name, "up_to": item.up_to}
            | ({"file_groups": int(item.extra[GROUPS])} if GROUPS in item.extra else {})
            for item in plan
        ]
    } | ({"warnings": warnings} if warnings else {})


def _nothing(requested: RequestedIndexes, left: tuple[str, ...]) -> str:
    if left:
        return f"{', '.join(left)}: no write of the table is completed before the first pending one"
    return f"{', '.join(requested.names)}: built, or planned already"
