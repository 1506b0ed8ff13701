"""Creates a savepoint: the files of a commit are kept, by the cleaner and the archival, until it is deleted
(SavepointActionExecutor).
"""

from __future__ import annotations

import time
from functools import partial

from hudi_core.errors import ConfigError, HudiError, TimelineError
from hudi_core.services.context import TableContext
from hudi_core.services.lifecycle import Completion, Job, Run, run_instant
from hudi_core.services.savepoint.listing import Savepoint, read_savepoint, savepoint_of
from hudi_core.services.savepoint.retained import last_commit_retained
from hudi_core.timeline.actions.savepoint import SavepointMetadata, encode_savepoint
from hudi_core.timeline.instant import Action, Instant, State
from hudi_core.timeline.timeline import Timeline
from hudi_core.transaction.claim import Claim
from hudi_core.transaction.owner import Owner


def savepoint_create(
    context: TableContext, instant: str | None, owner: Owner, *, comment: str = "", user: str = ""
) -> Savepoint:
    """Keeps the files of the table at the completed commit `instant`, the newest when None. An existing savepoint is
    kept.

    `user` is recorded as its author, the owner when empty. Raises ConfigError when there is no such commit on the
    timeline, TimelineError when a clean may have removed files of it, ConflictError while another process makes it.
    """
    timeline = context.active.load()
    time_of = instant or _newest(context, timeline)
    job = SavepointJob(Run(context, time_of, owner), comment, user or owner.text)
    run_instant(job)
    done = context.active.load().get(time_of, Action.SAVEPOINT)
    return savepoint_of(time_of, read_savepoint(context, done), existed=job.existed)


class SavepointJob(Job[None, None]):
    """Lists the files of the commit under the table lock, and keeps them unless a clean is planned meanwhile."""

    action = Action.SAVEPOINT
    revisits = True

    def __init__(self, run: Run, comment: str, user: str) -> None:
        super().__init__(run)
        self._comment = comment
        self._user = user
        self._content = b""
        self.existed = True
        """Whether the savepoint was there before this run."""

    def find(self, timeline: Timeline) -> Instant:
        """The savepoint, requested where it is not on the timeline: it has no plan of its own."""
        return timeline.find(self.instant, Action.SAVEPOINT) or Instant(self.instant, Action.SAVEPOINT, State.REQUESTED)

    def plan(self, timeline: Timeline) -> None:
        """Raises as savepoint_create, before anything is written; again under the lock."""
        if timeline.find(self.instant, Action.SAVEPOINT) is None:
            _check(self.context, timeline, self.instant)

    def begin(self, plan: None, held: Claim) -> None:
        """Lists the files under the lock."""
        with self.context.lock(self.owner) as lock:
            timeline = self.active.load()
            _check(self.context, timeline, self.instant)
            files = _files(self.context, timeline, self.instant)
            metadata = SavepointMetadata(self._user, int(time.time() * 1000), self._comment, files)
            lock.check()
            self.active.to_inflight(self.instant, Action.SAVEPOINT)
        self._content, self.existed = encode_savepoint(metadata), False

    def execute(self, plan: None, held: Claim) -> Completion[None]:
        """Completes it unless a clean was planned since the files were listed."""
        return Completion(self._content, None, preconditions=(partial(_check, self.context, instant=self.instant),))

    def withdraw(self, plan: None, held: Claim, error: HudiError) -> None:
        """Where the commit may no longer be kept, the attempt leaves nothing."""
        if isinstance(error, TimelineError) and not self.existed:
            with self.context.lock(self.owner):
                self.active.remove(self.instant, Action.SAVEPOINT, State.INFLIGHT)

    def clean_up_completed(self, *, decided: bool) -> None:
        """Taking the lock breaks the one that a dead run may have left."""
        with self.context.lock(self.owner):
            pass


def _newest(context: TableContext, timeline: Timeline) -> str:
    newest = timeline.commits().last()
    if newest is None:
        raise ConfigError(
            "the table has no completed commit",
            path=context.active.folder,
            remedy="a savepoint keeps the files of a commit",
        )
    return newest.requested_time


def _check(context: TableContext, timeline: Timeline, instant: str) -> None:
    if not timeline.commits().contains(instant):
        raise ConfigError(
            f"the timeline holds no completed commit at instant {instant}",
            path=context.active.folder,
            remedy="list the instants with `hudictl timeline TABLE --state completed`",
        )
    retained = last_commit_retained(context.active, timeline)
    if retained is not None and instant < retained:
        raise TimelineError(
            f"commit {instant} cannot be kept: cleans may have removed files of it",
            path=context.active.folder,
            remedy=f"the oldest commit whose files are all there is {retained}",
        )


def _files(context: TableContext, timeline: Timeline, instant: str) -> dict[str, tuple[str, ...]]:
    """The files of each partition's slices at the commit: a base file, and all log files on top of it, those since then
    included.
    """
    view = context.view(timeline)
    return {
        partition: tuple(file.name for item in view.latest_slices_up_to(partition, instant) for file in item.files)
        for partition in view.partitions()
    }
