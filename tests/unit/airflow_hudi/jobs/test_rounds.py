"""The runs of a task of many tables, by jobs that report what they are told to."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_hudi.jobs.rounds import ByteBudget, Rounds, has_done, is_held, shown
from airflow_hudi.jobs.task_store import TaskStore
from airflow_hudi.jobs.waiting import Patience
from airflow_hudi.task_fate import HudiInputRefused, HudiJobFailed, HudiJobKilled
from hudi_core.errors import ConfigError, ConflictError
from hudi_core.request.results import BatchResult, InstantResult, JobResult, Result
from hudi_core.verbs.batch import BatchRequest, batch_result
from hudi_core.verbs.run import RunRequest
from tests.support.fake_spark_submit import Store

REQUESTS = [RunRequest(table, "compaction", all_pending=True, schedule=True) for table in ("/a", "/b")]
AT_ONCE = Patience(poll_interval=0, timeout=60)
BUSY = Result.of_error(ConflictError("run by x"))


def compacted(name: str, size: int = 10) -> Result:
    return Result((InstantResult(name, "compaction", "completed", bytes_written=size),), engine="local")


class Jobs:
    """Makes jobs, each with the results of one round, in the order of its requests."""

    subject = "run"

    def __init__(self, *rounds: list[Result] | None, code: int = 0) -> None:
        self._rounds = list(rounds)
        self._code = code
        self.asked: list[list[str]] = []
        self.stopped = False
        self.result: JobResult | None = None

    def __call__(self, requests: tuple[RunRequest, ...]) -> Jobs:
        self.asked.append([request.table for request in requests])
        results = self._rounds.pop(0)
        self.result = None if results is None else batch_result(BatchRequest(requests), results)
        return self

    def run(self) -> int:
        return self.result.exit_code if isinstance(self.result, BatchResult) else self._code


def run(jobs: Jobs, store: Any = None, most: int | None = None, patience: Patience = AT_ONCE) -> list[dict[str, Any]]:
    return Rounds(REQUESTS, ByteBudget(most), TaskStore(store)).run(jobs, patience)


def instants(result: dict[str, Any]) -> list[str]:
    return [instant["instant"] for instant in result["instants"]]


def test_what_others_hold_is_run_again_alone() -> None:
    jobs = Jobs([BUSY, compacted("1")], [compacted("2")])
    results = run(jobs)
    assert jobs.asked == [["/a", "/b"], ["/a"]]
    assert [(item["table"], instants(item)) for item in results] == [("/a", ["2"]), ("/b", ["1"])]


def test_what_is_held_for_too_long_is_a_result() -> None:
    busy, done = run(Jobs([BUSY, compacted("1")]), patience=Patience(timeout=0))
    assert (is_held(busy), shown(busy)) == (True, "run by x")
    assert (is_held(done), has_done(done)) == (False, True)


def test_a_retry_has_what_an_earlier_try_completed() -> None:
    store = Store()
    failed = Result.of_error(ConfigError("no"))
    run(Jobs([compacted("1"), failed]), store)
    first, second = run(Jobs([Result(reason="nothing is due"), compacted("2")]), store)
    assert (instants(first), first["instants"][0]["already_completed"]) == (["1"], True)
    assert instants(second) == ["2"]


def test_bytes_that_some_left_are_for_another_round() -> None:
    jobs = Jobs([compacted("1", 50), Result(reason="nothing is due")], [compacted("2", 50)])
    first, _ = run(jobs, most=100)
    assert jobs.asked == [["/a", "/b"], ["/a"]]
    assert instants(first) == ["1", "2"]


@pytest.mark.parametrize(("code", "error"), [(2, HudiInputRefused), (1, HudiJobFailed), (0, HudiJobFailed)])
def test_a_job_without_a_result_fails_the_task(code: int, error: type[Exception]) -> None:
    with pytest.raises(error):
        run(Jobs(None, code=code))


def test_a_stopped_task_is_killed() -> None:
    jobs = Jobs([compacted("1"), compacted("2")])
    jobs.stopped = True
    with pytest.raises(HudiJobKilled):
        run(jobs)
