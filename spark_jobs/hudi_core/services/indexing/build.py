"""Builds planned indexes, from a snapshot of the table to their base files, in file groups that are inflight. Says how
many file groups an index has, and which actions completed since the snapshot and are not in the build.
docs/guarantees/indexing.md has the steps. metadata_table/read/completeness.py says what a listed index may lack.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from hudi_core.config.metadata_config import (
    FILE_GROUPS,
    PARTITIONED_RECORD_INDEX_MAXIMUM,
    PARTITIONED_RECORD_INDEX_MINIMUM,
    RECORD_INDEX_MAXIMUM,
    RECORD_INDEX_MINIMUM,
)
from hudi_core.config.table_config import TableConfig
from hudi_core.errors import ConfigError, ConflictError, CorruptFileError, StorageNotFoundError
from hudi_core.frozen import dataclass
from hudi_core.metadata_table.indexed_table import load_index_definitions
from hudi_core.metadata_table.initialize.indexing import Build, IndexBuild
from hudi_core.metadata_table.initialize.initialize import Initialization
from hudi_core.metadata_table.initialize.target import NewBaseFile, first_log
from hudi_core.metadata_table.instants import is_early, rolled_back_by
from hudi_core.metadata_table.partition_type import (
    BLOOM_FILTERS,
    PARTITION_STATS,
    RECORD_INDEX,
    is_row_level,
    moves_rows,
)
from hudi_core.metadata_table.partitions.registry import registered
from hudi_core.metadata_table.read.file_group import ROOT, data_files
from hudi_core.metadata_table.timeline import MetadataTimeline
from hudi_core.model.names import BaseFileName, WriteToken, parse_data_file
from hudi_core.model.partition import join
from hudi_core.services.context import TableContext
from hudi_core.services.lifecycle import Run
from hudi_core.services.metadata.initialization import Initializations, Snapshot
from hudi_core.storage.base import Storage
from hudi_core.timeline.actions.commit import Operation
from hudi_core.timeline.actions.indexing import IndexedPartition
from hudi_core.timeline.instant import COMMIT_ACTIONS, Action, Instant
from hudi_core.timeline.timeline import Timeline

log = logging.getLogger(__name__)

GROUPS: Final = "airflow_hudi.file_groups"
"""The key of a file group count in a plan's extra metadata, where the version has it, for all runs of the plan."""


def requested_counts(names: Iterable[str], options: Mapping[str, str]) -> dict[str, int]:
    """The file group counts that the options require, by index. Raises ConfigError when no row-level index is named."""
    count = FILE_GROUPS.read(options)
    if count is None:
        return {}
    found = {name: count for name in names if is_row_level(name)}
    if not found:
        raise ConfigError(
            f"{FILE_GROUPS.name} is for row-level indexes, and none is named",
            remedy="name record_index or a secondary index; the others keep the number of file groups they have",
        )
    return found


def planned_counts(plan: Iterable[IndexedPartition], options: Mapping[str, str], *, path: str) -> dict[str, int]:
    """Returns file group counts by index: those of a plan, else of options. Raises CorruptFileError for no number."""
    given = FILE_GROUPS.read(options)
    found: dict[str, int] = {}
    for item in plan:
        text = item.extra.get(GROUPS)
        if text is not None:
            try:
                found[item.name] = int(FILE_GROUPS.parse(text) or 0)
            except ValueError as error:
                raise CorruptFileError(
                    f"{GROUPS} is {text!r}: {error}", path=path, remedy="drop the plan with `hudictl unschedule`"
                ) from error
        elif given is not None and is_row_level(item.name):
            found[item.name] = given
    return found


def settings_for(count: int) -> dict[str, str]:
    """Hudi's options by which a row-level index is initialized with that many file groups."""
    limits = (
        RECORD_INDEX_MINIMUM,
        RECORD_INDEX_MAXIMUM,
        PARTITIONED_RECORD_INDEX_MINIMUM,
        PARTITIONED_RECORD_INDEX_MAXIMUM,
    )
    return {key.name: str(count) for key in limits}


def group_counts(storage: Storage, name: str) -> dict[str, int]:
    """Returns an index's numbers of file groups by prefix: `record-index`, or one for each data partition."""
    ids = {parsed.file_id for _, parsed in data_files(storage.list_files(f"{ROOT}/{name}"))}
    return dict(Counter(file_id.rsplit("-", 2)[0] for file_id in ids))


