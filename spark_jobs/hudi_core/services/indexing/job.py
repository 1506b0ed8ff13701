"""Runs one planned indexing action from `requested` to `completed`.

claim → inflight → [delist what is resized (lock) → wait for writers] → begin (lock) → base files → wait for writers →
publish and complete (lock) → clean up

An index that is not published counts for nobody, so whoever claims the instant after a crash begins it anew; one that
is published is completed.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from hudi_core.config.table_config import TableConfig
from hudi_core.engine.protocol import Engine
from hudi_core.errors import BuildRolledBackError, ConfigError, ConflictError, StorageNotFoundError
from hudi_core.metadata_table.initialize.build_heartbeat import BuildHeartbeat, heartbeat_path
from hudi_core.metadata_table.initialize.indexing import Build, IndexBuild
from hudi_core.metadata_table.initialize.initialize import Initialization
from hudi_core.metadata_table.initialize.target import NewBaseFile
from hudi_core.metadata_table.timeline import MetadataTimeline
from hudi_core.model.ids import WriteToken
from hudi_core.request.model import InstantResult
from hudi_core.services.after_completion import clean_up_completed
from hudi_core.services.context import TableContext
from hudi_core.services.indexing.resize import group_counts, misfits, planned_counts, remove_leftovers, settings_for
from hudi_core.services.indexing.visibility import Visibility, unrecorded
from hudi_core.services.metadata.initialization import Initializations, Snapshot
from hudi_core.services.metadata.pending_indexing import read_index_plan
from hudi_core.services.metadata.retired import counts_early, delist, left_over, refuse_compacting
from hudi_core.services.rollback.verb import clean_failed_writes
from hudi_core.services.waiting import pending_writers, wait_for_writers
from hudi_core.timeline.actions.indexing import IndexedPartition, encode_index_metadata
from hudi_core.timeline.instant import Action, Instant, State
from hudi_core.transaction.claim import Claim, forget_claims
from hudi_core.transaction.owner import Owner

log = logging.getLogger(__name__)

ATTEMPTS: Final = 3
"""Builds of one run; the last is made under the table lock, where nobody can get ahead of it."""


Written = Mapping[str, Sequence[NewBaseFile]]
"""The base files by partition."""


@dataclass(frozen=True, slots=True)
class Built:
    """An index built from `snapshot`, not published. `written` is None where somebody took it back meanwhile."""

    snapshot: Snapshot
    build: Build
    written: Written | None


@dataclass(frozen=True, slots=True)
class _Planned:
    """A plan, and the file groups that it or the options ask for by index."""

    partitions: Sequence[IndexedPartition]
    counts: Mapping[str, int]

    @property
    def names(self) -> list[str]:
        return [item.name for item in self.partitions]


class _Behind(ConflictError):
    """Commits completed meanwhile that the index was not told of."""


class IndexingRun:
    """One instant's run by one owner. `progress` is called with the partitions done and all partitions."""

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
        self._visibility: Visibility | None = None
        self._alive = BuildHeartbeat(context.storage)

    def run(self) -> InstantResult:
        """Builds what the plan names and completes the instant, or returns the completed state when it is done already.

        Raises ConfigError, FormatError, UnsupportedError before anything is written; ConflictError while somebody else
        runs the instant, while a write that began before the index is at work for too long, and where a file of the
        snapshot was cleaned meanwhile. After any other error, and after a kill, the instant can be run again. Memory:
        as metadata.beginnings.Beginnings, and the table's listing.
        """
        started = time.monotonic()
        if self._find().is_completed:
            clean_up_completed(self._context, self._instant, self._owner, self._forget_heartbeat)
            return self._result(started, 0, 0)
        plan = read_index_plan(self._context, self._instant)
        planned = _Planned(plan, planned_counts(plan, self._context.options, path=self._active.folder))
        Initializations(self._context, self._engine, 0).check(planned.names)
        files, size = 0, 0
        with self._context.claim(self._instant, self._owner) as held:
            if (
                self._context.completer(held, self._owner).finish_decided(self._instant) is None
                and not self._find().is_completed
            ):
                self._active.to_inflight(self._instant, Action.INDEXING)
                with self._alive:
                    files, size = self._execute(planned, held)
        self._forget_heartbeat()
        forget_claims(self._context.storage, self._instant)
        return self._result(started, files, size)

    def _execute(self, plan: _Planned, held: Claim) -> tuple[int, int]:
        self._delist_misfits(plan, held)
        attempt = 1
        while True:
            try:
                return self._attempt(plan, held, last=attempt == ATTEMPTS)
            except (_Behind, BuildRolledBackError) as error:
                if attempt == ATTEMPTS:
                    raise
                attempt += 1
                log.warning("%s; built anew (attempt %d of %d)", error.message, attempt, ATTEMPTS)

    def _attempt(self, plan: _Planned, held: Claim, *, last: bool) -> tuple[int, int]:
        """The files built and their bytes, published."""
        held.check()
        config = TableConfig.load(self._context.storage)
        left = [name for name in plan.names if name not in config.metadata_partitions]
        self._wait_for_users(left, config, held)
        built = self._build(left, plan.counts, held, last=last) if left else None
        if built is not None:
            self._wait(built, held)
        return self._complete(plan, built, held, last=last)

    def _delist_misfits(self, plan: _Planned, held: Claim) -> None:
        """What is listed with another number of file groups than the plan asks for goes off the list; what somebody
        else built loses our files.
        """
        if TableConfig.load(self._context.storage).metadata_partitions.isdisjoint(plan.names):
            return
        with self._context.lock(self._owner) as lock:
            held.check()
            remove_leftovers(self._context, self._instant, plan.names)
            names = misfits(self._context, TableConfig.load(self._context.storage), plan.counts)
            if names:
                refuse_compacting(self._context, TableConfig.load(self._context.storage), names)
                for name in names:
                    groups = group_counts(self._context.storage, name)
                    log.warning("the index %s is delisted, to be built with other file groups than %s", name, groups)
                lock.check()
                delist(self._context, names)

    def _wait_for_users(self, names: Sequence[str], config: TableConfig, held: Claim) -> None:
        """Until the writes have ended that may have read properties which list an index whose files are to go."""
        awaited = (
            pending_writers(self._active.load()) if left_over(self._context.storage, config, names) else frozenset()
        )
        if awaited:
            wait_for_writers(self._context, awaited, held.check)

    def _build(self, names: Sequence[str], counts: Mapping[str, int], held: Claim, *, last: bool) -> Built:
        rows = self._rows(names, counts, Snapshot.of(self._current()), held)
        with self._context.lock(self._owner) as lock:
            held.check()
            config = TableConfig.load(self._context.storage)
            # Their files go now, and may be in a plan that somebody made meanwhile.
            if left_over(self._context.storage, config, names) or counts_early(config, names):
                refuse_compacting(self._context, config, names)
            snapshot = Snapshot.of(self._current())
            initialized = self._initialized(names, counts, snapshot, rows, held)
            lock.check()
            build = self._index(held).begin(initialized, snapshot.timeline)
            if build.deltacommit is not None:
                self._alive.begin(build.deltacommit)
        if self._visibility is None:
            self._visibility = Visibility(self._active.load().requested_times)
        try:
            return Built(snapshot, build, self._fill(build, initialized, held))
        except BuildRolledBackError:
            if not last:
                raise
            return Built(snapshot, build, None)

    def _rows(self, names: Sequence[str], counts: Mapping[str, int], snapshot: Snapshot, held: Claim) -> dict[str, int]:
        return self._initializations(held).rows_by_partition([name for name in names if name not in counts], snapshot)

    def _initialized(
        self, names: Sequence[str], counts: Mapping[str, int], snapshot: Snapshot, rows: Mapping[str, int], held: Claim
    ) -> list[Initialization]:
        return [self._initializations(held, counts.get(name)).initialization(name, snapshot, rows) for name in names]

    def _fill(self, build: Build, initialized: Sequence[Initialization], held: Claim) -> Written:
        written: dict[str, Sequence[NewBaseFile]] = {}
        try:
            for item in initialized:
                written |= self._index(held).fill(build, [item])
                if self._progress is not None:
                    self._progress(len(written), len(initialized))
        except StorageNotFoundError as error:
            raise ConflictError(
                f"a file was cleaned while the index was built from it: {error.message}",
                path=error.path,
                remedy="run the indexing again",
            ) from error
        return written

    def _wait(self, built: Built, held: Claim) -> None:
        awaited = pending_writers(built.snapshot.timeline)
        if awaited and wait_for_writers(self._context, awaited, held.check):
            # What died stays pending: rolled back, it cannot complete behind the published index.
            for result in clean_failed_writes(self._context, self._owner):
                log.info("the failed write %s was rolled back", result.target)

    def _complete(self, plan: _Planned, built: Built | None, held: Claim, *, last: bool) -> tuple[int, int]:
        counted: list[NewBaseFile] = []
        up_to = None if built is None else built.snapshot.timeline.commits().last()
        done = [
            replace(item, up_to=item.up_to if up_to is None else max(item.up_to, up_to.requested_time), extra={})
            for item in plan.partitions
        ]
        content = encode_index_metadata(done, extra=self._context.config.features.index_plan_extra)

        def publish() -> None:
            if built is None or built.build.deltacommit is None:
                remove_leftovers(self._context, self._instant, plan.names)
            ours = () if built is None else built.build.targets
            self._refuse_misfits({name: count for name, count in plan.counts.items() if name not in ours})
            if built is not None:
                self._publish(built, plan.counts, held, counted, last=last)

        self._context.completer(held, self._owner).complete(self._instant, Action.INDEXING, content, publish=publish)
        log.info("indexing %s completed: %s", self._instant, ", ".join(plan.names))
        return len(counted), sum(item.size for item in counted)

    def _refuse_misfits(self, counts: Mapping[str, int]) -> None:
        """Under the lock: a writer of Hudi may have built and listed an index between two attempts, with a number of
        its own.
        """
        names = misfits(self._context, TableConfig.load(self._context.storage), counts)
        if names:
            raise self._built_by_others(names, ", with another number of file groups than was planned")

    def _built_by_others(self, names: Sequence[str], how: str = "") -> ConflictError:
        return ConflictError(
            f"a writer built {', '.join(names)} itself meanwhile{how}",
            path=self._active.folder,
            remedy="set hoodie.metadata.index.async on the writers that enable it, then run the indexing again",
        )

    def _publish(
        self, built: Built, counts: Mapping[str, int], held: Claim, counted: list[NewBaseFile], *, last: bool
    ) -> None:
        """Under the lock. What completed since the snapshot must have told the index, and nobody have taken the build
        back.

        Else it is built anew, at the last attempt here, where nobody can do either.
        """
        current = self._current()
        if counts_early(current.config, built.build.targets):
            refuse_compacting(current, current.config, built.build.targets)
        listed = sorted(current.config.metadata_partitions.intersection(built.build.targets))
        if listed:
            raise self._built_by_others(listed)
        metadata_timeline, visibility = (
            MetadataTimeline(current.storage, current.config),
            self._visibility or Visibility(self._active.load().requested_times),
        )
        behind = unrecorded(
            current, built.build, built.snapshot.timeline, self._active.load(), metadata_timeline, visibility
        )
        if behind and not last:
            raise _Behind(
                f"{len(behind)} instants completed without telling the index, {behind[0]} first",
                path=self._active.folder,
            )
        build, written = built.build, built.written
        if behind or written is None:
            build, written = self._rebuilt(list(build.targets), counts, held)
        try:
            self._index(held).publish(build, written)
        except BuildRolledBackError as error:
            if not last:
                raise
            log.warning("%s; built anew under the lock of the table", error.message)
            build, written = self._rebuilt(list(build.targets), counts, held)
            self._index(held).publish(build, written)
        counted += [item for items in written.values() for item in items]

    def _rebuilt(self, names: Sequence[str], counts: Mapping[str, int], held: Claim) -> tuple[Build, Written]:
        snapshot = Snapshot.of(self._current())
        initialized = self._initialized(names, counts, snapshot, self._rows(names, counts, snapshot, held), held)
        build = self._index(held).begin(initialized, snapshot.timeline)
        return build, self._fill(build, initialized, held)

    def _current(self) -> TableContext:
        return replace(self._context, config=TableConfig.load(self._context.storage))

    def _initializations(self, held: Claim, groups: int | None = None) -> Initializations:
        context = self._current()
        options = context.options if groups is None else {**context.options, **settings_for(groups)}
        return Initializations(replace(context, options=options), self._engine, held.epoch)

    def _index(self, held: Claim) -> IndexBuild:
        return IndexBuild(self._context.storage, self._instant, WriteToken(0, held.epoch, 0), self._context.clock())

    def _find(self) -> Instant:
        found = self._active.load().find(self._instant, Action.INDEXING)
        if found is None:
            raise ConfigError(
                f"the timeline holds no indexing at instant {self._instant}",
                path=self._active.folder,
                remedy="list the instants with `hudictl timeline --action indexing`",
            )
        return found

    def _forget_heartbeat(self) -> None:
        """That of an attempt that died: one that ends removes its own."""
        self._context.storage.delete(heartbeat_path(self._instant))

    def _result(self, started: float, files: int, size: int) -> InstantResult:
        seconds = round(time.monotonic() - started, 3)
        return InstantResult(
            self._instant,
            Action.INDEXING,
            State.COMPLETED.value,
            files_written=files,
            bytes_written=size,
            seconds=seconds,
        )
