"""The job of a service whose attempts write data files. It rewrites file slices, or replaces them.

RewriteJob is what all of them do of the lifecycle around `execute`. In `execute` a service calls the stages of an
Attempt one after the other, with its own work on files and rows between them.
"""

from __future__ import annotations

import json
import logging
from abc import abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, TypeVar

from hudi_core.codec.avro.schema import AvroSchema
from hudi_core.config.concurrency_config import FILE_GROUP_LOCKS
from hudi_core.config.rows_config import VERIFY
from hudi_core.config.table_config import TableConfig
from hudi_core.engine.serializer import to_text
from hudi_core.errors import ConfigError, ConflictError, FormatError, HudiError
from hudi_core.filegroup.write.markers import delete_markers, list_markers
from hudi_core.metadata_table.extract.data_file import StatisticsRequirements
from hudi_core.metadata_table.partition_type import RECORD_INDEX
from hudi_core.metadata_table.partitions.row_level import SliceChange
from hudi_core.metadata_table.records.file_statistics import DataFileRef, FileStatistics
from hudi_core.metadata_table.row_updates import RowUpdates
from hudi_core.metadata_table.timeline import MetadataTimeline
from hudi_core.metadata_table.write.publish import MetadataPublisher
from hudi_core.metadata_table.write.staged_logs import DRIVER_FILES, Prepared, forget_staged
from hudi_core.model.names import FileGroupId, parse_data_file
from hudi_core.query.context import reader_spec
from hudi_core.request.results import InstantResult
from hudi_core.services.lifecycle import Completion, Job
from hudi_core.services.metadata.initialization import indexed_table
from hudi_core.services.rewriting.checks import planned_slices
from hudi_core.services.rewriting.other_writers import check_early, conflict_checks
from hudi_core.services.rewriting.proof import Rewritten
from hudi_core.services.rewriting.row_sums import check_all_rows
from hudi_core.services.rollback.failed_attempt import has_markers, is_first_attempt, roll_back_attempt
from hudi_core.storage.one_look import look_again
from hudi_core.timeline.actions.commit import SCHEMA_KEY, CommitMetadata, encode_commit, encode_commit_avro
from hudi_core.timeline.actions.compaction import CompactionOperation
from hudi_core.timeline.actions.replacecommit import ClusteringSlice
from hudi_core.timeline.actions.write_stats import WriteStat, sizes_of
from hudi_core.timeline.instant import State
from hudi_core.timeline.pending_plans import rollback_target
from hudi_core.timeline.timeline import Timeline
from hudi_core.transaction.claim import Claim
from hudi_core.transaction.commit import CheckOwner, Precondition, Publish, check_not_rolled_back
from hudi_core.transaction.concurrent_operations import operation_start_at
from hudi_core.transaction.file_group_locks import FileGroupLocks
from hudi_core.transaction.reconcile import FindFiles, base_files_of, check_winners, remove_losers
from hudi_core.view.file_group import DataFile, slice_of_base

log = logging.getLogger(__name__)

Plan = TypeVar("Plan")


