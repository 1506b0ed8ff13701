"""What is looked at, done beside the task, or submitted."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowNotFoundException

from airflow_hudi.jobs import engine_job
from airflow_hudi.jobs.engine_job import EngineJob
from airflow_hudi.jobs.spark_job import JobSettings
from airflow_hudi.task_fate import failure_of
from hudi_core.config.engine_config import Mode
from hudi_core.errors import ConfigError
from hudi_core.request.results import BatchResult, JobResult, Result, job_result_from_json
from hudi_core.storage.local import LocalStorage
from hudi_core.verbs.batch import BatchRequest, JobRequest
from hudi_core.verbs.metadata import MetadataUpdateRequest
from hudi_core.verbs.run import RunRequest
from hudi_submit import local_process

REQUEST = RunRequest("a", "clean", schedule=True)
BATCH = BatchRequest(tuple(RunRequest(table, "clean") for table in "abc"))
DONE: dict[str, Any] = {"version": 1, "instants": [], "engine": "local"}
SUBMIT = {"version": 1, "submit": "there is work"}


def typed(reported: dict[str, Any] | None, code: int) -> JobResult | None:
    return None if reported is None else job_result_from_json(reported, code)


def items_of(job: EngineJob) -> list[dict[str, Any]]:
    """The items of the result line of a batch."""
    assert isinstance(job.result, BatchResult)
    return [item.to_json() for item in job.result.items]


@dataclass
class Spark:
    """Stands for SparkJob."""

    code: int = 0
    reported: dict[str, Any] | None = field(default_factory=lambda: {"version": 1, "instants": [], "engine": "spark"})
    jobs: list[JobRequest] = field(default_factory=list)
    stopped: bool = False
    tracking_url: str | None = "http://cluster/application_1_1"
    raises: Exception | None = None

    @property
    def result(self) -> JobResult | None:
        return typed(self.reported, self.code)

    def __call__(self, job: JobRequest, settings: JobSettings) -> Spark:
        self.jobs.append(job)
        return self

    def run(self) -> int:
        if self.raises is not None:
            raise self.raises
        return self.code

    def stop(self) -> None:
        self.stopped = True


class SparkOfBatches(Spark):
    """Stands for jobs that report each run of a batch, but for the second one, which is lost."""

    def run(self) -> int:
        job = self.jobs[-1]
        assert isinstance(job, BatchRequest)
        self.reported = {"results": [{"table": item.table, "exit_code": 0, "instants": []} for item in job.requests]}
        if len(self.jobs) == 2:
            self.reported = None
            return 137
        return 0


@dataclass
class Local:
    """Stands for LocalProcess."""

    code: int = 0
    reported: dict[str, Any] | None = None
    calls: list[tuple[JobRequest, Mode]] = field(default_factory=list)
    stops: EngineJob | None = None
    tracking_url: str | None = None

    @property
    def result(self) -> JobResult | None:
        return typed(self.reported, self.code)

    def __call__(self, job: JobRequest, mode: Mode, settings: JobSettings, log: Any) -> Local:
        self.calls.append((job, mode))
        return self

    def run(self) -> int:
        if self.stops is not None:
            self.stops.stop()
        return self.code

    def stop(self) -> None:
        pass


def job_of(
    local: Local,
    spark: Spark,
    monkeypatch: pytest.MonkeyPatch,
    *,
    engine: str = "spark",
    looks: bool = True,
    job: JobRequest = REQUEST,
) -> EngineJob:
    monkeypatch.setattr(engine_job, "LocalProcess", local)
    monkeypatch.setattr(engine_job, "SparkJob", spark)
    settings = JobSettings({}, 20, dict, engine, "spark_test", {}, {}, False, LocalStorage)
    return EngineJob(job, settings, logging.getLogger("task"), looks=looks)


@pytest.mark.parametrize(
    ("engine", "looks", "mode"),
    [("spark", True, "look"), ("spark", False, None), ("auto", False, "auto"), ("local", True, "local")],
)
def test_the_engine_says_what_the_process_does(
    engine: str, looks: bool, mode: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    local, spark = Local(reported=DONE), Spark()
    job = job_of(local, spark, monkeypatch, engine=engine, looks=looks)
    assert job.run() == 0
    assert [call[1].value for call in local.calls] == ([] if mode is None else [mode])
    assert job.result == (Result(engine="local") if mode else spark.result)
    assert spark.jobs == ([] if mode else [REQUEST])


def test_a_job_says_what_it_does(monkeypatch: pytest.MonkeyPatch) -> None:
    for job, subject in (
        (REQUEST, "run clean of a"),
        (BATCH, "run clean of a and 2 more runs"),
        (MetadataUpdateRequest("a"), "metadata update of a"),
    ):
        assert job_of(Local(), Spark(), monkeypatch, job=job).subject == subject


def test_what_the_process_leaves_is_submitted(monkeypatch: pytest.MonkeyPatch) -> None:
    spark = Spark(code=3, reported={"version": 1, "error": {"type": "ConflictError", "message": "busy"}})
    job = job_of(Local(reported=SUBMIT), spark, monkeypatch)
    assert job.run() == 3
    assert spark.jobs == [REQUEST]
    assert (failure_of(job.result), job.tracking_url) == ("busy", spark.tracking_url)


def test_an_error_of_the_look_ends_the_job(monkeypatch: pytest.MonkeyPatch) -> None:
    spark = Spark()
    refused = {"version": 1, "error": {"type": "ConfigError", "message": "no"}}
    job = job_of(Local(code=2, reported=refused), spark, monkeypatch)
    assert (job.run(), failure_of(job.result), spark.jobs, job.tracking_url) == (2, "no", [], None)


@pytest.mark.parametrize(("engine", "code", "submitted"), [("spark", 0, [REQUEST]), ("auto", 1, []), ("local", 1, [])])
def test_a_process_without_a_report_fails_the_job_unless_it_only_looked(
    engine: str, code: int, submitted: list[JobRequest], monkeypatch: pytest.MonkeyPatch
) -> None:
    spark = Spark()
    job = job_of(Local(code=0, reported=None), spark, monkeypatch, engine=engine)
    assert (job.run(), spark.jobs) == (code, submitted)


def test_a_stop_during_the_look_submits_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    local, spark = Local(reported=SUBMIT), Spark()
    job = local.stops = job_of(local, spark, monkeypatch)
    assert job.run() != 0
    assert (job.stopped, spark.jobs) == (True, [])


def test_a_stop_before_the_submit_reaches_it(monkeypatch: pytest.MonkeyPatch) -> None:
    spark = Spark()
    job = job_of(Local(), spark, monkeypatch, looks=False)
    job.stop()
    job.run()
    assert spark.stopped


def test_of_a_batch_only_what_is_left_is_submitted_and_results_keep_their_order(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    local = Local(
        reported={
            "results": [
                {"table": "a", "exit_code": 0, "submit": "large"},
                {"table": "b", "exit_code": 2, "error": {"type": "ConfigError", "message": "no"}},
                {"table": "c", "exit_code": 0, "submit": "large"},
            ]
        }
    )
    spark = Spark(
        code=1,
        reported={
            "results": [
                {"table": "a", "exit_code": 0, "instants": [], "engine": "spark"},
                {"table": "c", "exit_code": 1, "error": {"type": "ExecutionError", "message": "lost"}},
            ]
        },
    )
    job = job_of(local, spark, monkeypatch, engine="auto", job=BATCH)
    assert job.run() == 1
    assert spark.jobs == [BatchRequest((BATCH.requests[0], BATCH.requests[2]))]
    found = items_of(job)
    assert [(item["table"], item["service"], item["exit_code"]) for item in found] == [
        ("a", "clean", 0),
        ("b", "clean", 2),
        ("c", "clean", 1),
    ]
    assert [item.get("engine") or item["error"]["type"] for item in found] == ["spark", "ConfigError", "ExecutionError"]


@pytest.mark.parametrize(
    ("code", "result", "expected"),
    [
        (0, None, (1, "out of reach")),
        (137, None, (137, "exit code 137")),
        (2, {"error": {"type": "ConfigError", "message": "no Java"}}, (2, "no Java")),
    ],
)
def test_a_batch_whose_result_is_lost_says_so_for_each(
    code: int, result: dict[str, Any] | None, expected: tuple[int, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    left = [{"table": table, "exit_code": 0, "submit": "large"} for table in "abc"]
    job = job_of(Local(reported={"results": left}), Spark(code=code, reported=result), monkeypatch, job=BATCH)
    assert job.run() == expected[0]
    for item in items_of(job):
        assert item["exit_code"] == expected[0]
        assert expected[1] in item["error"]["message"]


def instant(name: str) -> dict[str, Any]:
    return {"instant": name, "action": "commit", "state": "completed", "bytes_written": 30}


def names_in(item: dict[str, Any]) -> list[str]:
    return [instant["instant"] for instant in item["instants"]]


def test_what_the_process_did_before_it_left_the_rest_is_in_the_result(monkeypatch: pytest.MonkeyPatch) -> None:
    """And its minutes and bytes are gone from those of the job."""
    run = RunRequest("a", "compaction", schedule=True, all_pending=True, max_minutes=5, max_bytes=100)
    monkeypatch.setattr("airflow_hudi.jobs.engine_job.time.time", lambda: 1000.0)
    left = {**DONE, "instants": [instant("1")], "submit": "large"}
    spark = Spark(reported={"version": 1, "instants": [instant("2")], "engine": "spark"})
    job = job_of(Local(reported=left), spark, monkeypatch, engine="auto", job=run)
    assert job.run() == 0
    rest = replace(run, max_minutes=None, starts_until=1300, max_bytes=70)
    assert spark.jobs == [rest]
    assert isinstance(job.result, Result)
    assert ([done.instant for done in job.result.instants], job.result.engine) == (["1", "2"], "spark")

    batch = BatchRequest((run, replace(run, table="b")))
    results = [{"table": "a", "exit_code": 0, **left}, {"table": "b", "exit_code": 0, "submit": "large"}]
    nothing = {"exit_code": 0, "instants": [], "reason": "its time is over"}
    spark = Spark(reported={"results": [{"table": "a", **nothing}, {"table": "b", **nothing}]})
    job = job_of(Local(reported={"results": results}), spark, monkeypatch, engine="auto", job=batch)
    assert job.run() == 0
    assert spark.jobs == [BatchRequest((rest, batch.requests[1]))]
    first, second = items_of(job)
    assert (names_in(first), first["engine"], "reason" in first) == (["1"], "local", False)
    assert second["reason"] == "its time is over"
    lost = job_of(
        Local(reported={"results": results}), Spark(code=1, reported=None), monkeypatch, engine="auto", job=batch
    )
    assert lost.run() == 1
    assert names_in(items_of(lost)[0]) == ["1"]
    assert [item["error"]["type"] for item in items_of(lost)] == ["HudiJobFailed"] * 2


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (ConfigError("no Java"), (2, "ConfigError", "no Java")),
        (AirflowNotFoundException("spark_default isn't defined"), (2, "AirflowNotFoundException", "isn't defined")),
        (OSError("no space left"), (1, "OSError", "no space left")),
    ],
)
def test_what_was_done_beside_the_task_is_reported_though_spark_cannot_be_started(
    error: Exception, expected: tuple[int, str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    code, kind, message = expected
    left = [{"table": table, "exit_code": 0, "submit": "large"} for table in "ac"]
    results = [left[0], {"table": "b", **DONE, "exit_code": 0}, left[1]]
    job = job_of(Local(reported={"results": results}), Spark(raises=error), monkeypatch, engine="auto", job=BATCH)
    assert job.run() == code
    items = items_of(job)
    assert [item["exit_code"] for item in items] == [code, 0, code]
    assert items[1]["engine"] == "local"
    for item in items[::2]:
        assert (item["error"]["type"], message in item["error"]["message"]) == (kind, True)


@pytest.mark.parametrize("looks", [True, False])
def test_a_batch_that_is_longer_than_an_argument_is_several_jobs(looks: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """One after the other; that one is lost takes the results of no other."""
    long = tuple(replace(REQUEST, table=table, options={"hoodie.x": table * 50_000}) for table in "abcde")
    left = [{"table": item.table, "exit_code": 0, "submit": "large"} for item in long]
    spark = SparkOfBatches()
    local = Local(reported={"results": left})
    job = job_of(local, spark, monkeypatch, looks=looks, job=BatchRequest(long, at_once=2))
    assert job.run() == 137
    parts = [[item.table for item in part.requests] for part in spark.jobs if isinstance(part, BatchRequest)]
    assert parts == [["a", "b"], ["c"], ["d", "e"]]
    assert {part.at_once for part in spark.jobs if isinstance(part, BatchRequest)} == {2}
    found = [(item["table"], item["exit_code"]) for item in items_of(job)]
    assert found == [("a", 0), ("b", 0), ("c", 137), ("d", 0), ("e", 0)]


def test_without_wheels_spark_does_not_look_and_local_is_refused(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    local, spark = Local(reported=DONE), Spark()
    monkeypatch.setattr(engine_job, "missing_wheels", lambda: ["pyarrow"])
    monkeypatch.setattr(local_process, "missing_wheels", lambda: ["pyarrow"])
    with caplog.at_level(logging.INFO):
        for engine in ("spark", "auto"):
            job_of(local, spark, monkeypatch, engine=engine).run()
    assert (len(spark.jobs), local.calls) == (2, [])
    assert "airflow-hudi-engine" in caplog.text
    with pytest.raises(ConfigError, match="local engine cannot run"):
        job_of(local, spark, monkeypatch, engine="local")
    with pytest.raises(ConfigError, match="one of spark, auto, local"):
        job_of(local, spark, monkeypatch, engine="flink")
