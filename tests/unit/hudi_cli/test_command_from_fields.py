"""A verb that hudictl has no command for: one is made from its fields. Beside an Airflow task it runs as others do."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from hudi_cli.job import run_call
from hudi_core.config.engine_config import Mode
from hudi_core.verbs.batch import parse_job
from hudi_core.verbs.registry import VERBS
from hudi_core.verbs.request import parse_request
from hudi_submit.local_process import LocalCall
from tests.support.golden_data import GoldenCase
from tests.support.hudictl_runner import hudictl
from tests.support.toy_verb import LINE, WeighRequest

Golden = Callable[[str, str], GoldenCase]


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(VERBS, "weigh", LINE)


def weight_of(table: Path) -> int:
    files = (path for path in table.glob("2024-*/*") if not path.name.startswith(".hoodie_partition"))
    return sum(path.stat().st_size for path in files if path.suffix != ".crc")


@pytest.mark.parametrize("engine", ["local", "auto"])
def test_hudictl_runs_it(golden: Golden, engine: str) -> None:
    table = golden("9", "mor_basic").table
    done = hudictl("weigh", table, "--engine", engine, "--json")
    assert (done.code, done.document) == (0, {"bytes": weight_of(table), "reason": None})
    in_units = hudictl("weigh", table, "--unit", "1000", "--json")
    assert in_units.document["bytes"] == weight_of(table) // 1000
    one = hudictl("weigh", table, "--partitions", "2024-01-01", "--json")
    assert 0 < one.document["bytes"] < weight_of(table)
    nothing = hudictl("weigh", table, "--partitions", "nowhere", "--json", "--engine", "spark")
    assert nothing.document == {"bytes": 0, "reason": "the table has no partition"}, "no Spark is started for it"
    people = hudictl("weigh", table)
    assert str(weight_of(table)) in people.out


def test_its_help_is_made_of_its_fields() -> None:
    shown = hudictl("weigh", "--help").out
    assert "Weigh the data files of a table" in shown
    for option in ("--unit INTEGER", "--partitions NAME", "--dry-run", "--engine", "--option K=V", "TABLE"):
        assert option in shown
    assert "weigh" in hudictl("--help").out


def test_the_process_beside_a_task_runs_it(golden: Golden) -> None:
    table = golden("8", "mor_basic").table
    request = WeighRequest(str(table))
    assert parse_request(request.to_json()) == parse_job(request.to_json()) == request
    assert run_call(LocalCall(request, Mode.LOOK, {}), request).left == "there is work"
    done = run_call(LocalCall(request, Mode.AUTO, {}), request)
    assert (done.engine, json.loads(json.dumps(done.to_json()))["document"]["bytes"]) == ("local", weight_of(table))
    large = WeighRequest(str(table), options={"airflow_hudi.engine.local.max.units": "0"})
    assert "max.units" in (run_call(LocalCall(large, Mode.AUTO, {}), large).left or "")


def test_where_no_verb_has_the_name_there_is_no_command() -> None:
    assert hudictl("savepoint-create", "/t").code == 2
    assert hudictl("nothing-of-the-kind", "/t").code == 2
