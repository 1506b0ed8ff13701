"""The claim files of an instant (model.claim_names): their content, whether the instant is free, when the owner of a
claim is dead, and their removal.

An owner is dead that released the instant, whose process is gone, or whose heartbeat is silent for too long. owner.py
says whether a process is provably gone, also for locks; writer_heartbeats.py which writes of Hudi have failed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from hudi_core.config.transaction_config import MAX_SILENCE_MS
from hudi_core.errors import ConflictError, StorageNotFoundError
from hudi_core.model.claim_names import CLAIMS, CLOCKS, ClaimFolder, epochs_of, is_released
from hudi_core.storage.base import FileInfo, Storage
from hudi_core.transaction.decision import find_decision
from hudi_core.transaction.heartbeat_thread import sign_age, storage_time
from hudi_core.transaction.owner import Owner, damaged, is_left_behind, parse_own

_VERSION: Final = 1


@dataclass(frozen=True, slots=True)
class ClaimRecord:
    """The content of a claim file. `claimed`: seconds by the storage's clock, 0 where it was not read from a file."""

    path: str
    epoch: int
    token: str
    owner: Owner
    interval_ms: int
    tolerable_misses: int
    claimed: float = 0.0

    @property
    def tolerance_seconds(self) -> float:
        """How old a heartbeat may be: interval times tolerable misses (HoodieHeartbeatClient.isHeartbeatExpired), and
        MAX_SILENCE_MS at the most, so that no claim holds an instant for good.
        """
        return min(self.interval_ms * self.tolerable_misses, MAX_SILENCE_MS) / 1000

    def encode(self) -> bytes:
        """The file's content."""
        body = {
            "version": _VERSION,
            "token": self.token,
            "owner": self.owner.to_json(),
            "interval_ms": self.interval_ms,
            "tolerable_misses": self.tolerable_misses,
        }
        return json.dumps(body).encode()

    @staticmethod
    def decode(data: bytes, *, path: str, epoch: int, claimed: float) -> ClaimRecord:
        """The inverse of encode; raises CorruptFileError naming `path` for anything else."""
        value = parse_own(data, "the claim", path=path)
        if value.get("version") != _VERSION or not isinstance(value.get("owner"), dict):
            raise damaged("the claim has no owner or another version", path)
        token, interval, misses = value.get("token"), value.get("interval_ms"), value.get("tolerable_misses")
        if (
            not (isinstance(token, str) and isinstance(interval, int) and isinstance(misses, int))
            or min(interval, misses) < 1
        ):
            raise damaged("the claim's token or heartbeat interval is not one", path)
        return ClaimRecord(path, epoch, token, Owner.from_json(value["owner"], path=path), interval, misses, claimed)


def current_claim(storage: Storage, instant: str) -> ClaimRecord | None:
    """The claim with the highest epoch, released or not; None when the instant was never claimed."""
    folder = ClaimFolder(instant)
    epochs = epochs_on_record(storage, folder)
    return read_claim(storage, folder, epochs[-1]) if epochs else None


def is_free(storage: Storage, instant: str) -> bool:
    """Whether a takeover would change nothing: no claim was ever made or the last owner released it, no decision is
    left to carry out, and neither that owner nor a writer of Hudi left a heartbeat.
    """
    folder = ClaimFolder(instant)
    files = storage.list_files(folder.path)
    names = [info.name for info in files]
    epochs = epochs_of(names)
    if epochs and (not is_released(names) or folder.heartbeat(epochs[-1]) in {info.path for info in files}):
        return False
    if storage.exists(folder.hudi_heartbeat):
        return False
    return all(find_decision(storage, folder, epoch) is None for epoch in epochs)


def is_decided(storage: Storage, instant: str) -> bool:
    """Whether an owner of the instant decided to complete it and its claims are still there."""
    folder = ClaimFolder(instant)
    return any(find_decision(storage, folder, epoch) is not None for epoch in epochs_on_record(storage, folder))


def claimed_instants(storage: Storage) -> frozenset[str]:
    """The instants with claims, whatever became of them; one listing."""
    return frozenset(folder.rpartition("/")[2] for folder in storage.list_folders(CLAIMS))


def has_let_go(storage: Storage, instant: str) -> bool:
    """Whether the last owner released the instant: a heartbeat of Hudi that is there now is another writer's."""
    return is_released(info.name for info in storage.list_files(ClaimFolder(instant).path))


def forget_claims(storage: Storage, instant: str) -> None:
    """Removes all claims of an instant that is over: completed, or no longer on the timeline. Idempotent. Claims of an
    instant that may be run again are kept: its epochs distinguish attempts, in their claims and in the names of their
    files. The highest epoch is deleted last: an owner of an earlier one that wakes up meanwhile finds it, or nothing,
    and never its own as the highest. A claim is deleted before its decision: a task that finds the claim without one is
    not of an attempt that is over (markers.check_attempt).
    """
    folder = ClaimFolder(instant)
    files = storage.list_files(folder.path)
    earlier = epochs_of(info.name for info in files)[:-1]
    for epoch in earlier:
        storage.delete(folder.claim(epoch))
    if earlier:  # another process may have claimed the instant meanwhile
        files = storage.list_files(folder.path)
    highest = epochs_of(info.name for info in files)[-1:]
    kept = {path for epoch in highest for path in (folder.claim(epoch), folder.decision(epoch))}
    for info in files:
        if info.path not in kept:
            storage.delete(info.path)
    for epoch in highest:
        storage.delete(folder.claim(epoch))
    storage.delete_folder(folder.path)


def epochs_on_record(storage: Storage, folder: ClaimFolder) -> list[int]:
    """The epochs of the claims in a folder, ascending."""
    return epochs_of(info.name for info in storage.list_files(folder.path))


def read_claim(storage: Storage, folder: ClaimFolder, epoch: int) -> ClaimRecord:
    """The claim of an epoch; raises ConflictError when it was removed meanwhile."""
    path = folder.claim(epoch)
    try:
        claimed = storage.stat(path).modified
        return ClaimRecord.decode(storage.read(path), path=path, epoch=epoch, claimed=claimed)
    except StorageNotFoundError as error:
        raise ConflictError("the claim was removed while it was read", path=path, remedy="run again") from error


def is_live(storage: Storage, instant: str, epoch: int, *, now: Callable[[], float] | None = None) -> bool:
    """Whether the owner of `epoch` may still run the instant: neither released nor succeeded, dead or expired."""
    folder = ClaimFolder(instant)
    files = {info.path: info for info in storage.list_files(folder.path)}
    epochs = epochs_of(info.name for info in files.values())
    return bool(epochs) and epochs[-1] == epoch and silence(storage, folder, files, epoch, now) is not None


def wrote_until(storage: Storage, instant: str, claimed: ClaimRecord) -> float:
    """Until when, by the storage's clock, the owner of a claim that is not live may have written: its release, else its
    last heartbeat and as long as it may be silent.
    """
    folder = ClaimFolder(instant)
    times = {info.path: info.modified for info in storage.list_files(folder.path)}
    last = max(claimed.claimed, times.get(folder.heartbeat(claimed.epoch), 0.0))
    return times.get(folder.released(claimed.epoch), last + claimed.tolerance_seconds)


def silence(
    storage: Storage, folder: ClaimFolder, files: Mapping[str, FileInfo], epoch: int, now: Callable[[], float] | None
) -> float | None:
    """Seconds since the last sign of life of an epoch's owner; None when it may be succeeded. `files` are those of the
    folder, by path.
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
