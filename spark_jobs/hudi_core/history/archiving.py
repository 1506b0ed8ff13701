"""The rounds of an archival, of the data table's timeline or the metadata table's: what is read and written in one.

The order of the steps, and what the next run does after a death, are in services.archive.job.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, Protocol

from hudi_core.config.services.archive_config import ArchiveConfig
from hudi_core.config.versions import TableVersion
from hudi_core.history.archived_instant import ArchivedInstant, InstantKey, StateFile
from hudi_core.history.log_archive_writer import LogArchiveWriter
from hudi_core.history.lsm_writer import LsmWriter
from hudi_core.history.manifest import Guard
from hudi_core.storage.base import Storage
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.timeline.instant import Instant, State
from hudi_core.timeline.instant_time import of_epoch_seconds

ROUND_INSTANTS: Final = 1000
ROUND_BYTES: Final = 16 << 20


class ArchiveWriter(Protocol):
    """Adds instants to an archive. Called under the table lock, by one process at a time. Every method may be repeated
    after a crash. What `write` returned for is in the archive for every reader, and stays there.
    """

    def held(self, instants: Sequence[Instant]) -> frozenset[InstantKey]:
        """Those of `instants`, given in timeline order, that an interrupted run has left in the archive already."""
        ...

    def write(self, instants: Sequence[ArchivedInstant]) -> None:
        """Adds instants, which are in the order of the plan. Memory: their contents about three times over."""
        ...

    def finish(self) -> None: ...


def archive_writer(
    storage: Storage, features: TableVersion, folder: str, config: ArchiveConfig, guard: Guard
) -> ArchiveWriter:
    """The writer of the archive in `folder` by its timeline's layout; `guard` raises without the table lock."""
    if features.completion_time_in_name:
        return LsmWriter(storage, folder, guard, config)
    return LogArchiveWriter(storage, folder, config.batch)


def rounds(
    storage: Storage, active: ActiveTimeline, zone: str, instants: Sequence[Instant], *, most: int | None = None
) -> Iterator[list[ArchivedInstant]]:
    """The instants of a timeline in their order with the contents of all their state files: `most` at once
    (ROUND_INSTANTS by default), or as many as have 16 MiB. `zone` is that of instants. That is what an archival holds
    in memory, beside its encoded form; a single commit may be larger. Raises StorageNotFoundError when a completed file
    is gone, which under the table lock only an archiver without a lock can have done.
    """
    modified = active.modified()
    limit = ROUND_INSTANTS if most is None else most
    taken: list[ArchivedInstant] = []
    size = 0
    for instant in instants:
        archived = ArchivedInstant(instant, tuple(_files(storage, active, instant, modified, zone)))
        if taken and (len(taken) >= limit or size + archived.size > ROUND_BYTES):
            yield taken
            taken, size = [], 0
        taken.append(archived)
        size += archived.size
    if taken:
        yield taken


def _files(
    storage: Storage, active: ActiveTimeline, instant: Instant, modified: dict[str, float], zone: str
) -> Iterator[StateFile]:
    """The files of the instant's states; a run that was cut off may have removed pending ones already."""
    pending = [
        (instant.pending_action, state, active.path(instant.requested_time, instant.pending_action, state))
        for state in (State.REQUESTED, State.INFLIGHT)
    ]
    completed = (instant.action, State.COMPLETED, active.path_of(instant))
    for action, state, path in [*(item for item in pending if item[2] in modified), completed]:
        at = modified[path] if path in modified else storage.stat(path).modified
        yield StateFile(action, state, storage.read(path), path, of_epoch_seconds(at, zone))
