"""Runs one planned compaction from `requested` to `completed`, or says that there is nothing to do: the straight line
of every service.

checks → claim → roll an earlier attempt back → inflight → execute → prove → reconcile → complete → clean up

Every step may be cut off: whoever claims the instant next finds its traces and either rolls them back or only cleans
up.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from hudi_core.codec.avro.schema import AvroSchema
from hudi_core.config.table_config import TableConfig
from hudi_core.engine.protocol import Engine
from hudi_core.errors import ConfigError, ConflictError, FormatError, HudiError
from hudi_core.filegroup.merge.policy import MergePolicy
from hudi_core.filegroup.read.table_schema import table_schema
from hudi_core.filegroup.write.markers import delete_markers, list_markers
from hudi_core.metadata_table.extract.data_file import StatisticsRequirements
from hudi_core.metadata_table.read.metadata_table import MetadataTable
from hudi_core.metadata_table.records.file_statistics import FileStatistics
from hudi_core.metadata_table.write.prepare import DRIVER_FILES, Prepared, Workers
from hudi_core.metadata_table.write.publish import MetadataPublisher
from hudi_core.metadata_table.write.staged_logs import forget_staged
from hudi_core.model.ids import FileGroupId
from hudi_core.model.names import parse_base_file
from hudi_core.model.stats import WriteStat
from hudi_core.request.model import InstantResult
from hudi_core.services.after_completion import clean_up_completed
from hudi_core.services.compaction.checks import (
    check_files,
    check_logs,
    check_metadata,
    check_operations,
    check_schema_evolution,
    check_table,
)
from hudi_core.services.compaction.commit_metadata import carried_checkpoints, compaction_metadata, encode_metadata
from hudi_core.services.compaction.merge_slice import compact_operation
from hudi_core.services.compaction.units import base_file_ref, build_units, prove
from hudi_core.services.concurrency import check_early, conflict_checks, file_group_locks
from hudi_core.services.context import TableContext
from hudi_core.services.rollback.attempt import AttemptRollback
from hudi_core.services.service import UnitProgress
from hudi_core.timeline.actions.commit import CommitMetadata, Operation, decode_commit
from hudi_core.timeline.actions.compaction import CompactionPlan
from hudi_core.timeline.instant import Action, Instant, State
from hudi_core.timeline.pending_plans import rollback_target
from hudi_core.timeline.timeline import Timeline
from hudi_core.transaction.claim import CLAIMS, Claim, forget_claims
from hudi_core.transaction.commit import Completer, check_not_rolled_back
from hudi_core.transaction.conflict_candidates import operation_start_at
from hudi_core.transaction.locks.base import TableLock
from hudi_core.transaction.owner import Owner
from hudi_core.transaction.reconcile import base_files_of, check_winners, remove_losers


class CompactionService:
    """See service.Service."""

    name = "compaction"

    def pending(self, context: TableContext, timeline: Timeline) -> list[str]:
        """The compactions that are requested or inflight, oldest first."""
        return [instant.requested_time for instant in timeline.pending_compactions()]

    def run(
        self, context: TableContext, instant: str, engine: Engine, owner: Owner, progress: UnitProgress | None
    ) -> InstantResult:
        """See compaction.run.CompactionRun."""
        return CompactionRun(context, instant, engine, owner, progress).run()


log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Work:
    """What the checks established: how rows merge, and a plan whose files are all there."""

    policy: MergePolicy
    plan: CompactionPlan

    @property
    def partitions(self) -> frozenset[str]:
        """The partitions that the plan writes to."""
        return frozenset(operation.partition for operation in self.plan.operations)

    @property
    def file_groups(self) -> frozenset[FileGroupId]:
        """The file groups that the plan rewrites."""
        return frozenset(operation.file_group for operation in self.plan.operations)


class CompactionRun:
    """One instant's run by one owner. `progress` is called with the units done and all units."""

    def __init__(
        self,
        context: TableContext,
        instant: str,
        engine: Engine,
        owner: Owner,
        progress: Callable[[int, int], None] | None = None,
    ) -> None:
        self._context = context
        self._storage = context.storage
        self._active = context.active
        self._instant = instant
        self._engine = engine
        self._owner = owner
        self._progress = progress

    def run(self) -> InstantResult:
        """Compacts, or returns the completed state when the instant is done already.

        Raises ConfigError, FormatError or StorageNotFoundError before anything is written; ConflictError while somebody
        else runs the instant; ExecutionError and the units' own errors when the work failed, after which the instant
        can be run again.
        """
        started = time.monotonic()
        policy = check_table(self._context)
        timeline = self._active.load()
        if self._find(timeline).is_completed:
            marked = bool(list_markers(self._storage, self._instant))
            clean_up_completed(
                self._context, self._instant, self._owner, lambda: self._clean_up_after_commit(timeline), more=marked
            )
            return self._result([], started)
        work = self._check_plan(policy, timeline)
        with self._claim() as held:
            if self._completer(held).finish_decided(self._instant, usable=self._is_usable) is not None:
                self._clean_up_after_commit(self._active.load())
                stats = []
            else:
                stats = [] if self._find(self._active.load()).is_completed else self._execute_locked(work, held)
        forget_claims(self._storage, self._instant)
        return self._result(stats, started)

    def _is_usable(self, content: bytes) -> bool:
        """Whether the files are all there that an earlier run was about to commit; a foreign rollback may have deleted
        them since.
        """
        metadata = decode_commit(content, path=f"{CLAIMS}/{self._instant}")
        metadata.check_paths(source=f"{CLAIMS}/{self._instant}")
        winners = {stat.path: stat.file_size_in_bytes for stat in metadata.write_stats()}
        found = base_files_of(self._storage, self._instant, metadata.partition_to_write_stats)
        return winners.items() <= {info.path: info.size for info in found}.items()

    def _find(self, timeline: Timeline) -> Instant:
        found = timeline.find(self._instant, Action.COMPACTION)
        if (
            found is None
            or found.pending_action not in (Action.COMPACTION, Action.COMMIT)
            or self._is_plain_commit(found)
        ):
            raise ConfigError(
                f"the timeline holds no compaction at instant {self._instant}",
                path=self._active.folder,
                remedy="list the instants with `hudictl timeline`",
            )
        return found

    def _is_plain_commit(self, found: Instant) -> bool:
        """A write to a copy-on-write table has the class of a compaction; its pending files tell them apart, its
        metadata without them.
        """
        if found.pending_action == Action.COMPACTION:
            return False
        return not found.is_completed or not self._active.read_commit(found).compacted

    def _check_plan(self, policy: MergePolicy, timeline: Timeline) -> Work:
        plan = self._active.read_plan(self._instant)
        check_operations(plan.operations, path=self._active.path(self._instant, Action.COMPACTION, State.REQUESTED))
        latest = timeline.commits().last()
        if latest is not None:
            check_schema_evolution(self._active.read_commit(latest), path=self._active.path_of(latest))
        self._schema(timeline)
        check_files(self._storage, plan.operations)
        check_logs(self._storage, plan.operations)
        if self._context.has_metadata_table:
            check_metadata(MetadataTable(self._storage, self._context.config, timeline), plan.operations)
        return Work(policy, plan)

    def _execute_locked(self, work: Work, held: Claim) -> list[WriteStat]:
        with file_group_locks(self._context, held, work.file_groups):
            return self._execute(work, held)

    def _execute(self, work: Work, held: Claim) -> list[WriteStat]:
        try:
            return self._attempt(work, held)
        except HudiError:
            self._withdraw_if_over(work, held)
            raise

    def _withdraw_if_over(self, work: Work, held: Claim) -> None:
        """Deletes this attempt's own files when the instant is no longer ours to roll back: it has another owner, is
        completed, or is gone.

        Whoever completed it may have cleaned up before our last file was written, so nobody else would look for it. Our
        epoch in the write token tells our files from theirs. An instant that is still ours is left as it is: the next
        attempt rolls it back. So is one that this attempt decided to complete: whoever owns it now completes it with
        these files.
        """
        found = self._active.load().find(self._instant, Action.COMPACTION)
        if held.may_have_decided or (found is not None and not found.is_completed and self._is_owner(held)):
            return
        published = (
            set()
            if found is None or not found.is_completed
            else {stat.path for stat in self._active.read_commit(found).write_stats()}
        )
        for info in base_files_of(self._storage, self._instant, self._touched(work.partitions)):
            if parse_base_file(info.name).token.stage_id == held.epoch and info.path not in published:
                log.warning("%s belongs to an attempt that lost its instant: deleted", info.path)
                self._storage.delete(info.path)

    def _is_owner(self, held: Claim) -> bool:
        try:
            held.check()
        except ConflictError as error:
            log.warning("%s", error)
            return False
        return True

    def _attempt(self, work: Work, held: Claim) -> list[WriteStat]:
        AttemptRollback(self._context, self._instant, Action.COMPACTION, work.partitions, held).run()
        held.check()
        forget_staged(self._storage, self._instant, up_to=held.epoch)
        check_early(self._context, self._active.load(), self._instant, work.file_groups)
        self._active.to_inflight(self._instant, Action.COMPACTION)
        timeline = self._active.load()
        schema = self._schema(timeline)
        publisher = self._context.metadata_publisher(held.epoch)
        requirements = None if publisher is None else publisher.commit_requirements(Operation.COMPACT)
        # Of many files the driver is told nothing but their names: executors make their records, before the lock is
        # taken.
        prepares = requirements is not None and len(work.plan.operations) > DRIVER_FILES
        recorded = None if prepares else requirements
        units = build_units(self._context, self._instant, work.plan, schema, work.policy, timeline, recorded)
        try:
            results = self._engine.run(compact_operation, units, run_epoch=held.epoch, progress=self._progress)
        except FormatError:
            self._take_back(work, held)
            raise
        proven = prove(work.plan, results, self._instant, with_statistics=recorded is not None)
        stats = proven.stats
        held.check()
        winners = {stat.path: stat.file_size_in_bytes for stat in stats}
        check_winners(winners, remove_losers(self._storage, self._instant, self._touched(work.partitions), winners))
        carried = carried_checkpoints(timeline, self._instant, self._active)
        not_rolled_back = partial(
            check_not_rolled_back, instant=self._instant, read_target=partial(rollback_target, self._active)
        )
        metadata = compaction_metadata(stats, schema, carried, self._owner)
        operation_start = operation_start_at(timeline, self._instant)
        conflicts = conflict_checks(
            self._context, self._instant, Action.COMPACTION, Operation.COMPACT, work.file_groups, operation_start
        )
        prepared = None
        if publisher is not None and requirements is not None and prepares:
            workers = Workers(self._engine, held.epoch, self._context.uri, self._context.storage_options)
            prepared = publisher.prepare_commit(
                self._instant, Operation.COMPACT, list(map(base_file_ref, stats)), requirements, workers
            )
        publish = partial(
            self._publish, publisher, metadata, proven.statistics if prepared is None else prepared, requirements
        )
        content = encode_metadata(metadata, self._context.config.features)
        self._completer(held).complete(
            self._instant, Action.COMPACTION, content, publish=publish, preconditions=(not_rolled_back, *conflicts)
        )
        log.info("compaction %s completed: %d files", self._instant, len(stats))
        self._clean_up(self._touched(work.partitions), winners)
        return stats

    def _publish(
        self,
        publisher: MetadataPublisher | None,
        metadata: CommitMetadata,
        statistics: Sequence[FileStatistics] | Prepared,
        requirements: StatisticsRequirements | None,
    ) -> None:
        """Under the lock. An index that was made or dropped meanwhile was not asked what it must know of the files."""
        listed, config = TableConfig.load(self._storage), self._context.config
        if (listed.metadata_partitions, listed.metadata_partitions_inflight) != (
            config.metadata_partitions,
            config.metadata_partitions_inflight,
        ):
            raise ConflictError(
                "the table's metadata table got or lost an index while this ran",
                path=listed.path,
                remedy="run it again",
            )
        if publisher is None or requirements is None:
            return
        if isinstance(statistics, Prepared):
            publisher.publish_prepared(self._instant, metadata, statistics, requirements)
        else:
            publisher.publish_commit(self._instant, metadata, statistics, requirements)

    def _take_back(self, work: Work, held: Claim) -> None:
        """Some bad input shows only when it is read. Nothing was published, so the instant becomes requested again and
        leaves no trace.
        """
        held.check()
        for info in base_files_of(self._storage, self._instant, self._touched(work.partitions)):
            self._storage.delete(info.path)
        delete_markers(self._storage, self._instant)
        self._active.remove(self._instant, Action.COMPACTION, State.INFLIGHT)

    def _clean_up_after_commit(self, timeline: Timeline) -> None:
        metadata = self._active.read_commit(self._find(timeline))
        metadata.check_paths(source=self._active.path_of(self._find(timeline)))
        winners = {stat.path: stat.file_size_in_bytes for stat in metadata.write_stats()}
        self._clean_up(self._touched(frozenset(metadata.partition_to_write_stats)), winners)

    def _clean_up(self, partitions: frozenset[str], winners: dict[str, int]) -> None:
        """Losers first: the markers are what tells the next run that there may be some."""
        remove_losers(self._storage, self._instant, partitions, winners)
        forget_staged(self._storage, self._instant)
        delete_markers(self._storage, self._instant)

    def _touched(self, partitions: frozenset[str]) -> frozenset[str]:
        return partitions | {marker.partition for marker in list_markers(self._storage, self._instant)}

    def _schema(self, timeline: Timeline) -> AvroSchema:
        return table_schema(self._storage, self._context.config, timeline)

    def _claim(self) -> Claim:
        return self._context.claim(self._instant, self._owner)

    def _completer(self, held: Claim) -> Completer:
        return self._context.completer(held, self._owner)

    def _lock(self) -> TableLock:
        return self._context.lock(self._owner)

    def _result(self, stats: list[WriteStat], started: float) -> InstantResult:
        return InstantResult(
            instant=self._instant,
            action=Action.COMPACTION,
            state=State.COMPLETED.value,
            files_written=len(stats),
            bytes_written=sum(stat.file_size_in_bytes for stat in stats),
            records=sum(stat.num_writes for stat in stats),
            seconds=round(time.monotonic() - started, 3),
        )
