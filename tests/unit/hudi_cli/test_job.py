"""The job beside a task: what comes on its stdin, what it reports, and how it ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudi_cli.job import run_call
from hudi_core.config.engine_config import Mode
from hudi_core.errors import ConfigError, StorageError
from hudi_core.request.results import Result
from hudi_core.table import HudiTable
from hudi_core.verbs.batch import BatchRequest, JobRequest
from hudi_core.verbs.create import CreateRequest
from hudi_core.verbs.run import RunRequest, ScheduleRequest
from hudi_core.verbs.write import WriteRequest
from hudi_health.verbs import DoctorRequest, ProbeStoreRequest
from hudi_submit.local_process import LocalCall
from tests.support.golden_data import GoldenCase
from tests.support.overwrites import put_source
from tests.support.rows import assert_same_rows, read_parquet
from tests.support.table_invariants import read_rows
from tests.support.tiers import tiered

Golden = Callable[[str, str], GoldenCase]
ONE = {"hoodie.clean.commits.retained": "1"}
ROOT = Path(__file__).resolve().parents[3]


def call(request: JobRequest, mode: str = "auto", **more: Any) -> bytes:
    return json.dumps({"request": json.loads(request.to_json()), "mode": mode, **more}).encode() + b"\n"


def outcome(request: JobRequest, mode: Mode) -> Result:
    assert isinstance(
        request, RunRequest | ScheduleRequest | DoctorRequest | ProbeStoreRequest | CreateRequest | WriteRequest
    )
    return run_call(LocalCall(request, mode, {}), request)


def started(**environment: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "hudi_cli.job"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "spark_jobs")]), **environment},
        start_new_session=True,
    )


def result_of(output: bytes) -> dict[str, Any]:
    (line,) = [line for line in output.decode().splitlines() if line.startswith("HUDI_RESULT ")]
    return dict(json.loads(line.removeprefix("HUDI_RESULT ")))


@pytest.mark.slow
def test_a_small_plan_is_done_by_the_process(golden: Golden) -> None:
    case = golden("9", "mor_compaction_requested")
    process = started()
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(call(RunRequest(str(case.table), "compaction")))
    process.stdin.flush()
    output = process.stdout.read()
    found = result_of(output)
    assert (process.wait(60), found["engine"], found["instants"][0]["state"]) == (0, "local", "completed")
    assert b"the local engine runs 3 units" in output
    assert b"HUDI_PROGRESS" in output
    assert_same_rows(read_rows(case.table), read_parquet(case.expected / "after_snapshot.parquet"))


@pytest.mark.slow
def test_it_ends_when_the_other_end_of_stdin_is_gone(tmp_path: Path) -> None:
    """Its threads have work for hours."""
    table = tmp_path / "bucket"
    process = started()
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(call(ProbeStoreRequest(str(table), writers=64, rounds=100_000), "local", grace_seconds=1))
    process.stdin.flush()
    deadline = time.monotonic() + 60
    while not table.exists():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    process.stdin.close()
    process.stdout.read()
    assert process.wait(60) == 128 + signal.SIGTERM


@pytest.mark.slow
def test_a_batch_that_waits_for_locks_ends_with_its_task(golden: Golden) -> None:
    """It has seconds, not the minutes of the locks, and reports the table that had nothing to do."""
    tables = [golden("9", "mor_basic").table]
    tables += [golden(version, "mor_compaction_requested").table for version in ("8", "9")]
    for table in tables[1:]:
        (table / ".hoodie" / "lock").touch()
    process = started()
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(call(BatchRequest(tuple(RunRequest(str(table), "compaction") for table in tables)), "local"))
    process.stdin.flush()
    deadline = time.monotonic() + 60
    while not all(list(table.glob(".hoodie/.airflow_hudi/claims/*/*.json")) for table in tables[1:]):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    time.sleep(1.0)  # until they wait for the lock
    process.stdin.close()
    found = result_of(process.stdout.read())
    assert process.wait(60) == 128 + signal.SIGTERM
    assert [item["exit_code"] for item in found["results"]] == [0, 143, 143]


def test_a_look_only_looks(golden: Golden) -> None:
    table = golden("8", "mor_compaction_requested").table
    assert outcome(RunRequest(str(table), "compaction"), Mode.LOOK).left == "there is work"
    nothing = outcome(RunRequest(str(golden("8", "mor_basic").table), "clean", schedule=True), Mode.LOOK)
    assert (nothing.exit_code, nothing.to_json()["instants"]) == (0, [])
    assert "hoodie.clean.commits.retained" in nothing.to_json()["reason"]


def test_a_large_plan_is_planned_and_left_to_spark(golden: Golden) -> None:
    table = golden("8", "mor_compacted").table
    options = {**ONE, "airflow_hudi.engine.local.max.units": "0"}
    request = RunRequest(str(table), "clean", schedule=True, options=options)
    assert "airflow_hudi.engine.local.max.units" in outcome(request, Mode.AUTO).to_json()["submit"]
    assert len(list(table.rglob("*.clean.requested"))) == 1
    done = outcome(request, Mode.LOCAL)
    assert (done.to_json()["engine"], done.to_json()["instants"][0]["state"]) == ("local", "completed")
    assert outcome(request, Mode.AUTO).to_json()["reason"]


LARGER = {"hoodie.compact.inline.max.delta.commits": "1", "airflow_hudi.engine.local.max.bytes": "460000"}
"""Of mor_basic one file slice has less to read, and two of them have more."""


@pytest.mark.parametrize("version", tiered(["6", "8", "9"], ["6"]))
def test_each_plan_of_a_run_is_for_the_engine_that_suits_it(golden: Golden, version: str) -> None:
    """A small plan is pending, and what is planned behind it is large: that stays requested."""
    table = golden(version, "mor_basic").table
    first = ScheduleRequest(str(table), "compaction", options={**LARGER, "airflow_hudi.plan.max.bytes": "1"})
    outcome(first, Mode.LOCAL)
    request = RunRequest(str(table), "compaction", schedule=True, all_pending=True, options=LARGER)
    found = outcome(request, Mode.AUTO)
    assert (found.exit_code, found.to_json()["engine"]) == (0, "local")
    assert [(item["state"], item["files_written"]) for item in found.to_json()["instants"]] == [("completed", 1)]
    assert "airflow_hudi.engine.local.max.bytes" in found.to_json()["submit"]
    assert len(HudiTable.open(str(table)).timeline().pending_compactions()) == 1
    again = outcome(request, Mode.AUTO).to_json()
    assert (again["instants"], "max.bytes" in again["submit"]) == ([], True)
    rest = outcome(request, Mode.LOCAL).to_json()
    assert [item["files_written"] for item in rest["instants"]] == [2]
    assert "submit" not in rest


def test_what_only_spark_knows_is_left_to_it(golden: Golden, tmp_path: Path) -> None:
    table = str(golden("8", "mor_basic").table)
    for mode in (Mode.LOOK, Mode.AUTO):
        assert "submit" in outcome(ProbeStoreRequest(table), mode).to_json()
        elsewhere = RunRequest(table, "compaction", storage_options_file=str(tmp_path / "on-the-driver.json"))
        assert "cannot be opened here" in outcome(elsewhere, mode).to_json()["submit"]
        assert "cannot be opened here" in outcome(RunRequest("nothing://a/b", "compaction"), mode).to_json()["submit"]
    assert outcome(elsewhere, Mode.LOCAL).exit_code == 2


def new_table(table: Path | str, **given: Any) -> CreateRequest:
    schema = json.dumps({"type": "record", "name": "Trip", "fields": [{"name": "id", "type": "string"}]})
    least = {"schema": schema, "table_name": "trips", "table_version": 9, "record_key": ("id",)}
    return CreateRequest(str(table), **{**least, **given})


def test_a_table_is_created_beside_the_task(tmp_path: Path) -> None:
    table = tmp_path / "trips"
    assert outcome(new_table(table), Mode.LOOK).left == "there is work"
    assert not table.exists()
    for mode in (Mode.AUTO, Mode.LOCAL, Mode.LOOK):
        found = outcome(new_table(table), mode)
        assert (found.left, found.exit_code, (found.document or {})["created"]) == (None, 0, mode is Mode.AUTO)
        other = outcome(new_table(table, table_type="mor"), mode)
        assert (other.exit_code, "there is another table" in other.to_json()["error"]["message"]) == (2, True)


def test_the_table_of_a_first_write_is_made_where_the_write_is_done(tmp_path: Path) -> None:
    table = tmp_path / "trips"
    given = put_source(pa.table({"id": ["a"]}), tmp_path)
    options = {"hoodie.table.name": "trips", "hoodie.datasource.write.recordkey.field": "id"}
    first = WriteRequest(str(table), operation="insert", source=str(given), options=options)
    for mode in (Mode.LOOK, Mode.AUTO):
        assert "the table is not here yet" in str(outcome(first, mode).left)
    assert not table.exists()
    done = outcome(first, Mode.LOCAL).document or {}
    assert (done["created"], done["inserted"]) == (True, 1)
    assert outcome(first, Mode.LOOK).left == "there is work"


def test_a_folder_may_be_on_the_clusters_machines_alone(tmp_path: Path) -> None:
    elsewhere = new_table(tmp_path / "not" / "here")
    assert outcome(elsewhere, Mode.AUTO).left == "the folder around the table is not here"
    assert outcome(elsewhere, Mode.LOOK).left == "there is work"
    assert not (tmp_path / "not").exists()
    of_no_storage = new_table("nothing://a/b")
    assert outcome(of_no_storage, Mode.AUTO).exit_code == outcome(of_no_storage, Mode.LOOK).exit_code == 2


def test_a_look_at_a_storage_that_fails_is_left_to_spark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> Result:
        raise StorageError("the network is down")

    monkeypatch.setattr(CreateRequest, "nothing_on_storage", fails)
    assert "the network is down" in str(outcome(new_table(tmp_path), Mode.LOOK).left)


@pytest.mark.parametrize("mode", list(Mode))
def test_a_table_that_is_gone_from_a_store_costs_no_spark(mode: Mode, tmp_path: Path) -> None:
    """All machines see the same store; a local path may be one of the cluster's."""
    gone = outcome(RunRequest("memory://bucket/gone", "compaction"), mode)
    assert gone.exit_code == 2
    assert "is not a Hudi table" in gone.to_json()["error"]["message"]
    assert ("submit" in outcome(RunRequest(str(tmp_path), "compaction"), mode).to_json()) == (mode is not Mode.LOCAL)


