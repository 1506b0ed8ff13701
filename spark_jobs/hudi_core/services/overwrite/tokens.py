"""Tokens of overwrites: whoever requests the same work again gives the same token, so that it is done once."""

from __future__ import annotations

from dataclasses import dataclass

from hudi_core.errors import StorageNotFoundError
from hudi_core.services.context import TableContext
from hudi_core.timeline.actions.commit import CommitMetadata
from hudi_core.timeline.actions.overwrite import TOKEN_KEY, requested_token
from hudi_core.timeline.instant import Action, Instant, State
from hudi_core.timeline.timeline import Timeline


@dataclass(frozen=True, slots=True)
class Found:
    """The instant of a token; `metadata` where it is completed."""

    instant: Instant
    metadata: CommitMetadata | None = None


def find_token(context: TableContext, timeline: Timeline, token: str | None, *, archived: bool = True) -> Found | None:
    """The replacecommit that carries `token`, newest first: on the active timeline, then in the archive. Raises
    CorruptFileError for a file that cannot be read.
    """
    if token is None:
        return None
    active = context.active
    for item in reversed(timeline.of_actions(Action.REPLACE_COMMIT).instants):
        try:
            if item.is_completed:
                metadata = active.read_commit(item)
                if metadata.extra_metadata.get(TOKEN_KEY) == token:
                    return Found(item, metadata)
            elif _requested_token(context, item) == token:
                return Found(item)
        except StorageNotFoundError:
            continue  # rolled back or archived since the listing
    if not archived:
        return None
    history = context.history()
    replacing = history.timeline().of_actions(Action.REPLACE_COMMIT)
    for item, metadata in history.commits(replacing):
        if metadata.extra_metadata.get(TOKEN_KEY) == token:
            return Found(item, metadata)
    return None


def _requested_token(context: TableContext, item: Instant) -> str | None:
    path = context.active.path(item.requested_time, Action.REPLACE_COMMIT, State.REQUESTED)
    return requested_token(context.active.read_requested(item.requested_time, Action.REPLACE_COMMIT), path=path)
