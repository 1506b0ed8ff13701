"""Reads the state files of instants that are to be archived, a round of them at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from hudi_core.config.table_config import timeline_zone
from hudi_core.history.archiving import ArchivedInstant, StateFile
from hudi_core.services.context import TableContext
from hudi_core.timeline.instant import Instant, State
from hudi_core.timeline.instant_time import of_epoch_seconds

ROUND_INSTANTS: Final = 1000
ROUND_BYTES: Final = 16 << 20


def rounds(context: TableContext, instants: Sequence[Instant]) -> Iterator[list[ArchivedInstant]]:
    """The instants in their order with the contents of all their state files: a thousand at once, or as many as have 16
    MiB.

    That is what an archival holds in memory, beside its encoded form; a single commit may be larger. Raises
    StorageNotFoundError when a completed file is gone, which under the table lock only an archiver without a lock can
    have done.
    """
    modified = context.active.modified()
    zone = timeline_zone(context.config, context.options)
    taken: list[ArchivedInstant] = []
    size = 0
    for instant in instants:
        item = ArchivedInstant(instant, tuple(_files(context, instant, modified, zone)))
        if taken and (len(taken) >= ROUND_INSTANTS or size + item.size > ROUND_BYTES):
            yield taken
            taken, size = [], 0
        taken.append(item)
        size += item.size
    if taken:
        yield taken


def _files(context: TableContext, instant: Instant, modified: dict[str, float], zone: str) -> Iterator[StateFile]:
    """The files of the instant's states; pending ones may be gone already, by a run that was cut off as it removed
    them.
    """
    for state in (State.REQUESTED, State.INFLIGHT):
        path = context.active.path(instant.requested_time, instant.pending_action, state)
        if path in modified:
            yield _file(context, instant.pending_action, state, path, modified[path], zone)
    path = context.active.path_of(instant)
    at = modified[path] if path in modified else context.storage.stat(path).modified
    yield _file(context, instant.action, State.COMPLETED, path, at, zone)


def _file(context: TableContext, action: str, state: State, path: str, at: float, zone: str) -> StateFile:
    return StateFile(action, state, context.storage.read(path), path, of_epoch_seconds(at, zone))
