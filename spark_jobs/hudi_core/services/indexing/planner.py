"""Plans the indexes that the options name, as Hudi's writers and indexer name them (HoodieMetadataConfig,
HoodieIndexingConfig). They are then built while writers go on. The instant of an indexing is just before the latest
completed write. build.py decides whether a build is whole.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from contextlib import nullcontext
from typing import Final

from hudi_core.config.engine_config import EngineConfig, Extent
from hudi_core.config.keys import ConfigKey
from hudi_core.config.metadata_config import (
    BLOOM_FILTERS_ENABLE,
    COLUMN_STATS_ENABLE,
    EXPRESSION_COLUMN,
    EXPRESSION_OPTIONS,
    EXPRESSION_TYPE,
    INDEX_NAME,
    PARTITION_STATS_ENABLE,
    PARTITIONED_RECORD_INDEX_ENABLE,
    RECORD_INDEX_ENABLE,
    SECONDARY_COLUMN,
)
from hudi_core.config.table_config import TableConfig
from hudi_core.engine.local import LocalEngine
from hudi_core.errors import ConfigError, HudiError, UnsupportedError
from hudi_core.frozen import dataclass
from hudi_core.metadata_table.indexed_table import IndexDefinition, load_index_definitions, put_index_definitions
from hudi_core.metadata_table.partition_type import (
    BLOOM_FILTERS,
    COLUMN_STATS,
    EXPRESSION_PREFIX,
    PARTITION_STATS,
    RECORD_INDEX,
    SECONDARY_INDEX,
    SECONDARY_PREFIX,
)
from hudi_core.metadata_table.timeline import MetadataTimeline
from hudi_core.model.partition import check_file_name
from hudi_core.services.context import TableContext
from hudi_core.services.indexing.build import GROUPS, misfits, requested_counts
from hudi_core.services.indexing.job import IndexingJob
from hudi_core.services.metadata.index_drop import pending_builds
from hudi_core.services.metadata.initialization import Initializations, index_warnings, partitioned_record_index
from hudi_core.services.service import Scheduled, Service
from hudi_core.timeline.actions.indexing import IndexedPartition, encode_index_plan
from hudi_core.timeline.instant import Action, State
from hudi_core.timeline.timeline import Timeline
from hudi_core.transaction.owner import Owner

log = logging.getLogger(__name__)

_NO_METADATA_TABLE: Final = (
    "the table has no metadata table that an index could be added to: create one with `hudictl metadata create TABLE`, "
    "or let its writers by hoodie.metadata.enable=true"
)

_IDENTITY: Final = "identity"
BY_SWITCH: Final[tuple[tuple[ConfigKey[bool], str], ...]] = (
    (BLOOM_FILTERS_ENABLE, BLOOM_FILTERS),
    (COLUMN_STATS_ENABLE, COLUMN_STATS),
    (PARTITION_STATS_ENABLE, PARTITION_STATS),
    (RECORD_INDEX_ENABLE, RECORD_INDEX),
    (PARTITIONED_RECORD_INDEX_ENABLE, RECORD_INDEX),
)
NONE_NAMED: Final = (
    f"the options name no index to build: set one of {', '.join(key.name for key, _ in BY_SWITCH)} to true, or name a "
    f"column by {SECONDARY_COLUMN.name} or {EXPRESSION_COLUMN.name}"
)


class IndexingService(Service):
    """Plans the indexes that the options name (requested_indexes), and builds them while writers go on."""

    name = "indexing"
    action = Action.INDEXING
    job = IndexingJob

    def schedule(self, context: TableContext, owner: Owner, *, dry_run: bool) -> Scheduled:
        """Requests an indexing action for the named indexes that are neither listed nor planned
        (ScheduleIndexActionExecutor), and for indexes with other file groups than `airflow_hudi.indexing.file_groups`,
        to resize them. As in Hudi, the partitions become inflight when a run starts. The definition of a secondary or
        expression index is put first. Raises as requested_indexes; ConfigError for a number of file groups that no
        named index can have; UnsupportedError for an index that this release does not keep; LockError.
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
            # A listed index keeps the definition by which its files were made.
            new = [
                item
                for name, item in requested.definitions.items()
                if name in left and name not in config.metadata_partitions
            ]
            _request(context, instant, encode_index_plan(plan, extra=config.features.index_plan_extra), config, new)
        log.info("indexing %s requested: %s", instant, ", ".join(left))
        return Scheduled(instant, _document(plan, config))

    def extent(self, context: TableContext, instant: str, config: EngineConfig) -> Extent:
        """Returns the extent of a build, which reads every file. Lists slices until there are too many."""
        return Extent.of(context.slice_sizes(), config)

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
        # An index that is inflight without a plan was left by a dead process: it is rebuilt.
        there = config.metadata_partitions.difference(resized) | planned
        return tuple(name for name in requested.names if name not in there)


