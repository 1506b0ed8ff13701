"""`savepoint create`, `list` and `delete`: the cleaner keeps the files of a commit until its savepoint is deleted
(SavepointActionExecutor). `_files` says which files these are. candidates.py says what a restore to the commit leaves.
"""

from __future__ import annotations

import logging
import time
from dataclasses import asdict
from functools import partial
from typing import Any

from hudi_core.errors import ConfigError, HudiError, TimelineError
from hudi_core.frozen import dataclass
from hudi_core.services.context import TableContext
from hudi_core.services.lifecycle import Completion, Job, Run, claimed, run_instant
from hudi_core.services.restore.candidates import RestoreCandidates, commit_at
from hudi_core.services.rollback.execution import NOTHING
from hudi_core.timeline.actions.rollback import SavepointMetadata, decode_savepoint, encode_savepoint
from hudi_core.timeline.instant import Action, Instant, State
from hudi_core.timeline.timeline import Timeline
from hudi_core.transaction.claim import Claim
from hudi_core.transaction.claim_file import forget_claims
from hudi_core.transaction.owner import Owner

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Savepoint:
    """The savepoint of the commit at `instant`. `existed`: it was there before. `deleted`: it is gone."""

    instant: str
    by: str
    at_ms: int
    comment: str
    files: int
    existed: bool = False
    deleted: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Returns an item of `savepoint list --json`, and the document of create and delete. `removed` is empty."""
        return asdict(self) | {"removed": NOTHING.to_dict()}


def savepoint_create(context: TableContext, instant: str | None, owner: Owner, *, comment: str = "") -> Savepoint:
    """Keeps the files of the table at the completed commit `instant`; None is the newest commit. An existing savepoint
    stays. Raises ConfigError without such a commit, TimelineError when a clean may have taken files, ConflictError.
    """
    time_of = instant or _newest(context, context.active.load())
    job = SavepointJob(Run(context, time_of, owner), comment)
    run_instant(job)
    done = context.active.load().get(time_of, Action.SAVEPOINT)
    return savepoint_of(time_of, read_savepoint(context, done), existed=job.existed)


def _newest(context: TableContext, timeline: Timeline) -> str:
    """Returns the commit to which a restore keeps every other. In layout 2, where writes overlapped, that is not always
    the one that was requested last.
    """
    commits = timeline.commits().instants
    if not commits:
        what = "the table has no completed commit"
        raise ConfigError(what, path=context.active.folder, remedy="a savepoint keeps the files of a commit")
    candidates = RestoreCandidates(context, timeline)
    for newest in (commits[-1], max(commits, key=lambda commit: commit.completed_at)):
        if not any(instant.is_completed for instant in candidates.after(newest)):
            return newest.requested_time
    what = f"a restore to {commits[-1].requested_time}, the last commit, would roll an overlapping commit back"
    raise ConfigError(what, path=context.active.folder, remedy="name the commit that the savepoint shall keep")


def existing_savepoint(context: TableContext, instant: str | None) -> Savepoint | None:
    """Returns the commit's completed savepoint (savepoint_create), if any. Raises ConfigError without a commit."""
    timeline = context.active.load()
    time_of = instant or _newest(context, timeline)
    savepoint = timeline.find(time_of, Action.SAVEPOINT)
    if savepoint is None or not savepoint.is_completed:
        return None
    return savepoint_of(time_of, read_savepoint(context, savepoint))


def savepoint_list(context: TableContext) -> list[Savepoint]:
    """Returns the completed savepoints, oldest first. Raises CorruptFileError for one that cannot be read."""
    savepoints = context.active.load().completed().of_actions(Action.SAVEPOINT)
    return [savepoint_of(item.requested_time, read_savepoint(context, item)) for item in savepoints]


def read_savepoint(context: TableContext, instant: Instant) -> SavepointMetadata:
    return decode_savepoint(context.active.read_details(instant), path=context.active.path_of(instant))


def savepoint_of(
    instant: str, metadata: SavepointMetadata, *, existed: bool = True, deleted: bool = False
) -> Savepoint:
    files = sum(len(names) for names in metadata.files.values())
    return Savepoint(instant, metadata.by, metadata.at_ms, metadata.comment, files, existed, deleted)


def savepoint_delete(context: TableContext, instant: str, owner: Owner) -> Savepoint:
    """Deletes a savepoint, or what a dead run left of one. Raises ConfigError where there is none, ConflictError."""
    savepoint_to_delete(context, instant)
    # First carries out a decided completion, whose late request could bring the savepoint back.
    with claimed(context, instant, owner), context.lock(owner) as lock:
        savepoint = savepoint_to_delete(context, instant)
        metadata = read_savepoint(context, savepoint) if savepoint.is_completed else SavepointMetadata("", 0, "")
        lock.check()
        context.active.delete_instant(instant, Action.SAVEPOINT)
    forget_claims(context.storage, instant)
    return savepoint_of(instant, metadata, deleted=True)


