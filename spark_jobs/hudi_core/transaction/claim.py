"""The claim: at most one live process runs an instant, and a dead one can be succeeded.

docs/concurrency.md describes claims for users, docs/decisions/0002 and 0009 have the reasons.

Files below `.hoodie/.airflow_hudi/claims/<instant>/`, `<epoch>` having six digits:
- `<epoch>.json`, created exclusively: the owner. The highest epoch owns the instant.
- `<epoch>.heartbeat`, rewritten at the owner's interval; its modification time is the last sign of life.
- `<epoch>.released`: the owner's run has ended, whatever its result.
- `<epoch>.decision`: what the owner is about to complete, or that its successor closed the epoch (see decision).
"""

from __future__ import annotations

import json
import re
import time
import uuid
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from hudi_core.errors import ConfigError, ConflictError, CorruptFileError, StorageExistsError, StorageNotFoundError
from hudi_core.model.partition import join
from hudi_core.storage.base import FileInfo, Storage
from hudi_core.transaction import held
from hudi_core.transaction.decision import Decision, close, decide, decision_path, find_decision, withdraw
from hudi_core.transaction.heartbeat_thread import Heartbeat, storage_time
from hudi_core.transaction.owner import Owner

CLAIMS = ".hoodie/.airflow_hudi/claims"
HUDI_HEARTBEATS = ".hoodie/.heartbeat"
_VERSION = 1
_ATTEMPTS = 20
_EPOCH_FILE = re.compile(r"^(\d{6})\.json$")
_INSTANT = re.compile(r"^\d{1,32}$")
_MAX_INTERVAL_MS = 10**8
_MAX_MISSES = 1000


@dataclass(frozen=True, slots=True)
class ClaimRecord:
    """The content of a claim file. Times are milliseconds, and seconds since the epoch by the storage's clock."""

    path: str
    epoch: int
    token: str
    owner: Owner
    interval_ms: int
    tolerable_misses: int
    claimed: float

    @property
    def tolerance_seconds(self) -> float:
        """How old a heartbeat may be: interval times tolerable misses (HoodieHeartbeatClient.isHeartbeatExpired)."""
        return self.interval_ms * self.tolerable_misses / 1000


