"""Compacts the metadata table (HoodieBackedTableMetadataWriter.performTableServices): plan, merge of each file group,
commit. This module also says when a compaction is due. table_services.py has clean and archival.

An unfinished compaction is finished first, by its own plan. A process that dies before the commit completes leaves base
files that no reader counts; the next attempt deletes them before it completes the same plan.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial

from hudi_core.config.metadata_config import METADATA_DELTA_COMMITS
from hudi_core.config.table_config import TableConfig
from hudi_core.config.versions import TableVersion
from hudi_core.errors import ExecutionError
from hudi_core.filegroup.read.planned_slices import PlanCheck, PlannedSlice
from hudi_core.frozen import dataclass
from hudi_core.metadata_table.instants import OperationSuffix, latest_compaction
from hudi_core.metadata_table.read.file_group import ROOT, BlockFilter, LatestSlice
from hudi_core.metadata_table.read.snapshot import MetadataTableSnapshot
from hudi_core.metadata_table.record import block_schema
from hudi_core.metadata_table.services.merge_group import CompactedGroup, GroupUnit, compact_group, compact_group_task
from hudi_core.metadata_table.timeline import NEWER_COUNTS, MetadataTimeline, ServiceOutcome, latest_schema
from hudi_core.metadata_table.write.staged_logs import Workers
from hudi_core.model.names import (
    BaseFileName,
    FileGroupId,
    WriteToken,
    parse_base_file,
    parse_data_file,
    parse_log_file,
)
from hudi_core.model.partition import join
from hudi_core.storage.base import FileInfo, Storage
from hudi_core.timeline.actions.commit import SCHEMA_KEY, CommitMetadata, Operation
from hudi_core.timeline.actions.compaction import (
    CompactionOperation,
    CompactionPlan,
    encode_compaction_plan,
    metrics_of,
)
from hudi_core.timeline.actions.write_stats import WriteStat
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.timeline.instant import Action, Instant, State
from hudi_core.timeline.instant_time import earlier
from hudi_core.timeline.timeline import Timeline
from hudi_core.transaction.instant_generator import InstantClock
from hudi_core.transaction.reconcile import remove_losers
from hudi_core.view.file_group import DataFile, FileSlice


@dataclass(frozen=True, slots=True)
class Due:
    """A due compaction at `instant`, without log files of instants completed at `before` or later (layout 1: None)."""

    instant: str
    before: str | None


def due(
    data: Timeline, metadata_timeline: Timeline, features: TableVersion, *, trigger: int, draw: Callable[[], str]
) -> Due | str:
    """Returns the compaction that is due after `trigger` deltacommits, or the reason why none is due. Without I/O, but
    for `draw`, which returns a new instant. `data` and `metadata_timeline` were loaded under the table lock; on the
    metadata timeline no instant is pending that could be finished or rolled back.
    """
    deltas = metadata_timeline.completed().of_actions(Action.DELTA_COMMIT)
    latest = deltas.last()
    if latest is None:
        return "the metadata table holds no deltacommit"
    merging = metadata_timeline.pending_log_compactions().first()
    if merging is not None:
        return f"log compaction {merging.requested_time} of the metadata table is pending"
    last = latest_compaction(metadata_timeline)
    if last is None:
        since = len(deltas)
    elif features.completion_time_in_name:
        since = len(deltas.filter(lambda item: item.completed_at > last.requested_time))
    else:
        since = len(deltas.after(last.requested_time))
    if since < trigger:
        return f"{since} deltacommits since the last compaction, but {METADATA_DELTA_COMMITS.name} is {trigger}"
    building = _building(data, metadata_timeline)
    if building is not None:
        return (
            f"indexing {building.requested_time} is building an index: compacted now, the index would lose what was "
            "there before it"
        )
    if features.metadata_needs_rest:
        return _due_at_rest(data, metadata_timeline, latest.requested_time)
    recorded = metadata_timeline.completed().requested_times
    # A write that is recorded here but pending on the data table may be rolled back: it and later ones stay out.
    first = next((item for item in data.pending_changes() if item.requested_time in recorded), None)
    instant = draw() if first is None else earlier(first.requested_time, 1)
    if instant in recorded or (last is not None and instant <= last.requested_time):
        return (
            f"the metadata table was compacted at {instant} or later, and {first.requested_time if first else ''} is "
            "pending since"
        )
    return Due(instant, instant)


def _building(data: Timeline, metadata_timeline: Timeline) -> Instant | None:
    """Returns the indexing action that builds an index now: a compaction would hide the index's base files."""
    inflight = (item for item in data.pending().of_actions(Action.INDEXING) if item.state is State.INFLIGHT)
    recorded = metadata_timeline.completed().requested_times
    return next((item for item in inflight if item.requested_time not in recorded), None)


