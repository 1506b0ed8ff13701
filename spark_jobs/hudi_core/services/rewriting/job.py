"""The job of a service that rewrites file slices, as compaction and clustering do, or replaces them: the files of its
attempts and their metadata table records.
"""

from __future__ import annotations

import logging
from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar, Generic, TypeVar

from hudi_core.codec.avro.schema import AvroSchema
from hudi_core.config.table_config import TableConfig
from hudi_core.config.write_config import VERIFY
from hudi_core.engine.serializer import to_text
from hudi_core.errors import ConflictError, FormatError, HudiError
from hudi_core.filegroup.read.planned_slices import PlannedSlice
from hudi_core.filegroup.write.markers import delete_markers, list_markers
from hudi_core.metadata_table.extract.data_file import StatisticsRequirements
from hudi_core.metadata_table.partition_type import RECORD_INDEX
from hudi_core.metadata_table.partitions.row_level import SliceChange
from hudi_core.metadata_table.records.file_statistics import DataFileRef, FileStatistics
from hudi_core.metadata_table.row_updates import RowUpdates
from hudi_core.metadata_table.timeline import MetadataTimeline
from hudi_core.metadata_table.write.prepare import DRIVER_FILES
from hudi_core.metadata_table.write.publish import MetadataPublisher, StagedRows
from hudi_core.metadata_table.write.staged_logs import Workers, forget_staged
from hudi_core.model.names import FileGroupId, parse_data_file
from hudi_core.query.slices_plan import reader_spec
from hudi_core.request.results import InstantResult
from hudi_core.services.lifecycle import Completion, Job
from hudi_core.services.metadata.initialization import indexed_table
from hudi_core.services.rewriting.other_writers import check_early, conflict_checks, file_group_locks
from hudi_core.services.rewriting.proof import check_all_rows
from hudi_core.services.rollback.failed_attempt import roll_back_attempt
from hudi_core.storage.one_look import look_again
from hudi_core.timeline.actions.commit import CommitMetadata, encode_commit, encode_commit_avro
from hudi_core.timeline.actions.write_stats import WriteStat
from hudi_core.timeline.instant import State
from hudi_core.timeline.pending_plans import rollback_target
from hudi_core.timeline.timeline import Timeline
from hudi_core.transaction.claim import Claim
from hudi_core.transaction.commit import CheckOwner, Precondition, Publish, check_not_rolled_back
from hudi_core.transaction.concurrent_operations import operation_start_at
from hudi_core.transaction.reconcile import FindFiles, base_files_of, check_winners, remove_losers

log = logging.getLogger(__name__)

Plan = TypeVar("Plan")
UnitResult = TypeVar("UnitResult")
Stats = list[WriteStat]


@dataclass(frozen=True, slots=True)
class Rewritten:
    """The new base files and their write stats, once they are checked against the plan. `statistics` are those of the
    same files in the same order; none where none were required.
    """

    files: Sequence[DataFileRef]
    stats: Stats
    statistics: Sequence[FileStatistics]


