"""What a job reports."""

from __future__ import annotations

from hudi_core.errors import ConfigError, ConflictError
from hudi_core.request.outcome import Outcome, error_from_json, error_to_json, outcome_of_all, printable
from hudi_core.request.requests import RunRequest, SavepointCreateRequest
from hudi_core.request.results import InstantResult, RunResult

DONE = InstantResult("1", "clean", "completed", seconds=0.5)


def test_a_result_an_error_and_a_defect_have_one_form() -> None:
    done = Outcome.of(RunResult((DONE,), engine="local"))
    assert (done.exit_code, done.document["engine"], done.document["instants"][0]["instant"]) == (0, "local", "1")
    refused = Outcome.of_error(ConfigError("no table", path="a", remedy="name one"))
    error = {"type": "ConfigError", "message": "no table", "path": "a", "remedy": "name one"}
    assert (refused.exit_code, refused.document) == (2, {"error": error})
    assert refused.to_json() == {"version": 1, "error": error}
    assert Outcome.broken("KeyError", "x", 1).document["error"]["type"] == "KeyError"
    assert Outcome.for_spark("large").document == {"submit": "large"}


def test_what_is_left_to_spark_comes_behind_what_was_done() -> None:
    first = Outcome.of(RunResult((DONE,), engine="local", left="large"))
    assert (first.exit_code, first.document["submit"], len(first.document["instants"])) == (0, "large", 1)
    whole = first.then(Outcome.of(RunResult((DONE,), engine="spark")))
    assert whole.document == {"engine": "spark", "instants": [DONE.to_dict()] * 2}
    nothing = first.then(Outcome.of(RunResult((), "the time of the run is over")))
    assert nothing.document == {"engine": "local", "instants": [DONE.to_dict()]}
    busy = first.then(Outcome.of_error(ConflictError("busy")))
    assert (busy.exit_code, busy.document["error"]["message"], len(busy.document["instants"])) == (3, "busy", 1)
    assert Outcome.of(RunResult(left="large")).then(busy) == busy


def test_errors_return_typed() -> None:
    found = error_from_json(error_to_json(ConflictError("busy", remedy="wait")))
    assert (type(found), found.message, found.remedy) == (ConflictError, "busy", "wait")
    assert type(error_from_json({"type": "Nonsense", "message": "x"})).__name__ == "ExecutionError"


def test_of_many_requests_each_has_its_own_result_and_exit_code() -> None:
    requests = [RunRequest("a", "clean"), RunRequest("b", "clean"), SavepointCreateRequest("c")]
    good = Outcome.of(RunResult((DONE,), engine="local"))
    bad, busy = Outcome.of_error(ConfigError("no")), Outcome.of_error(ConflictError("busy"))
    whole = outcome_of_all(requests, [good, bad, busy])
    names = ("table", "verb", "service", "exit_code")
    assert [tuple(item[name] for name in names) for item in whole.document["results"]] == [
        ("a", "run", "clean", 0),
        ("b", "run", "clean", 2),
        ("c", "savepoint_create", None, 3),
    ]
    assert whole.exit_code == 1, "the failures do not agree"
    assert outcome_of_all(requests, [good, busy, busy]).exit_code == 3
    assert outcome_of_all(requests, [good] * 3).exit_code == 0


def test_of_very_many_findings_the_worst_are_reported() -> None:
    findings = [{"rule": str(number)} for number in range(1000)]
    reported = printable(RunResult(document={"findings": findings}))["document"]
    assert (reported["findings"], reported["left_out"]) == (findings[:200], 800)
    assert printable(RunResult(document={"findings": findings[:200]}))["document"] == {"findings": findings[:200]}


def test_what_no_log_can_hold_is_counted() -> None:
    plan = {"files": 3, "partitions": {f"p{number}": {"files": ["f" * 40]} for number in range(200)}}
    shown = printable(RunResult(document={"instant": "1", "plan": plan, "reason": None}))
    assert shown["document"] == {"instant": "1", "plan": {"files": 3, "partitions": 200}, "reason": None}
    short = {"instant": None, "plan": None, "reason": "no old files"}
    assert printable(RunResult(document=short))["document"] == short
    many = [InstantResult(str(number), "commit", "archived") for number in range(1000)]
    many[3] = InstantResult("3", "commit", "requested", error="lost", exit_code=2)
    reported = printable(RunResult(tuple(many)))
    assert [item["instant"] for item in reported["instants"]] == ["3", "999"]
    assert reported["left_out"] == 998
    few = printable(RunResult(tuple(many[:5])))
    assert (len(few["instants"]), "left_out" in few) == (5, False)


def test_of_very_many_differences_the_first_are_reported() -> None:
    document = printable(RunResult(document={"differences": [{"kind": str(number)} for number in range(300)]}))[
        "document"
    ]
    assert (len(document["differences"]), document["left_out"]) == (200, 100)
