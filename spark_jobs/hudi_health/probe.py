"""Finds out by races whether a storage can carry a timeline and a storage lease. s3_conditional.py has the writes that
race on S3.

Many S3-compatible servers answer a second conditional put with 412 if requests come one after the other, but let
several racing writers win. Only a race shows that.
"""

from __future__ import annotations

import os
import threading
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict
from typing import Any, Literal

from hudi_core.errors import ConfigError, HudiError, StorageConflictError, StorageExistsError, StorageNotFoundError
from hudi_core.frozen import dataclass
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
    """Rounds in which more than one writer got a success."""
    no_winner: int
    """Rounds without a winner."""
    wrong_content: int
    """Rounds after which the object was not exactly the winner's, or was missing in a listing."""
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
    """The result of a probe. A race is None if the storage does not offer the operation."""

    uri: str
    writers: int
    creates: RaceResult | None
    replaces: RaceResult | None
    problems: tuple[str, ...]
    """The first problems, in words."""
    clock_ahead_seconds: float | None = None
    """The least seconds by which the storage's clock is ahead of this process's clock; negative if it is behind."""

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
    """Races `writers` threads for `rounds` rounds on new files below FOLDER, by create and by replace. It removes the
    folder afterwards, and the local folders above it that did not exist before. A pass is evidence, but not a proof; a
    storage that fails once is unfit. Raises ConfigError for numbers out of bounds, and the storage's own errors if the
    storage cannot be reached.
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
        if not storage.list_folders(FOLDER) and not storage.list_names(FOLDER):  # No other probe is at work.
            storage.delete_folder(FOLDER)
        with suppress(OSError):  # Another process may use the folder by now.
            for path in absent:
                os.rmdir(path)
    if creates is None:
        problems.append("the storage offers no exclusive create")
    if replaces is None:
        problems.append("the storage offers no conditional write")
    return ProbeReport(storage.uri, writers, creates, replaces, tuple(problems[:_MAX_PROBLEMS]), ahead)


def _absent_folders(storage: Storage) -> list[str]:
    """Returns the missing folders of a local storage: its root and the folders above it, the deepest first."""
    absent = []
    if isinstance(storage, LocalStorage):
        path = local_path(storage.uri)
        while not os.path.lexists(path):
            absent.append(path)
            path = os.path.dirname(path)
    return absent


def _clock_ahead(storage: Storage, path: str) -> float:
    """Returns the seconds by which the storage's clock is ahead. They are 0 if the file's time is between the times
    before and after its write. Object stores give whole seconds, so the time may be up to 1 s too early.
    """
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
    """Runs one round and returns, for each writer, its error (None for a winner) and its seconds."""
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
