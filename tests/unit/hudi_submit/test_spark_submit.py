"""The request as an argument: the same request comes out of it, also behind YARN; and the environments."""

from __future__ import annotations

import json
import stat
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from hudi_core.errors import ConfigError
from hudi_core.verbs.batch import BatchRequest, JobRequest, parse_job
from hudi_core.verbs.run import RunRequest, ScheduleRequest
from hudi_core.verbs.write import DeletePartitionRequest
from hudi_health.verbs import DoctorRequest
from hudi_submit.spark_submit import (
    LONGEST_ARGUMENT,
    SparkTarget,
    application_name,
    job_environment,
    parts_of,
    request_argument,
)

LOCAL = SparkTarget("local[2]", "client")

RUN = RunRequest("s3://lake/my trips", "compaction", when={"commits": "5"}, options={"hoodie.x": "1"})
HARD = replace(
    RUN,
    owner='it\'s "a" `b` $HOME ${HOME} $(true) \\ \\\\ \\" \\u0022 \n\t!x {} æ',
    options={"hoodie.a": 'ends in "', "hoodie.b": "ends in \\", "hoodie.c": "{a{b}"},
)
JOBS = [RUN, HARD, BatchRequest((RUN, HARD, replace(RUN, table="s3://lake/fares")), at_once=2)]


def behind_yarn(argument: str) -> str:
    """What a driver in YARN's cluster mode gets: quoted as by Spark (YarnSparkHadoopUtil.escapeForShell), expanded as
    by the node manager (ContainerLaunch.expandEnvironment), and run as its launch script does.
    """
    quoted = "".join({"$": "\\$", '"': '\\"', "'": "'\\''"}.get(letter, letter) for letter in argument)
    expanded = f"printf %s '{quoted}'".replace("{{", "$").replace("}}", "")
    script = f'exec /bin/bash -c "{expanded}"\n'
    return subprocess.run(["bash", "-s"], input=script, capture_output=True, text=True, check=False).stdout


@pytest.mark.parametrize("job", JOBS)
def test_the_same_request_comes_out_of_it(job: JobRequest) -> None:
    text = request_argument(job)
    assert parse_job(text) == job
    assert json.loads(text) == json.loads(job.to_json())


@pytest.mark.parametrize("job", JOBS)
def test_yarn_leaves_it_as_it_is(job: JobRequest) -> None:
    text = request_argument(job)
    assert behind_yarn(text) == text


@pytest.mark.parametrize("job", [replace(RUN, when={}), *JOBS])
def test_yarn_would_spoil_the_request_as_it_is_written_elsewhere(job: JobRequest) -> None:
    with pytest.raises(ConfigError, match="not JSON"):
        parse_job(behind_yarn(job.to_json()))


def test_what_is_longer_than_an_argument_is_refused() -> None:
    size = len(request_argument(RUN))
    assert request_argument(RUN, longest=size)
    with pytest.raises(
        ConfigError, match=f"1 runs is longer than an argument can be: {size} bytes, {size - 1} at most"
    ):
        request_argument(RUN, longest=size - 1)


def test_a_batch_of_any_size_is_cut_into_arguments() -> None:
    services = ("compaction", "clean", "archive")
    whole = BatchRequest(
        tuple(RunRequest(f"s3://lake/t{at}", name) for at in range(1000) for name in services), at_once=7
    )
    parts = [*parts_of(whole)]
    assert len(parts) > 1
    assert tuple(request for part in parts for request in part.requests) == whole.requests
    assert {part.at_once for part in parts} == {7}
    assert all(len(request_argument(replace(part, result_name="f" * 32))) <= LONGEST_ARGUMENT for part in parts)
    small = replace(whole, requests=whole.requests[:3])
    assert [*parts_of(small)] == [small]
    huge = replace(RUN, options={"hoodie.x": "x" * LONGEST_ARGUMENT})
    assert [len(part.requests) for part in parts_of(BatchRequest((RUN, huge, RUN)))] == [1, 1, 1]


@pytest.mark.parametrize(
    ("job", "name"),
    [
        (RUN, "hudi-compaction"),
        (replace(RUN, when={}, instant="20260102000000000"), "hudi-compaction-20260102000000000"),
        (ScheduleRequest("/t", "log_compaction"), "hudi-schedule-log_compaction"),
        (DoctorRequest("/t"), "hudi-doctor"),
        (DeletePartitionRequest("/t", partitions=("a=1",)), "hudi-delete_partition"),
        (BatchRequest((RUN, RUN, HARD)), "hudi-1-tables"),
    ],
)
def test_the_name_says_what_is_done(job: JobRequest, name: str) -> None:
    assert application_name(job) == name


class TestJobEnvironment:
    def test_pips_spark_submit_gets_its_environment(self) -> None:
        found = job_environment(LOCAL, {"PATH": "/usr/bin:/bin"})
        assert found["PYSPARK_PYTHON"] == sys.executable
        assert found["PATH"].split(":")[0] == str(Path(sys.executable).parent)
        assert Path(found["JAVA_HOME"], "bin", "java").is_file()

    def test_executors_elsewhere_get_no_path_of_this_machine(self) -> None:
        assert "PYSPARK_PYTHON" not in job_environment(
            SparkTarget("spark://master:7077", None), {"PATH": "/usr/bin:/bin"}
        )
        given = {"PATH": "/usr/bin:/bin", "PYSPARK_PYTHON": "/opt/python"}
        assert job_environment(SparkTarget("spark://master:7077", None), given)["PYSPARK_PYTHON"] == "/opt/python"

    def test_another_spark_submit_keeps_its_own_set_up(self, tmp_path: Path) -> None:
        binary = tmp_path / "spark-submit"
        binary.write_text("#!/bin/sh\n")
        binary.chmod(binary.stat().st_mode | stat.S_IXUSR)
        environ = {"PATH": f"{tmp_path}:/usr/bin"}
        assert job_environment(LOCAL, environ) == environ
