"""The schema of a new table: as Spark's writers name it, from Parquet files and Avro schemas."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_core.codec.avro.arrow import arrow_schema
from hudi_core.config.new_table import NewTable
from hudi_core.errors import ConfigError, CorruptFileError, StorageNotFoundError, UnsupportedError
from hudi_core.services.create.schema import schema_given, schema_like
from hudi_core.table import HudiTable
from tests.support.golden_data import GoldenCase

Golden = Callable[[str, str], GoldenCase]
ID = {"name": "id", "type": "string"}


def table(version: int = 9, name: str = "trips") -> NewTable:
    return NewTable.of({"table_name": name, "table_version": version, "record_key": ("id",)}, {})


def record(*fields: dict[str, Any], **more: Any) -> str:
    return json.dumps({"type": "record", "name": "Trip", "namespace": "com.acme", "fields": [ID, *fields], **more})


def given(schema: str, version: int = 9) -> dict[str, Any]:
    """The Avro types of the columns, by name."""
    found = schema_given(table(version), schema, {})
    return {field["name"]: field["type"] for field in found["fields"]}


def parquet(folder: Path, **columns: pa.Array) -> str:
    pq.write_table(pa.table({"id": ["a"], **columns}), folder / "rows.parquet")
    return str(folder / "rows.parquet")


@pytest.mark.parametrize("version", ["6", "8", "9"])
def test_it_is_that_of_real_hudis_commits(golden: Golden, tmp_path: Path, version: str) -> None:
    """A file of the table, with all types of Spark, has the schema that Spark's writer recorded."""
    case = golden(version, "types_cow")
    opened = HudiTable.open(str(case.table))
    commit = opened.timeline().commits().last()
    assert commit is not None
    theirs = json.loads(opened.context.active.read_commit(commit).schema_text or "")
    file = min(case.table.glob("*/*.parquet"))
    ours = schema_like(table(int(version), "types_cow"), str(file), {})
    assert {name: ours[name] for name in ("type", "name", "namespace")} == {
        name: theirs[name] for name in ("type", "name", "namespace")
    }
    fields = {field["name"]: field for field in theirs["fields"]}
    assert fields.pop("c_nonnull_int") == {"name": "c_nonnull_int", "type": "int"}
    assert {field["name"]: field for field in ours["fields"] if field["name"] != "c_nonnull_int"} == fields
    again = schema_given(table(int(version), "types_cow"), json.dumps(theirs), {})
    assert again == {name: theirs[name] for name in again}, "as an Avro schema of a user it stays what it is"


def test_the_first_file_of_a_folder_counts(tmp_path: Path) -> None:
    parquet(tmp_path, qty=pa.array([1], pa.int8()))
    found = schema_like(table(), str(tmp_path), {})
    assert [field["name"] for field in found["fields"]] == ["id", "qty"]
    assert found["fields"][1]["type"] == ["null", "int"]


def test_meta_columns_of_another_table_are_left_out(golden: Golden) -> None:
    file = min(golden("9", "cow_basic").table.glob("*/*.parquet"))
    assert not [name for name in arrow_schema(schema_like(table(), str(file), {}), path="x").names if "_hoodie" in name]


@pytest.mark.parametrize(
    ("name", "expected"), [("trips", "trips"), ("9 lives", "____lives"), ("a-b.c", "a__b__c"), ("_x9", "_x9")]
)
def test_a_name_that_avro_does_not_allow_is_changed_as_by_hudi(tmp_path: Path, name: str, expected: str) -> None:
    found = schema_like(table(9, name), parquet(tmp_path), {})
    assert (found["name"], found["namespace"]) == (f"{expected}_record", f"hoodie.{expected}")


def decimal(precision: int, scale: int, size: int, column: str) -> dict[str, Any]:
    return {
        "type": "fixed",
        "name": "fixed",
        "namespace": f"hoodie.trips.trips_record.{column}",
        "size": size,
        "logicalType": "decimal",
        "precision": precision,
        "scale": scale,
    }


ADDRESS = {"type": "record", "name": "Address", "fields": [{"name": "zip", "type": "int"}]}