@pytest.mark.parametrize("mode", list(Mode))
def test_bad_input_is_an_error_wherever_it_is_read(golden: Golden, mode: Mode) -> None:
    table = str(golden("8", "mor_basic").table)
    wrong = RunRequest(table, "clean", schedule=True, options={"airflow_hudi.nonsense": "1"})
    assert outcome(wrong, mode).exit_code == 2
    unknown = RunRequest(table, "indexing", schedule=True, options={"hoodie.index.name": "unknown"})
    assert (outcome(unknown, mode).exit_code, outcome(unknown, mode).to_json()["error"]["type"]) == (2, "ConfigError")


def test_verbs_without_units_are_done_or_looked_at(golden: Golden) -> None:
    table = str(golden("9", "mor_basic").table)
    doctor = outcome(DoctorRequest(table, timeline_only=True), Mode.AUTO)
    assert (doctor.exit_code, doctor.to_json()["engine"]) == (0, "local")
    assert "submit" in outcome(DoctorRequest(table), Mode.LOOK).to_json()
    assert outcome(ScheduleRequest(table, "clean"), Mode.AUTO).to_json()["document"]["reason"]


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"[]\n",
        b"{}\n",
        b'{"mode": "fast"}\n',
        b'{"mode": ["auto"], "request": {"version": 1}}\n',
        call(RunRequest("a", "clean"), credentials=["hidden"]),
        b'{"mode": "auto", "request": {"version": 1, "secret": "hidden"}}\n',
    ],
)
def test_another_call_is_refused_and_its_secrets_are_not_shown(text: bytes) -> None:
    with pytest.raises(ConfigError) as caught:
        LocalCall.parse(text)
    assert "hidden" not in str(caught.value)


def test_the_machine_is_shared_among_the_tables() -> None:
    three = tuple(RunRequest(table, "clean") for table in ("a", "b", "c", "c"))
    assert LocalCall.parse(call(BatchRequest(three, at_once=8))).at_once == 3
    assert LocalCall.parse(call(BatchRequest(three, at_once=2))).at_once == 2
    assert LocalCall.parse(call(three[0], credentials={"key": "a"})).at_once == 1


def test_credentials_open_the_table(golden: Golden) -> None:
    request = RunRequest("s3://nowhere/trips", "compaction", storage_options={"region": "eu-west-1"})
    assert (
        run_call(LocalCall(request, Mode.AUTO, {"key": "a", "secret": "hidden", "nonsense": "b"}), request)
        .to_json()["submit"]
        .startswith("the table cannot be opened here")
    )
