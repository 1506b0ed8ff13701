"""The examples of docs/use/writing.md, run on a table of real Hudi."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.support.fake_spark_submit import requests
from tests.support.golden_data import GoldenCase
from tests.support.hudictl_runner import hudictl
from tests.support.overwrites import own_rows, places, put_source, within
from tests.support.table_invariants import read_rows
from tests.unit.airflow_hudi.operators.test_overwrite import of_interval

Golden = Callable[[str, str], GoldenCase]
PAGE = Path(__file__).parents[4] / "docs" / "use" / "writing.md"
DAY = "2026-02-01"


def examples() -> list[str]:
    """The command, the operator, and the command that makes a table."""
    return re.findall(r"^```\w*\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)


def rows_to_write(table: Path) -> pa.Table:
    rows = read_rows(table)
    return own_rows(table, within(rows, min(rows.column("_hoodie_partition_path").to_pylist())).slice(0, 3))


def test_the_command_upserts_once(golden: Golden, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    command, *_ = examples()
    table = golden("9", "cow_basic").table.rename(tmp_path / "orders")
    before = read_rows(table)
    put_source(rows_to_write(table), tmp_path / "staging", name=DAY)
    monkeypatch.chdir(tmp_path)
    program, *words = shlex.split(command)
    done, again = hudictl(*words), hudictl(*words)
    assert (program, done.code, again.code) == ("hudictl", 0, 0), done.err + again.err
    assert "upsert in 1 partitions: 0 rows inserted, 3 updated, 0 deleted" in done.out
    assert again.out == f"done before, as {done.out}"
    assert places(read_rows(table)) == places(before)


def test_the_first_command_makes_the_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    *_, command = examples()
    rows = pa.table({"id": ["a", "b"], "dt": ["x", "y"], "ts": [1, 2]})
    put_source(rows, tmp_path / "staging", name=DAY)
    monkeypatch.chdir(tmp_path)
    program, *words = shlex.split(command.replace("\\\n", " "))
    done, again = (hudictl(*words, "--engine", "local", "--json") for _ in range(2))
    assert (program, done.code, again.code) == ("hudictl", 0, 0), done.err + again.err
    assert (done.document["created"], again.document["created"]) == (True, False)
    assert read_rows(tmp_path / "orders").select(rows.column_names).sort_by("id") == rows


def test_the_operator_upserts_the_rows_of_its_day_once(
    golden: Golden, submitted: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, operator, _ = examples()
    (tmp_path / "sales").mkdir()
    table = golden("9", "cow_basic").table.rename(tmp_path / "sales" / "orders")
    before = read_rows(table)
    put_source(rows_to_write(table), tmp_path / "staging" / "orders", name=DAY)
    connection = {"conn_type": "hudi", "host": str(tmp_path), "extra": {"engine": "local"}}
    monkeypatch.setenv("AIRFLOW_CONN_HUDI_DEFAULT", json.dumps(connection))
    made: dict[str, Any] = {}
    exec(operator.replace("s3://", f"{tmp_path}/"), made)
    merge = made["merge"]
    merge.render_template_fields({"ds": DAY})
    done, again = merge.execute(of_interval()), merge.execute(of_interval())
    assert [done[name] for name in ("operation", "updated", "inserted", "engine")] == ["UPSERT", 3, 0, "local"]
    assert (again["instant"], done["repeated"], again["repeated"]) == (done["instant"], False, True)
    assert requests(submitted) == []
    assert places(read_rows(table)) == places(before)
