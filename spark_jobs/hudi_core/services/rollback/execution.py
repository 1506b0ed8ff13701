"""Carries out the plan of a rollback up to its completion. A rollback and a restore share this."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import field, replace
from functools import partial
from typing import Any, Final, NoReturn

from hudi_core.errors import ConflictError, FormatError, StorageExistsError
from hudi_core.filegroup.write.rollback_files import FileRollback, RollbackStat, is_named_after_another, step_of
from hudi_core.frozen import dataclass
from hudi_core.metadata_table.records.file_statistics import FileChanges
from hudi_core.model.partition import join
from hudi_core.services.context import TableContext
from hudi_core.services.rollback.files_to_roll_back import sizes_of, used_log_file
from hudi_core.storage.registry import plan_address, status_address
from hudi_core.timeline.actions.rollback import (
    RollbackMetadata,
    RollbackPartition,
    RollbackPlan,
    RollbackStep,
    decode_rollback_plan,
    encode_rollback_plan,
    is_of_completed,
)
from hudi_core.timeline.instant import Action, Instant, State, completed_action
from hudi_core.timeline.pending_plans import is_clustering
from hudi_core.timeline.timeline import Timeline
from hudi_core.transaction.locks.base import TableLock
from hudi_core.transaction.owner import Owner

log = logging.getLogger(__name__)

Steps = Iterable[RollbackStep]
Guard = Callable[[Timeline, Instant], None]


@dataclass(frozen=True, slots=True)
class Removed:
    """What was removed, or would be in a dry run: sizes of files in bytes by path, and requested times of instants."""

    files: Mapping[str, int] = field(default_factory=dict, hash=False)
    instants: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        return {"files": len(self.files), "bytes": sum(self.files.values()), "instants": list(self.instants)}


NOTHING: Final = Removed()


class RollbackExecution:
    """The pending rollback of one instant. The next owner may repeat every method after a crash."""

    def __init__(self, context: TableContext, rollback: str, owner: Owner) -> None:
        self._context = context
        self._storage = context.storage
        self._active = context.active
        self._owner = owner
        self.rollback = rollback
        self._source = self._active.path(rollback, Action.ROLLBACK, State.REQUESTED)
        content = self._active.read_requested(rollback, Action.ROLLBACK)
        self.plan: RollbackPlan = decode_rollback_plan(content, path=self._source)
        self._is_of_completed = is_of_completed(content, path=self._source)
        # Before anything is claimed or written: one request that cannot be followed refuses the whole plan.
        failed, by_name = self.plan.instant, context.config.features.rollback_deletes_logs
        is_renamed = partial(is_named_after_another, self._storage, failed) if by_name else None
        requests = self.plan.requests
        self.steps = [step_of(request, failed, source=self._source, is_renamed=is_renamed) for request in requests]
        self._started = time.monotonic()
        self.removed: Mapping[str, int] = {}
        """The files that this run deleted, by path, with their sizes in bytes."""

    def target(self, timeline: Timeline) -> Instant | None:
        return timeline.find(self.plan.instant, self.plan.action)

    def check(self, timeline: Timeline, rolled_back: Collection[str] = ()) -> None:
        """Raises FormatError, naming the plan's file, where the plan deletes a log file with rows of another completed
        instant (used_log_file). `rolled_back` are the instants that a restore rolls back as well.
        """
        used = used_log_file(self._context, timeline, self.plan.instant, self.steps, rolled_back)
        if used is not None:
            what = f"the rollback's plan deletes {used}, which holds rows of a completed instant"
            remedy = f"delete this file of the plan, then `hudictl rollback TABLE --instant {self.plan.instant}`"
            raise FormatError(what, path=self._source, remedy=remedy)

    def begin(self, guard: Guard, *, restores: bool = False, keeps_plan: bool = False) -> None:
        """Makes the rollback inflight and the completed instant pending: nothing reads or builds on it from here on.
        `guard` raises an error where the completed instant may not be rolled back.

        A rollback that is only requested was planned for a pending write, unless a restore planned it (`restores`) or
        its plan says that the write was completed (is_of_completed). When a pending write has completed since, its
        writer was alive: the plan is dropped and ConflictError raised.

        Without a restore, a planned action never shows as one to run (_withhold). During a restore no writer is at
        work. There the inflight file of a planned action goes first: an instant that shows as requested beside its
        rollback was completed, and goes as a whole; one that is inflight keeps its plan. In the rollback of an attempt
        (`keeps_plan`) a planned action that shows as requested becomes inflight, and so keeps its plan, too.
        """
        with self._context.lock(self._owner) as lock:
            timeline = self._active.load()
            target = self.target(timeline)
            completed = target is not None and target.is_completed
            if target is not None and completed:
                is_requested = timeline.get(self.rollback, Action.ROLLBACK).state is State.REQUESTED
                if not restores and is_requested and not self._is_of_completed:
                    lock.check()
                    self._drop_plan(target)
                guard(timeline, target)
            lock.check()
            if keeps_plan and target and target.state is State.REQUESTED and is_planned(self._context, target):
                self._active.to_inflight(target.requested_time, target.pending_action)
                target = replace(target, state=State.INFLIGHT)
            self._active.to_inflight(self.rollback, Action.ROLLBACK)
            if target is None or target.state is State.INFLIGHT:
                return
            if not restores:
                self._withhold(target)
            elif completed and is_planned(self._context, target):
                self._storage.delete(self._active.path(target.requested_time, target.pending_action, State.INFLIGHT))
            if completed:
                self._active.remove(target.requested_time, target.pending_action, State.COMPLETED)

    def _withhold(self, target: Instant) -> None:
        """Makes a planned action a pending write, so that no writer with inline services takes up its plan. The write
        is pending because log blocks of an instant that is not pending would count. May be repeated.
        """
        time_of, written_as = target.requested_time, completed_action(target.action)
        if is_planned(self._context, target):
            for state in (State.REQUESTED, State.INFLIGHT):
                path = self._active.path(time_of, written_as, state)
                if state is State.REQUESTED and written_as == target.pending_action:
                    # A clustering of layout 1, which only its plan distinguishes from an overwrite.
                    self._storage.write(path, b"")
                    continue
                with suppress(StorageExistsError):
                    self._storage.create_exclusive(path, b"")
        for action in (Action.COMPACTION, Action.LOG_COMPACTION, Action.CLUSTERING):
            if completed_action(action) == written_as:
                for state in (State.INFLIGHT, State.REQUESTED):
                    self._storage.delete(self._active.path(time_of, action, state))

    def _drop_plan(self, target: Instant) -> NoReturn:
        self._active.remove(self.rollback, Action.ROLLBACK, State.REQUESTED)
        command = f"hudictl rollback TABLE --instant {target.requested_time}"
        raise ConflictError(
            f"{target.action} {target.requested_time} completed after its rollback {self.rollback} was planned; the "
            "plan was dropped",
            path=self._active.path_of(target),
            remedy=f"its rows stay; to remove them all the same: `{command}`",
        )

    def roll_back_files(self, extra: Steps = ()) -> list[RollbackStat]:
        steps = [*self.steps, *extra]
        self.removed, plan = sizes_of(self._context, steps), self.plan
        log.info("rollback %s of %s %s: %d files", self.rollback, plan.action, plan.instant, len(self.removed))
        return FileRollback(self._storage, plan.instant, self.rollback).run(steps)

    def metadata(self, stats: Iterable[RollbackStat]) -> RollbackMetadata:
        partitions = []
        for part in stats:
            deleted = tuple(plan_address(self._storage, join(part.partition, name)) for name in part.deleted)
            logs = {status_address(self._storage, join(part.partition, log)): n for log, n in part.commands.items()}
            partitions.append(RollbackPartition(part.partition, deleted, (), logs, part.failed_logs))
        took = int((time.monotonic() - self._started) * 1000)
        return RollbackMetadata(self.rollback, took, self.plan.instant, self.plan.action, tuple(partitions))


def is_planned(context: TableContext, instant: Instant) -> bool:
    """Whether the instant has a plan that outlives an attempt at it: a compaction, a log compaction or a clustering."""
    is_compaction = instant.pending_action in (Action.COMPACTION, Action.LOG_COMPACTION)
    return is_compaction or is_clustering(context.active, instant)


def keeps_plan(context: TableContext, target: Instant) -> bool:
    """Whether a rollback leaves the instant requested. This holds for an inflight compaction or clustering, and for a
    log compaction whose files are deleted as a whole. A command block that rolls its blocks back would hide what
    another attempt writes (HoodieTable.rollbackInflightLogCompaction).
    """
    if target.state is not State.INFLIGHT or not is_planned(context, target):
        return False
    return target.pending_action != Action.LOG_COMPACTION or context.config.features.rollback_deletes_logs


def changes_of(stats: Sequence[RollbackStat]) -> FileChanges:
    """Returns what the metadata table must record: deleted files, command blocks, the failed instant's logs."""
    return FileChanges(
        {part.partition: {**part.kept_logs, **part.commands} for part in stats if part.commands},
        {part.partition: frozenset(part.deleted) for part in stats if part.deleted},
    )


def request(context: TableContext, lock: TableLock, timeline: Timeline, target: Instant, steps: Steps) -> str:
    """Requests a rollback of `target`, under the table lock, and returns its requested time."""
    rollback = context.new_instant(timeline)
    lock.check()
    context.active.create_requested(rollback, Action.ROLLBACK, encode_plan(context, target, steps))
    return rollback


def encode_plan(context: TableContext, target: Instant, steps: Steps) -> bytes:
    """Returns the content of `<R>.rollback.requested` for these steps."""
    requests = []
    for step in steps:
        addresses = (plan_address(context.storage, join(step.partition, name)) for name in step.delete)
        requests.append(replace(step, delete=tuple(addresses)))
    return encode_rollback_plan(target.requested_time, target.action, requests, completed=target.is_completed)
