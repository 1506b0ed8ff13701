"""Runs one planned clean from `requested` to `completed`: the straight line of every service.

claim → is the plan still right → inflight → delete → drop partitions → complete → clean up

A clean is never rolled back: deletes may be repeated, so whoever claims the instant next goes on where the last one
stopped.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from functools import partial

from hudi_core.config.clean_config import CleanConfig
from hudi_core.engine.protocol import Engine
from hudi_core.errors import ConfigError, ConflictError, StorageNotFoundError
from hudi_core.metadata_table.file_changes import FileChanges
from hudi_core.request.model import InstantResult
from hudi_core.services.after_completion import clean_up_completed
from hudi_core.services.clean.checks import check_abandoned
from hudi_core.services.clean.drop import drop_partitions
from hudi_core.services.clean.units import clean_units, delete_files, prove
from hudi_core.services.context import TableContext
from hudi_core.services.provenance import provenance
from hudi_core.timeline.actions.clean import (
    CleanedPartition,
    CleanMetadata,
    CleanPlan,
    decode_clean_plan,
    encode_clean_metadata,
)
from hudi_core.timeline.instant import Action, Instant, State
from hudi_core.timeline.timeline import Timeline
from hudi_core.transaction.claim import Claim, forget_claims
from hudi_core.transaction.owner import Owner

log = logging.getLogger(__name__)

REMOVED = "removed"
"""The state of an instant whose plan was empty: its files were taken off the timeline, as Hudi does."""


class CleanRun:
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
        self._active = context.active
        self._instant = instant
        self._engine = engine
        self._owner = owner
        self._progress = progress
        self._config = CleanConfig.of(context.options)

    def run(self) -> InstantResult:
        """Deletes what the plan names and completes the instant, or returns the completed state when it is done
        already.

        Raises ConfigError, FormatError, UnsupportedError before anything is deleted; ConflictError while somebody else
        runs the instant or needs one of its files. After any other error, and after a kill, the instant can be run
        again.
        """
        started = time.monotonic()
        if self._find(self._active.load()).is_completed:
            clean_up_completed(self._context, self._instant, self._owner, lambda: None)
            return self._result(State.COMPLETED.value, started)
        plan, deleted = self._plan(), 0
        with self._context.claim(self._instant, self._owner) as held:
            completer = self._context.completer(held, self._owner)
            done = completer.finish_decided(self._instant)
            if done is None and not self._find(self._active.load()).is_completed:
                if plan is None:
                    state = self._remove(held)
                else:
                    deleted = self._execute(plan, held, started)
                    state = State.COMPLETED.value
            else:
                state = State.COMPLETED.value
        forget_claims(self._context.storage, self._instant)
        return self._result(state, started, deleted)

    def _find(self, timeline: Timeline) -> Instant:
        found = timeline.find(self._instant, Action.CLEAN)
        if found is None:
            raise ConfigError(
                f"the timeline holds no clean at instant {self._instant}",
                path=self._active.folder,
                remedy="list the instants with `hudictl timeline --action clean`",
            )
        return found

    def _plan(self) -> CleanPlan | None:
        """The plan, as far as it can be found: in the requested file, else in the inflight one; None when both are
        empty, as a crash leaves them.

        Raises UnsupportedError where the metadata table cannot learn of the deletes, FormatError for a plan that is not
        safe.
        """
        publisher = self._context.metadata_publisher()
        if publisher is not None:
            publisher.check()
        for state in (State.REQUESTED, State.INFLIGHT):
            path = self._active.path(self._instant, Action.CLEAN, state)
            try:
                data = self._active.read_pending(self._instant, Action.CLEAN, state)
            except StorageNotFoundError:
                continue
            if data:
                return decode_clean_plan(data, path=path)
        return None

    def _execute(self, plan: CleanPlan, held: Claim, started: float) -> int:
        """How many files there were to delete: an earlier attempt may have deleted the others."""
        context = self._context
        path = self._active.path(self._instant, Action.CLEAN, State.REQUESTED)
        check_abandoned(context, self._active.load(), plan, path=path)
        held.check()
        in_inflight = context.config.features.clean_plan_in_inflight
        self._active.to_inflight(self._instant, Action.CLEAN, context.storage.read(path) if in_inflight else b"")
        units = clean_units(
            plan, uri=context.uri, storage_options=context.storage_options, parallelism=self._config.parallelism
        )
        deleted = prove(plan, self._engine.run(delete_files, units, run_epoch=held.epoch, progress=self._progress))
        gone = self._drop_partitions(plan, held)
        changes = FileChanges(
            deleted={partition: frozenset(names) for partition, names in plan.files.items()},
            dropped_partitions=gone & plan.files.keys(),
        )
        content = encode_clean_metadata(self._metadata(plan, gone, int((time.monotonic() - started) * 1000)))
        publish = partial(self._publish, held.epoch, changes, gone)
        context.completer(held, self._owner).complete(self._instant, Action.CLEAN, content, publish=publish)
        log.info("clean %s completed: %d files deleted now, %d planned", self._instant, deleted, plan.file_count)
        return deleted

    def _publish(self, epoch: int, changes: FileChanges, gone: frozenset[str]) -> None:
        """Under the lock. A partition that a writer has made again since it was dropped must not go from the metadata
        table.

        The indexes that are there now are told: one that began while the files went may have them still.
        """
        for partition in sorted(gone):
            if self._context.storage.list_names(partition):
                raise ConflictError(
                    f"partition {partition} is in use again since it was dropped",
                    path=partition,
                    remedy="run the clean again",
                )
        publisher = self._context.reloaded().metadata_publisher(epoch)
        if publisher is not None:
            publisher.publish_deletes(self._instant, changes)

    def _drop_partitions(self, plan: CleanPlan, held: Claim) -> frozenset[str]:
        if not plan.dropped_partitions:
            return frozenset()
        with self._context.lock(self._owner):
            held.check()
            return drop_partitions(self._context.storage, plan, self._active.load())

    def _metadata(self, plan: CleanPlan, gone: frozenset[str], took_ms: int) -> CleanMetadata:
        return CleanMetadata(
            start_time=self._instant,
            policy=plan.policy,
            partitions={
                partition: CleanedPartition(names, partition in gone) for partition, names in plan.files.items()
            },
            earliest="" if plan.earliest is None else plan.earliest.timestamp,
            last_completed=plan.last_completed,
            time_taken_ms=took_ms,
            extra_metadata={**plan.extra_metadata, **provenance(self._owner)},
        )

    def _remove(self, held: Claim) -> str:
        """An empty plan means that nobody planned anything: it would only keep the next clean from being planned
        (CleanActionExecutor).
        """
        log.warning("the plan of clean %s is empty: the instant is taken off the timeline", self._instant)
        held.check()
        self._active.remove(self._instant, Action.CLEAN, State.INFLIGHT)
        self._active.remove(self._instant, Action.CLEAN, State.REQUESTED)
        return REMOVED

    def _result(self, state: str, started: float, deleted: int = 0) -> InstantResult:
        return InstantResult(
            self._instant, Action.CLEAN, state, seconds=round(time.monotonic() - started, 3), files_deleted=deleted
        )
