"""The Spark job as far as it gets before it needs a session."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hudi_core.errors import ConfigError, ConflictError, StorageNotFoundError
from hudi_core.request.results import BatchResult, Result
from hudi_core.table import HudiTable
from hudi_core.verbs.batch import BatchRequest, JobRequest, run_job
from hudi_core.verbs.metadata import MetadataUpdateRequest
from hudi_core.verbs.request import RESULTS, Request
from hudi_core.verbs.run import RunRequest
from hudi_core.verbs.write import InsertOverwriteRequest, WriteRequest
from hudi_health.verbs import PROBE_RESULTS, DoctorRequest, ProbeStoreRequest
from hudi_spark import engine
from hudi_spark import job as job_module
from hudi_spark.job import deliver, main, read_request, run_requests
from hudi_spark.probe import ProbeReport
from hudi_submit.zip import entry_file
from tests.support.golden_data import GoldenCase


@pytest.fixture(autouse=True)
def _handlers() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a session that is closed leaves its own
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def result_of(text: str) -> dict[str, Any]:
    (line,) = [line for line in text.splitlines() if line.startswith("HUDI_RESULT ")]
    value = json.loads(line.removeprefix("HUDI_RESULT "))
    assert value.pop("version") == 1
    return dict(value)


def test_an_interrupted_batch_reports_what_was_done(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(request: Request) -> Result:
        if request.table == "b":
            signal.raise_signal(signal.SIGTERM)
        return Result((), "nothing")

    monkeypatch.setattr(job_module, "run_requests", lambda job, _: run_job(job, run))
    batch = BatchRequest(tuple(RunRequest(name, "compaction") for name in "abc"), at_once=1)
    assert main(["--request", batch.to_json()]) == 143
    document = result_of(capsys.readouterr().out)
    assert document["error"]["type"] == "Interrupted"
    assert [item["exit_code"] for item in document["results"]] == [0, 143, 143]
    assert document["results"][0]["reason"] == "nothing"


def test_a_request_comes_as_text_or_as_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    request = RunRequest("/data/täble with 'quotes'", "compaction", instant="20240101000000000", options={"a": "b"})
    file = tmp_path / "request.json"
    file.write_text(request.to_json())
    monkeypatch.chdir(tmp_path)
    for arguments in (
        ["--request", request.to_json()],
        ["--request-file", str(file)],
        ["--request-file", file.as_uri()],
        ["--request-file", file.name],
    ):
        assert read_request(arguments) == request


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--request"],
        ["--request", "{}", "--request-file", "a"],
        ["--nonsense"],
        ["--request", "[]"],
        ["--request-file", "folder/"],
    ],
)
def test_a_wrong_call_is_bad_input(arguments: list[str]) -> None:
    with pytest.raises(ConfigError):
        read_request(arguments)


def test_a_request_file_that_is_not_there_is_bad_input(tmp_path: Path) -> None:
    with pytest.raises(StorageNotFoundError):
        read_request(["--request-file", str(tmp_path / "gone.json")])


def test_what_is_no_table_is_refused_before_a_session_is_opened(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--request", RunRequest(str(tmp_path), "compaction").to_json()]) == 2
    error = result_of(capsys.readouterr().out)["error"]
    assert error["type"] == "ConfigError"
    assert sorted(error) == ["message", "path", "remedy", "type"]


def test_an_unsupported_version_is_refused_before_a_session_is_opened(
    golden: Callable[[str, str], GoldenCase], capsys: pytest.CaptureFixture[str]
) -> None:
    table = golden("9", "mor_basic").table
    properties = table / ".hoodie" / "hoodie.properties"
    properties.write_text(properties.read_text().replace("hoodie.table.version=9", "hoodie.table.version=99"))
    assert main(["--request", RunRequest(str(table), "compaction").to_json()]) == 2
    assert result_of(capsys.readouterr().out)["error"]["type"] == "UnsupportedVersionError"


def test_the_entry_file_says_when_the_zip_is_missing() -> None:
    done = subprocess.run([sys.executable, "-I", "-S", str(entry_file())], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    error = result_of(done.stdout)["error"]
    assert error["message"] == "the driver has no Python module hudi_spark"
    assert "--py-files" in error["remedy"]


def test_the_entry_file_is_short() -> None:
    assert len(entry_file().read_text().splitlines()) < 60


def test_a_result_is_left_as_a_file_where_the_request_says(
    tmp_path: Path, golden: Callable[[str, str], GoldenCase]
) -> None:
    table = golden("8", "mor_basic").table
    results = table / RESULTS
    request = RunRequest(str(table), "compaction", result_name="abc")
    deliver(request, Result(), 0)
    assert json.loads((results / "abc.json").read_text()) == {"version": 1, "instants": [], "exit_code": 0}
    old, fresh = results / "old.json", results / "fresh.json"
    for path in (old, fresh):
        path.write_text("{}")
    os.utime(old, (0, 0))
    deliver(RunRequest(str(table), "compaction", result_name="next"), Result.of_error(ConflictError("busy")), 3)
    assert sorted(path.name for path in results.iterdir()) == ["abc.json", "fresh.json", "next.json"]
    assert json.loads((results / "next.json").read_text())["exit_code"] == 3
    deliver(RunRequest(str(tmp_path / "nothing"), "compaction", result_name="abc"), Result(), 2)
    assert not (tmp_path / "nothing").exists()


def test_the_result_of_a_batch_is_left_at_the_first_table_that_is_one(
    tmp_path: Path, golden: Callable[[str, str], GoldenCase]
) -> None:
    gone, table, last = tmp_path / "gone", golden("8", "mor_basic").table, golden("9", "mor_basic").table
    runs = tuple(RunRequest(str(path), "compaction") for path in (gone, table, last))
    deliver(BatchRequest(runs, result_name="abc"), BatchResult(()), 2)
    assert json.loads((table / RESULTS / "abc.json").read_text())["exit_code"] == 2
    assert not gone.exists()
    assert not (last / RESULTS).exists()
    (table / RESULTS / "abc.json").unlink()
    (table / RESULTS).rmdir()
    (table / RESULTS).touch()  # nothing can be put there
    deliver(BatchRequest(runs, result_name="abc"), BatchResult(()), 2)
    assert (last / RESULTS / "abc.json").exists()


class Session:
    """What SessionEngine does with a session that runs no unit."""

    stopped = False

    def stop(self) -> None:
        self.stopped = True


FULL = {
    "python": "3.11.7",
    "pyarrow": "26.0.1",
    "numpy": "2.1",
    "polars": "2.1",
    "fastavro": "compiled",
    "gzip": "isal",
}
GONE = ConfigError("Spark's executors have no Python module pyarrow", remedy="ship an environment")


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ((FULL,), []),
        ((FULL, {**FULL, "numpy": None}), [("executor_wheel", "error")]),
        (({**FULL, "polars": None, "fastavro": "pure", "gzip": "pyarrow"},), [("executor_slow", "info")] * 3),
        (GONE, [("executor_wheel", "error")]),
    ],
)
def test_the_doctor_tells_what_executors_lack_and_does_not_fail_of_it(
    golden: Callable[[str, str], GoldenCase],
    monkeypatch: pytest.MonkeyPatch,
    answer: Any,
    expected: list[tuple[str, str]],
) -> None:
    def probed(*_: object) -> ProbeReport:
        if isinstance(answer, ConfigError):
            raise answer
        return ProbeReport(answer)

    monkeypatch.setattr(engine, "probe_executors", probed)
    session: Any = Session()
    result = run_requests(DoctorRequest(str(golden("9", "mor_compacted").table)), lambda: session)
    document = result.to_json()["document"]
    assert [(item["rule"], item["severity"]) for item in document["findings"]] == expected
    assert result.exit_code == 0
    assert session.stopped
    if answer is GONE:
        assert document["executors"] == {"setups": [], "problem": GONE.message, "remedy": GONE.remedy}
        assert (GONE.message in document["findings"][0]["what"], document["findings"][0]["fix"]) == (True, GONE.remedy)
    else:
        assert document["executors"]["setups"] == list(answer)


def test_a_store_is_probed_where_no_table_is(tmp_path: Path) -> None:
    session: Any = Session()
    request = ProbeStoreRequest(str(tmp_path / "bucket"), writers=3, rounds=2, result_name="abc")
    document = run_requests(request, lambda: session).to_json()["document"]
    assert (document["can_carry_timeline"], document["writers"], document["creates"]["rounds"]) == (True, 3, 2)
    assert session.stopped
    assert list((tmp_path / "bucket").rglob("*")) == []
    deliver(request, Result(document=document), 0)
    (left,) = (path for path in (tmp_path / "bucket").rglob("*") if path.is_file())
    assert left == tmp_path / "bucket" / PROBE_RESULTS / "abc.json"
    refused = run_requests(ProbeStoreRequest(str(tmp_path), writers=1), lambda: session)
    assert (refused.exit_code, "out of bounds" in refused.to_json()["error"]["message"]) == (2, True)


class ZonedSession(Session):
    """A session that knows its zone."""

    conf = {"spark.sql.session.timeZone": "Asia/Tokyo"}  # noqa: RUF012


@pytest.mark.parametrize(("options", "expected"), [({}, "Asia/Tokyo"), ({"spark.sql.session.timeZone": "UTC"}, "UTC")])
def test_the_sessions_zone_is_an_option_of_the_run(
    golden: Callable[[str, str], GoldenCase], monkeypatch: pytest.MonkeyPatch, options: dict[str, str], expected: str
) -> None:
    seen: list[Request] = []
    monkeypatch.setattr(engine, "probe_executors", lambda *_: ProbeReport((FULL,)))
    monkeypatch.setattr(HudiTable, "run", lambda self, request, engine, progress=None: seen.append(request) or Result())
    session: Any = ZonedSession()
    table = str(golden("9", "mor_compacted").table)
    for request in (RunRequest(table, "compaction", options=options), MetadataUpdateRequest(table, options=options)):
        run_requests(request, lambda: session)
    assert [request.options["spark.sql.session.timeZone"] for request in seen] == [expected, expected]


@pytest.mark.parametrize(
    ("job", "expected"),
    [
        (RunRequest("t", "compaction"), True),
        (InsertOverwriteRequest("t", source="rows.parquet"), True),
        (InsertOverwriteRequest("t", query="SELECT 1"), False),
        (InsertOverwriteRequest("t", dataframe="rows:of"), False),
        (WriteRequest("t", operation="upsert", source="rows.parquet"), True),
        (WriteRequest("t", operation="upsert", query="SELECT 1"), False),
        (BatchRequest((RunRequest("t", "clean"), RunRequest("u", "clean"))), True),
        (BatchRequest((RunRequest("t", "clean"), InsertOverwriteRequest("u", query="SELECT 1"))), False),
    ],
)
def test_workers_are_the_engines_own_if_no_request_asks_the_session(
    monkeypatch: pytest.MonkeyPatch, job: JobRequest, expected: bool
) -> None:
    seen: list[bool] = []

    class Engine(engine.SessionEngine):
        def __init__(self, *given: Any, is_alone: bool) -> None:
            super().__init__(*given, is_alone=is_alone)
            seen.append(is_alone)

        def start(self) -> None:
            raise ConfigError("no session")

    monkeypatch.setattr("hudi_spark.job.SessionEngine", Engine)
    session: Any = Session()
    assert run_requests(job, lambda: session).exit_code == 2
    assert seen == [expected]
