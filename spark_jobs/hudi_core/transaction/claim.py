"""The claim: at most one live process runs an instant. claim_file.py says when an owner is dead, and who decides."""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial

from hudi_core.config.concurrency_config import MAX_SILENCE_MS
from hudi_core.errors import ConfigError, ConflictError, StorageExistsError, StorageNotFoundError
from hudi_core.model.names import CLOCKS, ClaimFolder, epochs_of, last_number
from hudi_core.storage.base import FileInfo, Storage
from hudi_core.storage.overlapped import both, overlapped
from hudi_core.transaction.claim_file import (
    ClaimRecord,
    Decision,
    abandon,
    close,
    decide,
    forget_claims,
    read_claim,
    silence,
)
from hudi_core.transaction.heartbeat_thread import Heartbeat, storage_time
from hudi_core.transaction.owner import Owner, drop_token, hold_token

_ATTEMPTS = 20
_INSTANT = re.compile(r"^\d{1,32}$")


class Claim:
    """A claim that this process holds, with its heartbeat thread. The context manager releases the claim at the end."""

    def __init__(self, storage: Storage, folder: ClaimFolder, record: ClaimRecord) -> None:
        self.instant, self.epoch, self.owner = folder.instant, record.epoch, record.owner
        self._storage, self._folder, self._record = storage, folder, record
        self._released = self._has_beaten = False
        self._seen: FileInfo | None = None
        """The listed claim file, as it was when its content was found to be ours."""
        self._decided_by: int | None = None
        self.decided: Decision | None = None
        """An earlier owner's decision that is perhaps not carried out yet; Completer does that before anything else."""
        self.may_have_decided = False
        """Whether this owner's own decision is or may be on record: then this owner may not delete its files."""
        self.is_over = False
        """Whether the instant is over: then the release removes its claims, too."""
        self.heartbeat = Heartbeat(
            self._beat,
            interval_seconds=record.interval_ms / 1000,
            tolerance_seconds=record.tolerance_seconds,
            name=f"instant {folder.instant}",
        )

    def __enter__(self) -> Claim:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def check(self) -> None:
        """Raises ConflictError unless the claim is ours and alive, and no earlier decision is left to carry out."""
        self.check_owner()
        if self.decided is not None:
            message = f"an earlier run decided to complete instant {self.instant} and was cut off"
            remedy = "run the instant again: that completes it"
            raise ConflictError(message, path=self._folder.decision(self._decided_by or self.epoch), remedy=remedy)

    def check_with(self, check_lock: Callable[[], None]) -> None:
        """Checks the table lock, and then the claim like `check`: neither depends on the other."""
        overlapped(self._storage, [check_lock, self.check])

    def check_owner(self) -> None:
        """Raises ConflictError unless the claim is ours and alive, whatever earlier owners decided."""
        self.heartbeat.check()
        files = {info.path: info for info in self._storage.list_files(self._folder.path)}
        highest = max(epochs_of(info.name for info in files.values()), default=self.epoch)
        if highest != self.epoch:
            raise self._lost(f"was taken over (epoch {highest}, this run has {self.epoch})", self._record.path)
        listed = files.get(self._record.path)
        # A file that has the size and time of ours when it was read needs no second reading.
        if listed is None or (listed != self._seen and not self._is_on_record()):
            raise self._lost("was removed", self._record.path)
        self._seen = listed

    def decide(self, decision: Decision, ahead: Callable[[], object] = lambda: None) -> None:
        """Records the decision. Then makes the requests `ahead` beside its own. Raises ConflictError when a successor
        closed the epoch, or when the claim is lost.
        """
        self.may_have_decided = True
        try:
            decide(self._storage, self._folder, self.epoch, decision)
        except ConflictError:
            self.may_have_decided = False
            raise
        try:
            overlapped(self._storage, [self.check_owner, ahead])
        except ConflictError:
            # A successor that took over has seen the decision, and carries it out. A successor that is done with the
            # instant removed our claim before the decision came, and nobody will look at the decision.
            if not self._is_on_record():
                self._storage.delete(self._folder.decision(self.epoch))
                self.may_have_decided = False
            raise

    def settle(self, *, abandoned: bool = False) -> None:
        """Ends the earlier owner's decision, which was carried out or `abandoned`: this owner may run the instant."""
        if abandoned and self._decided_by is not None:
            abandon(self._storage, self._folder, self._decided_by)
        self.decided = None

    def decided_ago(self) -> float:
        """Returns the seconds since the last sign of life of the owner that decided, by the storage's clock."""
        folder, epoch = self._folder, self._decided_by or self.epoch
        signs = {folder.decision(epoch), folder.heartbeat(epoch), folder.released(epoch)}
        seen = (info.modified for info in self._storage.list_files(folder.path) if info.path in signs)
        return storage_time(self._storage, CLOCKS) - max(seen, default=0.0)

    def close_earlier(self, epochs: Iterable[int]) -> None:
        """Keeps the owners of `epochs` from completing the instant; this claim adopts the latest of their decisions."""
        for epoch in sorted(epochs):
            self._has_beaten = True  # to close epochs may take long: then the claim's own time is no sign of life
            decision = close(self._storage, self._folder, epoch)
            if decision is not None:
                self.decided, self._decided_by = decision, epoch

    def release(self) -> None:
        """Ends the heartbeat and lets others claim the instant at once, also when the run failed. Idempotent."""
        if self._released:
            return
        self.heartbeat.stop()
        try:
            files = {info.path: info for info in self._storage.list_files(self._folder.path)}
            epochs, listed = epochs_of(info.name for info in files.values()), files.get(self._record.path)
            ours = listed is not None and (listed == self._seen or self._is_on_record())
            is_last = ours and epochs[-1] == self.epoch
            if is_last or not epochs:  # before the release: after it the heartbeat file is the next owner's
                self._storage.remove(self._folder.hudi_heartbeat)
            if self.is_over:
                forget_claims(self._storage, self.instant, files)
            else:
                if ours:  # else the instant is over, and a later owner removed all of its claims
                    with suppress(StorageExistsError):  # an earlier call created the file and failed after that
                        self._storage.create_exclusive(self._folder.released(self.epoch), b"")
                if self._folder.heartbeat(self.epoch) in files and (ours or self.epoch not in epochs):
                    self._storage.remove(self._folder.heartbeat(self.epoch))
        finally:
            # Also when the storage failed: the next run of this process may then take over.
            drop_token(self._record.token)
        self._released = True

    def _lost(self, how: str, path: str) -> ConflictError:
        return ConflictError(
            f"the claim on instant {self.instant} {how}", path=path, remedy="leave the instant to its new owner"
        )

    def _is_on_record(self) -> bool:
        """Whether the claim file of this epoch is ours; after a removal by hand, another owner may have its number."""
        with suppress(StorageNotFoundError):
            return self._record.token.encode() in self._storage.read(self._record.path)
        return False

    def _beat(self) -> None:
        """Writes a sign of life. At first our processes see the claim file itself; Hudi's writers see the heartbeat."""
        if self._has_beaten:
            self._storage.write(self._folder.heartbeat(self.epoch), b"")
        self._has_beaten = True
        self._storage.write(self._folder.hudi_heartbeat, b"")


