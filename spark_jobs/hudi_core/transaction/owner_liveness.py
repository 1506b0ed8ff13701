"""When the owner of a claim is dead: it released the instant, its process is gone, or its heartbeat is silent too long.

owner.py says whether a process is provably gone, also for locks; writer_heartbeats.py which writes of Hudi have failed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from hudi_core.model.claim_names import CLOCKS, ClaimFolder, epochs_of
from hudi_core.storage.base import FileInfo, Storage
from hudi_core.transaction.claim_file import ClaimRecord, read_claim
from hudi_core.transaction.heartbeat_thread import sign_age, storage_time
from hudi_core.transaction.owner import is_left_behind


def is_live(storage: Storage, instant: str, epoch: int, *, now: Callable[[], float] | None = None) -> bool:
    """Whether the owner of `epoch` may still run the instant: neither released nor succeeded, dead or expired."""
    folder = ClaimFolder(instant)
    files = {info.path: info for info in storage.list_files(folder.path)}
    epochs = epochs_of(info.name for info in files.values())
    return bool(epochs) and epochs[-1] == epoch and silence(storage, folder, files, epoch, now) is not None


def wrote_until(storage: Storage, instant: str, claimed: ClaimRecord) -> float:
    """Until when, in seconds since the epoch by the storage's clock, the owner of a claim that is not live may have
    written: its release, else its last heartbeat and as long as it may be silent.
    """
    folder = ClaimFolder(instant)
    times = {info.path: info.modified for info in storage.list_files(folder.path)}
    last = max(claimed.claimed, times.get(folder.heartbeat(claimed.epoch), 0.0))
    return times.get(folder.released(claimed.epoch), last + claimed.tolerance_seconds)


def silence(
    storage: Storage, folder: ClaimFolder, files: Mapping[str, FileInfo], epoch: int, now: Callable[[], float] | None
) -> float | None:
    """Seconds since the last sign of life of an epoch's owner; None when it may be succeeded. That is when it released
    the instant, is provably dead, or its heartbeat expired. `files` are those of the folder, by path.
    """
    if folder.released(epoch) in files:
        return None
    record = read_claim(storage, folder, epoch)
    if is_left_behind(record.owner, record.token):
        return None
    heartbeat = files.get(folder.heartbeat(epoch))
    signs = [record.claimed] if heartbeat is None else [record.claimed, heartbeat.modified]
    current = now() if now is not None else storage_time(storage, CLOCKS)
    return sign_age(signs, current, record.tolerance_seconds)