@pytest.mark.parametrize(
    ("avro", "spark"),
    [
        ("long", "long"),
        (["long", "null"], ["null", "long"]),
        ({"type": "enum", "name": "Colour", "symbols": ["RED"]}, "string"),
        ({"type": "string", "logicalType": "uuid"}, "string"),
        ({"type": "fixed", "name": "Four", "size": 4}, "bytes"),
        ({"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}, decimal(10, 2, 5, "v")),
        (
            {"type": "fixed", "name": "Money", "size": 16, "logicalType": "decimal", "precision": 10, "scale": 2},
            decimal(10, 2, 5, "v"),
        ),
        ({"type": "long", "logicalType": "timestamp-millis"}, {"type": "long", "logicalType": "timestamp-micros"}),
        ({"type": "array", "items": "long"}, {"type": "array", "items": ["null", "long"]}),
        ({"type": "map", "values": "long"}, {"type": "map", "values": ["null", "long"]}),
        (
            ["null", ADDRESS],
            [
                "null",
                {
                    "type": "record",
                    "name": "v",
                    "namespace": "hoodie.trips.trips_record",
                    "fields": [{"name": "zip", "type": ["null", "int"], "default": None}],
                },
            ],
        ),
    ],
)
def test_types_are_those_that_spark_writes(avro: Any, spark: Any) -> None:
    """Else Hudi's next write finds its own types not compatible with those that we wrote."""
    assert given(record({"name": "v", "type": avro}))["v"] == spark


def test_columns_that_may_not_be_null_stay_so() -> None:
    found = schema_given(table(), record({"name": "v", "type": ["null", "int"], "default": None}), {})
    assert found["fields"] == [
        {"name": "id", "type": "string"},
        {"name": "v", "type": ["null", "int"], "default": None},
    ]


def test_one_named_type_may_be_of_two_columns() -> None:
    found = given(record({"name": "a", "type": ADDRESS}, {"name": "b", "type": ["null", "Address"]}))
    assert (found["a"]["name"], found["b"][1]["name"]) == ("a", "b")


def test_a_schema_is_read_from_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "trips.avsc").write_text(record())
    monkeypatch.chdir(tmp_path)
    inline = given(record())
    assert given(str(tmp_path / "trips.avsc")) == inline
    assert given(f"file://{tmp_path}/trips.avsc") == inline
    assert given("trips.avsc") == inline
    assert given(f"\n  {record()}") == inline


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(StorageNotFoundError, match="there is no Avro schema"):
        given(str(tmp_path / "trips.avsc"))
    with pytest.raises(StorageNotFoundError, match="is no file"):
        schema_like(table(), str(tmp_path / "rows.parquet"), {})


def test_a_file_that_is_no_schema_is_told(tmp_path: Path) -> None:
    (tmp_path / "bytes.avsc").write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match="is not UTF-8"):
        given(str(tmp_path / "bytes.avsc"))
    (tmp_path / "rows.parquet").write_bytes(b"no Parquet")
    with pytest.raises(CorruptFileError):
        schema_like(table(), str(tmp_path / "rows.parquet"), {})


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ("{", "is not JSON"),
        ("{}", "not that of a record"),
        (record(fields=[]), "there is no column in it"),
        (record(fields=[{"name": "_hoodie_record_key", "type": "string"}]), "there is no column in it"),
        (record({"name": "v", "type": "text"}), "not an Avro schema"),
        (record({"name": "v", "type": "Address"}), "not an Avro schema"),
        (record({"name": "v-w", "type": "int"}), "v-w"),
        (record({"name": "ID", "type": "int"}), "upper and lower case alone"),
        (record({"name": "v", "type": {**ADDRESS, "fields": [{"name": "a b", "type": "int"}]}}), "a b"),
    ],
)
def test_what_is_no_schema_of_a_record_is_refused(schema: str, message: str) -> None:
    with pytest.raises((ConfigError, UnsupportedError), match=message):
        given(schema)


@pytest.mark.parametrize(
    ("kind", "version", "message"),
    [
        (["null", "int", "string"], 9, "Avro union"),
        ({"type": "int", "logicalType": "time-millis"}, 9, "which Spark does not read"),
        ({"type": "long", "logicalType": "local-timestamp-micros"}, 8, "without a zone"),
        ("null", 9, "'v' is of the type null, which has no form in Avro"),
        (["null", "com.acme.Trip"], 9, "contains itself"),
    ],
)
def test_a_type_that_the_table_cannot_have_is_refused_by_name(kind: Any, version: int, message: str) -> None:
    with pytest.raises(UnsupportedError, match=message):
        given(record({"name": "v", "type": kind}), version)


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (pa.array([1], pa.uint64()), "'v' is of the type uint64"),
        (pa.array([1], pa.time64("us")), "which Spark does not read"),
        (pa.nulls(1), "'v' is of the type null"),
    ],
)
def test_a_type_of_a_file_that_avro_or_spark_lack_is_refused_by_name(
    tmp_path: Path, column: pa.Array, message: str
) -> None:
    with pytest.raises(UnsupportedError, match=message):
        schema_like(table(), parquet(tmp_path, v=column), {})


def test_names_of_a_file_that_are_none_are_refused(tmp_path: Path) -> None:
    one = pa.array([1])
    for columns, message in (
        ({"a b": one}, "'a b'"),
        ({"ID": one}, "have one name"),
        ({"_hoodie_operation": one}, "change log"),
    ):
        with pytest.raises(ConfigError, match=message):
            schema_like(table(), parquet(tmp_path, **columns), {})