def _due_at_rest(data: Timeline, metadata_timeline: Timeline, latest: str) -> Due | str:
    pending = [item.requested_time for item in data.pending_changes() if item.requested_time <= latest]
    if pending:
        return f"actions of the table are pending that the metadata table may have recorded: {', '.join(pending)}"
    instant = OperationSuffix.COMPACTION.of(latest)
    if instant in metadata_timeline.completed().requested_times:
        return f"the metadata table was compacted at {instant}, and nothing was written to it since"
    earlier = [
        item.requested_time
        for item in metadata_timeline.pending()
        if item.action == Action.DELTA_COMMIT and item.requested_time <= instant
    ]
    if earlier:
        return f"deltacommits of the metadata table are pending: {', '.join(earlier)}"
    return Due(instant, None)


def compaction_plan(
    places: Iterable[LatestSlice], metadata_timeline: Timeline, before: str | None, features: TableVersion
) -> CompactionPlan:
    """Returns a plan with one operation for every file group that has log files completed before `before`."""
    completions = {item.requested_time: item.completed_at for item in metadata_timeline.commits()}
    operations = []
    for place in places:
        logs = [
            info
            for info in place.logs
            if before is None or _is_planned(parse_log_file(info.name).instant, place, before, completions)
        ]
        if logs:
            operations.append(_operation(place, logs))
    return CompactionPlan(tuple(operations), extra_metadata={} if features.merge_modes else None)


def _operation(place: LatestSlice, logs: Sequence[FileInfo]) -> CompactionOperation:
    base_bytes = None if place.base_file is None else place.base_file.size
    metrics = metrics_of([(base_bytes, (info.size for info in logs))])
    base_file = None if place.base_file is None else place.base_file.name
    names = tuple(info.name for info in logs)
    return CompactionOperation(place.partition, place.file_id, place.base_instant, base_file, names, metrics)


def _is_planned(instant: str, place: LatestSlice, before: str, completions: dict[str, str]) -> bool:
    """Returns whether the plan takes a log file of `instant`. An instant that is not on the timeline is archived; where
    it is older than the base file, the log file was merged, and Hudi may clean it.
    """
    if (
        instant not in completions
        and place.base_file is not None
        and instant < parse_base_file(place.base_file.name).instant
    ):
        return False
    return completions.get(instant, "") < before


log = logging.getLogger(__name__)