def _instant(context: TableContext, config: TableConfig, timeline: Timeline) -> str:
    """Returns an instant just before the latest completed write. So it is never the latest completed action itself,
    whose name a writer of Hudi 1.x takes (docs/decisions/0017). A write leaves the timeline only by a later action.
    """
    of_metadata = MetadataTimeline(context.storage, config).active.load().requested_times
    return context.clock().before(max(timeline.commits().requested_times), timeline, of_metadata)


def _request(
    context: TableContext, instant: str, plan: bytes, config: TableConfig, definitions: Collection[IndexDefinition]
) -> None:
    """Writes the definitions, then the plan. Without the plan removes them: Hudi builds what is defined."""
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
    """Plans each index up to the last write completed before the first pending one
    (getContiguousCompletedWriteTimeline). Returns nothing where there is no such write.
    """
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


@dataclass(frozen=True, slots=True)
class RequestedIndexes:
    """Partitions of the metadata table, sorted, with the definitions of those that need one."""

    names: tuple[str, ...]
    definitions: Mapping[str, IndexDefinition]


def requested_indexes(
    config: TableConfig, defined: Mapping[str, IndexDefinition], options: Mapping[str, str]
) -> RequestedIndexes:
    """Returns the indexes that `options` name, if any. `defined` are the definitions that the table has. Raises
    ConfigError for another definition than one of these, UnsupportedError for an index that the version lacks.
    """
    names = {name for key, name in BY_SWITCH if key.read(options)}
    definitions = {}
    for item in _defined_by(config, defined, options):
        definitions[item.name] = item
        names.add(item.name)
    definitions.update(partitioned_record_index(config, options))
    if not config.partition_fields and PARTITION_STATS in names:
        raise UnsupportedError("a table without partitions has no statistics of them", path=config.path)
    return RequestedIndexes(tuple(sorted(names)), definitions)


def _defined_by(
    config: TableConfig, defined: Mapping[str, IndexDefinition], options: Mapping[str, str]
) -> list[IndexDefinition]:
    """Returns the secondary and expression indexes that options name: by a column, or by the name of a defined one."""
    found = []
    for prefix, column in (
        (SECONDARY_PREFIX, SECONDARY_COLUMN.read(options)),
        (EXPRESSION_PREFIX, EXPRESSION_COLUMN.read(options)),
    ):
        named = INDEX_NAME.read(options)
        if column is None and named is None:
            continue
        name = named or f"{column}"
        name = check_file_name(name if name.startswith(prefix) else f"{prefix}{name}", source=INDEX_NAME.name)
        known = defined.get(name)
        if known is None and column is None:
            continue
        if not config.features.has_all_indexes:
            raise UnsupportedError(f"an index such as {name} needs table version 8", path=config.path)
        made = known if column is None else _definition(prefix, name, column, config, options)
        if known and made and (made.source_fields, made.function) != (known.source_fields, known.function):
            raise ConfigError(
                f"the index {name} is defined already, on {', '.join(known.source_fields)}",
                remedy="drop it first, or choose another name",
            )
        found += [item for item in (known or made,) if item is not None]
    if not found and INDEX_NAME.read(options) is not None:
        raise ConfigError(
            f"no index {INDEX_NAME.read(options)!r} is defined",
            remedy=f"name its column by {SECONDARY_COLUMN.name} or {EXPRESSION_COLUMN.name}",
        )
    return found


def _definition(
    prefix: str, name: str, column: str, config: TableConfig, options: Mapping[str, str]
) -> IndexDefinition:
    version = 2 if config.features.typed_statistics else 1
    if prefix == SECONDARY_PREFIX:
        return IndexDefinition(name, SECONDARY_INDEX, _IDENTITY, (column,), {}, version)
    settings = _settings(EXPRESSION_OPTIONS.read(options))
    partition_type = EXPRESSION_TYPE.read(options).lower()
    if partition_type == SECONDARY_INDEX:
        raise ConfigError(
            f"{EXPRESSION_TYPE.name} is {partition_type}, which holds no expression",
            remedy=f"use {SECONDARY_COLUMN.name}",
        )
    return IndexDefinition(name, partition_type, settings.get("expr", _IDENTITY), (column,), settings, version)


def _settings(value: str | None) -> dict[str, str]:
    pairs = [part.split("=", 1) for part in (value or "").split(",") if part.strip()]
    if any(len(pair) != 2 for pair in pairs):
        raise ConfigError(f"{EXPRESSION_OPTIONS.name} is {value!r}", remedy=EXPRESSION_OPTIONS.doc)
    return {name.strip(): text.strip() for name, text in pairs}
