"""Adds columns to `column_stats` and `partition_stats`, and drops them, without a rebuild of the partitions (RFC-15).
docs/guarantees/metadata-table.md, "Adding and dropping columns", has the steps, and why they are in this order.
metadata_table/indexed_table.py says which columns have statistics.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from typing import Final

from hudi_core.config.metadata_config import STATISTICS_COLUMNS
from hudi_core.config.table_config import TableConfig
from hudi_core.engine.protocol import Engine
from hudi_core.errors import ConfigError, ConflictError, HudiError, MetadataUnavailableError, UnsupportedError
from hudi_core.metadata_table.indexed_table import IndexDefinition, put_index_definitions, statistics_columns
from hudi_core.metadata_table.instants import metadata_only_instant
from hudi_core.metadata_table.partition_type import COLUMN_STATS, PARTITION_STATS, STATISTICS
from hudi_core.metadata_table.records.file_statistics import Record
from hudi_core.metadata_table.services.table_services import roll_back_failed
from hudi_core.metadata_table.timeline import MetadataTimeline
from hudi_core.metadata_table.write.delta_writer import DeltaWriter
from hudi_core.model.names import COMMIT_TIME, PARTITION_PATH, RECORD_KEY, WriteToken, spelled
from hudi_core.services.context import TableContext
from hudi_core.services.metadata.column_statistics import ColumnStatisticsReader, check_indexable
from hudi_core.services.metadata.initialization import Snapshot, check_spelling, indexed_table
from hudi_core.services.rollback.verb import clean_failed_writes
from hudi_core.services.waiting import deadline_of, may_be_at_work, wait_for_writers, writers_at_work, writes_of_others
from hudi_core.timeline.instant import Action, Instant
from hudi_core.timeline.timeline import Timeline
from hudi_core.transaction.owner import Owner

log = logging.getLogger(__name__)

_ALWAYS: Final = frozenset({COMMIT_TIME, PARTITION_PATH, RECORD_KEY})
_ROUNDS: Final = 3
_FEW: Final = 100
"""The most files that are left to be read under the table lock. More are read without it first, up to _ROUNDS times."""


def check_columns(context: TableContext, columns: Collection[str]) -> None:
    """Raises ConfigError for no column or one that table or options lack, UnsupportedError for a column's type."""
    if not columns:
        raise ConfigError("no column is named", remedy="name at least one")
    listed = STATISTICS_COLUMNS.read(context.options)
    absent = [name for name in columns if listed and name not in listed and name not in _ALWAYS]
    if absent:
        raise ConfigError(
            f"{STATISTICS_COLUMNS.name} does not name {', '.join(absent)}: writers with that option would take them "
            "out again",
            remedy="name them in the option of all writers, and here",
        )
    table = indexed_table(context, context.active.load())
    check_spelling(table, columns)
    check_indexable(table, tuple(columns))


def add_columns(
    context: TableContext, columns: Collection[str], engine: Engine, owner: Owner, epoch: int = 0
) -> tuple[str, ...]:
    """Adds statistics of `columns` (dotted names) of every file to `column_stats` and an existing `partition_stats`.
    Returns the columns that the index, or a file in it, lacked. Raises, before anything is written,
    MetadataUnavailableError without the index; as check_columns; UnsupportedError for a column without a known range in
    some file; ConflictError while the index is being built, an action that deletes files is pending, or writers leave
    no moment without a write for `airflow_hudi.indexing.catchup_minutes`; LockError. Memory: as ColumnStatisticsReader.
    """
    requirements = tuple(dict.fromkeys(columns))
    _check_index(context.config)
    check_columns(context, requirements)
    workers, deadline = context.workers(engine, epoch), deadline_of(context)
    statistics = ColumnStatisticsReader(requirements, workers)
    while True:
        _read_files(context, statistics)
        if _wait(context, owner, deadline):
            _read_files(context, statistics)
        try:
            with context.lock(owner) as lock:
                return _publish(context.reloaded(), requirements, statistics, workers.token, lock.check)
        except _AtWork as error:
            if time.monotonic() >= deadline:
                raise
            log.info("%s: waited for", error.message)


