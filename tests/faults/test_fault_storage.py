from __future__ import annotations

import gc
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import pytest

from hudi_core.errors import StorageError
from hudi_core.storage.base import ByteRange, Storage
from hudi_core.storage.local import LocalStorage
from tests.support.fault_storage import MUTATIONS, FaultPlan, FaultStorage, InjectedCrash, Operation
from tests.support.memory_storage import MemoryStorage

Timing = Literal["before", "after"]


def work(storage: Storage) -> None:
    """Uses every verb of the port once or more."""
    storage.create_exclusive("a/1", b"one")
    storage.write("a/2", b"two")
    storage.write_if("a/2", b"second", version=storage.read_versioned("a/2")[1])
    storage.stat("a/1")
    storage.exists("a/1")
    storage.list_files("a")
    storage.list_names("a")
    storage.list_folders("")
    storage.list_tree("a")
    storage.read("a/1")
    storage.read_range("a/1", ByteRange(0, 1))
    with storage.open_output("b/3") as file:
        file.write(b"th")
        file.write(b"ree")
    with storage.open_input("b/3") as source:
        source.read(2)
        source.read()
    storage.delete("a/1")
    storage.write("c", b"")
    storage.remove("c")
    storage.delete_folder("a")
    storage.write("done", b"")


EXPECTED = [
    Operation("create_exclusive", "a/1"),
    Operation("write", "a/2"),
    Operation("read_versioned", "a/2"),
    Operation("write_if", "a/2"),
    Operation("stat", "a/1"),
    Operation("exists", "a/1"),
    Operation("list_files", "a"),
    Operation("list_names", "a"),
    Operation("list_folders", ""),
    Operation("list_tree", "a"),
    Operation("read", "a/1"),
    Operation("read_range", "a/1"),
    Operation("open_output", "b/3"),
    Operation("output.write", "b/3"),
    Operation("output.write", "b/3"),
    Operation("output.close", "b/3"),
    Operation("open_input", "b/3"),
    Operation("input.read", "b/3"),
    Operation("input.read", "b/3"),
    Operation("input.close", "b/3"),
    Operation("delete", "a/1"),
    Operation("write", "c"),
    Operation("remove", "c"),
    Operation("delete", "a/2"),
    Operation("delete_folder", "a"),
    Operation("write", "done"),
]


@pytest.fixture(params=["local", "memory"])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], Storage]:
    folders = iter(range(10**6))
    return (lambda: LocalStorage(tmp_path / str(next(folders)))) if request.param == "local" else MemoryStorage


def snapshot(storage: Storage, folder: str = "") -> dict[str, bytes]:
    found = {info.path: storage.read(info.path) for info in storage.list_files(folder)}
    for below in storage.list_folders(folder):
        found |= snapshot(storage, below)
    return found


def test_every_operation_is_seen(make: Callable[[], Storage]) -> None:
    plan = FaultPlan()
    work(FaultStorage(make(), plan))
    assert plan.operations == EXPECTED
    assert plan.counted == len(EXPECTED)
    assert plan.mutations() == [operation for operation in EXPECTED if operation.kind in MUTATIONS]


def test_every_verb_of_the_port_is_wrapped() -> None:
    verbs = {name for name, _ in inspect.getmembers(Storage, inspect.isfunction) if not name.startswith("_")}
    assert verbs <= set(vars(FaultStorage))
    assert verbs <= {operation.kind for operation in EXPECTED}


@pytest.mark.parametrize("timing", ["before", "after"])
def test_a_kill_at_each_operation_leaves_what_was_done_until_then(make: Callable[[], Storage], timing: Timing) -> None:
    before, after = _states(make)
    for number, operation in enumerate(EXPECTED):
        plan, inner = FaultPlan(kill_at=number, timing=timing), make()
        with pytest.raises(InjectedCrash):
            work(FaultStorage(inner, plan))
        assert plan.fired == operation
        assert plan.crashed
        assert plan.operations == EXPECTED[: number + 1]
        found = snapshot(inner)
        found.pop("b/3", None)  # a file that is being written may be there in part
        assert found == (before if timing == "before" else after)[number]


def _states(make: Callable[[], Storage]) -> tuple[list[dict[str, bytes]], list[dict[str, bytes]]]:
    """What is stored before and after each operation of an undisturbed run."""
    inner = make()
    before: list[dict[str, bytes]] = []

    def look(_: Operation) -> bool:
        state = snapshot(inner)
        state.pop("b/3", None)
        before.append(state)
        return False

    work(FaultStorage(inner, FaultPlan(when=look)))
    final = snapshot(inner)
    final.pop("b/3")
    return before, [*before[1:], final]


def test_an_object_in_memory_is_not_published_by_a_kill_before_its_close() -> None:
    inner = MemoryStorage()
    with pytest.raises(InjectedCrash):
        work(FaultStorage(inner, FaultPlan(when=lambda operation: operation.kind == "output.close")))
    gc.collect()
    assert not inner.exists("b/3")


def test_a_dead_process_does_nothing_more() -> None:
    inner = MemoryStorage()
    plan = FaultPlan(kill_at=1)
    storage = FaultStorage(inner, plan)
    storage.write("lock", b"")

    def run() -> None:
        try:
            storage.write("x", b"")
        finally:
            storage.delete("lock")

    with pytest.raises(InjectedCrash):
        run()
    assert snapshot(inner) == {"lock": b""}
    with pytest.raises(InjectedCrash):
        storage.exists("lock")


def test_only_the_counted_kinds_count() -> None:
    mutations = [operation for operation in EXPECTED if operation.kind in MUTATIONS]
    for number, operation in enumerate(mutations):
        plan = FaultPlan(kill_at=number, counts=MUTATIONS)
        with pytest.raises(InjectedCrash):
            work(FaultStorage(MemoryStorage(), plan))
        assert plan.fired == operation
        assert plan.counted == number + 1
    plan = FaultPlan(kill_at=len(mutations), counts=MUTATIONS)
    work(FaultStorage(MemoryStorage(), plan))
    assert plan.counted == len(mutations)


@pytest.mark.parametrize("timing", ["before", "after"])
def test_an_error_strikes_once_and_life_goes_on(timing: Timing) -> None:
    inner = MemoryStorage()
    plan = FaultPlan(kill_at=0, timing=timing, error=lambda operation: StorageError("timeout", path=operation.path))
    storage = FaultStorage(inner, plan)
    with pytest.raises(StorageError, match="timeout"):
        storage.create_exclusive("x", b"1")
    assert inner.exists("x") == (timing == "after")
    storage.write("x", b"2")
    assert inner.read("x") == b"2"


def test_a_failed_block_discards_through_the_plan(make: Callable[[], Storage]) -> None:
    inner, plan = make(), FaultPlan()

    def write_half() -> None:
        with FaultStorage(inner, plan).open_output("x") as file:
            file.write(b"half")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        write_half()
    assert [operation.kind for operation in plan.operations] == ["open_output", "output.write", "output.discard"]
    assert not inner.exists("x")


def test_a_crash_is_no_error_that_a_handler_of_errors_survives() -> None:
    def careless() -> Any:
        try:
            return FaultStorage(MemoryStorage(), FaultPlan(kill_at=0)).exists("x")
        except Exception:  # noqa: BLE001 (that it is careless is the point)
            return None

    with pytest.raises(InjectedCrash):
        careless()
