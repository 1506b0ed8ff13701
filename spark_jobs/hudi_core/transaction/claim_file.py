"""The claim files of an instant (model.names): when it is free, when an owner is dead, its decision to complete it.

An owner is dead when it released the instant, when its process is gone, or when its heartbeat is silent for too long.
owner.py says whether a process is provably gone, also for locks. writer_heartbeats.py says which writes of Hudi failed.

Either the owner or its successor creates `<epoch>.decision` beside the claim of that epoch, exclusively
(docs/decisions/0009): the owner with the very file that it is about to put on the timeline, the successor to close the
epoch. The first of them decides:
- the successor: the old owner can never complete, however late it wakes up, and its files may be rolled back;
- the owner: the successor puts the same file under the same name, so either request may arrive, also late. A check
  before the put could not do this: a process may be stopped between check and put. In layout 2, two owners without
  decisions would draw two completion times and create two completed files.

A decision that would lose rows by now is abandoned (services/decided_completion.py). Then a late request of its owner
would complete an instant that was rolled back. So a decision is abandoned only when its owner has been silent for
longer than a request can take (storage.base.LATE_SECONDS). commit.Completer.finish_decided carries a decision out.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Final

from hudi_core.config.concurrency_config import MAX_SILENCE_MS
from hudi_core.errors import ConflictError, StorageExistsError, StorageNotFoundError
from hudi_core.frozen import dataclass
from hudi_core.model.names import CLAIMS, CLOCKS, ClaimFolder, epochs_of, is_released
from hudi_core.storage.base import FileInfo, Storage
from hudi_core.transaction.heartbeat_thread import sign_age, storage_time
from hudi_core.transaction.owner import Owner, damaged, is_left_behind, parse_own

_VERSION: Final = 1


@dataclass(frozen=True, slots=True)
class ClaimRecord:
    """The content of a claim file. `claimed` is in seconds by the storage's clock; 0 where no file was read."""

    path: str
    epoch: int
    token: str
    owner: Owner
    interval_ms: int
    tolerable_misses: int
    claimed: float = 0.0

    @property
    def tolerance_seconds(self) -> float:
        """The seconds that a heartbeat may be old, up to MAX_SILENCE_MS (HoodieHeartbeatClient.isHeartbeatExpired)."""
        return min(self.interval_ms * self.tolerable_misses, MAX_SILENCE_MS) / 1000

    def encode(self) -> bytes:
        """Returns the content of the claim file."""
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
        """Reads the bytes that encode wrote. Raises CorruptFileError with `path` for any other bytes."""
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
    """Returns the claim with the highest epoch, released or not; None when the instant has no claims."""
    folder = ClaimFolder(instant)
    epochs = epochs_on_record(storage, folder)
    return read_claim(storage, folder, epochs[-1]) if epochs else None


def is_free(storage: Storage, instant: str) -> bool:
    """Returns whether the instant has no claim that is not released, no decision to carry out and no heartbeat."""
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
    """Returns whether a decision to complete the instant is on record beside its claims."""
    folder = ClaimFolder(instant)
    return any(find_decision(storage, folder, epoch) is not None for epoch in epochs_on_record(storage, folder))


def claimed_instants(storage: Storage) -> frozenset[str]:
    """Returns the instants with claims, live or not, by one listing."""
    return frozenset(folder.rpartition("/")[2] for folder in storage.list_folders(CLAIMS))


def has_let_go(storage: Storage, instant: str) -> bool:
    """Returns whether the last owner released the instant: then a heartbeat of Hudi belongs to another writer."""
    return is_released(info.name for info in storage.list_files(ClaimFolder(instant).path))


def forget_claims(storage: Storage, instant: str, listed: Mapping[str, FileInfo] | None = None) -> None:
    """Removes all claims of an instant that is over: completed, or no longer on the timeline. Idempotent. The caller
    keeps the claims of an instant that may be run again: its epochs distinguish attempts, in their claims and in the
    names of their files. The highest epoch is deleted last: an earlier owner that wakes up never finds its own epoch as
    the highest. A claim is deleted before its decision: a task that finds a claim without a decision belongs to an
    attempt that goes on (markers.check_attempt). `listed` has the files of the claims' folder by path.
    """
    folder = ClaimFolder(instant)
    files = storage.list_files(folder.path) if listed is None else list(listed.values())
    earlier = epochs_of(info.name for info in files)[:-1]
    for epoch in earlier:
        storage.remove(folder.claim(epoch))
    if earlier:  # another process may have claimed the instant meanwhile
        files = storage.list_files(folder.path)
    highest = epochs_of(info.name for info in files)[-1:]
    kept = {path for epoch in highest for path in (folder.claim(epoch), folder.decision(epoch))}
    for info in files:
        if info.path not in kept:
            storage.remove(info.path)
    for epoch in highest:
        storage.remove(folder.claim(epoch))
    storage.delete_folder(folder.path)


def epochs_on_record(storage: Storage, folder: ClaimFolder) -> list[int]:
    """Returns the epochs of the claims in a folder, ascending."""
    return epochs_of(info.name for info in storage.list_files(folder.path))


