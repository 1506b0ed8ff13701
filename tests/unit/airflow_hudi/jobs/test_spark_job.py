from __future__ import annotations

import json
import logging
import os
import stat
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk import Connection

from airflow_hudi.jobs.spark_job import JobSettings, SparkJob, spark_target
from airflow_hudi.task_fate import failure_of
from hudi_core.errors import ConfigError
from hudi_core.request.results import BatchResult, Result
from hudi_core.storage.local import LocalStorage
from hudi_core.verbs.batch import BatchRequest, JobRequest
from hudi_core.verbs.request import RESULTS, Request, parse_request
from hudi_core.verbs.run import RunRequest
from hudi_health.verbs import PROBE_RESULTS, ProbeStoreRequest
from tests.support.fake_spark_submit import job_cache

REQUEST = RunRequest(
    "/data/my trips", "compaction", instant="20260102000000000", owner='a "quoted" owner', options={"hoodie.x": "1"}
)

FAKE_SUBMIT = """#!/bin/sh
for argument; do printf '%s\\n' "$argument"; done > "$FAKE_OUTPUT"
env > "$FAKE_OUTPUT.env"
for request; do :; done
[ -z "$FAKE_LINES" ] || printf '%b' "$FAKE_LINES"
if [ -n "$FAKE_RESULT" ]; then
  name=$(printf '%s' "$request" | sed 's/.*"result_name": "\\([^"][^"]*\\)".*/\\1/')
  mkdir -p "$FAKE_TABLE/$FAKE_RESULTS"
  printf '%s' "$FAKE_RESULT" > "$FAKE_TABLE/$FAKE_RESULTS/$name.json"
fi
exit "$FAKE_CODE"
"""