class RewriteJob(Job[Plan, Rewritten]):
    """The job of a service that writes data files. Rolls a dead attempt back, whose files have names of their own."""

    looks_once = True
    operation: str
    """The operation type of the commit."""
    conflicts_as: str
    """The action by which the job is compared with concurrent operations (conflict.is_compared)."""
    changes_rows: ClassVar[bool] = False
    """Whether rows come or go. Else each row stays as it is; so secondary indexes, which hold no places, stay too."""
    leaves_partitions: ClassVar[bool] = True
    """Whether an attempt may write to other partitions than those of its file groups."""
    required: StatisticsRequirements | None = None
    """What the metadata table needs of each new file, as far as `check` has found it."""
    has_staged = False
    """Whether this attempt may have staged metadata records. `begin` removes those of earlier attempts."""
    find_files: FindFiles = staticmethod(base_files_of)
    """Finds the files of the attempts."""

    @abstractmethod
    def file_groups(self, plan: Plan) -> frozenset[FileGroupId]:
        """Returns the file groups that the plan rewrites or replaces."""

    def inflight_content(self, plan: Plan) -> bytes:
        """Returns the content of the inflight file, for other writers."""
        return b""

    def absent(self, called: str) -> ConfigError:
        return ConfigError(
            f"the timeline holds no {called} at instant {self.instant}",
            path=self.active.folder,
            remedy="list the instants with `hudictl timeline`",
        )

    def leftovers(self) -> bool:
        """Whether a run left something behind. Its markers show that, because they are deleted last."""
        return bool(list_markers(self.storage, self.instant))

    def claimed(self, claim: Claim) -> None:
        """Looks for markers now: no slow request may come between the look at the timeline and the inflight file."""
        self._has_markers = claim.epoch == 1 and has_markers(self.context, self.instant)

    def locks(self, plan: Plan, held: Claim) -> AbstractContextManager[object]:
        """Returns the locks of the file groups, where the option is set. Raises LockError when one is taken."""
        if not FILE_GROUP_LOCKS.read(self.context.options):
            return nullcontext()
        return FileGroupLocks(self.storage, held, self.file_groups(plan))

    def begin(self, plan: Plan, held: Claim) -> None:
        """Rolls earlier attempts back, and makes the instant inflight."""
        groups = self.file_groups(plan)
        if self._has_markers or not is_first_attempt(self.context, self.instant, self.action, held):
            roll_back_attempt(self.context, self.instant, self.action, {group.partition for group in groups}, held)
            held.check()
            if held.epoch > 1:
                forget_staged(self.storage, self.instant, up_to=held.epoch)
            look_again(self.storage)  # Hudi may have dropped the instant since it was claimed
        check_early(self.context, self.active.load(), self.instant, groups)
        self.active.to_inflight(self.instant, self.action, self.inflight_content(plan))

    def to_inflight_once(self, plan: Plan) -> None:
        """Makes the instant inflight. Raises ConflictError where an earlier attempt did, which must be rolled back."""
        if not self.active.to_inflight(self.instant, self.action, self.inflight_content(plan)):
            raise ConflictError(
                f"an earlier attempt at {self.action} {self.instant} died",
                path=self.active.folder,
                remedy=f"roll it back: hudictl rollback TABLE --instant {self.instant}",
            )

    def abandon(self, plan: Plan, held: Claim, error: HudiError) -> None:
        """Deletes this attempt's own files, by the epoch in their write token, where no other run would look for them.
        Where the instant is still ours, the next attempt rolls it back. A decided completion needs them.
        """
        instant = self.active.load().find(self.instant, self.action)
        is_completed = instant is not None and instant.is_completed
        if held.may_have_decided or (instant is not None and not is_completed and _is_owner(held)):
            return
        published = set()
        if instant is not None and is_completed:
            published = set(sizes_of(self.active.read_commit(instant).write_stats()))
        for info in self.find_files(self.storage, self.instant, self.touched(self.file_groups(plan))):
            name = parse_data_file(info.name)
            token = None if name is None else name.token
            if token is not None and token.stage_id == held.epoch and info.path not in published:
                log.warning("%s belongs to an attempt that lost its instant: deleted", info.path)
                self.storage.delete(info.path)

    def clean_up(self, plan: Plan, done: Rewritten) -> None:
        """Cleans up all partitions: late files of an attempt that Hudi rolled back have no marker any more."""
        self._clean_up(self.touched(self.file_groups(plan)), done.stats, staged=self.has_staged)

    def clean_up_completed(self, *, decided: bool) -> None:
        instant = self.find(self.active.load())
        metadata = self.active.read_commit(instant)
        metadata.check_paths(source=self.active.path_of(instant))
        self._clean_up(self.touched(()).union(metadata.partition_to_write_stats), metadata.write_stats(), staged=True)

    def _clean_up(self, partitions: frozenset[str], stats: Iterable[WriteStat], *, staged: bool) -> None:
        """Deletes files of lost attempts, then staged records, then markers, by which the next run finds files."""
        remove_losers(self.storage, self.instant, partitions, sizes_of(stats), self.find_files)
        if staged:
            forget_staged(self.storage, self.instant)
        delete_markers(self.storage, self.instant)

    def touched(self, groups: Iterable[FileGroupId]) -> frozenset[str]:
        """Returns the partitions where attempts may have left files: those of `groups`, and those of the markers."""
        partitions = frozenset(group.partition for group in groups)
        if partitions and not self.leaves_partitions:
            return partitions
        return partitions | {marker.partition for marker in list_markers(self.storage, self.instant)}

    def result(self, done: Rewritten | None, seconds: float) -> InstantResult:
        stats = [] if done is None else done.stats
        return replace(
            super().result(done, seconds),
            files_written=len(stats),
            bytes_written=sum(stat.file_size_in_bytes for stat in stats),
            records=sum(stat.num_writes for stat in stats),
            corrupt_log_blocks=0 if done is None else done.corrupt_blocks,
        )