@dataclass(frozen=True)
class MetadataCompaction:
    """Compacts the metadata table. The caller holds the table lock; `guard` raises when the lock is lost (the default
    is for a table of one process). With `workers`, tasks merge the file groups; else this process merges them one after
    the other. Memory: compact_group's.
    """

    storage: Storage
    config: TableConfig
    token: WriteToken
    clock: InstantClock | None = None
    workers: Workers | None = None
    guard: Callable[[], None] = lambda: None

    @cached_property
    def _metadata_timeline(self) -> MetadataTimeline:
        return MetadataTimeline(self.storage, self.config, self.clock)

    def run(self, trigger: int = METADATA_DELTA_COMMITS.default) -> ServiceOutcome:
        """Finishes the pending compactions; without any, compacts where `trigger` deltacommits came since the last
        compaction. Raises the errors of MetadataTableSnapshot.checked_slices, compact_group and `guard`, and
        ExecutionError when results do not fit the plan. After an error readers see no change; the next run continues.
        """
        finished = self.finish()
        if finished.instants:
            return finished
        data = ActiveTimeline(self.storage, self.config).load()
        active, features = self._metadata_timeline.active, self._metadata_timeline.features
        timeline = active.load()

        def draw() -> str:
            """Returns an instant after all times on both timelines: log files completed before it are compacted."""
            latest = max((item.completed_at for item in (*data, *timeline)), default="")
            return self._metadata_timeline.clock.next(timeline, minimum=latest)

        decided = due(data, timeline, features, trigger=trigger, draw=draw)
        if isinstance(decided, str):
            return ServiceOutcome(reason=decided)
        self._check_files(data)
        # Listed partitions, and partitions that are being built; a crash left any other folder.
        kept = self.config.metadata_partitions | self.config.metadata_partitions_inflight
        places = [place for place in self._metadata_timeline.all_slices(timeline) if place.partition in kept]
        plan = compaction_plan(places, timeline, decided.before, features)
        if not plan.operations:
            return ServiceOutcome(reason="no file group of the metadata table has a log file to compact")
        active.create_requested(decided.instant, Action.COMPACTION, encode_compaction_plan(plan))
        return self._execute_all([decided.instant], data)

    def finish(self) -> ServiceOutcome:
        """Executes the compactions that are planned and not completed, oldest first. Raises the errors of run."""
        pending = [item.requested_time for item in self._metadata_timeline.active.load().pending_compactions()]
        if not pending:
            return ServiceOutcome(reason="no compaction of the metadata table is pending")
        data = ActiveTimeline(self.storage, self.config).load()
        self._check_files(data)
        return self._execute_all(pending, data)

    def _check_files(self, data: Timeline) -> None:
        """Checks all partitions' files: after a compaction, lost records of a cut log file would be lost forever."""
        snapshot = MetadataTableSnapshot(self.storage, self.config, data)
        for partition in sorted(self.config.metadata_partitions):
            snapshot.checked_slices(partition)

    def _execute_all(self, instants: Sequence[str], data: Timeline) -> ServiceOutcome:
        stats = [stat for instant in instants for stat in self._execute(instant, data)]
        return ServiceOutcome(tuple(instants), len(stats), sum(stat.file_size_in_bytes for stat in stats))

    def _execute(self, instant: str, data: Timeline) -> list[WriteStat]:
        active = self._metadata_timeline.active
        plan = active.read_plan(instant)
        blocks = MetadataTableSnapshot(self.storage, self.config, data).blocks
        slices = self._checked_slices(plan, instant, active.load(), blocks)
        active.to_inflight(instant, Action.COMPACTION)
        timeline = active.load()
        schema = latest_schema(active, timeline)
        uri, options = ("", {}) if self.workers is None else (self.workers.uri, self.workers.storage_options)
        stored, entries = block_schema(schema), self._metadata_timeline.features.metadata_bloom_entries
        units = [GroupUnit(uri, options, item, blocks, instant, stored, entries) for item in slices]
        self._remove_losers(plan, instant, ())
        results = self._run(units)
        stats = _prove(plan, results, instant, newer=not self._metadata_timeline.features.json_commits)
        self._remove_losers(plan, instant, stats)
        self.guard()
        self._metadata_timeline.complete(instant, Action.COMPACTION, self._content(stats, schema))
        log.info("the metadata table is compacted at %s: %d files", instant, len(stats))
        return stats

    def _checked_slices(
        self, plan: CompactionPlan, instant: str, timeline: Timeline, blocks: BlockFilter
    ) -> list[FileSlice]:
        """Returns the file slices that the plan names; the plan may be another writer's. Checks before that they are
        the file slices at the plan's instant. An index that is being built is not checked: its base files appear after
        the plan, under an older instant, and are written again when the build goes on.
        """
        folders = sorted({f"{ROOT}/{item.partition}" for item in plan.operations})
        listed = {folder: self.storage.list_files(folder) for folder in folders}
        sizes = {folder: {info.name: info.size for info in files} for folder, files in listed.items()}
        slices = []
        for item in plan.operations:
            sized = partial(_sized, item.partition, sizes[f"{ROOT}/{item.partition}"])
            base = None if item.base_file is None else sized(item.base_file)
            slices.append(FileSlice(item.file_group, item.base_instant, base, tuple(map(sized, item.log_files))))
        active = self._metadata_timeline.active
        path = active.path(instant, Action.COMPACTION, State.REQUESTED)
        completions = {item.requested_time: item.completed_at for item in timeline.commits()}

        def commit_of(requested: str) -> CommitMetadata | None:
            found = next((item for item in timeline.commits() if item.requested_time == requested), None)
            return None if found is None else active.read_commit(found)

        PlanCheck(
            self.storage, timeline, active.layout, completions.get, blocks.instants.__contains__, commit_of
        ).check(
            [
                PlannedSlice(FileGroupId(f"{ROOT}/{item.partition}", item.file_id), item.base_file, item.log_files)
                for item in plan.operations
                if item.partition not in self.config.metadata_partitions_inflight
            ],
            listed,
            instant=instant,
            path=path,
            remedy="drop the metadata table: hudictl metadata drop TABLE, then hudictl metadata create TABLE",
        )
        return slices

    def _run(self, units: Sequence[GroupUnit]) -> Sequence[CompactedGroup]:
        if self.workers is not None:
            return self.workers.engine.run(compact_group_task, units, run_epoch=self.workers.epoch)
        return [
            compact_group(self.storage, unit, replace(self.token, partition_id=at)) for at, unit in enumerate(units)
        ]

    def _remove_losers(self, plan: CompactionPlan, instant: str, stats: Iterable[WriteStat]) -> None:
        """Removes base files that dead attempts left or write late: they would count beside ours."""
        winners = {f"{ROOT}/{stat.path}": stat.file_size_in_bytes for stat in stats}
        partitions = {f"{ROOT}/{item.partition}" for item in plan.operations}
        remove_losers(self.storage, instant, partitions, winners, check=self.guard)

    def _content(self, stats: Sequence[WriteStat], schema: str) -> bytes:
        partitions = dict.fromkeys(stat.partition_path for stat in stats)
        by_partition = {name: tuple(stat for stat in stats if stat.partition_path == name) for name in partitions}
        metadata = CommitMetadata(by_partition, True, Operation.COMPACT, {SCHEMA_KEY: schema})
        return self._metadata_timeline.commit_content(metadata)