class RewriteJob(Job[Plan, Stats], Generic[Plan, UnitResult]):
    """See Job. An attempt that dies is rolled back whole by the next one, since its files have names of their own."""

    looks_once = True
    operation: str
    """The operation type of the commit."""
    conflicts_as: ClassVar[str]
    """The action as which it is compared with concurrent operations (conflict.is_compared)."""
    changes_rows: ClassVar[bool] = False
    """Whether rows come or go. Else each stays as it is, so that secondary indexes, which hold no places, stay, too."""
    adds_partitions = False
    """Whether a record index of each partition gets new ones."""
    find_files: FindFiles = staticmethod(base_files_of)
    """Which files are those of the attempts."""
    _corrupt_blocks = 0

    @abstractmethod
    def file_groups(self, plan: Plan) -> frozenset[FileGroupId]:
        """The file groups that the plan rewrites."""

    @abstractmethod
    def rewrite(
        self, plan: Plan, timeline: Timeline, requirements: StatisticsRequirements | None, held: Claim
    ) -> list[UnitResult]:
        """Lets the engine write the new files; `requirements` say which statistics of each are returned."""

    @abstractmethod
    def prove(self, plan: Plan, results: list[UnitResult], *, with_statistics: bool) -> Rewritten:
        """Shows that the results cover the plan and lose or double no row. Raises ExecutionError."""

    def corrupt_blocks(self, results: list[UnitResult]) -> int:
        """How many corrupt log blocks were passed over."""
        return 0

    def planned(self, plan: Plan) -> list[PlannedSlice]:
        """The slices whose rows are in the new files, one by one, so that both can be compared (check_all_rows)."""
        return []

    def changed_columns(self, plan: Plan) -> frozenset[str]:
        """Columns, besides the file's name, whose values the rewrite changes."""
        return frozenset()

    def moved_rows(self, files: Sequence[DataFileRef]) -> list[SliceChange]:
        """The file groups whose rows came, went or moved, `files` among them; none where each stays in its own."""
        return []

    def expected_files(self, plan: Plan) -> int:
        """How many files the plan leads to, by which the driver or executors make their records."""
        return len(self.file_groups(plan))

    def inflight_content(self, plan: Plan) -> bytes:
        """What the inflight file tells other writers."""
        return b""

    def preconditions(self, plan: Plan, timeline: Timeline) -> tuple[Precondition, ...]:
        """What has to hold under the lock, besides what holds for every such service. `timeline` is that of the start
        of the work.
        """
        return ()

    @abstractmethod
    def metadata(self, plan: Plan, stats: Stats, timeline: Timeline) -> CommitMetadata:
        """The metadata of the commit."""

    def new_schema(self, timeline: Timeline) -> AvroSchema | None:
        """The table's Avro schema behind this instant, without meta fields, where it changes that; else None."""
        return None

    def leftovers(self) -> bool:
        """Markers are deleted last."""
        return bool(list_markers(self.storage, self.instant))

    def locks(self, plan: Plan, held: Claim) -> AbstractContextManager[object]:
        """Those of the plan's file groups, where the options enable them."""
        return file_group_locks(self.context, held, self.file_groups(plan))

    def begin(self, plan: Plan, held: Claim) -> None:
        """Rolls earlier attempts back."""
        roll_back_attempt(self.context, self.instant, self.action, _partitions(self.file_groups(plan)), held)
        held.check()
        if held.epoch > 1:
            forget_staged(self.storage, self.instant, up_to=held.epoch)
        look_again(self.storage)  # Hudi may have dropped the instant since it was claimed
        check_early(self.context, self.active.load(), self.instant, self.file_groups(plan))
        self.active.to_inflight(self.instant, self.action, self.inflight_content(plan))

    def execute(self, plan: Plan, held: Claim) -> Completion[Stats]:
        """Files that no result names are removed, and the statistics of many files are staged, before the lock is
        taken.
        """
        timeline = self.active.load()

        def check_ours() -> None:
            look_again(self.storage)  # the engine's work took a while
            held.check()
            self._check_not_rolled_back(self.active.load(), since=timeline)

        publisher = self.context.metadata_publisher(held.epoch, self.new_schema(timeline))
        requirements = None if publisher is None else publisher.commit_requirements()
        # Of many files the driver gets nothing but their names: executors make their records.
        prepares = requirements is not None and self.expected_files(plan) > DRIVER_FILES
        recorded = None if prepares else requirements
        try:
            results = self.rewrite(plan, timeline, recorded, held)
        except FormatError:
            self._withdraw_bad_input(plan, check_ours)
            raise
        self._corrupt_blocks = self.corrupt_blocks(results)
        if self._corrupt_blocks:
            log.warning(
                "%s %s passed over %d corrupt log blocks, as queries do; no completed commit has rows in them, unless "
                "that was allowed",
                self.operation,
                self.instant,
                self._corrupt_blocks,
            )
        rewritten = self.prove(plan, results, with_statistics=recorded is not None)
        stats, statistics = rewritten.stats, rewritten.statistics
        check_ours()
        winners = _sizes(stats)
        check_winners(winners, self._remove_losers(self._touched(plan), winners, check_ours))
        workers = self.context.workers(self.run.engine, held.epoch)
        planned = self.planned(plan) if VERIFY.read(self.context.options) == "full" else []
        if planned:
            files, ignored = rewritten.files, self.changed_columns(plan)
            check_all_rows(self.context, workers, timeline, self.instant, planned, files, ignored)
        metadata = self.metadata(plan, stats, timeline)
        preconditions: tuple[Precondition, ...] = (
            partial(self._check_not_rolled_back, since=timeline),
            *self.preconditions(plan, timeline),
            *conflict_checks(
                self.context,
                self.instant,
                self.conflicts_as,
                self.operation,
                self.file_groups(plan),
                operation_start_at(timeline, self.instant),
            ),
        )
        publish: Publish | None = None
        if publisher is not None and requirements is not None:
            rows = self._moved_rows(publisher, rewritten.files, timeline, workers)
            if prepares:
                prepared = publisher.prepare_commit(self.instant, list(rewritten.files), requirements, workers)
                publish = partial(publisher.publish_prepared, self.instant, metadata, prepared, requirements, rows=rows)
            else:
                publish = partial(publisher.publish_commit, self.instant, metadata, statistics, requirements, rows=rows)
        return Completion(self._encoded(metadata), stats, partial(self._publish, publish), preconditions)

    def _moved_rows(
        self, publisher: MetadataPublisher, files: Sequence[DataFileRef], timeline: Timeline, workers: Workers
    ) -> StagedRows | None:
        """What became of rows, staged for the row-level indexes."""
        changes = self.moved_rows(files)
        names = publisher.row_indexes if self.changes_rows else publisher.row_indexes & {RECORD_INDEX}
        if not changes or not names:
            return None
        context = self.context
        table = indexed_table(context, timeline)
        metadata_timeline = MetadataTimeline(context.storage, context.config, context.clock())
        spec = reader_spec(context, table.schema, timeline, merge_logs=True).up_to(self.instant)
        updates = RowUpdates(context.storage, table, metadata_timeline, workers, context.zone)
        if not self.adds_partitions:
            groups = publisher.file_groups(names)
            staged = updates.stage(self.instant, self.operation, names, changes, to_text(spec), timeline)
            return StagedRows(groups, staged)
        # An index of each partition gets file groups for new ones, which nobody may take back meanwhile.
        with context.lock(self.owner):
            staged = updates.stage(self.instant, self.operation, names, changes, to_text(spec), timeline)
            return StagedRows(publisher.file_groups(names), staged)

    def _encoded(self, metadata: CommitMetadata) -> bytes:
        """The completed file, as the table's version has it."""
        if self.context.config.features.json_commits:
            return encode_commit(metadata)
        # The schema's default for `version` is 1, but Hudi writes null (CommitMetadataSerDe).
        return encode_commit_avro(replace(metadata, extra={"version": None}))

    def _publish(self, publish: Publish | None, check: CheckOwner) -> None:
        """Under the lock. The files were not read for an index that was created meanwhile."""
        listed, config = TableConfig.load(self.storage), self.context.config
        if (listed.metadata_partitions, listed.metadata_partitions_inflight) != (
            config.metadata_partitions,
            config.metadata_partitions_inflight,
        ):
            raise ConflictError(
                "the table's metadata table got or lost an index while this ran",
                path=listed.path,
                remedy="run it again",
            )
        if publish is not None:
            publish(check)

    def _check_not_rolled_back(self, timeline: Timeline, since: Timeline) -> None:
        check_not_rolled_back(timeline, self.instant, partial(rollback_target, self.active), since)

    def _withdraw_bad_input(self, plan: Plan, check_ours: Callable[[], None]) -> None:
        """Bad input may show only when it is read: the instant is requested again, without files of the attempt."""
        self._remove_losers(self._touched(plan), {}, check_ours)
        check_ours()
        delete_markers(self.storage, self.instant)
        self.active.remove(self.instant, self.action, State.INFLIGHT)

    def withdraw(self, plan: Plan, held: Claim, error: HudiError) -> None:
        """Deletes this attempt's own files, by the epoch in their write token, when the instant has another owner, is
        completed, or is gone: no other run would look for a file written after its clean-up.

        An instant that is still ours is rolled back by the next attempt. One that this attempt decided to complete is
        completed with these files by its next owner.
        """
        found = self.active.load().find(self.instant, self.action)
        if held.may_have_decided or (found is not None and not found.is_completed and _is_owner(held)):
            return
        published = (
            set()
            if found is None or not found.is_completed
            else {stat.path for stat in self.active.read_commit(found).write_stats()}
        )
        for info in self.find_files(self.storage, self.instant, self._touched(plan)):
            name = parse_data_file(info.name)
            token = None if name is None else name.token
            if token is not None and token.stage_id == held.epoch and info.path not in published:
                log.warning("%s belongs to an attempt that lost its instant: deleted", info.path)
                self.storage.delete(info.path)

    def clean_up(self, plan: Plan, done: Stats) -> None:
        """Removes the files of other attempts, what was staged, and the markers."""
        self._clean_up(self._touched(plan), _sizes(done))

    def clean_up_completed(self, *, decided: bool) -> None:
        """As clean_up, by what the commit says."""
        found = self.find(self.active.load())
        metadata = self.active.read_commit(found)
        metadata.check_paths(source=self.active.path_of(found))
        self._clean_up(self._marked().union(metadata.partition_to_write_stats), _sizes(metadata.write_stats()))

    def _clean_up(self, partitions: frozenset[str], winners: dict[str, int]) -> None:
        """The markers last: by them the next run knows that there may be files of other attempts."""
        self._remove_losers(partitions, winners)
        forget_staged(self.storage, self.instant)
        delete_markers(self.storage, self.instant)

    def _remove_losers(
        self, partitions: frozenset[str], winners: dict[str, int], check: Callable[[], None] = lambda: None
    ) -> dict[str, int]:
        return remove_losers(self.storage, self.instant, partitions, winners, self.find_files, check=check)

    def _touched(self, plan: Plan) -> frozenset[str]:
        return _partitions(self.file_groups(plan)) | self._marked()

    def _marked(self) -> frozenset[str]:
        return frozenset(marker.partition for marker in list_markers(self.storage, self.instant))

    def result(self, done: Stats | None, seconds: float) -> InstantResult:
        """Files, bytes and rows written."""
        stats = done or []
        return replace(
            super().result(done, seconds),
            files_written=len(stats),
            bytes_written=sum(stat.file_size_in_bytes for stat in stats),
            records=sum(stat.num_writes for stat in stats),
            corrupt_log_blocks=self._corrupt_blocks,
        )


def _partitions(groups: Iterable[FileGroupId]) -> frozenset[str]:
    return frozenset(group.partition for group in groups)


def _sizes(stats: Iterable[WriteStat]) -> dict[str, int]:
    return {stat.path: stat.file_size_in_bytes for stat in stats}


def _is_owner(held: Claim) -> bool:
    try:
        held.check()
    except ConflictError as error:
        log.warning("%s", error)
        return False
    return True