def read_claim(storage: Storage, folder: ClaimFolder, epoch: int) -> ClaimRecord:
    """Reads the claim of an epoch. Raises ConflictError when the claim was removed meanwhile."""
    path = folder.claim(epoch)
    try:
        claimed = storage.stat(path).modified
        return ClaimRecord.decode(storage.read(path), path=path, epoch=epoch, claimed=claimed)
    except StorageNotFoundError as error:
        raise ConflictError("the claim was removed while it was read", path=path, remedy="run again") from error


def is_live(storage: Storage, instant: str, epoch: int, *, now: Callable[[], float] | None = None) -> bool:
    """Returns whether the owner of `epoch` may still run the instant: not released, succeeded, dead or silent."""
    folder = ClaimFolder(instant)
    files = {info.path: info for info in storage.list_files(folder.path)}
    epochs = epochs_of(info.name for info in files.values())
    return bool(epochs) and epochs[-1] == epoch and silence(storage, folder, files, epoch, now) is not None


def wrote_until(storage: Storage, instant: str, claimed: ClaimRecord) -> float:
    """Returns until when an owner that is not live may have written, in seconds by the storage's clock."""
    folder = ClaimFolder(instant)
    times = {info.path: info.modified for info in storage.list_files(folder.path)}
    last = max(claimed.claimed, times.get(folder.heartbeat(claimed.epoch), 0.0))
    return times.get(folder.released(claimed.epoch), last + claimed.tolerance_seconds)


def silence(
    storage: Storage, folder: ClaimFolder, files: Mapping[str, FileInfo], epoch: int, now: Callable[[], float] | None
) -> float | None:
    """Returns the seconds since the owner's last sign of life, by the folder's files; None if it may be succeeded."""
    if folder.released(epoch) in files:
        return None
    record = read_claim(storage, folder, epoch)
    if is_left_behind(record.owner, record.token):
        return None
    heartbeat = files.get(folder.heartbeat(epoch))
    signs = [record.claimed] if heartbeat is None else [record.claimed, heartbeat.modified]
    current = now() if now is not None else storage_time(storage, CLOCKS)
    return sign_age(signs, current, record.tolerance_seconds)


_CLOSED: Final = json.dumps({"version": _VERSION, "closed": True}).encode()


@dataclass(frozen=True, slots=True)
class Decision:
    """A decision to complete the pending `action` with the file `content`. `completion_time` is None in layout 1."""

    action: str
    completion_time: str | None
    content: bytes
    known: frozenset[str] = frozenset()
    """The requested times of the commits that were completed on the timeline at the decision."""


def decide(storage: Storage, folder: ClaimFolder, epoch: int, decision: Decision) -> None:
    """Records the decision. Raises ConflictError when the epoch is closed or has another decision."""
    data = _encode(decision)
    path = folder.decision(epoch)
    try:
        storage.create_exclusive(path, data)
    except StorageExistsError as error:
        if _read(storage, path) != data:  # equal bytes: our own request arrived, and only its answer was lost
            raise ConflictError(
                "a new owner closed this run of the instant", path=path, remedy="leave the instant to its new owner"
            ) from error


def close(storage: Storage, folder: ClaimFolder, epoch: int) -> Decision | None:
    """Closes `epoch` to decisions; returns the owner's decision if that was first. Raises CorruptFileError."""
    path = folder.decision(epoch)
    try:
        storage.create_exclusive(path, _CLOSED)
    except StorageExistsError:
        return _decode(_read(storage, path), path)
    return None


def find_decision(storage: Storage, folder: ClaimFolder, epoch: int) -> Decision | None:
    """Returns the recorded decision of an epoch; None when the epoch is closed or open. Raises CorruptFileError."""
    path = folder.decision(epoch)
    return _decode(_read(storage, path), path) if storage.exists(path) else None


def abandon(storage: Storage, folder: ClaimFolder, epoch: int) -> None:
    """Closes an epoch whose decision may not be carried out any more. The put of its owner must be over."""
    storage.write(folder.decision(epoch), _CLOSED)


def _read(storage: Storage, path: str) -> bytes:
    try:
        return storage.read(path)
    except StorageNotFoundError as error:
        raise ConflictError(
            "the claims of the instant were removed meanwhile", path=path, remedy="run again"
        ) from error


def _encode(decision: Decision) -> bytes:
    """Returns a line of JSON with action, completion time and known commits, then the bytes of the completed file."""
    head = {
        "version": _VERSION,
        "action": decision.action,
        "completion_time": decision.completion_time,
        "known": sorted(decision.known),
    }
    return json.dumps(head).encode() + b"\n" + decision.content


def _decode(data: bytes, path: str) -> Decision | None:
    text, _, content = data.partition(b"\n")
    head = parse_own(text, "the decision", path=path)
    if head.get("version") != _VERSION:
        raise damaged("the decision has another version", path)
    if head.get("closed") is True:
        return None
    action, completion, known = head.get("action"), head.get("completion_time"), head.get("known")
    if not isinstance(action, str) or not (completion is None or isinstance(completion, str)) or not content:
        raise damaged("the decision is not one", path)
    if not isinstance(known, list) or not all(isinstance(time, str) for time in known):
        raise damaged("the commits of the decision are none", path)
    return Decision(action, completion, content, frozenset(known))
