"""What exit codes and errors mean for a task."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowFailException, AirflowNotFoundException

from airflow_hudi.task_fate import Fate, fails_for_good, failure_of, fate_of, in_words, is_permanent, may_pass, refused
from hudi_core.errors import ConfigError, ConflictError, CorruptFileError, HudiError, StorageError
from hudi_core.request.results import BatchResult, InstantResult, Result
from hudi_submit.job_log import JobLog

BAD = Result.of_error(ConfigError("no table", path="/t", remedy="look"))


@pytest.mark.parametrize(
    ("code", "fate"),
    [(0, Fate.DONE), (2, Fate.FAILS_FOR_GOOD), (3, Fate.WAITS), (1, Fate.FAILS), (137, Fate.FAILS), (-9, Fate.FAILS)],
)
def test_an_exit_code_has_one_meaning(code: int, fate: Fate) -> None:
    assert fate_of(code) is fate


def test_an_error_has_that_of_its_exit_code() -> None:
    permanent = [ConfigError("x"), CorruptFileError("x"), AirflowNotFoundException("x")]
    assert all(map(is_permanent, permanent))
    passing: list[Exception] = [StorageError("x"), ConflictError("x"), HudiError("x"), OSError("x")]
    assert not any(map(is_permanent, passing))
    assert [may_pass(error) for error in (StorageError("x"), CorruptFileError("x"), ConfigError("x"))] == [
        *(True, True, False)
    ]


def test_a_failure_is_one_line() -> None:
    held = InstantResult("002", "clean", "inflight", error="held by x", exit_code=3)
    assert failure_of(Result((held, InstantResult("003", "clean", "completed")))) == "held by x"
    assert [failure_of(result) for result in (None, Result(), BatchResult(()))] == [None, None, None]
    assert failure_of(BAD) == failure_of(BatchResult((), stopped=BAD)) == "no table: /t (look)"
    assert in_words(OSError()) == "OSError"


def test_refused_input_is_said_as_the_job_said_it() -> None:
    error = refused(BatchResult((), stopped=BAD))
    assert (error.message, error.path, error.remedy, error.exit_code) == ("no table", "/t", "look", 2)
    assert "did not say why" in refused(None).message


def test_what_no_retry_repairs_fails_for_good(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(AirflowFailException, match="no table"), fails_for_good(logging.getLogger("task")):
        raise ConfigError("no table")
    assert caplog.messages == ["no table"]
    with pytest.raises(StorageError), fails_for_good():
        raise StorageError("slow down")


@pytest.mark.parametrize(
    ("result", "failure"),
    [
        (
            {"error": {"type": "ConfigError", "message": "no table", "path": "/t", "remedy": "look"}},
            "no table: /t (look)",
        ),
        (
            {"error": {"type": "ExecutionError", "message": "broke", "path": None, "remedy": None}},
            "broke",
        ),
        (
            {
                "instants": [
                    {"instant": "002", "action": "clean", "state": "inflight", "error": "held by x", "exit_code": 3},
                    {"instant": "003", "action": "clean", "state": "completed"},
                ]
            },
            "held by x",
        ),
        ({"instants": [{"instant": "002", "action": "clean", "state": "completed"}]}, None),
        ({"instants": 7}, "the job's result: instants is no list (use the same release on both sides)"),
    ],
)
def test_the_reason_of_a_failure_comes_out_of_the_line(
    result: dict[str, Any], failure: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    log = JobLog(logging.getLogger("task"))
    line = f"HUDI_RESULT {json.dumps(result)}"
    log.info(line)
    assert failure_of(log.result(1)) == failure
    assert caplog.messages == []
