"""Finds the instant of a token, so that a write is done once."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from functools import partial

from hudi_core.errors import ConflictError, StorageNotFoundError
from hudi_core.frozen import dataclass
from hudi_core.services.concurrent_changes import commit_with_token
from hudi_core.services.context import TableContext
from hudi_core.services.write.work import Work
from hudi_core.storage.overlapped import each_ahead
from hudi_core.timeline.actions.commit import CommitMetadata
from hudi_core.timeline.actions.replacecommit import TOKEN_KEY, requested_extra
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.timeline.instant import COMMIT_ACTIONS, Instant, State
from hudi_core.timeline.timeline import Timeline
from hudi_core.transaction.claim_file import current_claim, is_decided, is_live


@dataclass(frozen=True, slots=True)
class Found:
    """The instant of a token. `metadata` is set where the instant is completed."""

    instant: Instant
    metadata: CommitMetadata | None = None


def find_token(context: TableContext, timeline: Timeline, work: Work, *, archived: bool = True) -> Found | None:
    """Returns the newest write with the token of `work`, of whatever operation, on the timeline, then in the archive.
    Without `archived` the archive is searched only if a write has left the timeline since that was listed. Raises
    CorruptFileError.
    """
    token, active = work.token, context.active
    if token is None:
        return None
    writes = reversed(timeline.of_actions(*COMMIT_ACTIONS).instants)
    for item, extra in each_ahead(context.storage, writes, partial(_extra, active)):
        if extra is None:
            archived = True
        elif extra.get(TOKEN_KEY) == token:
            return Found(item, active.read_commit(item) if item.is_completed else None)
    if not archived:
        return None
    history = context.history()
    writes_of_the_past = history.timeline().of_actions(*COMMIT_ACTIONS)
    # The archive has all commits of the past. Decoding those of 500 with 200 files each takes 2 to 7 seconds.
    for item, metadata in history.commits(writes_of_the_past, stats=False, having=_forms(token)):
        if metadata.extra_metadata.get(TOKEN_KEY) == token:
            return Found(item, history.commit(item.requested_time))
    return None


def _forms(token: str) -> set[bytes]:
    """Returns the forms that the text may have in Avro and in JSON."""
    escaped = (json.dumps(token, ensure_ascii=is_ascii)[1:-1] for is_ascii in (False, True))
    return {text.encode(errors="surrogatepass") for text in (token, *escaped)}


def _extra(active: ActiveTimeline, item: Instant) -> Mapping[str, str | None] | None:
    """Returns the extra metadata of a write; None if it was archived or rolled back since the listing."""
    try:
        if item.is_completed:
            return active.read_commit(item, stats=False).extra_metadata
        path = active.path(item.requested_time, item.action, State.REQUESTED)
        return requested_extra(active.read_requested(item.requested_time, item.action), item.action, path=path)
    except StorageNotFoundError:
        return None


def check_only_one(context: TableContext, now: Timeline, instant: str, work: Work) -> None:
    """Raises ConflictError where another commit has the token of `work` since the instant was requested."""
    commit = commit_with_token(context, now, work.token, work.searched | {instant})
    if commit is not None:
        raise ConflictError(
            f"{commit.action} {commit.requested_time} has done the work of the token {work.token!r} since {instant} "
            "was requested",
            path=context.active.path_of(commit),
            remedy="run it again: it then finds that the work is done",
        )


def what_comes_first(context: TableContext, work: Work) -> str:
    """Returns text for the reason of a dry run: what a run would do before its own work; else empty. Only reads: the
    age of a heartbeat is by this machine's clock. Raises ConflictError while an owner runs the instant.
    """
    earlier = find_token(context, context.active.load(), work, archived=False)
    if earlier is None or earlier.metadata is not None:
        return ""
    instant = earlier.instant.requested_time
    claim = current_claim(context.storage, instant)
    if claim is not None and is_live(context.storage, instant, claim.epoch, now=time.time):
        raise ConflictError(
            f"instant {instant}, which has the token, is run by {claim.owner.describe()}",
            path=claim.path,
            remedy="wait for it",
        )
    attempt = f"{earlier.instant.action} {instant}, an attempt with the token that died"
    if is_decided(context.storage, instant):
        return f"; {attempt} once it had decided to complete, would be completed instead"
    return f"; {attempt}, would be rolled back first"
