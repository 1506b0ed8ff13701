"""`hudictl create`, as scripts and as people see it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_core.table import HudiTable
from tests.support.golden_data import GoldenCase
from tests.support.hudictl_runner import hudictl
from tests.support.table_invariants import read_rows

SCHEMA = json.dumps(
    {
        "type": "record",
        "name": "Trip",
        "fields": [{"name": name, "type": "string"} for name in ("id", "sub", "day", "city")]
        + [{"name": "ts", "type": "long"}],
    }
)
LEAST = ("--name", "trips", "--version", "9", "--record-key", "id")


@pytest.fixture
def schema(tmp_path: Path) -> Path:
    path = tmp_path / "trips.avsc"
    path.write_text(SCHEMA)
    return path


def test_a_table_is_created_once(tmp_path: Path, schema: Path) -> None:
    asked = ("create", tmp_path / "t", "--schema", schema, *LEAST)
    would = hudictl(*asked, "--dry-run")
    assert (would.code, would.out.splitlines()[0]) == (0, "would create trips, copy-on-write, version 9, 5 columns")
    assert '"hoodie.table.recordkey.fields": "id"' in would.out
    assert not (tmp_path / "t").exists()
    assert hudictl(*asked).out == "created trips, copy-on-write, version 9, 5 columns\n"
    there = "nothing to do: the table is there: trips, copy-on-write, version 9, 5 columns\n"
    assert hudictl(*asked).out == there
    assert hudictl(*asked, "--dry-run").out == there


def test_every_option_is_a_property(tmp_path: Path, schema: Path) -> None:
    options = {
        "--name": "trips",
        "--type": "MOR",
        "--version": "8",
        "--record-key": "id, sub",
        "--partition-by": "day:SIMPLE,city:SIMPLE",
        "--ordering": "ts",
        "--merge-mode": "commit_time_ordering",
        "--key-generator": "org.apache.hudi.keygen.CustomKeyGenerator",
        "--option": "hoodie.populate.meta.fields=false",
    }
    words = [word for pair in options.items() for word in pair]
    document = hudictl("create", tmp_path / "t", "--schema", schema, *words, "--hive-style", "--json").document
    assert (document["created"], document["reason"]) == (True, None)
    expected = {
        "hoodie.table.name": "trips",
        "hoodie.table.type": "MERGE_ON_READ",
        "hoodie.table.version": "8",
        "hoodie.table.recordkey.fields": "id,sub",
        "hoodie.table.partition.fields": "day:SIMPLE,city:SIMPLE",
        "hoodie.table.precombine.field": "ts",
        "hoodie.record.merge.mode": "COMMIT_TIME_ORDERING",
        "hoodie.table.keygenerator.type": "CUSTOM",
        "hoodie.populate.meta.fields": "false",
        "hoodie.datasource.write.hive_style_partitioning": "true",
    }
    assert {name: document["properties"].get(name) for name in expected} == expected
    assert dict(HudiTable.open(str(tmp_path / "t")).config.raw).items() >= document["properties"].items()


def test_rows_are_written_to_it(tmp_path: Path) -> None:
    rows = pa.table({"id": ["a", "b"], "day": ["1", "2"], "ts": [1, 2]})
    pq.write_table(rows, tmp_path / "rows.parquet")
    given = ("--record-key", "id", "--partition-by", "day", "--ordering", "ts", "--name", "trips", "--version", "6")
    assert hudictl("create", tmp_path / "t", "--like", tmp_path / "rows.parquet", *given).code == 0
    asked = ("write", tmp_path / "t", "--operation", "upsert", "--source", tmp_path / "rows.parquet")
    assert hudictl(*asked, "--engine", "local", "--json").document["inserted"] == 2
    assert sorted(read_rows(tmp_path / "t")["id"].to_pylist()) == ["a", "b"]


def test_bad_input_is_told(tmp_path: Path, schema: Path, golden: Callable[[str, str], GoldenCase]) -> None:
    def refused(*words: str | Path, table: Path = tmp_path / "t") -> dict[str, object]:
        done = hudictl("create", table, *words, "--json")
        assert done.code == 2
        return done.error

    given = ("--schema", schema)
    assert "needs a schema or a file" in str(refused(*LEAST)["message"])
    assert "the new table has no name" in str(refused(*given, "--version", "9")["message"])
    assert "the new table has no version" in str(refused(*given, "--name", "trips")["message"])
    assert "--version: 6, 8, 9" in str(refused(*given, "--name", "trips")["remedy"])
    assert "not one of 6, 8, 9" in str(refused(*given, "--name", "trips", "--version", "10")["message"])
    assert "no column 'key'" in str(refused(*given, *LEAST[:-1], "key")["message"])
    gone = refused("--schema", tmp_path / "gone.avsc", *LEAST)
    assert (gone["type"], gone["path"]) == ("StorageNotFoundError", str(tmp_path / "gone.avsc"))
    assert not (tmp_path / "t").exists()
    holds = refused(*given, *LEAST, table=tmp_path)
    assert (holds["message"], holds["path"]) == (f"{tmp_path} is no Hudi table and holds files", "trips.avsc")
    other = refused(*given, *LEAST, table=golden("8", "cow_basic").table)
    assert "hoodie.table.name is cow_basic there, and trips here" in str(other["message"])