class Claim:
    """A claim that this process holds, with its heartbeat thread; made by `claim`.

    As a context manager it releases at the end.
    """

    def __init__(self, storage: Storage, folder: str, hudi_heartbeat: str, record: ClaimRecord, instant: str) -> None:
        self.instant = instant
        self.epoch = record.epoch
        self.owner = record.owner
        self._storage = storage
        self._folder = folder
        self._hudi_heartbeat = hudi_heartbeat
        self._record = record
        self._released = False
        self._decided_by: int | None = None
        self.decided: Decision | None = None
        """An earlier owner's decision that may not be carried out yet; it has to be, before anything else (Completer).
        """
        self.may_have_decided = False
        """Whether this owner's own decision is on record, or may be: what it wrote is no longer its own to delete."""
        self.heartbeat = Heartbeat(
            self._beat,
            interval_seconds=record.interval_ms / 1000,
            tolerance_seconds=record.tolerance_seconds,
            name=f"instant {instant}",
        )

    def __enter__(self) -> Claim:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()

    def check(self) -> None:
        """Raises ConflictError when the instant has another owner now, or when others may consider this process dead.

        Also while an earlier owner's decision is not carried out.
        """
        self.check_owner()
        if self.decided is not None:
            raise ConflictError(
                f"an earlier run decided to complete instant {self.instant} and was cut off",
                path=decision_path(self._folder, self._decided_by or self.epoch),
                remedy="run the instant again: that completes it",
            )

    def check_owner(self) -> None:
        """As check, whatever earlier owners decided."""
        self.heartbeat.check()
        epochs = _epochs(self._storage.list_files(self._folder))
        if not epochs or epochs[-1] != self.epoch or not self._is_on_record():
            taken = (
                f"was taken over (epoch {epochs[-1]}, this run has {self.epoch})"
                if epochs and epochs[-1] != self.epoch
                else "was removed"
            )
            raise ConflictError(
                f"the claim on instant {self.instant} {taken}",
                path=_claim_path(self._folder, self.epoch),
                remedy="leave the instant to its new owner",
            )

    def decide(self, decision: Decision) -> None:
        """Records what this owner is about to complete; from then on it or a successor will complete it.

        Raises ConflictError when a successor closed the epoch.
        """
        self.may_have_decided = True
        try:
            decide(self._storage, self._folder, self.epoch, decision)
        except ConflictError:
            self.may_have_decided = False
            raise
        if not self._is_on_record():  # a successor is done with the instant and removed its claims
            self._storage.delete(decision_path(self._folder, self.epoch))
            self.may_have_decided = False
            raise ConflictError(
                f"the claim on instant {self.instant} was removed",
                path=self._folder,
                remedy="leave the instant to its new owner",
            )

    def settle(self, *, withdrawn: bool = False) -> None:
        """Ends the earlier owner's decision: carried out, or (`withdrawn`) not possible.

        The instant is this owner's to run.
        """
        if withdrawn and self._decided_by is not None:
            withdraw(self._storage, self._folder, self._decided_by)
        self.decided = None

    def close_earlier(self, epochs: Iterable[int]) -> None:
        """Keeps the owners of `epochs` from completing the instant; this claim adopts the latest of their decisions."""
        for epoch in sorted(epochs):
            decision = close(self._storage, self._folder, epoch)
            if decision is not None:
                self.decided, self._decided_by = decision, epoch

    def release(self) -> None:
        """Ends the heartbeat and lets others claim the instant at once, also when the run failed. Idempotent."""
        if self._released:
            return
        self.heartbeat.stop()
        try:
            epochs = _epochs(self._storage.list_files(self._folder))
            ours = self.epoch in epochs and self._is_on_record()
            if not epochs or (ours and epochs[-1] == self.epoch):  # first: once released, it is the next owner's
                self._storage.delete(self._hudi_heartbeat)
            if ours:  # else the instant is over, and a later owner removed all of its claims
                with suppress(StorageExistsError):  # an earlier release got that far and failed behind it
                    self._storage.create_exclusive(f"{self._folder}/{self.epoch:06d}.released", b"")
            if ours or self.epoch not in epochs:
                self._storage.delete(f"{self._folder}/{self.epoch:06d}.heartbeat")
        finally:
            held.drop(
                self._record.token
            )  # also when the storage failed: the next run of this process may then take over
        self._released = True

    def _is_on_record(self) -> bool:
        """Whether the file of this epoch is the one that this process made.

        Claims of an instant that is not over are never removed, so that epochs only grow; where one was removed by
        hand, another owner may have the same number.
        """
        with suppress(StorageNotFoundError):
            return self._record.token.encode() in self._storage.read(self._record.path)
        return False

    def _beat(self) -> None:
        self._storage.write(f"{self._folder}/{self.epoch:06d}.heartbeat", b"")
        self._storage.write(self._hudi_heartbeat, b"")