def drop_columns(context: TableContext, columns: Collection[str], owner: Owner) -> tuple[str, ...]:
    """Takes `columns` out of the index's definition, and returns those that were in it. Raises MetadataUnavailableError
    without the index; ConfigError for a column that every index has, that STATISTICS_COLUMNS names, or when none would
    be left; UnsupportedError in table version 6; ConflictError while the index is being built; LockError.
    """
    with context.lock(owner):
        current = context.reloaded()
        _check_index(current.config)
        definition = _definition(current, current.active.load())
        if definition is None:
            raise UnsupportedError(
                f"table version {current.config.version} does not record which columns are indexed: "
                "readers would go on asking for them",
                path=current.config.path,
                remedy=f"drop the index column_stats, and create it again with {STATISTICS_COLUMNS.name}, which all "
                "writers and readers then need",
            )
        columns = spelled(columns, definition.source_fields)
        kept = tuple(name for name in definition.source_fields if name not in columns)
        dropped = tuple(name for name in definition.source_fields if name in columns)
        _check_drop(current, columns, kept)
        if dropped:
            put_index_definitions(current.storage, current.config, [replace(definition, source_fields=kept)])
    return dropped


def _read_files(context: TableContext, statistics: ColumnStatisticsReader) -> None:
    for _ in range(_ROUNDS):
        snapshot = Snapshot.of(context)
        _check_pending(context.config, snapshot.timeline)
        if statistics.read(context, snapshot) <= _FEW:
            break


def _wait(context: TableContext, owner: Owner, deadline: float) -> bool:
    """Waits for the writes that are pending now, and rolls back dead ones. Returns whether any was pending."""
    awaited = writes_of_others(context, context.active.load())
    if awaited and wait_for_writers(context, awaited, rule=may_be_at_work, deadline=deadline):
        for result in clean_failed_writes(context, owner):
            log.info("%s", result.outcome)
    return bool(awaited)


def _refuse_new_writes(context: TableContext, before: Timeline) -> None:
    """Raises _AtWork where other writes started since timeline `before`."""
    now = context.active.load()
    others = writes_of_others(context, now) - before.requested_times
    if started := [item for item in now if item.requested_time in others]:
        raise _at_work(context, started)


class _AtWork(ConflictError):
    """Writes are at work that do not know the new columns: the definition would name columns that their files lack."""


def _at_work(context: TableContext, writers: Sequence[Instant]) -> _AtWork:
    return _AtWork(
        f"{writers[0].pending_action} {writers[0].requested_time} is at work"
        + (f", with {len(writers) - 1} others" if len(writers) > 1 else ""),
        path=context.active.path_of(writers[0]),
        remedy="run this again when the table's writers rest for a moment",
    )


def _publish(
    context: TableContext,
    columns: tuple[str, ...],
    statistics: ColumnStatisticsReader,
    token: WriteToken,
    guard: Callable[[], None],
) -> tuple[str, ...]:
    """Reads the remaining statistics and writes all records. The caller holds the table lock."""
    storage, config = context.storage, context.config
    _check_index(config)
    # Drawn before the timeline is read: a write that is not pending there gets a later instant, so its ranges count.
    metadata_timeline, data = MetadataTimeline(storage, config, context.clock()), context.active.load()
    newest = max((*data.requested_times, *(item.completed_at for item in data)), default="")
    instant = metadata_timeline.clock.next(metadata_timeline.active.load(), minimum=newest)
    instant = metadata_only_instant(instant, metadata_timeline.features)
    snapshot = Snapshot.of(context)
    timeline, listed = snapshot.timeline, snapshot.committed()
    _check_pending(config, timeline)
    if alive := writers_at_work(context, writes_of_others(context, timeline), may_be_at_work):
        raise _at_work(context, alive)
    statistics.read(context, snapshot)
    definition = _definition(context, timeline)
    missing, gone = list(statistics.missing(listed)), list(statistics.left_over(listed))
    fresh = {column for column, _ in missing}
    if definition is not None:
        fresh.update(set(columns).difference(definition.source_fields))
    recorded: dict[str, Iterable[Record]] = {}
    if missing or gone:
        recorded[COLUMN_STATS] = [*(record for _, record in missing), *gone]
    if fresh and PARTITION_STATS in config.metadata_partitions:
        recorded[PARTITION_STATS] = list(statistics.whole_ranges(context, snapshot))
    guard()
    if recorded:
        roll_back_failed(storage, config, token, context.clock())
        DeltaWriter(metadata_timeline, token).write(instant, recorded)
        guard()
    if definition is not None:
        fields = tuple(dict.fromkeys([*definition.source_fields, *columns]))
        _write_definition(context, definition, fields, timeline)
    return tuple(name for name in columns if name in fresh)