def savepoint_to_delete(context: TableContext, instant: str) -> Instant:
    """Returns the savepoint of `instant` in any state. Raises ConfigError where there is none."""
    savepoint = context.active.load().find(instant, Action.SAVEPOINT)
    if savepoint is None:
        what = f"there is no savepoint of instant {instant}"
        raise ConfigError(what, path=context.active.folder, remedy="list them: `hudictl savepoint list TABLE`")
    return savepoint


class SavepointJob(Job[None, None]):
    """Lists the files of the commit under the table lock, and keeps them unless a clean is planned meanwhile."""

    action = Action.SAVEPOINT
    revisits = True

    def __init__(self, run: Run, comment: str) -> None:
        super().__init__(run)
        self._comment = comment
        self._content = b""
        self.existed = True
        """Whether the savepoint was there before this run."""
        self._began = False

    def find(self, timeline: Timeline) -> Instant:
        """Returns the savepoint; as requested where it is not on the timeline, because it has no plan of its own."""
        return timeline.find(self.instant, Action.SAVEPOINT) or Instant(self.instant, Action.SAVEPOINT, State.REQUESTED)

    def plan(self, timeline: Timeline) -> None:
        """Raises the errors of savepoint_create before anything is written. `begin` checks again under the lock."""
        if timeline.find(self.instant, Action.SAVEPOINT) is None:
            _check(self.context, timeline, self.instant)
            _files(self.context, timeline, self.instant)  # a listing that fails does so before the claim

    def begin(self, plan: None, held: Claim) -> None:
        with self.context.lock(self.owner) as lock:
            timeline = self.active.load()
            _check(self.context, timeline, self.instant)
            files = _files(self.context, timeline, self.instant)
            metadata = SavepointMetadata(self.owner.text, int(time.time() * 1000), self._comment, files)
            lock.check()
            self._began = True
            self.active.to_inflight(self.instant, Action.SAVEPOINT)
        self._content, self.existed = encode_savepoint(metadata), False

    def execute(self, plan: None, held: Claim) -> Completion[None]:
        """Completes the savepoint unless a clean was planned since the files were listed."""
        return Completion(self._content, None, preconditions=(partial(_check, self.context, instant=self.instant),))

    def abandon(self, plan: None, held: Claim, error: HudiError) -> None:
        """Removes this run's inflight file; also an earlier run's where the commit may no longer be kept."""
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
        """Takes the lock, which breaks the lock that a dead run may have left."""
        with self.context.lock(self.owner):
            pass


def _check(context: TableContext, timeline: Timeline, instant: str) -> None:
    target, candidates = commit_at(timeline, instant), RestoreCandidates(context, timeline)
    if target is None:
        what = f"the timeline holds no completed commit at instant {instant}"
        remedy = "list the instants with `hudictl timeline TABLE --state completed`"
        raise ConfigError(what, path=context.active.folder, remedy=remedy)
    if candidates.retained is not None and instant < candidates.retained:
        what = f"commit {instant} cannot be kept: cleans may have removed files of it"
        remedy = f"the oldest commit whose files are all there is {candidates.retained}"
        raise TimelineError(what, path=context.active.folder, remedy=remedy)
    lost = candidates.why_lost(target)
    if lost is not None:
        what = f"commit {instant} cannot be kept: {lost}"
        remedy = "keep a later commit; `hudictl restore TABLE --dry-run` lists those that can be restored"
        raise TimelineError(what, path=context.active.folder, remedy=remedy)


def _files(context: TableContext, timeline: Timeline, instant: str) -> dict[str, tuple[str, ...]]:
    """Returns the names of the files of each partition's slices at a commit that passed _check. A slice has all its log
    files, also later ones. The slices are those by requested time, as Hudi lists them, and those of the table as a
    restore leaves it. In layout 2 a restore goes by completion, so that files which a later completion replaced come
    back, and later log files belong to the slice below.
    """
    listing = context.listing(context.metadata_table("auto", timeline))
    view = context.view(timeline, listing=listing)
    restored_to = next(commit for commit in timeline.commits() if commit.requested_time == instant)
    restored = context.view(RestoreCandidates(context, timeline).timeline(restored_to), listing=listing)
    files = {}
    for partition in view.partitions():
        slices = (*view.latest_slices_up_to(partition, instant), *restored.latest_merged_slices(partition))
        files[partition] = tuple(dict.fromkeys(file.name for item in slices for file in item.files))
    return files
