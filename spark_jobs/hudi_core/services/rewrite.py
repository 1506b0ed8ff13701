"""The job of a service that rewrites file slices, as compaction does: the files of its attempts and their metadata
table records.
"""

from __future__ import annotations

import logging
from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar, Generic, TypeVar

from hudi_core.config.table_config import TableConfig
from hudi_core.engine.protocol import UnitTask
from hudi_core.errors import ConflictError, FormatError, HudiError
from hudi_core.filegroup.write.markers import delete_markers, list_markers
from hudi_core.metadata_table.extract.data_file import StatisticsRequirements
from hudi_core.metadata_table.records.file_statistics import DataFileRef, FileStatistics
from hudi_core.metadata_table.write.prepare import DRIVER_FILES
from hudi_core.metadata_table.write.staged_logs import forget_staged
from hudi_core.model.claim_names import CLAIMS
from hudi_core.model.names import FileGroupId, parse_data_file
from hudi_core.request.results import InstantResult
from hudi_core.services.concurrency import check_early, conflict_checks, file_group_locks
from hudi_core.services.lifecycle import Completion, Job
from hudi_core.services.rollback.failed_attempt import roll_back_attempt
from hudi_core.timeline.actions.commit import CommitMetadata, decode_commit, encode_commit, encode_commit_avro
from hudi_core.timeline.actions.write_stats import WriteStat
from hudi_core.timeline.instant import State
from hudi_core.timeline.pending_plans import rollback_target
from hudi_core.timeline.timeline import Timeline
from hudi_core.transaction.claim import Claim
from hudi_core.transaction.commit import Precondition, check_not_rolled_back
from hudi_core.transaction.concurrent_operations import operation_start_at
from hudi_core.transaction.reconcile import FindFiles, base_files_of, check_winners, remove_losers

log = logging.getLogger(__name__)

Plan = TypeVar("Plan")
Unit = TypeVar("Unit")
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


class RewriteJob(Job[Plan, Stats], Generic[Plan, Unit, UnitResult]):
    """See Job. An attempt that dies is rolled back whole by the next one, since its files have names of their own."""

    operation: ClassVar[str]
    """The operation type of the commit."""
    find_files: FindFiles = staticmethod(base_files_of)
    """Which files are those of the attempts."""

    @property
    @abstractmethod
    def task(self) -> UnitTask[Unit, UnitResult]:
        """What the engine does with each unit."""

    @abstractmethod
    def file_groups(self, plan: Plan) -> frozenset[FileGroupId]:
        """The file groups that the plan rewrites."""

    @abstractmethod
    def units(self, plan: Plan, timeline: Timeline, requirements: StatisticsRequirements | None) -> list[Unit]:
        """One unit for each new file; `requirements` say which statistics of it are returned."""

    @abstractmethod
    def prove(self, plan: Plan, results: list[UnitResult], *, with_statistics: bool) -> Rewritten:
        """Shows that the results cover the plan and lose or double no row. Raises ExecutionError."""

    @abstractmethod
    def metadata(self, plan: Plan, stats: Stats, timeline: Timeline) -> CommitMetadata:
        """The metadata of the commit."""

    def preconditions(self, plan: Plan) -> tuple[Precondition, ...]:
        """What else must hold under the lock."""
        return ()

    def leftovers(self) -> bool:
        """Markers are deleted last."""
        return bool(list_markers(self.storage, self.instant))

    def is_usable(self, content: bytes) -> bool:
        """Whether the files are all there that an earlier run was about to commit; a foreign rollback may have deleted
        them since.
        """
        metadata = decode_commit(content, path=f"{CLAIMS}/{self.instant}")
        metadata.check_paths(source=f"{CLAIMS}/{self.instant}")
        found = self.find_files(self.storage, self.instant, metadata.partition_to_write_stats)
        return _sizes(metadata.write_stats()).items() <= {info.path: info.size for info in found}.items()

    def locks(self, plan: Plan, held: Claim) -> AbstractContextManager[object]:
        """Those of the plan's file groups, where the options enable them."""
        return file_group_locks(self.context, held, self.file_groups(plan))

    def begin(self, plan: Plan, held: Claim) -> None:
        """Rolls earlier attempts back."""
        roll_back_attempt(self.context, self.instant, self.action, _partitions(self.file_groups(plan)), held)
        held.check()
        forget_staged(self.storage, self.instant, up_to=held.epoch)
        check_early(self.context, self.active.load(), self.instant, self.file_groups(plan))
        self.active.to_inflight(self.instant, self.action)

    def execute(self, plan: Plan, held: Claim) -> Completion[Stats]:
        """Files that no result names are removed, and the statistics of many files are staged, before the lock is
        taken.
        """
        timeline = self.active.load()
        publisher = self.context.metadata_publisher(held.epoch)
        requirements = None if publisher is None else publisher.commit_requirements(self.operation)
        # Of many files the driver gets nothing but their names: executors make their records.
        prepares = requirements is not None and len(self.file_groups(plan)) > DRIVER_FILES
        recorded = None if prepares else requirements
        units = self.units(plan, timeline, recorded)
        try:
            results = self.run.engine.run(self.task, units, run_epoch=held.epoch, progress=self.run.progress)
        except FormatError:
            self._withdraw_bad_input(plan, held)
            raise
        rewritten = self.prove(plan, results, with_statistics=recorded is not None)
        stats, statistics = rewritten.stats, rewritten.statistics
        held.check()
        winners = _sizes(stats)
        check_winners(winners, self._remove_losers(self._touched(plan), winners))
        metadata = self.metadata(plan, stats, timeline)
        preconditions: tuple[Precondition, ...] = (
            partial(check_not_rolled_back, instant=self.instant, read_target=partial(rollback_target, self.active)),
            *self.preconditions(plan),
            *conflict_checks(
                self.context,
                self.instant,
                self.action,
                self.operation,
                self.file_groups(plan),
                operation_start_at(timeline, self.instant),
            ),
        )
        publish: Callable[[], None] | None = None
        if publisher is not None and requirements is not None:
            if prepares:
                workers = self.context.workers(self.run.engine, held.epoch)
                prepared = publisher.prepare_commit(
                    self.instant, self.operation, list(rewritten.files), requirements, workers
                )
                publish = partial(publisher.publish_prepared, self.instant, metadata, prepared, requirements)
            else:
                publish = partial(publisher.publish_commit, self.instant, metadata, statistics, requirements)
        return Completion(self._encoded(metadata), stats, partial(self._publish, publish), preconditions)

    def _encoded(self, metadata: CommitMetadata) -> bytes:
        """The completed file, as the table's version has it."""
        if self.context.config.features.json_commits:
            return encode_commit(metadata)
        # The schema's default for `version` is 1, but Hudi writes null (CommitMetadataSerDe).
        return encode_commit_avro(replace(metadata, extra={"version": None}))

    def _publish(self, publish: Callable[[], None] | None) -> None:
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
            publish()

    def _withdraw_bad_input(self, plan: Plan, held: Claim) -> None:
        """Bad input may show only when it is read: the instant is requested again, without files of the attempt."""
        held.check()
        for info in self.find_files(self.storage, self.instant, self._touched(plan)):
            self.storage.delete(info.path)
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

    def _remove_losers(self, partitions: frozenset[str], winners: dict[str, int]) -> dict[str, int]:
        return remove_losers(self.storage, self.instant, partitions, winners, self.find_files)

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