def _write_definition(
    context: TableContext, definition: IndexDefinition, fields: tuple[str, ...], before: Timeline
) -> None:
    """Writes the definition. Restores the older one and raises _AtWork where a write started since `before`."""
    storage, config = context.storage, context.config
    _refuse_new_writes(context, before)  # and again below: a crash in between would leave the definition
    put_index_definitions(storage, config, [replace(definition, source_fields=fields)])
    try:
        _refuse_new_writes(context, before)
    except HudiError:
        put_index_definitions(storage, config, [definition])
        raise


def _definition(context: TableContext, timeline: Timeline) -> IndexDefinition | None:
    """Returns the index's definition, made of options and schema where its file lacks it; None in table version 6."""
    if not context.config.features.merge_modes:
        return None
    table = indexed_table(context, timeline)
    found = table.definitions.get(COLUMN_STATS)
    if found is not None and found.source_fields:
        return found
    return IndexDefinition(
        COLUMN_STATS, COLUMN_STATS, COLUMN_STATS, statistics_columns(table), {}, table.version_of(COLUMN_STATS)
    )


def _check_index(config: TableConfig) -> None:
    """Raises where the index does not exist, or is being built."""
    building = sorted(config.metadata_partitions_inflight.intersection(STATISTICS))
    if building:
        raise ConflictError(
            f"{', '.join(building)} is being built", path=config.path, remedy="run this again when it is there"
        )
    if COLUMN_STATS not in config.metadata_partitions:
        message = "the table has no statistics of columns"
        remedy = "create them with `hudictl metadata create TABLE --partition column_stats`"
        raise MetadataUnavailableError(message, path=config.path, remedy=remedy)


def _check_pending(config: TableConfig, timeline: Timeline) -> None:
    """Raises while an action is pending that would roll back the new records, or delete files before them."""
    late = (Action.RESTORE, Action.CLEAN) if config.features.log_name_has_delta_commit else (Action.RESTORE,)
    for item in timeline.pending().of_actions(*late):
        raise ConflictError(
            f"{item.action} {item.requested_time} is pending", path=config.path, remedy="run it, then this again"
        )


def _check_drop(context: TableContext, gone: Collection[str], kept: Collection[str]) -> None:
    fixed = sorted(_ALWAYS.intersection(gone))
    if fixed and context.config.populate_meta_fields:
        raise ConfigError(f"{', '.join(fixed)}: every index of Hudi's has these columns", remedy="leave them")
    named = sorted(set(STATISTICS_COLUMNS.read(context.options)).intersection(gone))
    if named:
        message = f"{STATISTICS_COLUMNS.name} names {', '.join(named)}"
        remedy = "take them out of the option of all writers first, and here"
        raise ConfigError(message, remedy=remedy)
    if not kept:
        message = "no column would be left"
        remedy = "drop the index with `hudictl metadata drop TABLE --partition column_stats`"
        raise ConfigError(message, remedy=remedy)
