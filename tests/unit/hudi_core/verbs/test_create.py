"""Requests of new tables: what means nothing is refused, and JSON keeps the rest."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hudi_core.errors import ConfigError, HudiError, StorageNotFoundError
from hudi_core.storage.local import LocalStorage
from hudi_core.table import HudiTable
from hudi_core.verbs.create import CreateRequest
from hudi_core.verbs.request import RESULTS, Work, parse_request
from tests.support.changed_tables import an_owner, open_context

SCHEMA = json.dumps({"type": "record", "name": "Trip", "fields": [{"name": "id", "type": "string"}]})
LEAST: dict[str, Any] = {"schema": SCHEMA, "table_name": "trips", "table_version": 9, "record_key": ("id",)}


def create(folder: Path, **given: Any) -> dict[str, Any]:
    request = CreateRequest(str(folder), **{**LEAST, **given})
    return dict(request.run_on_storage(LocalStorage(folder), {}).document or {})


@pytest.mark.parametrize(
    "request_",
    [
        CreateRequest("/t", **LEAST),
        CreateRequest(
            "s3://bucket/t",
            like="s3://bucket/rows.parquet",
            table_name="trips",
            table_type="mor",
            table_version=8,
            record_key=("id", "sub"),
            partition_by=("day:TIMESTAMP", "city:SIMPLE"),
            ordering=("ts",),
            merge_mode="COMMIT_TIME_ORDERING",
            hive_style=True,
            key_generator="CUSTOM",
            options={"hoodie.populate.meta.fields": "false"},
            dry_run=True,
        ),
        CreateRequest(
            "/t",
            schema="trips.avsc",
            options={
                "hoodie.table.name": "trips",
                "hoodie.write.table.version": "6",
                "hoodie.datasource.write.recordkey.field": "id",
            },
        ),
    ],
)
def test_requests_cross_processes(request_: CreateRequest) -> None:
    assert parse_request(request_.to_json()) == request_
    assert not request_.needs_executors
    assert request_.results_folder == RESULTS


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"schema": ""}, "needs a schema or a file like its rows"),
        ({"like": "rows.parquet"}, "needs either a schema or a file like its rows"),
        ({"schema": "https://user:secret@host/trips.avsc"}, "the address of `schema`"),
        ({"schema": "", "like": "https://user:secret@host/rows"}, "the address of `like`"),
        ({"table_name": ""}, "no name"),
        ({"table_version": 7}, "table_version is 7"),
        ({"record_key": ()}, "no record key"),
        ({"options": {"hoodie.table.name": "fares"}}, "table_name is 'trips', and the option"),
        ({"options": {"hoodie.password": "x"}}, "options must not hold secrets"),
    ],
)
def test_what_means_nothing_is_refused(given: dict[str, Any], error: str) -> None:
    with pytest.raises(HudiError, match=error):
        CreateRequest("/t", **{**LEAST, **given})


def test_the_text_of_a_schema_is_no_address() -> None:
    """It may hold what looks like a secret in one."""
    text = json.dumps({**json.loads(SCHEMA), "doc": "see https://user:secret@host/"})
    assert CreateRequest("/t", **{**LEAST, "schema": text}).schema == text


def test_a_table_is_made_and_then_found(tmp_path: Path) -> None:
    request, storage = CreateRequest(str(tmp_path / "t"), **LEAST), LocalStorage(tmp_path / "t")
    assert request.nothing_on_storage(storage) is None
    assert not (tmp_path / "t").exists()
    assert create(tmp_path / "t")["created"]
    found = request.nothing_on_storage(storage)
    assert found is not None
    assert found.document == create(tmp_path / "t")
    assert (found.document["created"], found.document["reason"]) == (False, "the table is there")
    with pytest.raises(ConfigError, match="there is another table"):
        CreateRequest(str(tmp_path / "t"), **{**LEAST, "table_type": "mor"}).nothing_on_storage(storage)


def test_a_look_at_no_table_reads_no_schema(tmp_path: Path) -> None:
    """The schema may be a file that only the driver has."""
    request = CreateRequest(str(tmp_path / "t"), **{**LEAST, "schema": str(tmp_path / "trips.avsc")})
    assert request.nothing_on_storage(LocalStorage(tmp_path / "t")) is None
    with pytest.raises(StorageNotFoundError, match="there is no Avro schema"):
        request.run_on_storage(LocalStorage(tmp_path / "t"))


def test_a_dry_run_shows_the_table(tmp_path: Path) -> None:
    shown = create(tmp_path / "t", dry_run=True)
    assert (shown["created"], shown["reason"], shown["columns"]) == (False, "a dry run", ["id"])
    looked = CreateRequest(str(tmp_path / "t"), **LEAST, dry_run=True).nothing_on_storage(LocalStorage(tmp_path / "t"))
    assert looked is not None
    assert looked.document == shown
    assert not (tmp_path / "t").exists()
    assert create(tmp_path / "t") == {**shown, "created": True, "reason": None}


def test_on_a_table_it_does_what_it_does_on_a_storage(tmp_path: Path) -> None:
    create(tmp_path)
    context = open_context(tmp_path)
    engine: Any = None
    done = CreateRequest(str(tmp_path), **LEAST).run(Work(context, engine, an_owner()))
    assert (done.document or {})["reason"] == "the table is there"
    assert HudiTable.open(str(tmp_path)).config.name == "trips"