class Attempt:
    """One attempt between its first file and its commit. The stages are in the order in which `execute` calls them."""

    def __init__(
        self,
        job: RewriteJob[Any],
        groups: frozenset[FileGroupId],
        held: Claim,
        timeline: Timeline,
        *,
        expected_files: int | None = None,
        new_schema: AvroSchema | None = None,
    ) -> None:
        """`groups` are rewritten. `timeline` is that of the start. `expected_files` is how many files they become, by
        default one each. `new_schema` is the table's, without meta fields, where the commit changes it.
        """
        self._job = job
        self._groups = groups
        self._held = held
        self._timeline = timeline
        self._new_schema = new_schema
        self._workers = job.context.workers(job.run.engine, held.epoch)
        self._publisher = job.context.metadata_publisher(held.epoch, new_schema)
        self._required = job.required if new_schema is None else None
        if self._required is None and self._publisher is not None:
            self._required = self._publisher.commit_requirements()
        # For many files executors make the records, and the driver gets only the names.
        self._prepares = (len(groups) if expected_files is None else expected_files) > DRIVER_FILES
        self.requirements = None if self._prepares else self._required
        """The statistics of each new file that its unit returns."""
        self.with_statistics = self.requirements is not None

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Surrounds the engine's work. On bad input removes the files and makes the instant requested again."""
        job = self._job
        try:
            yield
        except FormatError:
            self._remove_losers({})
            self._check_ours()
            delete_markers(job.storage, job.instant)
            job.active.remove(job.instant, job.action, State.INFLIGHT)
            raise

    def keep(self, rewritten: Rewritten) -> None:
        """Removes files that no result names, before the lock. Raises ExecutionError for a missing named file."""
        if rewritten.corrupt_blocks:
            log.warning(
                "%s %s passed over %d corrupt log blocks, as queries do; no completed commit has rows in them, unless "
                "that was allowed",
                self._job.operation,
                self._job.instant,
                rewritten.corrupt_blocks,
            )
        look_again(self._job.storage)  # the engine's work took a while
        winners = sizes_of(rewritten.stats)
        kept = self._remove_losers(winners)
        if kept != winners:
            self._check_ours()  # a foreign rollback may have deleted them
        check_winners(winners, kept)

    def check_rows(
        self,
        rewritten: Rewritten,
        items: Sequence[CompactionOperation | ClusteringSlice],
        ignored: frozenset[str] = frozenset(),
    ) -> None:
        """Compares planned and new rows, but not columns `ignored`, where VERIFY is `full` (check_all_rows)."""
        context, planned = self._job.context, planned_slices(items)
        if planned and VERIFY.read(context.options) == "full":
            instant, files = self._job.instant, rewritten.files
            check_all_rows(context, self._workers, self._timeline, instant, planned, files, ignored)

    def completion(
        self,
        rewritten: Rewritten,
        metadata: CommitMetadata,
        *,
        moved: Sequence[SliceChange] = (),
        new_partitions: Collection[str] = (),
        preconditions: tuple[Precondition, ...] = (),
        then: Callable[[], object] = lambda: None,
    ) -> Completion[Rewritten]:
        """Returns the completion, and stages records for the metadata table. `moved` are the file groups whose rows
        came, went or moved; none where each row stays in its own. A record index of each partition gets
        the `new_partitions`. `then` is called under the lock, after the publication.
        """
        job, publisher, required = self._job, self._publisher, self._required
        conflicts = conflict_checks(
            job.context,
            job.instant,
            job.conflicts_as,
            job.operation,
            self._groups,
            operation_start_at(self._timeline, job.instant),
        )
        checks = (self._check_not_rolled_back, *preconditions, *conflicts)
        publish: Publish | None = None
        if publisher is not None and required is not None:
            job.has_staged = self._prepares or bool(moved)
            rows = self._staged_rows(publisher, moved, new_partitions)
            written: Prepared | Sequence[FileStatistics] = rewritten.statistics
            if self._prepares:
                written = publisher.prepare_commit(job.instant, list(rewritten.files), required, self._workers)
            publish = partial(publisher.publish_commit, job.instant, metadata, written, required, rows=rows)
        if job.context.config.features.json_commits:
            content = encode_commit(metadata)
        else:
            # The schema's default for `version` is 1, but Hudi writes null (CommitMetadataSerDe).
            content = encode_commit_avro(replace(metadata, extra={"version": None}))
        return Completion(content, rewritten, partial(self._publish, publish, then), checks)

    def _staged_rows(
        self, publisher: MetadataPublisher, moved: Sequence[SliceChange], new_partitions: Collection[str]
    ) -> Prepared | None:
        job, context, timeline = self._job, self._job.context, self._timeline
        names = publisher.row_indexes if job.changes_rows else publisher.row_indexes & {RECORD_INDEX}
        if not moved or not names:
            return None
        table = indexed_table(context, timeline)
        if self._new_schema is not None:
            table = replace(table, schema=self._new_schema)
        metadata_timeline = MetadataTimeline(context.storage, context.config, context.clock())
        spec = reader_spec(context, table.schema, timeline, merge_logs=True).up_to(job.instant)
        updates = RowUpdates(context.storage, table, metadata_timeline, self._workers, context.zone)
        stage = partial(updates.stage, job.instant, job.operation, names, moved, to_text(spec), timeline)
        index = table.definitions.get(RECORD_INDEX) if RECORD_INDEX in names and new_partitions else None
        if index is None or not index.is_partitioned:
            groups = publisher.file_groups(names)
            return Prepared(groups, stage())
        # An index of each partition gets file groups for new partitions. Nobody may roll these back meanwhile.
        with context.lock(job.owner):
            staged = stage()
            return Prepared(publisher.file_groups(names), staged)

    def _publish(self, publish: Publish | None, then: Callable[[], object], check: CheckOwner) -> None:
        """Publishes under the lock. Raises ConflictError where an index changed: the files were not read for it."""
        if self._publisher is not None:
            self._publisher.look_ahead()
        listed, config = TableConfig.load(self._job.storage), self._job.context.config
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
        then()

    def _check_ours(self) -> None:
        look_again(self._job.storage)
        self._held.check()
        self._check_not_rolled_back(self._job.active.load())

    def _check_not_rolled_back(self, timeline: Timeline) -> None:
        job = self._job
        check_not_rolled_back(timeline, job.instant, partial(rollback_target, job.active), self._timeline)

    def _remove_losers(self, winners: dict[str, int]) -> dict[str, int]:
        job = self._job
        partitions = job.touched(self._groups)
        return remove_losers(job.storage, job.instant, partitions, winners, job.find_files, check=self._check_ours)


def commit_metadata(
    job: RewriteJob[Any], stats: Sequence[WriteStat], schema: AvroSchema, extra: Mapping[str, str], **fields: Any
) -> CommitMetadata:
    """Returns a commit's metadata: the schema, the `extra` metadata, and `fields` of CommitMetadata."""
    by_partition: dict[str, list[WriteStat]] = {}
    for stat in stats:
        by_partition.setdefault(stat.partition_path, []).append(stat)
    text = json.dumps(schema, separators=(",", ":"), ensure_ascii=False)
    return CommitMetadata(
        {partition: tuple(items) for partition, items in sorted(by_partition.items())},
        operation_type=job.operation,
        extra_metadata={SCHEMA_KEY: text, **extra},
        **fields,
    )


def _is_owner(held: Claim) -> bool:
    try:
        held.check()
    except ConflictError as error:
        log.warning("%s", error)
        return False
    return True


def moved_to(files: Sequence[DataFileRef], instant: str) -> list[SliceChange]:
    """Returns the new file groups of `instant` as changes of row-level indexes."""
    return [SliceChange(None, slice_of_base(DataFile(file.partition, file.name, file.size)), instant) for file in files]
