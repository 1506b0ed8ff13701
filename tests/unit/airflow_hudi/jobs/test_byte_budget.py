"""How the bytes of a task are shared among its runs."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_hudi.jobs.byte_budget import ByteBudget, not_started
from hudi_core.errors import ConfigError
from hudi_core.request.requests import RunRequest

SIZE = "airflow_hudi.plan.max.bytes"


def run(service: str = "compaction", table: str = "/t", **fields: Any) -> RunRequest:
    return RunRequest(table, service, all_pending=True, schedule=True, **fields)


def result(*sizes: int, service: str = "compaction", state: str = "completed", exit_code: int = 0) -> dict[str, Any]:
    instants = [{"instant": str(at), "state": state, "bytes_written": size} for at, size in enumerate(sizes)]
    return {"table": "/t", "service": service, "exit_code": exit_code, "instants": instants}


def test_what_is_left_is_shared_by_the_runs_that_rewrite() -> None:
    budget = ByteBudget.of("1KiB")
    taken = budget.bounded([run(), run("clean"), run("clustering", options={"a": "b"})], [result(24)])
    assert [item.options for item in taken] == [{SIZE: "500"}, {}, {"a": "b", SIZE: "500"}]
    # One instant each; other services do all of theirs.
    assert [item.all_pending for item in taken] == [False, True, False]
    assert [item.schedule for item in taken] == [True] * 3


@pytest.mark.parametrize(("given", "kept"), [("10", "10"), ("1000", "100"), ("much", "much")])
def test_a_smaller_budget_of_a_plan_stays(given: str, kept: str) -> None:
    (taken,) = ByteBudget(100).bounded([run(options={SIZE: given})], [])
    assert taken.options[SIZE] == kept


def test_nothing_is_started_when_the_bytes_are_spent() -> None:
    budget, spent = ByteBudget(100), [result(60), result(40, service="log_compaction"), result(99, service="clean")]
    assert budget.left(spent) == 0
    assert budget.left(spent[1:]) == 60
    assert [budget.refuses(run(name), spent) for name in ("compaction", "clustering", "clean")] == [True, True, False]
    assert not budget.refuses(run(), spent[1:])
    assert not_started(run())["reason"] == "the bytes that the task may rewrite are spent (max_bytes)"


def test_a_run_goes_on_that_did_something() -> None:
    budget = ByteBudget(100)
    assert budget.goes_on(run(), result(1), 10.0)
    for found in (result(), result(1, exit_code=1), result(0, state="removed")):
        assert not budget.goes_on(run(), found, 10.0)
    assert not budget.goes_on(run("clean"), result(1), 10.0)
    # The minutes of its policy are those of all rounds.
    assert budget.goes_on(run(max_minutes=1), result(1), 59.0)
    assert not budget.goes_on(run(max_minutes=1), result(1), 60.0)


@pytest.mark.parametrize("given", [None, "", " "])
def test_no_budget_changes_nothing(given: str | None) -> None:
    budget = ByteBudget.of(given)
    assert budget.bounded([run()], [result(10**15)]) == (run(),)
    assert not budget.refuses(run(), [result(10**15)])
    assert not budget.goes_on(run(), result(1), 0.0)


@pytest.mark.parametrize("given", ["-1", "0", 0, "50 gigs"])
def test_what_is_no_budget_is_refused(given: str | int) -> None:
    with pytest.raises(ConfigError, match=r"max_bytes.*50GiB"):
        ByteBudget.of(given)
