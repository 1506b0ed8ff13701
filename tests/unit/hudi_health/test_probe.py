from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from hudi_core.errors import ConfigError, StorageError, StorageExistsError
from hudi_core.storage.local import LocalStorage
from hudi_health.probe import FOLDER, RaceResult, probe
from tests.support.memory_storage import MemoryStorage


class CheckThenPut(MemoryStorage):
    """Looks first and writes then."""

    def create_exclusive(self, path: str, data: bytes) -> None:
        if self.exists(path):
            raise StorageExistsError("there", path=path)
        time.sleep(0.005)
        self.write(path, data)


class Forgetful(MemoryStorage):
    """Says that it created, and keeps a part."""

    def create_exclusive(self, path: str, data: bytes) -> None:
        super().create_exclusive(path, data)
        self.write(path, data[:-1])


class Hidden(MemoryStorage):
    """Lists nothing for a while."""

    def list_names(self, folder: str) -> list[str]:
        return []


class Failing(MemoryStorage):
    """Fails now and then, with another error than "you lost"."""

    def create_exclusive(self, path: str, data: bytes) -> None:
        if data[0] % 2:
            raise StorageError("try again", path=path)
        super().create_exclusive(path, data)


class Refusing(MemoryStorage):
    """Never lets a writer win."""

    def create_exclusive(self, path: str, data: bytes) -> None:
        raise StorageExistsError("there", path=path)


def test_an_atomic_store_passes_and_nothing_is_left_behind() -> None:
    storage = MemoryStorage()
    report = probe(storage, writers=8, rounds=5)
    assert (report.can_carry_timeline, report.can_carry_lease, report.problems) == (True, True, ())
    assert (storage.list_files(""), storage.list_folders("")) == ([], [])
    reported = json.loads(json.dumps(report.to_json()))
    assert (reported["uri"], reported["writers"], reported["can_carry_lease"], reported["creates"]["rounds"]) == (
        "memory://table",
        8,
        True,
        5,
    )


@pytest.mark.parametrize(
    ("storage", "field", "problem"),
    [
        (CheckThenPut(), "several_winners", "of 8 writers won"),
        (Forgetful(), "wrong_content", "not what its one winner wrote"),
        (Hidden(), "wrong_content", "not what its one winner wrote"),
        (Refusing(), "no_winner", "0 of 8 writers won"),
    ],
)
def test_a_store_that_fails_once_carries_nothing(storage: MemoryStorage, field: str, problem: str) -> None:
    report = probe(storage, writers=8, rounds=5)
    assert (report.can_carry_timeline, report.can_carry_lease) == (False, False)
    assert getattr(report.creates, field) > 0
    assert any(problem in reported for reported in report.problems)
    assert len(report.problems) <= 10
    assert storage.list_folders(FOLDER) == []


def test_failed_requests_are_reported_and_judged_by_the_winner() -> None:
    report = probe(Failing(), writers=8, rounds=5)
    assert report.creates is not None
    assert report.creates.failures == 20
    assert report.can_carry_timeline
    assert any("try again" in reported for reported in report.problems)


def test_replaces_are_judged_apart() -> None:
    class Overwriting(MemoryStorage):
        def write_if(self, path: str, data: bytes, *, version: str | None) -> str:
            self.write(path, data)
            return "v"

    report = probe(Overwriting(), writers=8, rounds=5)
    assert (report.can_carry_timeline, report.can_carry_lease) == (True, False)
    assert report.replaces is not None
    assert report.replaces.several_winners == 5


def test_without_a_round_nothing_is_proven() -> None:
    assert not RaceResult(0, 0, 0, 0, 0, 0.0, 0.0).is_atomic


@pytest.mark.parametrize(("writers", "rounds"), [(1, 1), (257, 1), (2, 0), (2, 100_001)])
def test_numbers_out_of_bounds_are_refused(writers: int, rounds: int) -> None:
    with pytest.raises(ConfigError, match="out of bounds"):
        probe(MemoryStorage(), writers=writers, rounds=rounds)


def test_a_store_that_cannot_be_reached_is_an_error_and_no_verdict() -> None:
    class Gone(MemoryStorage):
        def write(self, path: str, data: bytes) -> None:
            raise StorageError("no answer", path=path)

    with pytest.raises(StorageError, match="no answer"):
        probe(Gone())


def test_local_folders_that_were_not_there_are_removed(tmp_path: Path) -> None:
    assert probe(LocalStorage(f"file://{tmp_path}/no/where"), writers=2, rounds=1).can_carry_timeline
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "empty").mkdir()
    probe(LocalStorage(tmp_path / "empty"), writers=2, rounds=1)
    assert list(tmp_path.iterdir()) == [tmp_path / "empty"]


def test_another_probe_that_is_at_work_is_left_alone() -> None:
    storage = MemoryStorage()
    storage.write(f"{FOLDER}/another/reachable", b"")
    probe(storage, writers=2, rounds=1)
    assert storage.list_folders(FOLDER) == [f"{FOLDER}/another"]


@pytest.mark.parametrize(("ahead", "reported"), [(0.0, 0.0), (-0.9, 0.0), (120.0, 120.0), (-120.0, -120.0)])
def test_the_storages_clock_is_compared(ahead: float, reported: float) -> None:
    """Whole seconds, as object stores give them, are no difference."""
    report = probe(MemoryStorage(clock=lambda: time.time() + ahead), writers=2, rounds=1)
    assert report.clock_ahead_seconds == pytest.approx(reported, abs=0.5)