def claim(
    storage: Storage,
    instant: str,
    owner: Owner,
    *,
    now: Callable[[], float] | None = None,
    interval_ms: int = 60_000,
    tolerable_misses: int = 2,
    base: str = "",
) -> Claim:
    """Makes this process the owner of `instant`, with its heartbeat running.

    Takes over from an owner that released the instant, is provably dead, or whose heartbeat expired by its own
    interval; the ages are measured on the storage's clock, or against `now` (seconds since the epoch) when given.
    Raises ConflictError, naming owner and time, when the owner may be alive or another process took over first.
    """
    if _INSTANT.match(instant) is None:
        raise ConfigError(f"{instant!r} is not an instant time")
    if not 1 <= interval_ms <= _MAX_INTERVAL_MS or not 1 <= tolerable_misses <= _MAX_MISSES:
        raise ConfigError(f"heartbeat interval {interval_ms} ms with {tolerable_misses} misses is out of bounds")
    folder = join(base, f"{CLAIMS}/{instant}")
    token = uuid.uuid4().hex
    body = {
        "version": _VERSION,
        "token": token,
        "owner": owner.to_json(),
        "interval_ms": interval_ms,
        "tolerable_misses": tolerable_misses,
    }
    held.hold(token)  # before the file shows: no thread of this process may take it for left behind
    try:
        for _ in range(_ATTEMPTS):
            earlier = _earlier_epochs(storage, folder, instant, now)
            epoch = max(earlier, default=0) + 1
            path = _claim_path(folder, epoch)
            with suppress(StorageExistsError):  # lost the race for this epoch: read the winner's claim
                storage.create_exclusive(path, json.dumps(body).encode())
                record = ClaimRecord(path, epoch, token, owner, interval_ms, tolerable_misses, 0.0)
                claimed = Claim(storage, folder, join(base, f"{HUDI_HEARTBEATS}/{instant}"), record, instant)
                claimed.close_earlier(
                    earlier
                )  # after our epoch shows: who decides now sees that it has a successor, or we see the decision
                claimed.heartbeat.start()
                return claimed
    except BaseException:
        held.drop(token)
        raise
    held.drop(token)
    raise ConflictError(
        f"instant {instant} changed its owner {_ATTEMPTS} times while this run tried to claim it",
        path=folder,
        remedy="run again",
    )


def current_claim(storage: Storage, instant: str, *, base: str = "") -> ClaimRecord | None:
    """The claim with the highest epoch, released or not; None when the instant was never claimed."""
    folder = join(base, f"{CLAIMS}/{instant}")
    epochs = _epochs(storage.list_files(folder))
    return _read(storage, folder, epochs[-1]) if epochs else None


def is_free(storage: Storage, instant: str, *, base: str = "") -> bool:
    """Whether a takeover would change nothing.

    That is so when no claim was ever made or the last owner released it, no decision is left to carry out, and neither
    that owner nor a writer of Hudi left a heartbeat. Heartbeats of dead owners before the last one do not count.
    """
    folder = join(base, f"{CLAIMS}/{instant}")
    files = storage.list_files(folder)
    epochs = _epochs(files)
    names = {info.name for info in files}
    if epochs and f"{epochs[-1]:06d}.released" not in names:
        return False
    if (epochs and f"{epochs[-1]:06d}.heartbeat" in names) or storage.exists(
        join(base, f"{HUDI_HEARTBEATS}/{instant}")
    ):
        return False
    return all(find_decision(storage, folder, epoch) is None for epoch in epochs)


def claimed_instants(storage: Storage, *, base: str = "") -> frozenset[str]:
    """The instants with claims, whatever became of them; one listing."""
    return frozenset(folder.rpartition("/")[2] for folder in storage.list_folders(join(base, CLAIMS)))


def has_let_go(storage: Storage, instant: str, *, base: str = "") -> bool:
    """Whether the last owner released the instant and deleted its Hudi heartbeat: a present one is another writer's."""
    files = storage.list_files(join(base, f"{CLAIMS}/{instant}"))
    epochs = _epochs(files)
    return bool(epochs) and f"{epochs[-1]:06d}.released" in {info.name for info in files}


def forget_claims(storage: Storage, instant: str, *, base: str = "") -> None:
    """Removes all claims of an instant that is over: completed, or no longer on the timeline. Idempotent.

    Claims of an instant that may be run again are kept: its epochs distinguish attempts, in their claims and in the
    names of their files. The highest epoch is deleted last: an owner of an earlier one that wakes up meanwhile finds
    it, or nothing, and never its own as the highest.
    """
    folder = join(base, f"{CLAIMS}/{instant}")
    for epoch in _epochs(storage.list_files(folder))[:-1]:
        storage.delete(_claim_path(folder, epoch))
    highest = _epochs(storage.list_files(folder))[-1:]
    for info in storage.list_files(folder):
        if info.path not in {_claim_path(folder, epoch) for epoch in highest}:
            storage.delete(info.path)
    storage.delete_folder(folder)


