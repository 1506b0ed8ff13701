"""What a job reports."""

from __future__ import annotations

import pytest

from hudi_core.errors import ConfigError, ConflictError
from hudi_core.request.results import (
    BatchResult,
    InstantResult,
    Result,
    error_from_json,
    error_to_json,
    job_result_from_json,
    result_line,
)
from hudi_core.verbs.batch import BatchRequest, batch_result
from hudi_core.verbs.instants import SavepointCreateRequest
from hudi_core.verbs.run import RunRequest

DONE = InstantResult("1", "clean", "completed", seconds=0.5)
LOST = InstantResult("2", "clean", "requested", error="lost", exit_code=3)


def test_a_result_an_error_and_a_defect_have_one_form() -> None:
    done = Result((DONE,), engine="local")
    assert (done.exit_code, done.to_json()) == (0, {"engine": "local", "instants": [DONE.to_dict()]})
    refused = Result.of_error(ConfigError("no table", path="a", remedy="name one"))
    error = {"type": "ConfigError", "message": "no table", "path": "a", "remedy": "name one"}
    assert (refused.exit_code, refused.to_json()) == (2, {"error": error})
    assert result_line(refused) == {"version": 1, "error": error}
    assert Result.broken("KeyError", "x", 1).to_json()["error"]["type"] == "KeyError"
    assert Result(left="large").to_json() == {"instants": [], "submit": "large"}


def test_what_is_left_to_spark_comes_behind_what_was_done() -> None:
    first = Result((DONE,), engine="local", left="large")
    assert (first.exit_code, first.to_json()["submit"]) == (0, "large")
    whole = first.then(Result((DONE,), engine="spark"))
    assert whole.to_json() == {"engine": "spark", "instants": [DONE.to_dict()] * 2}
    nothing = first.then(Result((), "the time of the run is over"))
    assert nothing.to_json() == {"engine": "local", "instants": [DONE.to_dict()]}
    busy = first.then(Result.of_error(ConflictError("busy")))
    assert (busy.exit_code, busy.to_json()["error"]["message"], len(busy.instants)) == (3, "busy", 1)
    assert Result(left="large").then(busy) == busy


RESULTS = [
    Result((DONE,), engine="local"),
    Result((DONE, LOST), engine="spark", left="large"),
    Result((), "nothing is due"),
    Result(document={"instant": None, "reason": "none"}, engine="local"),
    Result.of_error(ConflictError("busy", remedy="wait")),
    Result((DONE,), omitted=3),
]


@pytest.mark.parametrize("result", RESULTS)
def test_a_result_comes_back_from_its_line(result: Result) -> None:
    assert job_result_from_json(result.to_json(), result.exit_code) == result
    batch = BatchRequest((RunRequest("a", "clean"), SavepointCreateRequest("b")))
    stopped = Result.broken("Interrupted", "stopped", 143)
    for whole in (batch_result(batch, [result, RESULTS[0]]), batch_result(batch, [result, result], stopped)):
        assert job_result_from_json(whole.to_json(), whole.exit_code) == whole


@pytest.mark.parametrize(
    "line",
    [
        {"instants": 3},
        {"instants": [3]},
        {"instants": [{"instant": "1"}]},
        {"instants": [{"instant": "1", "action": "clean", "state": "completed", "seconds": "4"}]},
        {"document": []},
        {"error": "no"},
        {"reason": {}},
        {"results": {}},
        {"results": [3]},
        {"results": [{"table": "a", "verb": "run", "exit_code": "0"}]},
    ],
)
def test_a_line_of_another_form_is_refused(line: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match="the job's result"):
        job_result_from_json(line, 0)


def test_errors_return_typed() -> None:
    found = error_from_json(error_to_json(ConflictError("busy", remedy="wait")))
    assert (type(found), found.message, found.remedy) == (ConflictError, "busy", "wait")
    assert type(error_from_json({"type": "Nonsense", "message": "x"})).__name__ == "ExecutionError"


def test_of_many_requests_each_has_its_own_result_and_exit_code() -> None:
    requests = [RunRequest("a", "clean"), RunRequest("b", "clean"), SavepointCreateRequest("c")]
    good = Result((DONE,), engine="local")
    bad, busy = Result.of_error(ConfigError("no")), Result.of_error(ConflictError("busy"))

    def whole(*results: Result) -> BatchResult:
        return batch_result(BatchRequest(tuple(requests)), results)

    names = ("table", "verb", "service", "exit_code")
    assert [tuple(item.to_json()[name] for name in names) for item in whole(good, bad, busy).items] == [
        ("a", "run", "clean", 0),
        ("b", "run", "clean", 2),
        ("c", "savepoint_create", None, 3),
    ]
    assert whole(good, bad, busy).exit_code == 1, "the failures do not agree"
    assert whole(good, busy, busy).exit_code == 3
    assert whole(good, good, good).exit_code == 0


def test_of_very_many_findings_the_worst_are_reported() -> None:
    findings = [{"rule": str(number)} for number in range(1000)]
    reported = Result(document={"findings": findings}).to_json()["document"]
    assert (reported["findings"], reported["left_out"]) == (findings[:200], 800)
    assert Result(document={"findings": findings[:200]}).to_json()["document"] == {"findings": findings[:200]}


def test_what_no_log_can_hold_is_counted() -> None:
    plan = {"files": 3, "partitions": {f"p{number}": {"files": ["f" * 40]} for number in range(200)}}
    shown = Result(document={"instant": "1", "plan": plan, "reason": None}).to_json()
    assert shown["document"] == {"instant": "1", "plan": {"files": 3, "partitions": 200}, "reason": None}
    short = {"instant": None, "plan": None, "reason": "no old files"}
    assert Result(document=short).to_json()["document"] == short
    many = [InstantResult(str(number), "commit", "archived") for number in range(1000)]
    many[3] = InstantResult("3", "commit", "requested", error="lost", exit_code=2)
    reported = Result(tuple(many)).to_json()
    assert [item["instant"] for item in reported["instants"]] == ["3", "999"]
    assert reported["left_out"] == 998
    few = Result(tuple(many[:5])).to_json()
    assert (len(few["instants"]), "left_out" in few) == (5, False)


def test_of_very_many_differences_the_first_are_reported() -> None:
    document = Result(document={"differences": [{"kind": str(number)} for number in range(300)]}).to_json()["document"]
    assert (len(document["differences"]), document["left_out"]) == (200, 100)
