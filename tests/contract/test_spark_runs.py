"""Services in real Spark, by each way to start one, in processes of their own: hudictl, and spark-submit with the job
zip.

What tests/airflow runs as well, jobs that come to their end, is left to `make conformance` here.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudi_core.engine.local import LocalEngine
from hudi_core.request.java import spark_environment
from hudi_core.request.results import result_line
from hudi_core.table import HudiTable
from hudi_core.verbs.batch import BatchRequest
from hudi_core.verbs.instants import RollbackRequest
from hudi_core.verbs.registry import VERBS
from hudi_core.verbs.request import RESULTS, Request
from hudi_core.verbs.run import RunRequest
from hudi_spark.job import read_request, run_requests
from hudi_submit.zip import entry_file, publish_zip
from tests.support import toy_verb
from tests.support.golden_data import GoldenCase
from tests.support.rows import assert_same_rows, read_parquet
from tests.support.table_invariants import assert_metadata_true
from tests.support.toy_verb import LINE, WeighRequest

pytestmark = [pytest.mark.spark, pytest.mark.slow]
Golden = Callable[[str, str], GoldenCase]
TIMEOUT = 300
ROOT = Path(__file__).parents[2]


def assert_compacted(case: GoldenCase) -> None:
    """The rows are those of the table that real Hudi compacted, and the metadata table is true."""
    table = HudiTable.open(str(case.table))
    for query in ("snapshot", "read_optimized"):
        result = table.read(query)  # type: ignore[arg-type]
        assert_same_rows(
            pa.Table.from_batches(result.batches, result.schema), read_parquet(case.expected / f"after_{query}.parquet")
        )
    assert_metadata_true(case.table)


def test_hudictl_starts_spark_and_keeps_stdout_for_its_document(golden: Golden, tmp_path: Path) -> None:
    case = golden("6", "mor_compaction_requested")
    command = [
        sys.executable,
        "-m",
        "hudi_cli.main",
        "run",
        "compaction",
        str(case.table),
        "--master",
        "local[2]",
        "--json",
    ]
    # Another folder and no PYTHONPATH: executors get the engine's code from the zip.
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=TIMEOUT, check=False)
    assert done.returncode == 0, done.stderr
    (result,) = json.loads(done.stdout)["instants"]
    assert (result["action"], result["state"], result["files_written"]) == ("compaction", "completed", 3)
    assert "WARN" not in done.stderr
    assert_compacted(case)
    tokens = {path.name.split("_")[1] for path in case.table.glob(f"2024-*/*_{result['instant']}.parquet")}
    assert len(tokens) == 3


class Submitted:
    """spark-submit with the job zip, as Airflow runs it."""

    def __init__(self, request: Request | BatchRequest, folder: Path, *, entry: Path | None = None) -> None:
        environment = spark_environment()
        environment.pop("PYTHONPATH", None)
        if entry is not None:
            environment["PYTHONPATH"] = str(ROOT)
        command = [
            f"{environment['SPARK_HOME']}/bin/spark-submit",
            "--master",
            "local[2]",
            "--py-files",
            str(publish_zip(folder / "cache")),
        ]
        for key, value in (("ui.enabled", "false"), ("driver.host", "127.0.0.1"), ("driver.bindAddress", "127.0.0.1")):
            command += ["--conf", f"spark.{key}={value}"]
        command += [
            "--driver-java-options",
            "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
            str(entry or entry_file()),
            "--request",
            request.to_json(),
        ]
        self.log = folder / "spark.log"
        self.process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=self.log.open("w"),
            text=True,
            cwd=folder,
            env=environment,
            start_new_session=True,
        )

    def lines(self, label: str) -> list[dict[str, Any]]:
        """Waits for the end and returns the JSON of the lines that begin with `label`."""
        out, _ = self.process.communicate(timeout=TIMEOUT)
        return [json.loads(line.removeprefix(label)) for line in out.splitlines() if line.startswith(label)]

    def wait_for(self, label: str) -> None:
        """Reads on until a line begins with `label`."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.startswith(label):
                return
        raise AssertionError(self.log.read_text())


def batch_of(golden: Golden) -> tuple[BatchRequest, list[GoldenCase]]:
    """Compactions of three tables, the second one broken, and a verb of one module and one line."""
    cases = [golden(version, "mor_compaction_requested") for version in ("6", "8", "9")]
    (cases[1].table / ".hoodie" / "hoodie.properties").write_text("hoodie.table.version=9\n")
    compactions = [RunRequest(case.table.as_uri(), "compaction", owner="a test") for case in cases]
    weighed = WeighRequest(str(golden("9", "mor_basic").table))
    return BatchRequest((*compactions, weighed), at_once=2), cases


def check_batch(batch: BatchRequest, cases: list[GoldenCase], result: dict[str, Any]) -> None:
    """The tasks of the verb run by the engine that it is given, too."""
    results = result["results"]
    assert [item["table"] for item in results] == [request.table for request in batch.requests]
    assert [item["exit_code"] for item in results] == [0, 2, 0, 0], results
    assert results[1]["error"]["type"] == "CorruptFileError"
    here = HudiTable.open(batch.requests[3].table).run(batch.requests[3], LocalEngine(1))
    assert (results[3]["engine"], results[3]["document"]) == ("spark", here.document)
    for case in (cases[0], cases[2]):
        assert_compacted(case)