def misfits(context: TableContext, config: TableConfig, counts: Mapping[str, int]) -> list[str]:
    """Returns the listed indexes, sorted, with another number of file groups than `counts`, in any data partition."""
    return sorted(
        name
        for name, count in counts.items()
        if name in config.metadata_partitions
        and any(found != count for found in group_counts(context.storage, name).values())
    )


def remove_leftovers(context: TableContext, instant: str, names: Collection[str]) -> None:
    """Deletes the files of the run at `instant` in indexes that a writer of Hudi has built and listed meanwhile. The
    files belong to a deltacommit that is never completed. In version 6 they belong to file groups whose first log file
    is gone, and would count. The caller holds the claim of the instant, and the table lock. May be repeated.
    """
    config = TableConfig.load(context.storage)
    metadata_timeline = MetadataTimeline(context.storage, config, context.clock())
    folders = [f"{ROOT}/{name}" for name in sorted(config.metadata_partitions.intersection(names))]
    pending = metadata_timeline.active.load().pending().find(instant, Action.DELTA_COMMIT)
    for folder in folders:
        files = list(data_files(context.storage.list_files(folder)))
        paths = {info.path for info, _ in files}
        for info, name in files:
            if is_early(name.instant):
                is_left = join(folder, str(first_log(name.file_id, name.instant))) not in paths
            else:
                is_left = pending is not None and name.instant == instant
            if is_left:
                log.warning("%s is of a build that another writer's has replaced: deleted", info.path)
                context.storage.delete(info.path)
    if pending is not None:
        metadata_timeline.active.delete_instant(instant, Action.DELTA_COMMIT)


_WITHOUT_EFFECT: Final = frozenset({Action.INDEXING, Action.SAVEPOINT, Action.ROLLBACK})
"""Actions that do not change the rows and files of completed commits. For rollbacks see _rolled_back."""
_REWRITES: Final = frozenset({Operation.COMPACT, Operation.LOG_COMPACT, Operation.CLUSTER})

Written = Mapping[str, Sequence[NewBaseFile]]


@dataclass(frozen=True, slots=True)
class Started:
    """A build of `snapshot` whose partitions are inflight. `written` is None without base files."""

    snapshot: Snapshot
    build: Build
    initialized: Sequence[Initialization]
    written: Written | None = None


class IndexBuilder:
    """Makes the builds of one claimed run. `counts` are the file groups by index that its plan or options require."""

    def __init__(self, run: Run, counts: Mapping[str, int], epoch: int) -> None:
        context = run.context
        self.index = IndexBuild(context.storage, run.instant, WriteToken(0, epoch, 0), context.clock())
        self._context = context
        self._counts = counts
        self._workers = context.workers(run.engine, epoch)
        self._progress = run.progress

    def rows(self, names: Sequence[str]) -> dict[str, int]:
        """Returns the rows of each data partition, for `start`. Called without the lock, since it reads base files."""
        current = self._context.reloaded()
        return self._rows(names, current, Snapshot.of(current))

    def start(self, names: Sequence[str], check: Callable[[], None], rows: Mapping[str, int] | None = None) -> Started:
        """Makes the partitions `names` inflight, under the table lock. `check` raises when the lock is lost."""
        current = self._context.reloaded()
        snapshot = Snapshot.of(current)
        known = self._rows(names, current, snapshot) if rows is None else rows
        initialized = []
        for name in names:
            count = self._counts.get(name)
            options = current.options if count is None else {**current.options, **settings_for(count)}
            initializations = Initializations(replace(current, options=options), self._workers)
            initialized.append(initializations.initialization(name, snapshot, known))
        check()
        return Started(snapshot, self.index.begin(initialized, snapshot.timeline), initialized)

    def fill(self, started: Started) -> Written:
        """Writes the base files. Raises BuildRolledBackError, and ConflictError where a clean deleted a file."""
        written: dict[str, Sequence[NewBaseFile]] = {}
        try:
            for item in started.initialized:
                written |= self.index.fill(started.build, [item])
                if self._progress is not None:
                    self._progress(len(written), len(started.initialized))
        except StorageNotFoundError as error:
            raise ConflictError(
                f"a file was cleaned while the index was built from it: {error.message}",
                path=error.path,
                remedy="run the indexing again",
            ) from error
        return written

    def rebuilt(self, names: Sequence[str], check: Callable[[], None]) -> tuple[Build, Written]:
        """Builds the partitions `names` to the end, under the table lock; `check` as for start."""
        started = self.start(names, check)
        return started.build, self.fill(started)

    def _rows(self, names: Sequence[str], current: TableContext, snapshot: Snapshot) -> dict[str, int]:
        counted = [name for name in names if name not in self._counts]
        return Initializations(current, self._workers).rows_by_partition(counted, snapshot)


