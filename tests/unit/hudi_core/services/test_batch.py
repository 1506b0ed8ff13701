"""The requests of a job, one after the other and side by side."""

from __future__ import annotations

import threading

import pytest

from hudi_core.errors import ConfigError
from hudi_core.request.batch import BatchRequest
from hudi_core.request.outcome import Outcome
from hudi_core.request.requests import Request, RunRequest
from hudi_core.request.results import RunResult
from hudi_core.services.batch import interrupted, outcome_of, run_job

REQUESTS = tuple(RunRequest(table, service) for table in ("a", "b", "c") for service in ("compaction", "clean"))


def test_a_tables_requests_keep_their_order_and_no_failure_stops_another() -> None:
    seen: list[tuple[str, str]] = []

    def run(request: Request) -> Outcome:
        assert isinstance(request, RunRequest)
        seen.append((request.table, request.service))

        def work() -> RunResult:
            if request.table == "b":
                raise ConfigError(f"{request.service} of b")
            return RunResult((), f"nothing in {request.table}")

        return outcome_of(work, request)

    whole = run_job(BatchRequest(REQUESTS, at_once=3), run)
    assert [item["exit_code"] for item in whole.document["results"]] == [0, 0, 2, 2, 0, 0]
    assert whole.exit_code == 2
    for table in "abc":
        assert [service for name, service in seen if name == table] == ["compaction", "clean"]


@pytest.mark.parametrize("at_once", [1, 2])
def test_so_many_tables_run_side_by_side(at_once: int) -> None:
    lock, running, most = threading.Lock(), set[str](), [0]
    meet = threading.Barrier(at_once, timeout=20)

    def run(request: Request) -> Outcome:
        with lock:
            assert request.table not in running
            running.add(request.table)
            most[0] = max(most[0], len(running))
        meet.wait()
        with lock:
            running.remove(request.table)
        return Outcome({}, 0)

    run_job(BatchRequest(REQUESTS[:4], at_once=at_once), run)
    assert most == [at_once]


def test_an_interruption_passes_and_starts_no_more() -> None:
    seen: list[Request] = []

    def run(request: Request) -> Outcome:
        seen.append(request)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_job(BatchRequest(REQUESTS, at_once=1), run)
    assert len(seen) == 1
    assert interrupted(143).document["error"]["type"] == "Interrupted"


def test_a_defect_is_an_outcome() -> None:
    def broken() -> RunResult:
        raise ZeroDivisionError("by zero")

    outcome = outcome_of(broken, REQUESTS[0])
    assert (outcome.exit_code, outcome.document["error"]["type"]) == (1, "ZeroDivisionError")


def test_a_request_alone_has_its_own_document() -> None:
    assert run_job(REQUESTS[0], lambda request: Outcome({"instants": []}, 0)).document == {"instants": []}