def _sized(partition: str, sizes: Mapping[str, int], name: str) -> DataFile:
    if name not in sizes:
        message = f"the compaction's plan names {name}, which is not there"
        remedy = "restore the file, or drop the metadata table and create it again"
        raise ExecutionError(message, path=f"{ROOT}/{partition}", remedy=remedy)
    return DataFile(partition, name, sizes[name])


def _prove(plan: CompactionPlan, results: Sequence[CompactedGroup], instant: str, *, newer: bool) -> list[WriteStat]:
    if len(results) != len(plan.operations):
        raise ExecutionError(f"the plan has {len(plan.operations)} operations, but {len(results)} results came back")
    stats = []
    for operation, result in zip(plan.operations, results, strict=True):
        if result.name is None and operation.base_file is None:
            continue
        name = parse_data_file(str(result.name))
        if (
            not isinstance(name, BaseFileName)
            or (name.file_id, name.instant) != (operation.file_id, instant)
            or result.size <= 0
        ):
            raise ExecutionError(f"a task wrote {result.name!r}", path=join(operation.partition, operation.file_id))
        stats.append(_stat(operation, result, newer=newer))
    return stats


def _stat(operation: CompactionOperation, result: CompactedGroup, *, newer: bool) -> WriteStat:
    """Returns a compacted file group's write stat, like HoodieCompactor, HoodieMergeHandle and HoodieCreateHandle."""
    counts = result.counts
    log_bytes = int(operation.metrics.get("TOTAL_LOG_FILES_SIZE", 0))
    extra = {**NEWER_COUNTS, "prevBaseFile": operation.base_file} if newer else {}
    return WriteStat(
        file_id=operation.file_id,
        path=join(operation.partition, str(result.name)),
        partition_path=operation.partition,
        prev_commit="null" if operation.base_file is None else operation.base_instant,
        num_writes=result.records,
        num_deletes=counts.deleted,
        num_update_writes=counts.updated,
        num_inserts=counts.inserted,
        file_size_in_bytes=result.size,
        total_write_bytes=result.size,
        total_log_records=counts.in_logs,
        total_log_files_compacted=len(operation.log_files),
        total_log_size_compacted=log_bytes,
        total_updated_records_compacted=counts.log_keys,
        total_log_blocks=len(operation.log_files),
        extra=extra,
    )
