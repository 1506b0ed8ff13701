"""An instant completes once and by its owner, even if another process runs it, wakes up late, or lost its locks; and
what happens without the guard.

The stories run on both layouts. In layout 1 an exclusive create of one name keeps a second completion out, but not
one by a process whose files its successor has deleted; in layout 2 not even the first, since each draws a completion
time of its own.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from hudi_core.errors import ConflictError, HudiError, StorageError
from hudi_core.model.names import CLAIMS, ClaimFolder
from hudi_core.storage.base import Storage
from hudi_core.timeline.instant import Action
from hudi_core.transaction import claim as claims
from hudi_core.transaction import commit
from hudi_core.transaction.claim import Claim
from hudi_core.transaction.claim_file import Decision, forget_claims
from hudi_core.transaction.commit import CheckOwner, Completer
from tests.support.inflight_compactions import LatePuts, MeanwhileStorage, OpenLock, T, Table, quiet_clock
from tests.support.interleaving import Interleaving
from tests.support.memory_storage import MemoryStorage
from tests.support.tiers import tiered

LAYOUTS = pytest.mark.parametrize("layout", [1, 2])
SEEDS = 400


@pytest.fixture(autouse=True)
def no_wait_for_late_puts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Decisions whose files are gone are abandoned at once."""
    monkeypatch.setattr(commit, "LATE_SECONDS", 0)


