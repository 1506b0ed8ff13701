from __future__ import annotations

from hudi_core.request.results import InstantResult, Result, result_line


def test_a_result_prints_what_hudictl_promises() -> None:
    done = InstantResult("1", "commit", "completed", 2, 100, 50, 1.5)
    assert done.to_dict() == {
        "instant": "1",
        "action": "commit",
        "state": "completed",
        "files_written": 2,
        "bytes_written": 100,
        "records": 50,
        "seconds": 1.5,
        "files_deleted": 0,
    }
    lost = InstantResult("2", "compaction", "inflight", error="corrupt", exit_code=2)
    assert (lost.to_dict()["error"], lost.to_dict()["exit_code"]) == ("corrupt", 2)
    document = result_line(Result((done, lost)))
    assert document == {"version": 1, "instants": [done.to_dict(), lost.to_dict()]}


def test_the_result_of_a_verb_is_its_document() -> None:
    result = Result(document={"instant": None, "plan": None, "reason": "no commits"})
    assert result.to_dict() == {"instant": None, "plan": None, "reason": "no commits"}
    assert result_line(result) == {"version": 1, "document": result.to_dict()}


def test_a_run_without_work_has_a_reason() -> None:
    assert Result((), "no commits").to_dict() == {"instants": [], "reason": "no commits"}
    assert result_line(Result((), "no commits")) == {"version": 1, "instants": [], "reason": "no commits"}


def test_what_is_left_to_spark_comes_behind_what_was_done() -> None:
    done, more = InstantResult("1", "commit", "completed"), InstantResult("2", "commit", "completed")
    first = Result((done,), engine="local", left="large")
    assert first.then(Result((more,), engine="spark")) == Result((done, more), engine="spark")
    assert first.then(Result((), "the time of the run is over")) == Result((done,), engine="local")
    later = Result((), "no commits")
    assert Result(left="large").then(later) == later


def test_exit_codes() -> None:
    done = InstantResult("1", "commit", "completed")
    bad = InstantResult("2", "compaction", "requested", error="e", exit_code=2)
    busy = InstantResult("3", "compaction", "requested", error="e", exit_code=3)
    unknown = InstantResult("4", "compaction", "requested", error="e")
    assert Result().exit_code == 0
    assert Result((done,)).exit_code == 0
    assert Result((bad,)).exit_code == 2
    assert Result((busy, busy)).exit_code == 3
    assert Result((unknown,)).exit_code == 1
    assert Result((done, bad)).exit_code == 1
    assert Result((bad, busy)).exit_code == 1


def test_the_failed_instants() -> None:
    done, lost = InstantResult("1", "commit", "completed"), InstantResult("2", "clean", "inflight", error="e")
    assert Result((done, lost)).failed == (lost,)
