"""One build of planned indexes, from a snapshot of the table to their base files, in file groups that are inflight; and
which actions completed since and are not in it: it may be used when there are none.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from hudi_core.errors import ConflictError, StorageNotFoundError
from hudi_core.metadata_table.indexed_table import load_index_definitions
from hudi_core.metadata_table.initialize.indexing import Build, IndexBuild
from hudi_core.metadata_table.initialize.initialize import Initialization
from hudi_core.metadata_table.initialize.target import NewBaseFile
from hudi_core.metadata_table.partition_type import (
    BLOOM_FILTERS,
    PARTITION_STATS,
    RECORD_INDEX,
    is_row_level,
    moves_rows,
)
from hudi_core.metadata_table.partitions.registry import registered
from hudi_core.metadata_table.read.log_blocks import rolled_back_by
from hudi_core.metadata_table.timeline import MetadataTimeline
from hudi_core.model.names import BaseFileName, WriteToken, parse_data_file
from hudi_core.services.context import TableContext
from hudi_core.services.indexing.resize import settings_for
from hudi_core.services.lifecycle import Run
from hudi_core.services.metadata.initialization import Initializations, Snapshot
from hudi_core.timeline.actions.commit import Operation
from hudi_core.timeline.instant import COMMIT_ACTIONS, Action, Instant
from hudi_core.timeline.timeline import Timeline

_WITHOUT_EFFECT: Final = frozenset({Action.INDEXING, Action.SAVEPOINT, Action.ROLLBACK})
"""They leave the rows and files of completed commits alone; of rollbacks see _rolled_back."""
_REWRITES: Final = frozenset({Operation.COMPACT, Operation.LOG_COMPACT, Operation.CLUSTER})

Written = Mapping[str, Sequence[NewBaseFile]]


@dataclass(frozen=True, slots=True)
class Started:
    """A build of `snapshot` whose partitions are inflight; without its base files, or after a rollback of these."""

    snapshot: Snapshot
    build: Build
    initialized: Sequence[Initialization]
    written: Written | None = None


class IndexBuilder:
    """The builds of one claimed run; `counts` are the file groups by index that its plan or its options require."""

    def __init__(self, run: Run, counts: Mapping[str, int], epoch: int) -> None:
        context = run.context
        self.index = IndexBuild(context.storage, run.instant, WriteToken(0, epoch, 0), context.clock())
        self._context = context
        self._counts = counts
        self._workers = context.workers(run.engine, epoch)
        self._progress = run.progress

    def rows(self, names: Sequence[str]) -> dict[str, int]:
        """Of each data partition, for `start`; without the lock, since base files are read for them."""
        current = self._context.reloaded()
        return self._rows(names, current, Snapshot.of(current))

    def start(self, names: Sequence[str], check: Callable[[], None], rows: Mapping[str, int] | None = None) -> Started:
        """Makes the partitions `names` inflight, under the table lock; `check` raises when that is lost."""
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
    """The instants completed since `before` that some partition of `build` lacks; the caller holds the lock. `early`
    are the instants that the timeline held right after the index was first inflight.

    Hudi's indexer assumes that a deltacommit of the same name has updated every index. That does not hold for a writer
    that had read the properties before the index was inflight, nor for one whose options do not enable it. So the write
    stats of the deltacommit count. Only the record index may lack records of a commit that inserted and deleted no row,
    and whose writer surely knew of the index: writers read the properties again when they commit, behind their instant,
    so one that is not `early` did. A deltacommit that was on the metadata timeline before the build was lost with the
    files of an earlier attempt.
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
    """Commits of the base files that were rolled back since: there is no block that the rollback could cancel."""
    held, older = before.commits().requested_times, before.completed().of_actions(Action.ROLLBACK).requested_times
    rollbacks = (item for item in now.completed().of_actions(Action.ROLLBACK) if item.requested_time not in older)
    return sorted({time for item in rollbacks for time in rolled_back_by(context.active, item)} & held)


def _says_nothing(context: TableContext, item: Instant, name: str, of_base_files: Collection[str]) -> bool:
    """Whether an action writes no record to a partition, so that a missing record is no error."""
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
        return True  # its rows lie within the ranges already, and so they do in those made of the files before it
    names = (parse_data_file(stat.name) for stat in metadata.write_stats())
    wrote_base_files = any(isinstance(parsed, BaseFileName) for parsed in names)
    return name in of_base_files and not metadata.replaced_file_ids and not wrote_base_files


def _only_updated(context: TableContext, item: Instant) -> bool:
    """Whether a commit left every row where it is, and brought none."""
    if item.action not in COMMIT_ACTIONS:
        return False
    metadata = context.active.read_commit(item)
    return not metadata.replaced_file_ids and all(
        stat.num_inserts == 0 and stat.num_deletes == 0 for stat in metadata.write_stats()
    )


def _of_base_files(context: TableContext, names: Iterable[str]) -> frozenset[str]:
    """The indexes that say nothing of log files."""
    definitions = load_index_definitions(context.storage, context.config)
    return frozenset(
        name
        for name in names
        if name == BLOOM_FILTERS or (name in definitions and definitions[name].type == BLOOM_FILTERS)
    )
