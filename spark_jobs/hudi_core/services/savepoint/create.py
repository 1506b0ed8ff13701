"""Creates a savepoint: the files of a commit are kept, by the cleaner and the archival, until it is deleted
(SavepointActionExecutor).
"""

from __future__ import annotations

import time

from hudi_core.errors import ConfigError, TimelineError
from hudi_core.services.context import TableContext
from hudi_core.services.savepoint.listing import Savepoint, read_savepoint, savepoint_of
from hudi_core.services.savepoint.retained import last_commit_retained
from hudi_core.timeline.actions.savepoint import SavepointMetadata, encode_savepoint
from hudi_core.timeline.instant import Action, State
from hudi_core.timeline.timeline import Timeline
from hudi_core.transaction.claim import forget_claims
from hudi_core.transaction.commit import Completer
from hudi_core.transaction.owner import Owner


def savepoint_create(
    context: TableContext, instant: str | None, owner: Owner, *, comment: str = "", user: str = ""
) -> Savepoint:
    """Keeps the files that the table had at the completed commit `instant`, the newest one when None. One that is there
    already is left.

    `user` is who it is made for, the owner when empty. Raises ConfigError when there is no such commit on the timeline,
    TimelineError when a clean may have removed files of it, ConflictError while another process makes it.
    """
    timeline = context.active.load()
    time_of = instant or _newest(context, timeline)
    if timeline.find(time_of, Action.SAVEPOINT) is None:
        _check(context, timeline, time_of)  # before anything is written; again under the lock
    with context.claim(time_of, owner) as held:
        completer = context.completer(held, owner)
        completer.finish_decided(time_of)
        with context.lock(owner) as lock:
            timeline = context.active.load()
            found = timeline.find(time_of, Action.SAVEPOINT)
            existed = found is not None and found.is_completed
            if not existed:
                _check(context, timeline, time_of)
                metadata = SavepointMetadata(
                    user or owner.text, int(time.time() * 1000), comment, _files(context, timeline, time_of)
                )
                lock.check()
                context.active.to_inflight(time_of, Action.SAVEPOINT)
        if not existed:
            _complete(context, completer, time_of, metadata, owner)
    forget_claims(context.storage, time_of)
    done = context.active.load().get(time_of, Action.SAVEPOINT)
    return savepoint_of(time_of, read_savepoint(context, done), existed=existed)


def _complete(
    context: TableContext, completer: Completer, instant: str, metadata: SavepointMetadata, owner: Owner
) -> None:
    """Completes it unless a clean was planned since the files were listed: then the attempt leaves nothing."""

    def still_there(timeline: Timeline) -> None:
        _check(context, timeline, instant)

    try:
        completer.complete(instant, Action.SAVEPOINT, encode_savepoint(metadata), preconditions=(still_there,))
    except TimelineError:
        with context.lock(owner):
            context.active.remove(instant, Action.SAVEPOINT, State.INFLIGHT)
        raise


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
