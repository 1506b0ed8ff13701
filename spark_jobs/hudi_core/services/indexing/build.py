"""One build of planned indexes: from a snapshot of the table to their base files, in file groups that are inflight.

When indexes are built, and published, is in job; which actions they lack in unrecorded_commits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from hudi_core.errors import ConflictError, StorageNotFoundError
from hudi_core.metadata_table.initialize.indexing import Build, IndexBuild
from hudi_core.metadata_table.initialize.initialize import Initialization
from hudi_core.metadata_table.initialize.target import NewBaseFile
from hudi_core.model.names import WriteToken
from hudi_core.services.context import TableContext
from hudi_core.services.indexing.resize import settings_for
from hudi_core.services.lifecycle import Run
from hudi_core.services.metadata.initialization import Initializations, Snapshot

Written = Mapping[str, Sequence[NewBaseFile]]
"""The base files by partition."""


@dataclass(frozen=True, slots=True)
class Started:
    """A build of `snapshot` whose partitions are inflight and have no base file yet."""

    snapshot: Snapshot
    build: Build
    initialized: Sequence[Initialization]


class IndexBuilder:
    """The builds of one claimed run; `counts` are the file groups by index that its plan or its options require."""

    def __init__(self, run: Run, counts: Mapping[str, int], epoch: int) -> None:
        context = run.context
        self.index = IndexBuild(context.storage, run.instant, WriteToken(0, epoch, 0), context.clock())
        self._context = context
        self._counts = counts
        self._workers = context.workers(run.engine, epoch)
        self._progress = run.progress

    def rows(self, names: Sequence[str]) -> dict[str, int]:
        """The rows of each data partition, for `start`; without the lock, since base files are read for them."""
        current = self._context.reloaded()
        return self._rows(names, current, Snapshot.of(current))

    def start(self, names: Sequence[str], check: Callable[[], None], rows: Mapping[str, int] | None = None) -> Started:
        """Makes the partitions `names` inflight, under the table lock; `rows` are read now where they are None. `check`
        raises when the lock is lost.
        """
        current = self._context.reloaded()
        snapshot = Snapshot.of(current)
        known = self._rows(names, current, snapshot) if rows is None else rows
        initialized = [self._initializations(current, name).initialization(name, snapshot, known) for name in names]
        check()
        return Started(snapshot, self.index.begin(initialized, snapshot.timeline), initialized)

    def fill(self, started: Started) -> Written:
        """Writes the base files. Raises BuildRolledBackError, and ConflictError where a clean deleted a file of the
        snapshot.
        """
        written: dict[str, Sequence[NewBaseFile]] = {}
        try:
            for item in started.initialized:
                written |= self.index.fill(started.build, [item])
                if self._progress is not None:
                    self._progress(len(written), len(started.initialized))
        except StorageNotFoundError as error:
            raise ConflictError(
                f"a file was cleaned while the index was built from it: {error.message}",
                path=error.path,
                remedy="run the indexing again",
            ) from error
        return written

    def rebuilt(self, names: Sequence[str], check: Callable[[], None]) -> tuple[Build, Written]:
        """Builds the partitions `names` to the end, under the table lock; `check` as for start."""
        started = self.start(names, check)
        return started.build, self.fill(started)

    def _rows(self, names: Sequence[str], current: TableContext, snapshot: Snapshot) -> dict[str, int]:
        counted = [name for name in names if name not in self._counts]
        return Initializations(current, self._workers).rows_by_partition(counted, snapshot)

    def _initializations(self, current: TableContext, name: str) -> Initializations:
        count = self._counts.get(name)
        options = current.options if count is None else {**current.options, **settings_for(count)}
        return Initializations(replace(current, options=options), self._workers)
