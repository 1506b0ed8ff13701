"""Which forms `make soak` submits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from benchmarks import forms
from benchmarks.forms import Case, FormFault, Tables, cases, check_complete, check_conf, merged, wait_for_run
from demo.rest import Airflow, NotReadyError

TABLES = Tables(Path("demo"), "stuck", "20260102030405678", "written", "kept", "20260102030405679", Path("rows"), "p")


class FakeAirflow(Airflow):
    """Answers with the params of each DAG; the run `r` has the conf."""

    def __init__(self, params: dict[str, Any], conf: dict[str, Any] | None = None) -> None:
        super().__init__("http://127.0.0.1:1")
        self._params = params
        self._conf = conf

    def get(self, path: str) -> dict[str, Any]:
        if path.endswith("/dagRuns/r"):
            return {"conf": self._conf}
        return {"params": self._params if "/hudi_repair/" in path else {}}


def verbs(*names: str) -> FakeAirflow:
    return FakeAirflow({"verb": {"value": "rollback", "schema": {"enum": list(names)}}})


def test_each_dag_and_each_verb_is_tried() -> None:
    chosen = cases(TABLES)
    check_complete(chosen, verbs("rollback", "restore", "savepoint", "delete_savepoint", "unschedule", "takeover"))
    with pytest.raises(FormFault, match="hudi_repair is not tried with verb = vacuum"):
        check_complete(chosen, verbs("rollback", "vacuum"))
    with pytest.raises(FormFault, match="hudi_doctor is not tried with its defaults"):
        check_complete([case for case in chosen if case.dag != "hudi_doctor"], verbs("rollback"))


@pytest.mark.parametrize(
    ("conf", "shown"),
    [
        ({"verb": "rollback"}, '{\n  "verb": "restore"\n}'),
        ({"verb": "restore"}, '{\n  "verb": "rollback"\n}'),
        ({"verb": "restore", "more": 1}, '{\n  "verb": "restore"'),
    ],
)
def test_a_run_with_another_conf_is_a_fault(conf: dict[str, Any], shown: str) -> None:
    api = FakeAirflow({"verb": {"value": "rollback", "schema": {}}}, conf)
    case = Case("hudi_repair", typed={"verb": "restore"})
    with pytest.raises(FormFault):
        check_conf(case, shown, api, "r")


def test_the_conf_that_was_shown_and_typed_is_none() -> None:
    api = FakeAirflow(
        {"verb": {"value": "rollback", "schema": {}}, "table": {"value": None, "schema": {}}},
        {"verb": "restore", "table": None},
    )
    check_conf(Case("hudi_repair", typed={"verb": "restore"}), '{\n  "verb": "restore",', api, "r")


class SlowAirflow(Airflow):
    """Answers with the states in turn, or not at all."""

    def __init__(self, *states: str | None) -> None:
        super().__init__("http://127.0.0.1:1")
        self._states = [*states]

    def run_state(self, dag_id: str, run_id: str) -> str:
        state = self._states.pop(0)
        if state is None:
            raise NotReadyError("timed out")
        return state


def test_a_server_that_does_not_answer_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forms.time, "sleep", lambda seconds: None)
    assert wait_for_run(SlowAirflow(None, "running", None, "success"), "a", "r") == "success"
    monkeypatch.setattr(forms, "RUN_SECONDS", 0.0)
    with pytest.raises(FormFault, match="the run is unknown"):
        wait_for_run(SlowAirflow(*[None] * 1_000_000), "a", "r")


def test_forms_of_other_dags_and_pages_stay_as_they_are_stored() -> None:
    stored = {
        "forms": [{"commit": "1", "dag": "a"}, {"commit": "1", "dag": "b"}],
        "pages": [{"commit": "1", "page": "p"}],
    }
    assert merged([{"dag": "b", "case": "x"}, {"dag": "b", "case": "y"}], "2", stored) == {
        "forms": [
            {"commit": "1", "dag": "a"},
            {"commit": "2", "dag": "b", "case": "x"},
            {"commit": "2", "dag": "b", "case": "y"},
        ],
        "pages": [{"commit": "1", "page": "p"}],
    }
    assert merged([{"page": "q"}], "2", {}) == {"forms": [], "pages": [{"commit": "2", "page": "q"}]}