def is_live(
    storage: Storage, instant: str, epoch: int, *, now: Callable[[], float] | None = None, base: str = ""
) -> bool:
    """Whether the owner of `epoch` may still run the instant: neither released nor succeeded, dead or expired."""
    folder = join(base, f"{CLAIMS}/{instant}")
    files = {info.name: info for info in storage.list_files(folder)}
    epochs = _epochs(list(files.values()))
    return bool(epochs) and epochs[-1] == epoch and _silence(storage, folder, files, epoch, now) is not None


def _earlier_epochs(storage: Storage, folder: str, instant: str, now: Callable[[], float] | None) -> list[int]:
    """The epochs that may be succeeded now; raises ConflictError while the highest one's owner may be alive."""
    files = {info.name: info for info in storage.list_files(folder)}
    epochs = _epochs(list(files.values()))
    silence = _silence(storage, folder, files, epochs[-1], now) if epochs else None
    if silence is None:
        return epochs
    record = _read(storage, folder, epochs[-1])
    since = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(record.claimed))
    raise ConflictError(
        f"instant {instant} is run by {record.owner.describe()} since {since}; its last sign of life is "
        f"{max(0.0, silence):.0f} s old",
        path=record.path,
        remedy=(
            f"wait for it; a dead one can be succeeded {record.tolerance_seconds:.0f} s after its last sign of "
            "life, or at once on its machine"
        ),
    )


def _silence(
    storage: Storage, folder: str, files: Mapping[str, FileInfo], epoch: int, now: Callable[[], float] | None
) -> float | None:
    """Seconds since the last sign of life of an epoch's owner; None when it may be succeeded.

    That is when it released the instant, is provably dead, or its heartbeat expired.
    """
    if f"{epoch:06d}.released" in files:
        return None
    record = _read(storage, folder, epoch)
    if held.is_left_behind(record.owner, record.token):
        return None
    heartbeat = files.get(f"{epoch:06d}.heartbeat")
    last = record.claimed if heartbeat is None else max(record.claimed, heartbeat.modified)
    age = (now() if now is not None else storage_time(storage, folder)) - last
    return None if age > record.tolerance_seconds else age


def _epochs(files: list[FileInfo]) -> list[int]:
    matches = (_EPOCH_FILE.match(info.name) for info in files)
    return sorted(int(match[1]) for match in matches if match is not None)


def _claim_path(folder: str, epoch: int) -> str:
    return f"{folder}/{epoch:06d}.json"


def _read(storage: Storage, folder: str, epoch: int) -> ClaimRecord:
    path = _claim_path(folder, epoch)
    remedy = "find out which process wrote it; delete it when no process runs the instant"
    try:
        claimed = storage.stat(path).modified
        value: Any = json.loads(storage.read(path))
    except StorageNotFoundError as error:
        raise ConflictError("the claim was removed while it was read", path=path, remedy="run again") from error
    except ValueError as error:
        raise CorruptFileError("the claim is not JSON", path=path, remedy=remedy) from error
    if not isinstance(value, dict) or value.get("version") != _VERSION or not isinstance(value.get("owner"), dict):
        raise CorruptFileError("the claim has no owner or another version", path=path, remedy=remedy)
    token, interval, misses = value.get("token"), value.get("interval_ms"), value.get("tolerable_misses")
    if not isinstance(token, str) or not isinstance(interval, int) or not isinstance(misses, int):
        raise CorruptFileError("the claim's token or heartbeat interval is not one", path=path, remedy=remedy)
    if not 1 <= interval <= _MAX_INTERVAL_MS or not 1 <= misses <= _MAX_MISSES:
        raise CorruptFileError("the claim's token or heartbeat interval is not one", path=path, remedy=remedy)
    return ClaimRecord(path, epoch, token, Owner.from_json(value["owner"], path=path), interval, misses, claimed)