def unrecorded(
    context: TableContext,
    build: Build,
    before: Timeline,
    now: Timeline,
    metadata_timeline: MetadataTimeline,
    early: Collection[str],
) -> list[str]:
    """Returns the instants completed since `before` that some partition of `build` lacks (docs/guarantees/indexing.md,
    5). The caller holds the lock. `early` are the instants on the timeline right after the index was first inflight:
    their writers may have read the properties before. A deltacommit that was on the metadata timeline before the build
    does not count: its records were lost with the files of an earlier attempt.
    """
    known = {(item.requested_time, item.action) for item in before.completed()}
    recorded = metadata_timeline.active.load().completed()
    of_base_files = _of_base_files(context, build.targets)
    behind: list[str] = []
    for item in now.completed():
        time = item.requested_time
        if (time, item.action) in known or item.action in _WITHOUT_EFFECT:
            continue
        silent = [name for name in build.targets if not _says_nothing(context, item, name, of_base_files)]
        found = recorded.find(time, Action.DELTA_COMMIT)
        if silent and found is not None and time not in build.recorded_before:
            wrote = metadata_timeline.active.read_commit(found).partition_to_write_stats
            silent = [name for name in silent if name not in wrote]
            if silent == [RECORD_INDEX] and time not in early and _only_updated(context, item):
                continue
        if silent:
            behind.append(time)
    return [*behind, *_rolled_back(context, before, now)]


def _rolled_back(context: TableContext, before: Timeline, now: Timeline) -> list[str]:
    """Returns commits in the base files that were rolled back since: a command can only roll back log blocks."""
    held, older = before.commits().requested_times, before.completed().of_actions(Action.ROLLBACK).requested_times
    rollbacks = (item for item in now.completed().of_actions(Action.ROLLBACK) if item.requested_time not in older)
    return sorted({time for item in rollbacks for time in rolled_back_by(context.active, item)} & held)


def _says_nothing(context: TableContext, item: Instant, name: str, of_base_files: Collection[str]) -> bool:
    """Whether an action writes no record to a partition. Then a missing record is no error."""
    if item.action == Action.CLEAN:
        found = registered(name)
        return found is not None and not found.updated_by_clean
    if item.action not in COMMIT_ACTIONS:
        return False
    metadata = context.active.read_commit(item)
    if not any(metadata.partition_to_write_stats.values()) and not metadata.replaced_file_ids:
        return True
    if is_row_level(name):
        return not moves_rows(metadata.operation_type)
    if name == PARTITION_STATS and metadata.operation_type in _REWRITES:
        return True  # its rows are within the ranges already, also within ranges that are made of the files before it
    names = (parse_data_file(stat.name) for stat in metadata.write_stats())
    wrote_base_files = any(isinstance(parsed, BaseFileName) for parsed in names)
    return name in of_base_files and not metadata.replaced_file_ids and not wrote_base_files


def _only_updated(context: TableContext, item: Instant) -> bool:
    """Whether a commit left every row where it is, and added none."""
    if item.action not in COMMIT_ACTIONS:
        return False
    metadata = context.active.read_commit(item)
    return not metadata.replaced_file_ids and all(
        stat.num_inserts == 0 and stat.num_deletes == 0 for stat in metadata.write_stats()
    )


def _of_base_files(context: TableContext, names: Iterable[str]) -> frozenset[str]:
    """The indexes that hold nothing of log files."""
    definitions = load_index_definitions(context.storage, context.config)
    return frozenset(
        name
        for name in names
        if name == BLOOM_FILTERS or (name in definitions and definitions[name].type == BLOOM_FILTERS)
    )
