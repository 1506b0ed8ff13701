"""`savepoint create`, `list` and `delete`: the files of a commit are kept until its savepoint is deleted."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from hudi_core.errors import ConfigError
from hudi_core.services.context import TableContext
from hudi_core.services.lifecycle import Run, claimed, run_instant
from hudi_core.services.rollback.execution import NOTHING
from hudi_core.services.savepoint.job import SavepointJob
from hudi_core.timeline.actions.restore import SavepointMetadata, decode_savepoint
from hudi_core.timeline.instant import Action, Instant
from hudi_core.timeline.timeline import Timeline
from hudi_core.transaction.claim_file import forget_claims
from hudi_core.transaction.owner import Owner


@dataclass(frozen=True, slots=True)
class Savepoint:
    """The savepoint of the commit at `instant`; `existed`: it was there before, `deleted`: it is gone."""

    instant: str
    by: str
    at_ms: int
    comment: str
    files: int
    existed: bool = False
    deleted: bool = False

    def to_dict(self) -> dict[str, Any]:
        """An item of `savepoint list --json`; with `removed`, which is empty, the document of create and delete."""
        return asdict(self) | {"removed": NOTHING.to_dict()}


def savepoint_create(
    context: TableContext, instant: str | None, owner: Owner, *, comment: str = "", user: str = ""
) -> Savepoint:
    """Keeps the files of the table at the completed commit `instant`, the newest when None; an existing one stays.

    `user` is recorded as its author, the owner when empty. Raises ConfigError when there is no such commit on the
    timeline, TimelineError when a clean may have removed files of it, ConflictError while another process makes it.
    """
    timeline = context.active.load()
    time_of = instant or _newest(context, timeline)
    job = SavepointJob(Run(context, time_of, owner), comment, user or owner.text)
    run_instant(job)
    done = context.active.load().get(time_of, Action.SAVEPOINT)
    return savepoint_of(time_of, read_savepoint(context, done), existed=job.existed)


def _newest(context: TableContext, timeline: Timeline) -> str:
    newest = timeline.commits().last()
    if newest is None:
        raise ConfigError(
            "the table has no completed commit",
            path=context.active.folder,
            remedy="a savepoint keeps the files of a commit",
        )
    return newest.requested_time


def existing_savepoint(context: TableContext, instant: str | None) -> Savepoint | None:
    """The result of savepoint_create where the savepoint is there and completed; None where there is none. Raises
    ConfigError for a table without a commit.
    """
    timeline = context.active.load()
    time_of = instant or _newest(context, timeline)
    found = timeline.find(time_of, Action.SAVEPOINT)
    if found is None or not found.is_completed:
        return None
    return savepoint_of(time_of, read_savepoint(context, found))


def savepoint_list(context: TableContext) -> list[Savepoint]:
    """The completed savepoints, oldest first. Raises CorruptFileError naming the file of one that cannot be read."""
    found = context.active.load().completed().of_actions(Action.SAVEPOINT)
    return [savepoint_of(instant.requested_time, read_savepoint(context, instant)) for instant in found]


def read_savepoint(context: TableContext, instant: Instant) -> SavepointMetadata:
    """What a completed savepoint keeps."""
    return decode_savepoint(context.active.read_details(instant), path=context.active.path_of(instant))


def savepoint_of(
    instant: str, metadata: SavepointMetadata, *, existed: bool = True, deleted: bool = False
) -> Savepoint:
    """The savepoint of `instant`."""
    files = sum(len(names) for names in metadata.files.values())
    return Savepoint(instant, metadata.by, metadata.at_ms, metadata.comment, files, existed, deleted)


def savepoint_delete(context: TableContext, instant: str, owner: Owner) -> Savepoint:
    """Deletes a savepoint, or what a dead run left of one. Raises ConfigError without one, ConflictError."""
    savepoint_to_delete(context, instant)
    # What an earlier run decided to complete and did not is completed first: otherwise its late request could bring the
    # savepoint back.
    with claimed(context, instant, owner), context.lock(owner) as lock:
        found = savepoint_to_delete(context, instant)
        metadata = read_savepoint(context, found) if found.is_completed else SavepointMetadata("", 0, "")
        lock.check()
        context.active.undo(instant, Action.SAVEPOINT)
    forget_claims(context.storage, instant)
    return savepoint_of(instant, metadata, deleted=True)


def savepoint_to_delete(context: TableContext, instant: str) -> Instant:
    """The savepoint of `instant` in any state. Raises ConfigError where there is none."""
    found = context.active.load().find(instant, Action.SAVEPOINT)
    if found is None:
        raise ConfigError(
            f"there is no savepoint of instant {instant}",
            path=context.active.folder,
            remedy="list them: `hudictl savepoint list TABLE`",
        )
    return found
