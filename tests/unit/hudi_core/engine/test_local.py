"""The engine of threads."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass

import pytest

from hudi_core.engine.local import LocalEngine
from hudi_core.engine.protocol import TaskAttempt
from hudi_core.errors import ConfigError, ExecutionError, FormatError


@dataclass(frozen=True, slots=True)
class Number:
    n: int


@dataclass(frozen=True, slots=True)
class Echo:
    unit: int
    attempt: TaskAttempt


def echo(unit: Number, attempt: TaskAttempt) -> Echo:
    return Echo(unit.n, attempt)


def test_results_come_in_the_units_order_under_distinct_attempts() -> None:
    steps: list[tuple[int, int]] = []
    results = LocalEngine(3).run(
        echo, [Number(n) for n in range(20)], run_epoch=7, progress=lambda done, total: steps.append((done, total))
    )
    assert results == [Echo(n, TaskAttempt(n, 7, n)) for n in range(20)]
    assert steps[-1] == (20, 20)
    assert [done for done, _ in steps] == sorted({done for done, _ in steps})


@pytest.mark.slow
def test_what_the_caller_does_for_a_unit_does_not_grow_with_their_number() -> None:
    def task(unit: Number, attempt: TaskAttempt) -> Echo:
        time.sleep(0.001)  # so that they end one by one
        return echo(unit, attempt)

    started = time.thread_time()
    LocalEngine(2).run(task, [Number(n) for n in range(2_000)], run_epoch=1)
    assert time.thread_time() - started < 0.3, "the futures that are left are looked at whenever one ends"


def test_no_units_no_work() -> None:
    assert LocalEngine().run(echo, [], run_epoch=1) == []


def test_the_tasks_own_error_is_raised_and_stops_the_rest() -> None:
    ran: list[int] = []
    first = threading.Event()

    def task(unit: Number, attempt: TaskAttempt) -> Echo:
        ran.append(unit.n)
        first.set()
        raise FormatError("broken", path="a/b")

    with pytest.raises(FormatError, match="broken"):
        LocalEngine(1).run(task, [Number(n) for n in range(100)], run_epoch=1)
    assert first.is_set()
    assert len(ran) < 100


def test_another_error_becomes_an_execution_error() -> None:
    def task(unit: Number, attempt: TaskAttempt) -> Echo:
        raise ZeroDivisionError("oops")

    with pytest.raises(ExecutionError, match="ZeroDivisionError: oops"):
        LocalEngine(2).run(task, [Number(0)], run_epoch=1)


def test_no_threads() -> None:
    with pytest.raises(ConfigError):
        LocalEngine(0)
