"""How the bytes of a task are shared among its runs."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_hudi.jobs.rounds import ByteBudget, next_round, not_started
from hudi_core.errors import ConfigError
from hudi_core.verbs.run import RunRequest


def run(service: str = "compaction", table: str = "/t", **fields: Any) -> RunRequest:
    return RunRequest(table, service, all_pending=True, schedule=True, **fields)


def result(*sizes: int, service: str = "compaction", exit_code: int = 0) -> dict[str, Any]:
    instants = [{"instant": str(at), "state": "completed", "bytes_written": size} for at, size in enumerate(sizes)]
    return {"table": "/t", "service": service, "exit_code": exit_code, "instants": instants}


def test_what_is_left_is_shared_by_the_runs_that_rewrite() -> None:
    given = (run(), run("clean"), run("clustering", options={"airflow_hudi.plan.max.bytes": "7"}))
    taken = ByteBudget.of("1KiB").bounded(given, [result(24)])
    assert [item.max_bytes for item in taken] == [500, None, 500]
    assert [(item.all_pending, item.options) for item in taken] == [(True, item.options) for item in given]
    # What failed is run though nothing is left.
    assert ByteBudget(24).bounded([run()], [result(24)])[0].max_bytes == 1


def test_nothing_is_started_when_the_bytes_are_spent() -> None:
    budget, spent = ByteBudget(100), [result(60), result(40, service="log_compaction"), result(99, service="clean")]
    assert budget.left(spent) == 0
    assert budget.left(spent[1:]) == 60
    services = ("compaction", "clustering", "clean")
    assert [budget.refuses(run(name), None, spent) for name in services] == [True, True, False]
    assert budget.refuses(run(), result(60), spent)
    assert not budget.refuses(run(), None, spent[1:])
    assert not_started(run())["reason"] == "the bytes that the task may rewrite are spent (max_bytes)"


@pytest.mark.parametrize("code", [1, 2, 3])
def test_what_failed_or_was_held_is_not_refused(code: int) -> None:
    """The task would succeed without it."""
    assert not ByteBudget(100).refuses(run(), result(exit_code=code), [result(100)])


def test_a_run_that_wrote_its_share_has_another_round(monkeypatch: pytest.MonkeyPatch) -> None:
    given = run(max_bytes=100)
    assert next_round(given, result(60, 40), 0.0) == given
    assert next_round(given, result(60, 39), 0.0) is None
    assert next_round(given, result(100, exit_code=1), 0.0) is None
    assert next_round(run("clean"), result(100), 0.0) is None
    # The minutes of its policy are those of all rounds.
    monkeypatch.setattr("airflow_hudi.jobs.rounds.time.time", lambda: 1059.0)
    until = {1060: run(max_bytes=1, max_minutes=1, starts_until=2000), 1070: run(max_bytes=1, starts_until=1070)}
    for end, request in until.items():
        again = next_round(request, result(1), 1000.0)
        assert again is not None
        assert (again.max_minutes, again.starts_until) == (None, end)
    monkeypatch.setattr("airflow_hudi.jobs.rounds.time.time", lambda: 1060.0)
    assert next_round(run(max_bytes=1, max_minutes=1), result(1), 1000.0) is None


@pytest.mark.parametrize("given", [None, "", " "])
def test_no_budget_changes_nothing(given: str | None) -> None:
    budget = ByteBudget.of(given)
    assert budget.bounded([run()], [result(10**15)]) == (run(),)
    assert not budget.refuses(run(), None, [result(10**15)])
    assert next_round(run(), result(1), 0.0) is None


@pytest.mark.parametrize("given", ["-1", "0", 0, "50 gigs"])
def test_what_is_no_budget_is_refused(given: str | int) -> None:
    with pytest.raises(ConfigError, match=r"max_bytes.*50GiB"):
        ByteBudget.of(given)