def claim(
    storage: Storage,
    instant: str,
    owner: Owner,
    *,
    now: Callable[[], float] | None = None,
    interval_ms: int = 60_000,
    tolerable_misses: int = 2,
    refuse: Callable[[], None] = lambda: None,
) -> Claim:
    """Makes this process the owner of `instant` and starts its heartbeat. The last owner must have released the
    instant, be provably dead, or have a heartbeat that expired by its own interval, on the storage's clock or against
    `now` (seconds since the epoch). Raises ConflictError, with owner and time, when the last owner may be alive, or
    when another process took over first, and what `refuse` raises, which is called beside the first look. Raises
    ConfigError for an instant or an interval that is not valid.
    """
    if _INSTANT.match(instant) is None:
        raise ConfigError(
            f"{instant!r} is not an instant time",
            remedy="an instant consists of digits; `hudictl timeline TABLE` lists them",
        )
    if min(interval_ms, tolerable_misses) < 1 or interval_ms * tolerable_misses > MAX_SILENCE_MS:
        raise ConfigError(f"heartbeat interval {interval_ms} ms with {tolerable_misses} misses is out of bounds")
    folder = ClaimFolder(instant)
    token = uuid.uuid4().hex
    hold_token(token)  # before the file shows: else a thread of this process could take it for an abandoned one
    try:
        for _ in range(_ATTEMPTS):
            _, (earlier, last) = both(storage, refuse, partial(_earlier_epochs, storage, folder, now))
            epoch = last + 1
            record = ClaimRecord(folder.claim(epoch), epoch, token, owner, interval_ms, tolerable_misses)
            with suppress(StorageExistsError):  # another process won the race for this epoch
                storage.create_exclusive(record.path, record.encode())
                claimed = Claim(storage, folder, record)
                # After our claim file shows: an owner that decides now sees its successor, or we see the decision.
                claimed.close_earlier(earlier)
                claimed.heartbeat.start()
                return claimed
    except BaseException:
        drop_token(token)
        raise
    drop_token(token)
    message = f"instant {instant} changed its owner {_ATTEMPTS} times while this run tried to claim it"
    raise ConflictError(message, path=folder.path, remedy="run again")


def _earlier_epochs(storage: Storage, folder: ClaimFolder, now: Callable[[], float] | None) -> tuple[list[int], int]:
    """Returns the epochs to succeed, and the last number. Raises ConflictError while the last owner may be alive."""
    files = {info.path: info for info in storage.list_files(folder.path)}
    epochs = epochs_of(info.name for info in files.values())
    age = silence(storage, folder, files, epochs[-1], now) if epochs else None
    if age is None:
        return epochs, last_number(info.name for info in files.values())
    record = read_claim(storage, folder, epochs[-1])
    since = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(record.claimed))
    raise ConflictError(
        f"instant {folder.instant} is run by {record.owner.describe()} since {since}; its last sign of life is "
        f"{max(0.0, age):.0f} s old",
        path=record.path,
        remedy=(
            f"wait for it; a dead one can be succeeded {record.tolerance_seconds:.0f} s after its last sign of "
            "life, or at once on its machine"
        ),
    )
