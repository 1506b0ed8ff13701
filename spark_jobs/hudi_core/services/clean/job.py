"""Deletes the files that the plan of a clean names, by units of an engine. retention.py and kept_files.py decide which
files a plan names. UnscheduledClean drops a clean that no run would finish.

A file that is gone already counts as deleted, so a unit may run again. Memory of a task: the file names of its unit.
These are at most 100, or the plan's files divided by `hoodie.clean.parallelism` where that is more.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from itertools import groupby, islice

from hudi_core.config.services.retention_config import CleanConfig
from hudi_core.engine.protocol import TaskAttempt
from hudi_core.errors import ConflictError, ExecutionError, FormatError, TimelineError
from hudi_core.frozen import dataclass
from hudi_core.metadata_table.records.file_statistics import FileChanges
from hudi_core.model.names import parse_data_file
from hudi_core.model.partition import check_file_name, check_partition, join
from hudi_core.request.results import REMOVED, InstantResult
from hudi_core.services.clean.kept_files import check_not_needed, drop_partitions
from hudi_core.services.context import TableContext, provenance
from hudi_core.services.lifecycle import Completion, Job, Run
from hudi_core.storage.arrow_store import open_deleting_storage
from hudi_core.storage.one_look import look_again
from hudi_core.timeline.actions.clean import CleanedPartition, CleanMetadata, CleanPlan, encode_clean_metadata
from hudi_core.timeline.instant import Action, State
from hudi_core.timeline.pending_plans import read_clean_plan
from hudi_core.timeline.timeline import Timeline
from hudi_core.transaction.claim import Claim
from hudi_core.transaction.commit import CheckOwner, check_inflight
from hudi_core.transaction.reconcile import list_partitions

log = logging.getLogger(__name__)


class CleanJob(Job[CleanPlan | None, int]):
    """Runs a clean; its result is a number of files. It is never rolled back: the next attempt goes on."""

    action = Action.CLEAN
    looks_once = True

    def __init__(self, run: Run) -> None:
        super().__init__(run)
        self._started = time.monotonic()
        self._state = State.COMPLETED.value
        self._is_checked = False

    def plan(self, timeline: Timeline) -> CleanPlan | None:
        """Returns the plan of the requested file, else of the inflight one; None when a crash left both empty. Raises
        UnsupportedError where the metadata table cannot record the deletes, FormatError for an unsafe plan,
        ConflictError while something needs one of the files. For an inflight clean `begin` raises the ConflictError: an
        earlier run may have decided to complete the clean.
        """
        self.context.check_recordable(deletes=True)
        stored = read_clean_plan(self.active, self.instant)
        if stored is None:
            return None
        plan, path = stored
        self._is_checked = self.find(timeline).state is State.REQUESTED
        if self._is_checked:
            check_not_needed(self.context, timeline, plan, path=path)
        return plan

    def begin(self, plan: CleanPlan | None, held: Claim) -> None:
        """Makes the clean inflight. Raises ConflictError where a file of an inflight clean (`plan`) is needed."""
        if plan is None:
            return
        path = self.active.path(self.instant, Action.CLEAN, State.REQUESTED)
        if not self._is_checked:
            check_not_needed(self.context, self.active.load(), plan, path=path)
        if held.epoch > 1:
            held.check()
        in_inflight = self.context.config.features.clean_plan_in_inflight
        self.active.to_inflight(self.instant, Action.CLEAN, self.storage.read(path) if in_inflight else b"")

    def execute(self, plan: CleanPlan | None, held: Claim) -> Completion[int] | None:
        """Deletes the files, where an earlier attempt has not. Removes a clean with an empty plan."""
        context, run = self.context, self.run
        if plan is None:
            # An empty plan would only keep the next clean from being planned (CleanActionExecutor).
            log.warning("the plan of clean %s is empty: the instant is taken off the timeline", self.instant)
            held.check()
            self._take_off()
            return None
        parallelism = CleanConfig.of(context.options).parallelism
        units = clean_units(plan, uri=context.uri, storage_options=context.storage_options, parallelism=parallelism)
        deleted = prove(plan, run.engine.run(delete_files, units, run_epoch=held.epoch, progress=run.progress))
        log.info("clean %s: %d files deleted now, %d planned", self.instant, deleted, plan.file_count)
        look_again(self.storage)  # the engine's work took a while
        gone: frozenset[str] = frozenset()
        if plan.dropped_partitions:
            with context.lock(self.owner):
                held.check()
                gone = drop_partitions(self.storage, plan, self.active.load())
        return self._completion(plan, gone, held, deleted)

    def _completion(self, plan: CleanPlan, gone: frozenset[str], held: Claim, deleted: int) -> Completion[int]:
        """Returns the completion of a clean that deleted the partitions `gone`. Its content also names those without
        files of the plan: the metadata table's catch-up needs them.
        """
        files = {partition: frozenset(names) for partition, names in plan.files.items()}
        changes = FileChanges(deleted=files, dropped_partitions=gone)
        metadata = CleanMetadata(
            start_time=self.instant,
            policy=plan.policy,
            partitions={
                partition: CleanedPartition(plan.files.get(partition, ()), partition in gone)
                for partition in (*plan.files, *sorted(gone - plan.files.keys()))
            },
            earliest="" if plan.earliest is None else plan.earliest.timestamp,
            last_completed=plan.last_completed,
            time_taken_ms=int((time.monotonic() - self._started) * 1000),
            extra_metadata={**plan.extra_metadata, **provenance(self.owner)},
        )
        content = encode_clean_metadata(metadata)
        return Completion(content, deleted, partial(self._publish, held.epoch, changes, gone))

    def _publish(self, epoch: int, changes: FileChanges, gone: frozenset[str], _: CheckOwner) -> None:
        """Publishes the deletes to the current indexes, under the lock. Raises ConflictError where a writer has created
        a deleted partition again: that partition must stay.
        """
        for partition in sorted(gone):
            if self.storage.list_names(partition):
                raise ConflictError(
                    f"partition {partition} is in use again since it was dropped",
                    path=partition,
                    remedy="run the clean again",
                )
        publisher = self.context.reloaded().metadata_publisher(epoch)
        if publisher is not None:
            publisher.publish_deletes(self.instant, changes)

    def _take_off(self) -> None:
        self.active.drop(self.instant, Action.CLEAN)
        self._state = REMOVED

    def result(self, done: int | None, seconds: float) -> InstantResult:
        return InstantResult(self.instant, Action.CLEAN, self._state, seconds=seconds, files_deleted=done or 0)


SMALLEST_UNIT = 100
"""The fewest files of a unit: fewer are not worth a task."""
_THREADS = 16
"""The deletes that one task makes at a time. On object stores each is a request that waits."""


@dataclass(frozen=True, slots=True)
class CleanUnit:
    """Files that one task deletes: plain names by partition path."""

    uri: str
    storage_options: Mapping[str, str]
    files: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class CleanedFiles:
    """The result of a unit: how many of its files are gone now, and how many were gone before."""

    files: int
    missing: int


def clean_units(plan: CleanPlan, *, uri: str, storage_options: Mapping[str, str], parallelism: int) -> list[CleanUnit]:
    """Returns at most `parallelism` units of about equal size. The files of a partition may be in several units."""
    size = max(SMALLEST_UNIT, -(-plan.file_count // parallelism))
    return [CleanUnit(uri, storage_options, files) for files in _chunks(plan.files, size)]


def _chunks(files: Mapping[str, Sequence[str]], size: int) -> Iterator[dict[str, tuple[str, ...]]]:
    named = ((partition, name) for partition, names in sorted(files.items()) for name in names)
    while chunk := list(islice(named, size)):
        yield {
            partition: tuple(name for _, name in group) for partition, group in groupby(chunk, key=lambda pair: pair[0])
        }


def delete_files(unit: CleanUnit, attempt: TaskAttempt) -> CleanedFiles:
    """Deletes the files of a unit (UnitTask). Raises FormatError for a foreign name, StorageError if one stays."""
    storage = open_deleting_storage(unit.uri, unit.storage_options)
    paths = [_path(partition, name) for partition, names in unit.files.items() for name in names]
    shares = [paths[number::_THREADS] for number in range(min(_THREADS, len(paths)))]
    with ThreadPoolExecutor(max_workers=max(1, len(shares)), thread_name_prefix="clean") as pool:
        deleted = sum(pool.map(lambda share: sum(map(storage.delete, share)), shares))
    return CleanedFiles(len(paths), len(paths) - deleted)


def _path(partition: str, name: str) -> str:
    check_partition(partition, source="clean unit")
    if parse_data_file(check_file_name(name, source="clean unit")) is None:
        raise FormatError(f"{name!r} is neither a base file nor a log file", path="clean unit")
    return join(partition, name)


def prove(plan: CleanPlan, results: Iterable[CleanedFiles]) -> int:
    """Returns how many files were deleted. Raises ExecutionError where the results do not cover the plan."""
    counted = list(results)
    done = sum(result.files for result in counted)
    if done != plan.file_count:
        what = f"the plan has {plan.file_count} files, but the units deleted {done}"
        raise ExecutionError(what, remedy="nothing was published; run the clean again")
    return done - sum(result.missing for result in counted)


class UnscheduledClean(CleanJob):
    """Drops an inflight clean that no run would finish, because something needs a file of its plan by now
    (check_not_needed). The state in its result is REMOVED where the clean left the timeline.

    While all files of its plan exist, the clean leaves the timeline. Where some are gone, the clean is the only record
    of that. Restores and savepoints read from it which commits have lost files (restore/candidates.retained,
    rollback/checks.cleans_since). So it is completed with the files that are gone, and deletes nothing more. A later
    clean that looks at their partitions deletes its other files.
    """

    def plan(self, timeline: Timeline) -> CleanPlan:
        """Returns the planned files that are gone. Raises as check_recordable; TimelineError if a run would finish."""
        self.context.check_recordable(deletes=True)
        return gone_files(self.context, timeline, self.instant)

    def begin(self, plan: CleanPlan | None, held: Claim) -> None:
        """Does nothing: the clean is inflight."""

    def execute(self, plan: CleanPlan | None, held: Claim) -> Completion[int] | None:
        """Looks again for files that are gone, under the lock and after the claim: a run may have deleted more."""
        with self.context.lock(self.owner) as lock:
            timeline = self.active.load()
            check_inflight(timeline, self.instant, Action.CLEAN)
            gone = gone_files(self.context, timeline, self.instant)
            if not gone.files:
                held.check()
                lock.check()
                self._take_off()
                return None
        log.warning("clean %s is completed with the %d files that are gone", self.instant, gone.file_count)
        return self._completion(gone, frozenset(), held, 0)


def gone_files(context: TableContext, timeline: Timeline, instant: str) -> CleanPlan:
    """Returns the inflight plan with only its files that are gone. Raises TimelineError where a run would finish it."""
    stored = read_clean_plan(context.active, instant)
    if stored is not None:
        plan, path = stored
        try:
            check_not_needed(context, timeline, plan, path=path)
        except ConflictError as error:
            log.info("no run would finish clean %s: %s", instant, error)
            gone: dict[str, tuple[str, ...]] = {}
            for partition, files in list_partitions(context.storage, plan.files):
                there = {info.name for info in files}
                gone[partition] = tuple(name for name in plan.files[partition] if name not in there)
            return replace(plan, files={partition: names for partition, names in gone.items() if names})
    raise TimelineError(
        f"clean {instant} is inflight: files that it lists may be gone already",
        path=context.active.path(instant, Action.CLEAN, State.INFLIGHT),
        remedy=f"finish it: `hudictl run clean TABLE --instant {instant}`",
    )
