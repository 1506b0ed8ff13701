"""Finds out by racing whether a storage can carry a timeline and a storage lease. The writes that are raced on S3:
s3_conditional.py.

Many S3-compatible servers answer a second conditional put with 412 when requests come one at a time, and let several
racing writers win. Only a race shows that.
"""

from __future__ import annotations

import os
import threading
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any, Literal

from hudi_core.errors import ConfigError, HudiError, StorageConflictError, StorageExistsError, StorageNotFoundError
from hudi_core.storage.base import Storage
from hudi_core.storage.local import LocalStorage, local_path

FOLDER = ".airflow_hudi_probe"
_MAX_WRITERS = 256
_MAX_ROUNDS = 100_000
_BODY_BYTES = 512
_MAX_PROBLEMS = 10
_LOST = (StorageExistsError, StorageConflictError)


@dataclass(frozen=True, slots=True)
class RaceResult:
    """The result of one type of race over all rounds. Times are seconds."""

    rounds: int
    several_winners: int
    """Rounds that more than one writer believed to have won."""
    no_winner: int
    """Rounds without a winner."""
    wrong_content: int
    """Rounds after which the object was not the winner's, whole, or was missing in a listing."""
    failures: int
    """Requests that failed with another error than "you lost"."""
    seconds: float
    slowest_seconds: float
    """The longest request of a winner or loser."""

    @property
    def is_atomic(self) -> bool:
        return self.rounds > 0 and not (self.several_winners or self.no_winner or self.wrong_content)


@dataclass(frozen=True, slots=True)
class ProbeReport:
    """The verdict. A race is None when the storage does not offer the operation at all."""

    uri: str
    writers: int
    creates: RaceResult | None
    replaces: RaceResult | None
    problems: tuple[str, ...]
    """What went wrong, in words; the first few."""
    clock_ahead_seconds: float | None = None
    """How far the storage's clock was ahead of this process's, at least; negative where it is behind."""

    @property
    def can_carry_timeline(self) -> bool:
        """Whether racing exclusive creates are safe: timeline files, claims, lock files."""
        return self.creates is not None and self.creates.is_atomic

    @property
    def can_carry_lease(self) -> bool:
        """Whether racing conditional replaces are safe, too: the storage lease."""
        return self.can_carry_timeline and self.replaces is not None and self.replaces.is_atomic

    def to_json(self) -> dict[str, Any]:
        return asdict(self) | {"can_carry_timeline": self.can_carry_timeline, "can_carry_lease": self.can_carry_lease}


def probe(storage: Storage, writers: int = 16, rounds: int = 60) -> ProbeReport:
    """Races `writers` threads for `rounds` rounds on new files below FOLDER, by create and by replace. The folder is
    removed afterwards, and so are local folders above it that were not there before. A pass is evidence and no proof; a
    storage that fails once is unfit. Raises ConfigError for numbers out of bounds, and the storage's own errors when it
    cannot be reached at all.
    """
    if not 2 <= writers <= _MAX_WRITERS or not 1 <= rounds <= _MAX_ROUNDS:
        message = f"{writers} writers and {rounds} rounds are out of bounds"
        raise ConfigError(message, remedy=f"2 to {_MAX_WRITERS} writers, 1 to {_MAX_ROUNDS} rounds")
    absent = _absent_folders(storage)
    folder = f"{FOLDER}/{uuid.uuid4().hex}"
    problems: list[str] = []
    try:
        ahead = _clock_ahead(storage, f"{folder}/reachable")
        creates = replaces = None
        if storage.supports_exclusive_create:
            creates = _race(storage, f"{folder}/create", writers, rounds, "create", problems)
        if storage.supports_conditional_write:
            replaces = _race(storage, f"{folder}/replace", writers, rounds, "replace", problems)
    finally:
        storage.delete_folder(folder)
        if not storage.list_folders(FOLDER) and not storage.list_names(FOLDER):  # no other probe is at work
            storage.delete_folder(FOLDER)
        with suppress(OSError):  # another process uses it by now
            for path in absent:
                os.rmdir(path)
    if creates is None:
        problems.append("the storage offers no exclusive create")
    if replaces is None:
        problems.append("the storage offers no conditional write")
    return ProbeReport(storage.uri, writers, creates, replaces, tuple(problems[:_MAX_PROBLEMS]), ahead)


def _absent_folders(storage: Storage) -> list[str]:
    """The root of a local storage and the folders above it, the deepest first, as far as they do not exist."""
    absent = []
    if isinstance(storage, LocalStorage):
        path = local_path(storage.uri)
        while not os.path.lexists(path):
            absent.append(path)
            path = os.path.dirname(path)
    return absent


def _clock_ahead(storage: Storage, path: str) -> float:
    """Zero unless the file's time is outside the moments around its write; object stores give whole seconds."""
    before = time.time()
    storage.write(path, b"")
    after, modified = time.time(), storage.stat(path).modified
    if before - 1.0 <= modified <= after:
        return 0.0
    return modified - after if modified > after else modified - before


def _race(
    storage: Storage, folder: str, writers: int, rounds: int, kind: Literal["create", "replace"], problems: list[str]
) -> RaceResult:
    several = none = wrong = failures = 0
    slowest, started = 0.0, time.monotonic()
    for number in range(rounds):
        path = f"{folder}/{number:06d}"
        attempts = _round(storage, path, writers, kind)
        winners = [writer for writer, (error, _) in enumerate(attempts) if error is None]
        failed = [error for error, _ in attempts if error is not None and not isinstance(error, _LOST)]
        slowest = max(slowest, *(seconds for _, seconds in attempts))
        several += len(winners) > 1
        none += not winners
        failures += len(failed)
        if len(winners) != 1:
            problems.append(f"{kind} {number}: {len(winners)} of {writers} writers won")
        problems.extend(f"{kind} {number}: {error}" for error in failed)
        if len(winners) == 1 and not _is_whole(storage, path, _body(winners[0])):
            wrong += 1
            problems.append(f"{kind} {number}: the file is not what its one winner wrote")
    return RaceResult(rounds, several, none, wrong, failures, time.monotonic() - started, slowest)


def _round(
    storage: Storage, path: str, writers: int, kind: Literal["create", "replace"]
) -> list[tuple[HudiError | None, float]]:
    """What became of each writer, None of one that won, and how long that took."""
    version = None
    if kind == "replace":
        storage.write(path, b"before")
        version = storage.read_versioned(path)[1]
    barrier = threading.Barrier(writers)

    def attempt(writer: int) -> tuple[HudiError | None, float]:
        barrier.wait()
        started = time.monotonic()
        try:
            if version is None:
                storage.create_exclusive(path, _body(writer))
            else:
                storage.write_if(path, _body(writer), version=version)
        except HudiError as error:
            return error, time.monotonic() - started
        return None, time.monotonic() - started

    with ThreadPoolExecutor(writers) as pool:
        return list(pool.map(attempt, range(writers)))


def _body(writer: int) -> bytes:
    return bytes([writer % 256]) * _BODY_BYTES


def _is_whole(storage: Storage, path: str, body: bytes) -> bool:
    folder, _, name = path.rpartition("/")
    try:
        return storage.read(path) == body and name in storage.list_names(folder)
    except StorageNotFoundError:
        return False
