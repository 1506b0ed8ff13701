"""New tables as operators; the job's own code runs without Spark."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from airflow_hudi.operators.create import HudiCreateTableOperator
from airflow_hudi.operators.write import HudiWriteOperator
from hudi_core.errors import ConfigError
from hudi_core.table import HudiTable
from hudi_core.verbs.create import CreateRequest
from tests.support.fake_spark_submit import RENDERED, context, real_job, requests
from tests.support.table_invariants import read_rows

SCHEMA = json.dumps(
    {
        "type": "record",
        "name": "Trip",
        "fields": [{"name": name, "type": "string"} for name in ("id", "sub", "day")]
        + [{"name": "ts", "type": "long"}],
    }
)
GIVEN: dict[str, Any] = {
    "schema": SCHEMA,
    "table_name": "trips",
    "table_version": 9,
    "record_key": ["id"],
    "partition_by": "day",
    "ordering": ["ts"],
}


def made(table: Path | str, **arguments: Any) -> HudiCreateTableOperator:
    fields = {"task_id": "create", "table": str(table), "hudi_conn_id": None, **GIVEN}
    return HudiCreateTableOperator(**{**fields, **arguments})


@pytest.mark.parametrize("engine", ["spark", "auto", "local"])
def test_a_table_is_made_once(submitted: Path, tmp_path: Path, engine: str) -> None:
    """A look beside the task finds the table that is there, so that Spark is asked once, and only with `spark`."""
    table = tmp_path / "trips"
    create = made(table, engine=engine)
    first = create.execute(context())
    assert {name: first[name] for name in ("table", "created", "name", "type", "version", "columns", "reason")} == {
        "table": str(table),
        "created": True,
        "name": "trips",
        "type": "COPY_ON_WRITE",
        "version": 9,
        "columns": ["id", "sub", "day", "ts"],
        "reason": None,
    }
    assert first["properties"]["hoodie.table.partition.fields"] == "day"
    assert "schema" not in first
    again = made(table, engine=engine).execute(context())
    assert again == {**first, "created": False, "reason": "the table is there"}
    sent = requests(submitted)
    assert [request.verb for request in sent] == (["create"] if engine == "spark" else [])


def test_a_task_writes_to_it(submitted: Path, tmp_path: Path) -> None:
    rows = pa.table({"id": ["a", "b"], "day": ["1", "2"], "ts": [1, 2]})
    pq.write_table(rows, tmp_path / "rows.parquet")
    source = str(tmp_path / "rows.parquet")
    made(tmp_path / "trips", schema="", like=source, table_type="mor", table_version="8").execute(context())
    write = HudiWriteOperator(
        task_id="write", table=str(tmp_path / "trips"), hudi_conn_id=None, operation="upsert", source=source, token="x"
    )
    assert write.execute(context())["inserted"] == 2
    assert sorted(read_rows(tmp_path / "trips")["id"].to_pylist()) == ["a", "b"]


def test_another_table_fails_the_task_for_good(submitted: Path, tmp_path: Path) -> None:
    made(tmp_path / "trips").execute(context())
    with pytest.raises(AirflowFailException, match=r"hoodie\.table\.type is COPY_ON_WRITE there"):
        made(tmp_path / "trips", table_type="mor").execute(context())
    assert HudiTable.open(str(tmp_path / "trips")).config.table_type == "COPY_ON_WRITE"


def test_a_task_may_skip_where_the_table_is_there(submitted: Path, tmp_path: Path) -> None:
    made(tmp_path / "trips").execute(context())
    with pytest.raises(AirflowSkipException, match="the table is there"):
        made(tmp_path / "trips", nothing_to_do="skip").execute(context())


def test_a_dry_run_shows_the_table_and_its_schema(submitted: Path, tmp_path: Path) -> None:
    shown = made(tmp_path / "trips", dry_run="True", outlets=[]).execute(context())
    assert (shown["dry_run"], shown["created"], shown["reason"]) == (True, False, "a dry run")
    assert [field["name"] for field in shown["schema"]["fields"]] == shown["columns"]
    assert not (tmp_path / "trips").exists()
    assert requests(submitted) == [], "it is done beside the task, whose result comes from any cluster"


def test_arguments_may_be_rendered_and_options_say_the_rest(submitted: Path, tmp_path: Path) -> None:
    create = made(
        tmp_path / "trips",
        table_version="{{ 8 }}",
        record_key="id,sub",
        partition_by=[],
        hive_style="{{ true }}",
        table_name="",
        options={"hoodie.table.name": "rides", "hoodie.populate.meta.fields": False},
    )
    vars(create).update(table_version="8", hive_style="True")
    properties = create.execute(context())["properties"]
    expected = {
        "hoodie.table.name": "rides",
        "hoodie.table.version": "8",
        "hoodie.table.recordkey.fields": "id,sub",
        "hoodie.table.partition.fields": "",
        "hoodie.datasource.write.hive_style_partitioning": "true",
        "hoodie.populate.meta.fields": "false",
    }
    assert {name: properties.get(name) for name in expected} == expected
    (request,) = requests(submitted)
    assert isinstance(request, CreateRequest)
    assert (request.table_version, request.record_key, request.ordering) == (8, ("id", "sub"), ("ts",))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"table_version": 7}, "table_version is 7"),
        ({"table_type": "copy"}, "table_type is 'copy'"),
        ({"merge_mode": "LATEST"}, "merge_mode is 'LATEST'"),
        ({"like": "rows.parquet"}, "needs either a schema or a file"),
        ({"record_key": []}, "the new table has no record key"),
        ({"hive_style": "maybe"}, "hive_style is 'maybe'"),
        ({"options": {"hoodie.table.name": "rides"}}, "table_name is 'trips', and the option"),
    ],
)
def test_a_mistake_is_found_in_the_dag_file(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        made("/data/trips", **wrong)
    rendered = HudiCreateTableOperator(
        **{"task_id": "create", "table": "/data/trips", "hudi_conn_id": None, **GIVEN, **wrong, **RENDERED}
    )
    assert rendered.table_name == "trips"  # type: ignore[attr-defined]


def test_what_is_rendered_later_is_checked_later() -> None:
    assert made("/data/trips", table_name="{{ params.name }}", table_version="{{ params.version }}")


def test_a_table_that_was_not_made_gets_no_result_file(
    submitted: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In cluster mode: else the next create would find a file in the folder."""
    cluster = {"conn_type": "spark", "host": "yarn", "extra": {"deploy-mode": "cluster"}}
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", json.dumps(cluster))
    real_job(monkeypatch)
    (tmp_path / "trips").mkdir()
    (tmp_path / "trips" / "rows.parquet").touch()
    with pytest.raises(AirflowFailException):
        made(tmp_path / "trips").execute(context())
    assert [path.name for path in (tmp_path / "trips").rglob("*")] == ["rows.parquet"]
    (tmp_path / "trips" / "rows.parquet").unlink()
    assert made(tmp_path / "trips").execute(context())["created"]
