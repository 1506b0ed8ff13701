"""The job of a savepoint, which keeps the files of a commit from the cleaner (SavepointActionExecutor)."""

from __future__ import annotations

import logging
import time
from functools import partial

from hudi_core.errors import ConfigError, HudiError, TimelineError
from hudi_core.services.context import TableContext
from hudi_core.services.lifecycle import Completion, Job, Run
from hudi_core.services.savepoint.restored_state import RestoredStates
from hudi_core.timeline.actions.fields import member, text
from hudi_core.timeline.actions.restore import SavepointMetadata, encode_savepoint
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.timeline.instant import WRITE_ACTIONS, Action, Instant, State
from hudi_core.timeline.timeline import Timeline
from hudi_core.transaction.claim import Claim

log = logging.getLogger(__name__)


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
        self._began = False

    def find(self, timeline: Timeline) -> Instant:
        """The savepoint, requested where it is not on the timeline: it has no plan of its own."""
        return timeline.find(self.instant, Action.SAVEPOINT) or Instant(self.instant, Action.SAVEPOINT, State.REQUESTED)

    def plan(self, timeline: Timeline) -> None:
        """Raises as savepoint_create, before anything is written; again under the lock."""
        if timeline.find(self.instant, Action.SAVEPOINT) is None:
            _check(self.context, timeline, self.instant)
            _files(self.context, timeline, self.instant)  # what cannot be listed shows before the claim

    def begin(self, plan: None, held: Claim) -> None:
        """Lists the files under the lock."""
        with self.context.lock(self.owner) as lock:
            timeline = self.active.load()
            _check(self.context, timeline, self.instant)
            files = _files(self.context, timeline, self.instant)
            metadata = SavepointMetadata(self._user, int(time.time() * 1000), self._comment, files)
            lock.check()
            self._began = True
            self.active.to_inflight(self.instant, Action.SAVEPOINT)
        self._content, self.existed = encode_savepoint(metadata), False

    def execute(self, plan: None, held: Claim) -> Completion[None]:
        """Completes it unless a clean was planned since the files were listed."""
        return Completion(self._content, None, preconditions=(partial(_check, self.context, instant=self.instant),))

    def withdraw(self, plan: None, held: Claim, error: HudiError) -> None:
        """Removes the inflight file that this run made; where the commit may no longer be kept, that of an earlier run
        as well. Where that fails, or the claim is lost, the file stays to the next run.
        """
        is_lost = isinstance(error, (ConfigError, TimelineError))
        if held.may_have_decided or not (self._began or is_lost):
            return
        try:
            with self.context.lock(self.owner):
                held.check()
                self.active.remove(self.instant, Action.SAVEPOINT, State.INFLIGHT)
        except HudiError as failed:
            log.warning("the savepoint of %s stays unfinished: %s", self.instant, failed)

    def clean_up_completed(self, *, decided: bool) -> None:
        """Taking the lock breaks the one that a dead run may have left."""
        with self.context.lock(self.owner):
            pass


def _commit_at(context: TableContext, timeline: Timeline, instant: str) -> Instant:
    found = next((item for item in timeline.commits() if item.requested_time == instant), None)
    if found is None:
        raise ConfigError(
            f"the timeline holds no completed commit at instant {instant}",
            path=context.active.folder,
            remedy="list the instants with `hudictl timeline TABLE --state completed`",
        )
    return found


def _check(context: TableContext, timeline: Timeline, instant: str) -> None:
    target = _commit_at(context, timeline, instant)
    retained = last_commit_retained(context, timeline)
    if retained is not None and instant < retained:
        raise TimelineError(
            f"commit {instant} cannot be kept: cleans may have removed files of it",
            path=context.active.folder,
            remedy=f"the oldest commit whose files are all there is {retained}",
        )
    lost = RestoredStates(context, timeline).why_lost(target)
    if lost is not None:
        raise TimelineError(
            f"commit {instant} cannot be kept: {lost}",
            path=context.active.folder,
            remedy="keep a later commit; `hudictl restore TABLE --dry-run` lists those that can be restored",
        )


def _files(context: TableContext, timeline: Timeline, instant: str) -> dict[str, tuple[str, ...]]:
    """The files of each partition's slices at the commit; of a slice all log files, those since then included.

    By requested time, as Hudi lists them, and those of the table as a restore to the commit leaves it. In layout 2 that
    goes by completion: what a write replaced that was requested before the commit and completed after it comes back,
    and log files that lie on a compaction since then belong to the slice below.
    """
    listing = context.listing(context.metadata_table("auto", timeline))
    view = context.view(timeline, listing=listing)
    states = RestoredStates(context, timeline)
    restored = context.view(states.timeline(_commit_at(context, timeline, instant)), listing=listing)
    slices = {
        partition: (*view.latest_slices_up_to(partition, instant), *restored.latest_merged_slices(partition))
        for partition in view.partitions()
    }
    return {
        partition: tuple(dict.fromkeys(file.name for item in found for file in item.files))
        for partition, found in slices.items()
    }


def last_commit_retained(context: TableContext, timeline: Timeline) -> str | None:
    """The oldest commit that no clean, completed or pending, has taken files from; None without commits and cleans.

    As SavepointActionExecutor.getLastCommitRetained. A clean by file versions names no commit: then it is the last
    write before it (Hudi 1.2; 0.15 fails there). Unlike Hudi also cleans that are archived count.
    """
    first = timeline.commits().first()
    cleans = timeline.of_actions(Action.CLEAN)
    retained = [_retained_by(context.active, timeline, clean) for clean in cleans]
    if first is not None:
        retained += _retained_by_archived(context, timeline, first.requested_time)
    # All of them: one by file versions may have gone further than a later one by commits.
    return max(retained, default=None if first is None else first.requested_time)


def _retained_by(active: ActiveTimeline, timeline: Timeline, clean: Instant) -> str:
    if clean.is_completed:
        earliest = text(active.read_of(clean), "earliestCommitToRetain", path=active.path_of(clean))
    else:
        path = active.path(clean.requested_time, Action.CLEAN, State.REQUESTED)
        plan = active.read_any(clean.requested_time, Action.CLEAN, State.REQUESTED)
        earliest = text(member(plan, "earliestInstantToRetain", dict, path=path, default={}), "timestamp", path=path)
    return earliest or _last_write_before(timeline, clean)


def _retained_by_archived(context: TableContext, timeline: Timeline, first: str) -> list[str]:
    """What the archived cleans after the timeline's first commit retained: a savepoint keeps commits on the timeline,
    while cleans go on being archived.
    """
    history, folder = context.history(), context.config.history_folder
    return [
        text(history.content(clean), "earliestCommitToRetain", path=folder) or _last_write_before(timeline, clean)
        for clean in history.instants(after=first)
        if clean.action == Action.CLEAN and not timeline.contains(clean.requested_time)
    ]


def _last_write_before(timeline: Timeline, clean: Instant) -> str:
    before = (
        timeline.completed().filter(lambda instant: instant.action in WRITE_ACTIONS).up_to(clean.requested_time).last()
    )
    return clean.requested_time if before is None else before.requested_time