@contextmanager
def without_the_guard(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Claims decide nothing and close nothing: what is left are the checks before the put."""
    with monkeypatch.context() as patch:
        patch.setattr(Claim, "decide", lambda self, decision, ahead: None)
        patch.setattr(claims, "close", lambda storage, folder, epoch: None)
        yield


def is_decision(path: str) -> bool:
    return path.endswith(".decision")


def is_completion(path: str) -> bool:
    return path.endswith(".commit")


def succeed(table: Table, reported: list[bytes]) -> None:
    """A successor does what services do: finishes what was decided, else runs the instant again; then it cleans up."""
    with table.claim(expired=True) as held:
        finished = table.completer(held, expire_minutes=1e-9).finish_decided(T)
        if finished is None:
            held.check()
            table.completer(held, expire_minutes=1e-9).complete(T, Action.COMPACTION, b"the successor's")
        reported.append(table.contents()[0])
    forget_claims(table.storage, T)


def stopped_before(matches: Callable[[str], bool], layout: int) -> tuple[Table, list[bytes], HudiError | None]:
    """A zombie is stopped right before it creates a file, and goes on when its successor is done with everything."""
    storage = MeanwhileStorage()
    table = Table(layout, storage).begin()
    reported: list[bytes] = []
    held = table.claim()
    storage.when(matches, lambda: succeed(table, reported))
    try:
        table.completer(held).complete(T, Action.COMPACTION, b"the zombie's")
    except HudiError as error:
        return table, reported, error
    finally:
        held.release()
    return table, reported, None


@LAYOUTS
def test_a_zombie_that_wakes_up_before_its_decision_completes_nothing(layout: int) -> None:
    table, reported, error = stopped_before(is_decision, layout)
    assert isinstance(error, ConflictError)
    assert table.contents() == reported == [b"the successor's"]


@pytest.mark.parametrize("layout", tiered([1, 2], [1]))
def test_a_zombie_that_wakes_up_before_its_put_finds_it_done_with_its_own_bytes(layout: int) -> None:
    table, reported, error = stopped_before(is_completion, layout)
    assert error is None
    assert table.contents() == reported == [b"the zombie's"]


def test_without_the_guard_layout_2_completes_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    with without_the_guard(monkeypatch):
        table, reported, _ = stopped_before(is_completion, 2)
    assert reported == [b"the successor's"]
    assert sorted(table.contents()) == [b"the successor's", b"the zombie's"]
    assert len(table.completed()) == 2


@LAYOUTS
def test_a_late_put_lands_on_the_name_that_the_successor_used(layout: int) -> None:
    assert late_put(layout) == [b"the zombie's"]


def test_without_the_guard_a_late_put_is_a_second_completion(monkeypatch: pytest.MonkeyPatch) -> None:
    with without_the_guard(monkeypatch):
        assert sorted(late_put(2)) == [b"the successor's", b"the zombie's"]


def late_put(layout: int, late: Callable[[str], bool] = is_completion) -> list[bytes]:
    storage = LatePuts(late)
    table = Table(layout, storage).begin()
    with table.claim() as held, pytest.raises(StorageError, match="timed out"):
        table.completer(held).complete(T, Action.COMPACTION, b"the zombie's")
    reported: list[bytes] = []
    succeed(table, reported)
    storage.arrive()
    assert len(reported) == 1
    return table.contents()


@LAYOUTS
def test_a_decision_that_arrives_late_decides_nothing(layout: int) -> None:
    assert late_put(layout, is_decision) == [b"the successor's"]
    storage = LatePuts(is_decision)
    table = Table(layout, storage).begin()
    with table.claim() as held, pytest.raises(StorageError, match="timed out"):
        table.completer(held).complete(T, Action.COMPACTION, b"the zombie's")
    with table.claim() as again:
        storage.arrive()
        assert again.decided is None
        table.completer(again).complete(T, Action.COMPACTION, b"the successor's")
    assert table.contents() == [b"the successor's"]


@LAYOUTS
def test_a_decision_that_arrives_before_the_next_claim_stands(layout: int) -> None:
    storage = LatePuts(is_decision)
    table = Table(layout, storage).begin()
    with table.claim() as held, pytest.raises(StorageError, match="timed out"):
        table.completer(held).complete(T, Action.COMPACTION, b"the first's")
    storage.arrive()
    reported: list[bytes] = []
    succeed(table, reported)
    assert table.contents() == reported == [b"the first's"]


@LAYOUTS
def test_an_expired_lease_of_the_table_lock_lets_no_run_complete_twice(layout: int) -> None:
    """The lock is broken while its holder publishes, and another service takes it; the claim still stands."""
    table = Table(layout).begin()
    with table.claim() as held:

        def publish(_: CheckOwner) -> None:
            table.storage.delete(".hoodie/lock")
            table.storage.create_exclusive(".hoodie/lock", b"")

        with pytest.raises(ConflictError, match="lock was lost"):
            table.completer(held).complete(T, Action.COMPACTION, b"first", publish=publish)
        assert table.contents() == []
        table.storage.delete(".hoodie/lock")
        table.completer(held).complete(T, Action.COMPACTION, b"second")
    assert table.contents() == [b"second"]


@LAYOUTS
def test_a_zombie_whose_successor_removed_all_claims_finds_that_out_after_its_decision(layout: int) -> None:
    table, reported, error = stopped_before(is_decision, layout)
    assert error is not None
    assert "removed" in str(error)
    assert table.contents() == reported
    assert table.storage.list_files(f"{CLAIMS}/{T}") == []


class World:
    """Runs of one instant that write a file each, roll back what others wrote, and complete. No lock keeps them apart,
    claims expire at once.

    A run's content names its file. That is all a service does, as far as completing is concerned.
    """

    def __init__(self, layout: int) -> None:
        self.inner = MemoryStorage()
        self.table = Table(layout, self.inner).begin()
        self.successes: list[bytes] = []

    def run(self, storage: Storage, name: str) -> None:
        table = Table(self.table.layout, storage)
        try:
            if self._is_over(table):
                return
            held = table.claim(expired=True)
        except HudiError:
            return
        completer = Completer(table.active, held, OpenLock, quiet_clock())
        try:
            done = completer.finish_decided(T, why_not=lambda decision, _: self._why_not(storage, decision))
            if done is None:
                if self._is_over(table):
                    return
                self._roll_back(storage, held)
                content = json.dumps({"file": f"data/{name}"}).encode()
                held.check()
                storage.write(self._file(content), b"rows")
                done = completer.complete(T, Action.COMPACTION, content)
            self.successes.append(table.active.read_details(done))
        except HudiError:
            return
        finally:
            held.heartbeat.stop()
        forget_claims(storage, T)

    def _why_not(self, storage: Storage, decision: Decision) -> str | None:
        return None if storage.exists(self._file(decision.content)) else "its file is gone"

    def _is_over(self, table: Table) -> bool:
        return table.active.load().get(T, Action.COMPACTION).is_completed

    def _roll_back(self, storage: Storage, held: Claim) -> None:
        for info in storage.list_files("data"):
            held.check()
            storage.delete(info.path)

    @staticmethod
    def _file(content: bytes) -> str:
        path: str = json.loads(content)["file"]
        return path

    def faults(self) -> list[str]:
        """What is wrong in the end: not completed once, or not with the file that it names, or a run reported
        otherwise.
        """
        self.run(self.inner, "last")
        contents = self.table.contents()
        wrong = [] if len(contents) == 1 else [f"completed {len(contents)} times"]
        wrong += [
            f"{content!r} names a file that is gone"
            for content in contents
            if not self.inner.exists(self._file(content))
        ]
        return wrong + [f"reported {reported!r}" for reported in self.successes if [reported] != contents]


def interleaved(layout: int, seed: int) -> list[str]:
    world = World(layout)
    order = Interleaving(world.inner, seed, kills=0.01 if seed % 2 else 0.0)
    for number in range(3):
        order.add(lambda storage, number=number: world.run(storage, f"run-{number}"))  # type: ignore[misc]
    order.run()
    return world.faults()


@pytest.mark.parametrize("layout", tiered([1, 2], [2]))
def test_in_no_interleaving_of_three_runs_and_their_kills_an_instant_completes_twice(layout: int) -> None:
    assert {seed: faults for seed in range(SEEDS) if (faults := interleaved(layout, seed))} == {}


@pytest.mark.parametrize("layout", tiered([1, 2], [2]))
def test_the_same_interleavings_without_the_guard_do_harm(layout: int, monkeypatch: pytest.MonkeyPatch) -> None:
    with without_the_guard(monkeypatch):
        faults = [fault for seed in range(SEEDS) for fault in interleaved(layout, seed)]
    assert [fault for fault in faults if "gone" in fault]
    assert bool([fault for fault in faults if "completed 2 times" in fault]) == (layout == 2)


def test_a_decision_says_everything_that_the_completed_file_is() -> None:
    decision = Decision("compaction", "20990101000000000", b"bytes\nwith lines\n")
    storage = MemoryStorage()
    claims.decide(storage, ClaimFolder("1"), 1, decision)
    assert claims.close(storage, ClaimFolder("1"), 1) == decision