@pytest.fixture
def spark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """An environment whose spark-submit writes down its arguments."""
    binary = tmp_path / "bin" / "spark-submit"
    binary.parent.mkdir()
    binary.write_text(FAKE_SUBMIT)
    binary.chmod(binary.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("XDG_CACHE_HOME", str(job_cache()))
    monkeypatch.setenv(
        "AIRFLOW_CONN_SPARK_TEST",
        json.dumps({"conn_type": "spark", "host": "local[2]", "extra": {"deploy-mode": "client"}}),
    )
    found = {
        "PATH": f"{binary.parent}:{os.environ['PATH']}",
        "FAKE_OUTPUT": str(tmp_path / "arguments"),
        "FAKE_CODE": "0",
        "FAKE_TABLE": str(tmp_path),
        "FAKE_RESULTS": RESULTS,
    }
    for name, value in {**found, "FAKE_RESULT": "", "FAKE_LINES": ""}.items():
        monkeypatch.setenv(name, value)
    return found


def job_of(environ: dict[str, str], request: JobRequest = REQUEST, **changes: Any) -> SparkJob:
    """A job with this environment; in each table is what the stand-in puts there."""
    os.environ.update(environ)
    settings: dict[str, Any] = {
        "engine": "spark",
        "conn_id": "spark_test",
        "conf": {},
        "env_vars": {},
        "submit_kwargs": {},
        "grace_seconds": 1,
        "spark_log": False,
        "credentials": dict,
        "storage_of": lambda table: LocalStorage(environ["FAKE_TABLE"]),
    }
    return SparkJob(request, JobSettings(**{**settings, **changes}))


def submitted(environ: dict[str, str]) -> list[str]:
    return Path(environ["FAKE_OUTPUT"]).read_text().splitlines()


def test_the_job_is_what_the_connection_and_the_request_say(spark: dict[str, str]) -> None:
    more = {"archives": "env.tar.gz#env", "py_files": "extra.zip"}
    assert job_of(spark, conf={"spark.task.cpus": "1"}, submit_kwargs=more).run() == 0
    arguments = submitted(spark)
    options = dict(zip(arguments[:-3:2], arguments[1:-3:2], strict=True))
    assert options["--master"] == "local[2]"
    assert options["--deploy-mode"] == "client"
    assert options["--conf"] == "spark.task.cpus=1"
    assert options["--archives"] == "env.tar.gz#env"
    assert options["--name"] == "hudi-compaction-20260102000000000"
    job_zip, extra = options["--py-files"].split(",")
    assert Path(job_zip).is_file()
    assert extra == "extra.zip"
    application, flag, request = arguments[-3:]
    assert Path(application).name == "main.py"
    assert flag == "--request"
    assert parse_request(request) == REQUEST


def test_the_exit_code_is_the_jobs(spark: dict[str, str]) -> None:
    assert job_of({**spark, "FAKE_CODE": "3"}).run() == 3


def test_the_drivers_environment_is_set_in_client_mode(spark: dict[str, str]) -> None:
    job_of(spark, env_vars={"AWS_PROFILE": "hudi"}).run()
    assert "AWS_PROFILE=hudi" in Path(spark["FAKE_OUTPUT"] + ".env").read_text().splitlines()


def test_on_yarn_the_drivers_environment_goes_with_the_application(
    spark: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_TEST", json.dumps({"conn_type": "spark", "host": "yarn"}))
    job_of(spark, env_vars={"AWS_PROFILE": "hudi"}).run()
    assert "spark.yarn.appMasterEnv.AWS_PROFILE=hudi" in submitted(spark)


def test_a_secret_goes_by_the_environment_of_spark_submit_alone(
    spark: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_TEST", json.dumps({"conn_type": "spark", "host": "yarn"}))
    secret = {"AWS_SECRET_ACCESS_KEY": "hunter2", "AWS_PROFILE": "hudi"}
    job_of(spark, env_vars=secret).run()
    assert not [argument for argument in submitted(spark) if "hunter2" in argument]
    assert [argument for argument in submitted(spark) if argument.endswith("AWS_PROFILE=hudi")]
    assert "AWS_SECRET_ACCESS_KEY=hunter2" in Path(spark["FAKE_OUTPUT"] + ".env").read_text().splitlines()


@pytest.mark.parametrize("host", ["yarn", "k8s://https://cluster:6443"])
def test_a_secret_of_a_driver_in_the_cluster_is_refused(
    spark: dict[str, str], monkeypatch: pytest.MonkeyPatch, host: str
) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_TEST", json.dumps({"conn_type": "spark", "host": host}))
    secret = {"AWS_SECRET_ACCESS_KEY": "hunter2"}
    with pytest.raises(ConfigError, match=r"secretKeyRef.*keytab") as caught:
        job_of(spark, env_vars=secret, submit_kwargs={"deploy_mode": "cluster"}).run()
    assert "hunter2" not in str(caught.value)
    assert not Path(spark["FAKE_OUTPUT"]).exists()


def test_a_secret_in_conf_is_refused(spark: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match=r"conf must not hold secrets.*core-site") as caught:
        job_of(spark, conf={"spark.hadoop.fs.s3a.secret.key": "hunter2"})
    assert "hunter2" not in str(caught.value)


def test_the_operators_own_arguments_cannot_be_overridden(spark: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match="application_args"):
        job_of(spark, submit_kwargs={"application_args": []})


def test_a_stopped_job_is_not_started_again(spark: dict[str, str]) -> None:
    job = job_of(spark)
    job.stop()
    assert job.stopped
    assert job.run() != 0
    assert not Path(spark["FAKE_OUTPUT"]).exists()


def test_a_stop_while_the_submission_is_being_made_is_kept(
    spark: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Connections are looked up and the zip is built meanwhile, which takes seconds."""
    job = job_of(spark)
    make = job._make_hook

    def make_and_stop(request: JobRequest) -> Any:
        made = make(request)
        job.stop()
        return made

    monkeypatch.setattr(job, "_make_hook", make_and_stop)
    assert job.run() != 0
    assert not Path(spark["FAKE_OUTPUT"]).exists()


@pytest.mark.parametrize(
    ("fields", "master", "deploy_mode"),
    [
        ({"conn_type": "spark", "host": "local[2]"}, "local[2]", None),
        ({"conn_type": "spark", "host": "spark://master:7077"}, "spark://master:7077", None),
        ({"conn_type": "spark", "host": "spark://master", "port": 7077}, "spark://master:7077", None),
        ({"conn_type": "spark", "host": "master", "port": 7077}, "spark://master:7077", None),
        ({"conn_type": "k8s", "host": "https://cluster", "port": 443}, "k8s://https://cluster:443", None),
        ({"conn_type": "spark", "host": "yarn", "extra": '{"deploy-mode": "cluster"}'}, "yarn", "cluster"),
    ],
)
def test_the_target_is_the_one_that_the_spark_provider_reads(
    fields: dict[str, Any], master: str, deploy_mode: str | None
) -> None:
    found = spark_target(Connection(conn_id="x", **fields))
    assert (found.master, found.deploy_mode) == (master, deploy_mode)


@pytest.mark.parametrize(
    "fields",
    [{"conn_type": "spark", "host": "spark://m", "port": 7077}, {"conn_type": "spark", "host": "m", "port": 7077}],
)
def test_the_spark_provider_agrees(monkeypatch: pytest.MonkeyPatch, fields: dict[str, Any]) -> None:
    from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook

    monkeypatch.setenv("AIRFLOW_CONN_SPARK_TEST", json.dumps(fields))
    hook = SparkSubmitHook(conn_id="spark_test")
    # The one private name that jobs.spark_job reads: a new provider version that renames it must fail here.
    assert hook._submit_sp is None
    assert hook._connection["master"] == spark_target(Connection(conn_id="x", **fields)).master


CLUSTER = json.dumps({"conn_type": "spark", "host": "yarn", "extra": {"deploy-mode": "cluster"}})


def in_cluster(
    environ: dict[str, str], code: int, result: dict[str, Any] | None, request: Request = REQUEST
) -> tuple[int, SparkJob]:
    reported = "" if result is None else json.dumps(result)
    job = job_of({**environ, "FAKE_CODE": str(code), "FAKE_RESULT": reported}, request)
    return job.run(), job


def test_a_driver_in_the_cluster_tells_its_result_by_a_file(
    spark: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_TEST", CLUSTER)
    reported = {"version": 1, "instants": [], "reason": "no old files", "exit_code": 0}
    code, job = in_cluster(spark, 0, reported)
    assert (code, job.result, failure_of(job.result)) == (0, Result(reason="no old files"), None)
    first = parse_request(submitted(spark)[-1])
    assert first.result_name
    assert in_cluster(spark, 0, reported)[0] == 0
    assert parse_request(submitted(spark)[-1]).result_name != first.result_name


def test_a_probe_in_the_cluster_leaves_its_result_where_no_table_need_be(
    spark: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_TEST", CLUSTER)
    reported = {"version": 1, "document": {"can_carry_timeline": True}, "exit_code": 0}
    code, job = in_cluster({**spark, "FAKE_RESULTS": PROBE_RESULTS}, 0, reported, ProbeStoreRequest("/data"))
    assert (code, job.result) == (0, Result(document={"can_carry_timeline": True}))


def test_a_driver_in_the_cluster_tells_its_own_exit_code(
    spark: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_TEST", CLUSTER)
    busy = {
        "version": 1,
        "error": {"type": "ConflictError", "message": "busy", "path": None, "remedy": None},
        "exit_code": 3,
    }
    code, job = in_cluster(spark, 1, busy)
    assert (code, failure_of(job.result)) == (3, "busy")
    code, job = in_cluster(spark, 1, None)
    assert (code, job.result, failure_of(job.result)) == (1, None, None)


def test_the_result_of_a_batch_is_read_at_the_first_table_that_has_it(
    spark: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_TEST", CLUSTER)
    reported = {"version": 1, "results": [], "exit_code": 2}
    environ = {**spark, "FAKE_CODE": "1", "FAKE_RESULT": json.dumps(reported)}
    batch = BatchRequest(tuple(RunRequest(table, "clean") for table in ("no", "gone", "gone", "whole", "never")))
    asked: list[str] = []

    def storage_of(table: str) -> LocalStorage:
        asked.append(table)
        if table == "no":
            raise ConfigError("no storage library")
        return LocalStorage(environ["FAKE_TABLE"] + ("" if table == "whole" else "/gone"))

    job = job_of(environ, batch, storage_of=storage_of)
    assert (job.run(), job.result, asked) == (2, BatchResult(()), ["no", "gone", "whole"])
    lost = job_of({**environ, "FAKE_RESULT": ""}, batch, storage_of=storage_of)
    with pytest.raises(ConfigError, match="no storage library"):
        lost.run()


URL = "http://rm:8088/proxy/application_1700000000000_0042/"
LINES = {
    "local[2]": "26/11/24 01:30:14 INFO SparkContext: Running Spark version 3.5.3",
    "spark://master:7077": "26/11/24 01:30:14 INFO StandaloneSchedulerBackend: Connected to Spark cluster with app ID "
    "app-20261124013014-0007",
    "yarn": "26/11/24 01:30:14 INFO Client: Application report for application_1700000000000_0042 (state: RUNNING)\\n"
    f"\\t tracking URL: {URL}",
}
HOW = "1 lines of Spark's own log at INFO are left out of this log; spark_log=True, or [hudi] spark_log = True"


@pytest.mark.parametrize(
    ("host", "deploy_mode", "where"),
    [
        ("local[2]", "client", None),
        ("spark://master:7077", "client", "keeps the executors' logs (app-20261124013014-0007)"),
        (
            "yarn",
            "client",
            "keeps the executors' logs (application_1700000000000_0042, "
            "http://rm:8088/proxy/application_1700000000000_0042/)",
        ),
        ("yarn", "cluster", "keeps the driver's and the executors' logs (application_1700000000000_0042, http://rm:"),
    ],
)
def test_the_log_says_where_the_lines_are_that_it_lacks(
    spark: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    host: str,
    deploy_mode: str,
    where: str | None,
) -> None:
    connection = {"conn_type": "spark", "host": host, "extra": {"deploy-mode": deploy_mode}}
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_TEST", json.dumps(connection))
    with caplog.at_level(logging.INFO):
        environ = {**spark, "FAKE_LINES": LINES[host] + "\\n"}
        job = job_of(environ)
        job.run()
        assert job.tracking_url == (URL if host == "yarn" else None)
        job_of(environ, spark_log=True).run()
    quiet, *whole = [line for line in caplog.messages if "left out of" in line or "cluster manager" in line]
    assert quiet.startswith(HOW)
    assert (where or "") in quiet
    assert [line for line in whole if "left out" in line] == []
    assert len(whole) == (0 if where is None else 1)