def test_a_job_of_several_tables_and_verbs_has_results_of_each(
    golden: Golden, spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the session of the tests, which it does not stop; its executors cannot import the tests."""
    from pyspark import cloudpickle

    batch, cases = batch_of(golden)
    monkeypatch.setitem(VERBS, WeighRequest.verb, LINE)
    monkeypatch.setattr(type(spark), "stop", lambda _: None)
    cloudpickle.register_pickle_by_value(toy_verb)
    try:
        result = run_requests(read_request(["--request", batch.to_json()]), lambda: spark)
    finally:
        cloudpickle.unregister_pickle_by_value(toy_verb)
    assert result.exit_code != 0
    check_batch(batch, cases, result_line(result))


@pytest.mark.conformance
def test_spark_submit_runs_several_tables_and_verbs_in_one_session(golden: Golden, tmp_path: Path) -> None:
    batch, cases = batch_of(golden)
    entry = tmp_path / "entry.py"
    entry.write_text(
        f"import sys\nfrom hudi_core.verbs.registry import VERBS\nVERBS['weigh'] = {LINE!r}\n"
        "from hudi_spark.job import main\nsys.exit(main(sys.argv[1:]))\n"
    )
    job = Submitted(batch, tmp_path, entry=entry)
    (result,) = job.lines("HUDI_RESULT ")
    assert job.process.returncode != 0
    check_batch(batch, cases, result)
    assert job.log.read_text().count("Running Spark version") == 1


@pytest.mark.conformance
def test_spark_submit_runs_the_zip_and_ends_with_one_result_line(golden: Golden, tmp_path: Path) -> None:
    case = golden("6", "mor_compaction_requested")
    job = Submitted(RunRequest(case.table.as_uri(), "compaction", owner="a test"), tmp_path)
    (result,) = job.lines("HUDI_RESULT ")
    assert job.process.returncode == 0, job.log.read_text()
    assert [instant["state"] for instant in result["instants"]] == ["completed"]
    assert_compacted(case)


def test_a_job_that_is_terminated_releases_the_instant(golden: Golden, tmp_path: Path) -> None:
    case = golden("6", "mor_compaction_requested")
    job = Submitted(RunRequest(str(case.table), "compaction", owner="a test"), tmp_path)
    job.wait_for("HUDI_PROGRESS ")
    os.killpg(job.process.pid, signal.SIGTERM)
    assert job.process.wait(TIMEOUT) != 0
    again = [sys.executable, "-m", "hudi_cli.main", "run", "compaction", str(case.table), "--engine", "local", "--json"]
    # The driver is a child of spark-submit and may outlive it for a moment, in which the instant is still claimed: exit
    # code 3.
    for _ in range(60):
        done = subprocess.run(again, capture_output=True, text=True, timeout=TIMEOUT, check=False)
        if done.returncode != 3:
            break
    assert done.returncode == 0, done.stderr
    assert_compacted(case)


@pytest.mark.conformance
def test_hudictl_plans_a_clean_and_runs_it_in_spark(golden: Golden, tmp_path: Path) -> None:
    table = golden("9", "mor_compacted").table
    before = HudiTable.open(str(table)).read()
    rows = pa.Table.from_batches(before.batches, before.schema)
    command = [
        sys.executable,
        "-m",
        "hudi_cli.main",
        "run",
        "clean",
        str(table),
        "--schedule",
        "--master",
        "local[2]",
        "--json",
    ]
    command += ["--option", "hoodie.clean.commits.retained=1"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=TIMEOUT, check=False)
    assert done.returncode == 0, done.stderr
    (result,) = json.loads(done.stdout)["instants"]
    assert (result["action"], result["state"], result["files_deleted"] > 0) == ("clean", "completed", True)
    after = HudiTable.open(str(table)).read()
    assert_same_rows(pa.Table.from_batches(after.batches, after.schema), rows)
    assert_metadata_true(table)


@pytest.mark.conformance
def test_a_verb_is_a_job_too_and_may_leave_its_result_as_a_file(golden: Golden, tmp_path: Path) -> None:
    table = golden("8", "failed_inflight_mor").table
    (failed,) = HudiTable.open(str(table)).timeline().pending()
    request = RollbackRequest(str(table), failed.requested_time, result_name="mine")
    job = Submitted(request, tmp_path)
    (result,) = job.lines("HUDI_RESULT ")
    assert job.process.returncode == 0, job.log.read_text()
    assert result["document"]["target"] == failed.requested_time
    assert result["document"]["removed"]["files"] > 0
    assert json.loads((table / RESULTS / "mine.json").read_text()) == {**result, "exit_code": 0}
    assert len(HudiTable.open(str(table)).timeline().pending()) == 0
