"""The requests of a job, one after the other and side by side."""

from __future__ import annotations

import signal
import threading
import time
from dataclasses import replace
from typing import Any

import pytest

from hudi_core.errors import ConfigError
from hudi_core.request.results import BatchResult, JobResult, Result
from hudi_core.transaction.heartbeat_thread import pause
from hudi_core.verbs.batch import BatchRequest, InterruptedBatchError, interrupted, result_of, run_job
from hudi_core.verbs.request import Request
from hudi_core.verbs.run import RunRequest

REQUESTS = tuple(RunRequest(table, service) for table in ("a", "b", "c") for service in ("compaction", "clean"))


def items_of(whole: JobResult) -> list[dict[str, Any]]:
    assert isinstance(whole, BatchResult)
    return [item.to_dict() for item in whole.items]


def test_a_tables_requests_keep_their_order_and_no_failure_stops_another() -> None:
    seen: list[tuple[str, str]] = []

    def run(request: Request) -> Result:
        assert isinstance(request, RunRequest)
        seen.append((request.table, request.service))

        def work() -> Result:
            if request.table == "b":
                raise ConfigError(f"{request.service} of b")
            return Result((), f"nothing in {request.table}")

        return result_of(work, request)

    whole = run_job(BatchRequest(REQUESTS, at_once=3), run)
    assert [item["exit_code"] for item in items_of(whole)] == [0, 0, 2, 2, 0, 0]
    assert whole.exit_code == 2
    for table in "abc":
        assert [service for name, service in seen if name == table] == ["compaction", "clean"]


@pytest.mark.parametrize("at_once", [1, 2])
def test_so_many_tables_run_side_by_side(at_once: int) -> None:
    lock, running, most = threading.Lock(), set[str](), [0]
    meet = threading.Barrier(at_once, timeout=20)

    def run(request: Request) -> Result:
        with lock:
            assert request.table not in running
            running.add(request.table)
            most[0] = max(most[0], len(running))
        meet.wait()
        with lock:
            running.remove(request.table)
        return Result()

    run_job(BatchRequest(REQUESTS[:4], at_once=at_once), run)
    assert most == [at_once]


def test_an_interruption_passes_and_starts_no_more() -> None:
    seen: list[Request] = []

    def run(request: Request) -> Result:
        seen.append(request)
        if len(seen) == 3:
            raise KeyboardInterrupt
        return Result((), "nothing")

    with pytest.raises(InterruptedBatchError) as stopped:
        run_job(BatchRequest(REQUESTS, at_once=1), run)
    assert len(seen) == 3
    whole = interrupted(stopped.value, 143)
    assert (whole.exit_code, whole.to_json()["error"]["type"]) == (143, "Interrupted")
    results = items_of(whole)
    assert [item["exit_code"] for item in results] == [0, 0, 143, 143, 143, 143]
    assert [item.get("reason") or item["error"]["type"] for item in results] == ["nothing"] * 2 + ["Interrupted"] * 4
    assert [item["table"] for item in results] == [request.table for request in REQUESTS]


def test_an_interruption_of_one_request_is_its_error() -> None:
    def run(request: Request) -> Result:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as stopped:
        run_job(REQUESTS[0], run)
    document = interrupted(stopped.value, 130).to_json()
    assert (document["error"]["type"], "results" in document) == ("Interrupted", False)


def test_an_interruption_of_tables_side_by_side_starts_no_more() -> None:
    """It reaches the thread that waits for the others, which go on with what they do, and end what they wait for."""
    seen: list[Request] = []
    met = threading.Barrier(3, timeout=60)
    arrived = threading.Event()

    def run(request: Request) -> Result:
        seen.append(request)
        if len(seen) <= 2:
            met.wait()
            arrived.wait(60)
            time.sleep(0.5)
        if request.table == "b":
            pause(60)
        return Result()

    def interrupt() -> None:
        met.wait()
        # One that comes right before the thread waits for a lock does not end the wait.
        while not arrived.wait(0.1):
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    def handle(*_: object) -> None:
        if not arrived.is_set():
            arrived.set()
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, handle)
    threading.Thread(target=interrupt, daemon=True).start()
    try:
        with pytest.raises(InterruptedBatchError) as stopped:
            run_job(BatchRequest(REQUESTS[:4], at_once=2), run)
    finally:
        signal.signal(signal.SIGINT, before)
    assert sorted(request.table for request in seen) == ["a", "b"]
    results = items_of(interrupted(stopped.value, 130))
    assert [item["exit_code"] for item in results] == [0, 130, 130, 130]


@pytest.mark.parametrize("at_once", [1, 2])
def test_nothing_is_started_after_its_time(at_once: int) -> None:
    late = [replace(request, starts_until=int(time.time())) for request in REQUESTS[:2]]
    early = replace(REQUESTS[2], starts_until=int(time.time()) + 1000)
    seen: list[Request] = []

    def run(request: Request) -> Result:
        seen.append(request)
        return Result((), "nothing")

    whole = run_job(BatchRequest((*late, early), at_once=at_once), run)
    assert seen == [early]
    reasons = [item["reason"] for item in items_of(whole)]
    assert reasons == ["the time until which work may be started is over"] * 2 + ["nothing"]
    assert "is over" in run_job(late[0], run).to_json()["reason"]


def test_a_defect_is_a_result() -> None:
    def broken() -> Result:
        raise ZeroDivisionError("by zero")

    result = result_of(broken, REQUESTS[0])
    assert (result.exit_code, result.to_json()["error"]["type"]) == (1, "ZeroDivisionError")


def test_a_request_alone_has_its_own_result() -> None:
    assert run_job(REQUESTS[0], lambda request: Result((), "nothing")) == Result((), "nothing")
