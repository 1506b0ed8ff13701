"""Indexing: builds the indexes of the plan from a snapshot of the table, while writers go on, and publishes them."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Final

from hudi_core.config.table_config import TableConfig
from hudi_core.errors import BuildRolledBackError, ConflictError, HudiError
from hudi_core.frozen import dataclass
from hudi_core.metadata_table.initialize.indexing import BuildHeartbeat, heartbeat_path
from hudi_core.metadata_table.initialize.target import NewBaseFile
from hudi_core.metadata_table.timeline import MetadataTimeline
from hudi_core.request.results import InstantResult
from hudi_core.services.indexing.build import (
    IndexBuilder,
    Started,
    Written,
    group_counts,
    misfits,
    planned_counts,
    remove_leftovers,
    unrecorded,
)
from hudi_core.services.lifecycle import Completion, Job, Run
from hudi_core.services.metadata.index_drop import counts_early, delist, left_over, read_index_plan, refuse_compacting
from hudi_core.services.metadata.initialization import Initializations
from hudi_core.services.rollback.verb import clean_failed_writes
from hudi_core.services.waiting import pending_writers, wait_for_writers
from hudi_core.timeline.actions.indexing import IndexedPartition, encode_index_metadata
from hudi_core.timeline.instant import Action
from hudi_core.timeline.timeline import Timeline
from hudi_core.transaction.claim import Claim
from hudi_core.transaction.commit import CheckOwner

log = logging.getLogger(__name__)

ATTEMPTS: Final = 3
"""The most builds of one run. The last one is made under the table lock, where no other commit can complete."""


@dataclass(frozen=True, slots=True)
class Planned:
    partitions: Sequence[IndexedPartition]
    counts: Mapping[str, int]

    @property
    def names(self) -> list[str]:
        return [item.name for item in self.partitions]


class _Behind(ConflictError):
    pass


class IndexingJob(Job[Planned, Sequence[NewBaseFile]]):
    """Builds the indexes of the plan; progress is in partitions. Memory: as metadata.initialization.Initializations,
    and the table's listing.

    claim → inflight → [delist what is resized (lock) → wait for writers] → initialize (lock) → base files → wait for
    writers → publish and complete (lock) → clean up. An index that is not published counts for no reader, so the next
    attempt builds it again.
    """

    action = Action.INDEXING

    def __init__(self, run: Run) -> None:
        super().__init__(run)
        self._early: frozenset[str] | None = None
        """The `early` instants of build.unrecorded."""
        self._alive = BuildHeartbeat(run.context.storage)
        self._attempts = 0

    def plan(self, timeline: Timeline) -> Planned:
        """Reads and checks the plan. Raises ConfigError, FormatError, UnsupportedError."""
        plan = read_index_plan(self.context, self.instant)
        planned = Planned(plan, planned_counts(plan, self.context.options, path=self.active.folder))
        Initializations(self.context, self.context.workers(self.run.engine, 0)).check(planned.names)
        return planned

    def locks(self, plan: Planned, held: Claim) -> AbstractContextManager[object]:
        return self._alive

    def begin(self, plan: Planned, held: Claim) -> None:
        self.active.to_inflight(self.instant, Action.INDEXING)
        self._delist_misfits(plan, held)

    def execute(self, plan: Planned, held: Claim) -> Completion[Sequence[NewBaseFile]]:
        """Builds the unlisted indexes. Raises ConflictError for an older write that lasts, and as IndexBuilder.fill."""
        self._attempts += 1
        held.check()
        config = TableConfig.load(self.storage)
        left = [name for name in plan.names if name not in config.metadata_partitions]
        self._wait_for_users(left, config, held)
        builder = IndexBuilder(self.run, plan.counts, held.epoch)
        built = self._build(left, builder, held) if left else None
        if built is not None:
            self._wait(built, held)
        return self._completion(plan, built, builder)

    def repeats(self, error: HudiError) -> bool:
        """Whether a build is made again: other writers were first or rolled it back. The lock covers the last one."""
        if self._is_last or not isinstance(error, (_Behind, BuildRolledBackError)):
            return False
        log.warning("%s; built again (attempt %d of %d)", error.message, self._attempts + 1, ATTEMPTS)
        return True

    @property
    def _is_last(self) -> bool:
        return self._attempts == ATTEMPTS

    def _delist_misfits(self, plan: Planned, held: Claim) -> None:
        """Delists indexes with other file groups than planned; removes our files from indexes of another writer. Where
        one index is built again, all indexes of the plan are delisted: their files are of one deltacommit.
        """
        if TableConfig.load(self.storage).metadata_partitions.isdisjoint(plan.names):
            return
        with self.context.lock(self.owner) as lock:
            held.check()
            remove_leftovers(self.context, self.instant, plan.names)
            config = TableConfig.load(self.storage)
            names = misfits(self.context, config, plan.counts)
            for name in names:
                groups = group_counts(self.storage, name)
                log.warning("the index %s is delisted, to be built with other file groups than %s", name, groups)
            if names or not config.metadata_partitions.issuperset(plan.names):
                others = IndexBuilder(self.run, plan.counts, held.epoch).index.listed_by_deltacommit().difference(names)
                for name in sorted(others):
                    log.warning("the index %s is delisted, to be built with the others of its plan", name)
                names = sorted(others.union(names))
            if names:
                refuse_compacting(self.context, config, names)
                lock.check()
                delist(self.context, names)

    def _wait_for_users(self, names: Sequence[str], config: TableConfig, held: Claim) -> None:
        """Waits until the writes have ended that may have read properties which list an index whose files are to go."""
        awaited = pending_writers(self.active.load()) if left_over(self.storage, config, names) else frozenset()
        if awaited:
            wait_for_writers(self.context, awaited, held.check)

    def _build(self, names: Sequence[str], builder: IndexBuilder, held: Claim) -> Started:
        rows = builder.rows(names)
        with self.context.lock(self.owner) as lock:
            held.check()
            config = TableConfig.load(self.storage)
            # The files of these indexes are deleted now, and a plan made meanwhile may name them.
            if left_over(self.storage, config, names) or counts_early(config, names) or builder.index.has_completed():
                refuse_compacting(self.context, config, names)
            started = builder.start(names, lock.check, rows)
            if started.build.deltacommit is not None:
                self._alive.begin(started.build.deltacommit)
        if self._early is None:
            self._early = self.active.load().requested_times
        try:
            return replace(started, written=builder.fill(started))
        except BuildRolledBackError:
            if not self._is_last:
                raise
            return started

    def _wait(self, built: Started, held: Claim) -> None:
        awaited = pending_writers(built.snapshot.timeline)
        if awaited and wait_for_writers(self.context, awaited, held.check):
            # A dead write stays pending: rolled back, it cannot complete after the index is published.
            for result in clean_failed_writes(self.context, self.owner):
                log.info("%s", result.outcome)

    def _completion(
        self, plan: Planned, built: Started | None, builder: IndexBuilder
    ) -> Completion[Sequence[NewBaseFile]]:
        counted: list[NewBaseFile] = []
        up_to = None if built is None else built.snapshot.timeline.commits().last()
        done = [
            replace(item, up_to=item.up_to if up_to is None else max(item.up_to, up_to.requested_time), extra={})
            for item in plan.partitions
        ]
        content = encode_index_metadata(done, extra=self.context.config.features.index_plan_extra)

        def publish(check_lock: CheckOwner) -> None:
            if built is None or built.build.deltacommit is None:
                remove_leftovers(self.context, self.instant, plan.names)
            ours = () if built is None else built.build.targets
            self._refuse_misfits({name: count for name, count in plan.counts.items() if name not in ours})
            if built is not None:
                counted.extend(item for items in self._publish(built, builder, check_lock).values() for item in items)

        return Completion(content, counted, publish)

    def _refuse_misfits(self, counts: Mapping[str, int]) -> None:
        """Raises ConflictError, under the lock, where a writer listed an index with another number of file groups."""
        names = misfits(self.context, TableConfig.load(self.storage), counts)
        if names:
            raise self._built_by_others(names, ", with another number of file groups than was planned")

    def _built_by_others(self, names: Sequence[str], how: str = "") -> ConflictError:
        return ConflictError(
            f"a writer built {', '.join(names)} itself meanwhile{how}",
            path=self.active.folder,
            remedy="set hoodie.metadata.index.async on the writers that enable it, then run the indexing again",
        )

    def _publish(self, built: Started, builder: IndexBuilder, check_lock: CheckOwner) -> Written:
        """Publishes the build under the lock. A build that lacks later commits is repeated, the last one here."""
        current, build = self.context.reloaded(), built.build
        if counts_early(current.config, build.targets):
            refuse_compacting(current, current.config, build.targets)
        listed = sorted(current.config.metadata_partitions.intersection(build.targets))
        if listed:
            raise self._built_by_others(listed)
        metadata_timeline, now = MetadataTimeline(current.storage, current.config), self.active.load()
        early = now.requested_times if self._early is None else self._early
        behind = unrecorded(current, build, built.snapshot.timeline, now, metadata_timeline, early)
        if behind and not self._is_last:
            raise _Behind(
                f"{len(behind)} instants completed without an update of the index, {behind[0]} first",
                path=self.active.folder,
            )
        written = built.written
        if behind or written is None:
            build, written = builder.rebuilt(list(build.targets), check_lock)
        try:
            builder.index.publish(build, written, check_lock)
        except BuildRolledBackError as error:
            if not self._is_last:
                raise
            log.warning("%s; built again under the lock of the table", error.message)
            build, written = builder.rebuilt(list(build.targets), check_lock)
            builder.index.publish(build, written, check_lock)
        return written

    def forget(self) -> None:
        """Removes the heartbeat of a dead attempt; a live one removes its heartbeat at its end."""
        self.storage.delete(heartbeat_path(self.instant))

    def result(self, done: Sequence[NewBaseFile] | None, seconds: float) -> InstantResult:
        files = done or ()
        return replace(
            super().result(done, seconds), files_written=len(files), bytes_written=sum(item.size for item in files)
        )
