"""What a source adds to a table's schema."""

from __future__ import annotations

import json
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_core.codec.avro import schema as avro_schemas
from hudi_core.codec.avro.arrow import arrow_schema
from hudi_core.codec.avro.arrow_conform import conform_array
from hudi_core.codec.avro.schema import AvroSchema, parse_schema
from hudi_core.codec.parquet.file import ParquetBaseFile
from hudi_core.errors import ConfigError, ConflictError, HudiError, UnsupportedError
from hudi_core.filegroup.read.schema_resolver import table_schema
from hudi_core.model.names import META_FIELDS
from hudi_core.services.overwrite import job
from hudi_core.services.source.schema import Evolution, evolve
from hudi_core.table import HudiTable
from tests.support.changed_tables import open_context
from tests.support.golden_data import GoldenCase
from tests.support.overwrites import commit_of, delete, overwrite, own_rows, places, put_source, within
from tests.support.rows import assert_same_rows
from tests.support.table_invariants import assert_metadata_true, read_rows
from tests.support.tiers import tiered

Golden = Callable[[str, str], GoldenCase]
TABLE: AvroSchema = {
    "type": "record",
    "name": "t_record",
    "namespace": "hoodie.t",
    "fields": [
        {"name": "id", "type": "string"},
        {"name": "n", "type": ["null", "int"], "default": None},
        {"name": "f", "type": "float"},
        {"name": "d", "type": ["null", {"type": "int", "logicalType": "date"}], "default": None},
        {"name": "millis", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "local", "type": {"type": "long", "logicalType": "local-timestamp-millis"}},
        {"name": "time", "type": {"type": "long", "logicalType": "time-micros"}},
        {"name": "md5", "type": {"type": "fixed", "name": "md5", "size": 4}},
    ],
}


def evolved(
    rows: pa.Table, folder: Path, passed: tuple[str, ...] = (), version: str = "9", **written: Any
) -> Evolution:
    path = folder / "rows.parquet"
    pq.write_table(rows, path, **written)
    with path.open("rb") as stream, ParquetBaseFile(stream, str(path)) as file:
        return evolve(TABLE, file, passed, int(version))


def test_nothing_new_is_no_change(tmp_path: Path) -> None:
    found = evolved(pa.table({"n": pa.array([1], pa.int16()), "id": ["a"]}), tmp_path)
    assert (bool(found), found.schema) == (False, TABLE)


@pytest.mark.parametrize("version", ["6", "8", "9"])
def test_columns_of_the_table_keep_types_that_new_ones_have_not(tmp_path: Path, version: str) -> None:
    rows = pa.table({field.name: pa.nulls(1, field.type) for field in arrow_schema(TABLE)}).append_column("new", [[1]])
    assert {pa.timestamp("ms", "UTC"), pa.timestamp("ms"), pa.time64("us"), pa.binary(4)} <= {*rows.schema.types}
    found = evolved(rows, tmp_path, version=version)
    assert (found.added, found.widened) == (("new",), ())
    assert found.schema["fields"][:-1] == TABLE["fields"]


def test_new_columns_come_last_and_may_be_null(tmp_path: Path) -> None:
    inner = pa.struct([("a", pa.decimal128(20, 4)), ("b", pa.list_(pa.struct([("c", pa.decimal128(5, 1))])))])
    rows = pa.table(
        {
            "id": ["a"],
            "note": ["x"],
            "price": pa.array([Decimal("1.25")], pa.decimal128(12, 2)),
            "nested": pa.array([{"a": Decimal("1.0000"), "b": [{"c": Decimal("0.5")}]}], inner),
            "seen": pa.array([0], pa.timestamp("us", "UTC")),
            "_hoodie_commit_time": ["t"],
        }
    )
    found = evolved(rows, tmp_path, ("_hoodie_commit_time",))
    assert (found.added, found.widened) == (("note", "price", "nested", "seen"), ())
    old = len(TABLE["fields"])
    assert found.schema["fields"][:old] == TABLE["fields"]
    added = {entry["name"]: entry for entry in found.schema["fields"][old:]}
    assert added["note"] == {"name": "note", "type": ["null", "string"], "default": None}
    assert added["price"]["type"][1] == {
        "type": "fixed",
        "name": "fixed",
        "namespace": "hoodie.t.t_record.price",
        "size": 6,
        "logicalType": "decimal",
        "precision": 12,
        "scale": 2,
    }
    read_again = arrow_schema(parse_schema(json.dumps(found.schema), path="T"))
    assert [read_again.field(name).type for name in found.added] == [
        rows.schema.field(name).type for name in found.added
    ]
    assert all(read_again.field(name).nullable for name in found.added)


@pytest.mark.parametrize("version", ["6", "8", "9"])
def test_new_columns_are_declared_as_real_hudi_does(golden: Golden, version: str) -> None:
    table = golden(version, "types_cow").table
    context = open_context(table)
    schema = table_schema(context.storage, context.config, context.active.load())
    path = max(table.glob("*/*.parquet"))
    with path.open("rb") as stream, ParquetBaseFile(stream, str(path)) as file:
        found = evolve({**schema, "fields": []}, file, META_FIELDS, int(version))
    ours = {entry["name"]: entry for entry in found.schema["fields"]}
    wrong = [entry["name"] for entry in schema["fields"] if _plain(entry) != _plain(ours[entry["name"]])]
    assert (len(ours), wrong) == (len(schema["fields"]), [])


def _plain(kind: Any) -> Any:
    """A type without documentation and defaults; a column that may not be null there, may be in ours."""
    if isinstance(kind, list):
        left = [_plain(item) for item in kind if item != "null"]
        return left[0] if len(left) == 1 else left
    if isinstance(kind, dict):
        return {key: _plain(value) for key, value in kind.items() if key not in ("doc", "default")}
    return kind


def test_times_of_spark_are_instants(tmp_path: Path) -> None:
    at = pa.timestamp("us")
    rows = pa.table({"at": pa.array([0], at), "event": pa.array([{"at": 0}], pa.struct([("at", at)]))})
    found = evolved(rows, tmp_path, use_deprecated_int96_timestamps=True)
    expected = ["null", {"type": "long", "logicalType": "timestamp-micros"}]
    top, event = found.schema["fields"][-2:]
    assert top["type"] == event["type"][1]["fields"][0]["type"] == expected


def test_times_of_spark_are_taken_within_structs(golden: Golden, tmp_path: Path) -> None:
    """As a new column, and by the column that it then is."""
    table = golden("9", "cow_basic").table
    rows = read_rows(table)
    name = min(rows.column("_hoodie_partition_path").to_pylist())
    mine = own_rows(table, within(rows, name))
    events = pa.array([{"at": 1_000_000}] * mine.num_rows, pa.struct([("at", pa.timestamp("us"))]))
    given = tmp_path / "source"
    given.mkdir()
    old = mine.append_column("event", events).replace_schema_metadata(None)
    pq.write_table(old, given / "rows.parquet", use_deprecated_int96_timestamps=True)
    for _ in range(2):
        overwrite(table, given)
        found = within(read_rows(table), name).column("event")
        assert found.type == pa.struct([("at", pa.timestamp("us", "UTC"))])
        assert found.combine_chunks().field("at").cast(pa.int64()).to_pylist() == [1_000_000] * mine.num_rows


@pytest.mark.parametrize(
    ("column", "values", "expected"),
    [
        ("n", pa.array([1], pa.int64()), ["null", "long"]),
        ("n", pa.array([1.0], pa.float64()), ["null", "double"]),
        ("f", pa.array([1.0], pa.float64()), "double"),
    ],
)
def test_numbers_become_wider(tmp_path: Path, column: str, values: pa.Array, expected: Any) -> None:
    found = evolved(pa.table({column: values}), tmp_path)
    assert found.widened == (column,)
    assert {entry["name"]: entry["type"] for entry in found.schema["fields"]}[column] == expected


@pytest.mark.parametrize("values", [pa.array(["1"]), pa.array([1.0], pa.float32())])
def test_what_would_lose_values_is_no_change(tmp_path: Path, values: pa.Array) -> None:
    """The check of types refuses it by name."""
    assert not evolved(pa.table({"n": values}), tmp_path)


@pytest.mark.parametrize(
    ("name", "kind", "error", "match"),
    [
        ("two words", pa.string(), ConfigError, "no name in its schema"),
        ("1st", pa.string(), ConfigError, "no name in its schema"),
        ("at", pa.timestamp("ns"), UnsupportedError, "Spark does not read"),
        ("at", pa.time32("ms"), UnsupportedError, r"'at' is of the type time32\[ms\], which Spark does not read"),
        ("at", pa.list_(pa.time64("us")), UnsupportedError, r"'at\.element' is of the type time64\[us\]"),
        ("at", pa.struct([("a", pa.map_(pa.string(), pa.time64("us")))]), UnsupportedError, r"'at\.a\.value'"),
        ("at", pa.uint32(), UnsupportedError, "the column 'at' is of the type uint32, which has no form in Avro"),
        ("at", pa.duration("us"), HudiError, "at"),
    ],
)
def test_what_no_schema_of_hudi_has_is_refused(
    tmp_path: Path, name: str, kind: pa.DataType, error: type[HudiError], match: str
) -> None:
    with pytest.raises(error, match=match):
        evolved(pa.table({name: pa.nulls(1, kind)}), tmp_path, META_FIELDS)


SHAPES: dict[str, Callable[[pa.DataType], pa.DataType]] = {
    "c": lambda kind: kind,
    "c.s": lambda kind: pa.struct([("s", kind)]),
    "c.element": pa.list_,
    "c.element.value": lambda kind: pa.large_list(pa.map_(pa.string(), kind)),
}


@pytest.mark.parametrize("version", ["6", "8", "9"])
@pytest.mark.parametrize("where", SHAPES)
def test_names_within_a_new_column_are_checked(tmp_path: Path, where: str, version: str) -> None:
    """Real Hudi opens no table with an illegal one."""
    kind = SHAPES[where](pa.struct([("a b", pa.int32())]))
    with pytest.raises(ConfigError, match=f"no column '{where}.a b', and 'a b' can be no name in its schema"):
        evolved(pa.table({"c": pa.nulls(1, kind)}), tmp_path, version=version)


def test_a_column_of_the_table_in_another_case_is_none_that_is_new(tmp_path: Path) -> None:
    rows = pa.table({"ID": ["a"], "N": pa.array([1], pa.int64()), "_HOODIE_file_name": ["f"], "nx": [1]})
    found = evolved(rows, tmp_path, tuple(META_FIELDS))
    assert (found.added, found.widened) == (("nx",), ("n",))
    alike = pa.struct([("nx", pa.int64()), ("C", pa.int64())])
    assert evolved(pa.table({"nx": [1], "c": pa.nulls(1, alike)}), tmp_path).added == ("nx", "c")


@pytest.mark.parametrize("version", ["6", "8", "9"])
@pytest.mark.parametrize("where", SHAPES)
def test_new_columns_are_of_types_of_spark(tmp_path: Path, where: str, version: str) -> None:
    """Where a commit had another type than an upsert by Spark gives, real Hudi refused the upsert."""

    def added(kind: pa.DataType) -> pa.DataType:
        found = evolved(pa.table({"c": pa.nulls(1, SHAPES[where](kind))}), tmp_path, version=version)
        return arrow_schema(parse_schema(json.dumps(found.schema), path="T")).field("c").type

    micros = pa.timestamp("us", "UTC")
    assert added(pa.timestamp("ms", "UTC")) == added(micros) == added(pa.timestamp("us", "Asia/Tokyo"))
    assert added(pa.binary(4)) == added(pa.binary())
    for kind in (pa.timestamp("us"), pa.timestamp("ms")):
        if version == "9":
            assert added(kind) == added(pa.timestamp("us")) != added(micros)
        else:
            with pytest.raises(UnsupportedError, match="without a zone") as refused:
                added(kind)
            assert f"the column '{where}' is of the type {kind}" in refused.value.message
            assert refused.value.remedy == "cast it to a timestamp in UTC in the source"


@pytest.mark.parametrize("version", tiered(["6", "8", "9"], ["6", "9"]))
def test_rows_are_written_as_new_columns_are_declared(golden: Golden, tmp_path: Path, version: str) -> None:
    """And by a second overwrite, whose columns are the table's then."""
    table = golden(version, "cow_basic").table
    rows = read_rows(table)
    name = min(rows.column("_hoodie_partition_path").to_pylist())
    given = own_rows(table, within(rows, name))
    count = given.num_rows
    at, code = pa.timestamp("ms", "UTC"), pa.binary(4)
    new = {"at": pa.array(range(count), at), "code": pa.array([b"abcd", *[None] * (count - 1)], code)}
    if version == "9":
        new["local"] = pa.array(range(count), pa.timestamp("ms"))
    new["both"] = pa.array([{"at": [7], "code": [("k", b"wxyz")]}] * count, nested := both(at, code))
    for column, values in new.items():
        given = given.append_column(column, values)
    assert given.schema.field("both").type == nested
    source = put_source(given, tmp_path)
    schemas = set()
    for _ in range(2):
        commit = commit_of(table, overwrite(table, source).instant)
        schemas.add(commit.schema_text)
        expected = given
        for column, kind in (
            ("at", UTC),
            ("code", pa.binary()),
            ("local", pa.timestamp("us")),
            ("both", both(UTC, pa.binary())),
        ):
            if column in new:
                expected = expected.set_column(
                    given.schema.get_field_index(column),
                    column,
                    conform_array(new[column], pa.field("c", kind), path=""),
                )
        found = own_rows(table, within(read_rows(table), name))
        assert_same_rows(found, expected.select(found.column_names), ignore=())
        assert {name: found.schema.field(name).type for name in new} == {
            name: expected.schema.field(name).type for name in new
        }
        for stat in commit.write_stats():
            leaves = pq.read_metadata(table / stat.path).schema
            stored = {leaf.path: leaf for leaf in (leaves.column(at) for at in range(len(leaves)))}
            assert stored["code"].physical_type == "BYTE_ARRAY"
            assert "microseconds" in str(stored["at"].logical_type)
    assert len(schemas) == 1
    assert_metadata_true(table)


UTC = pa.timestamp("us", "UTC")


def both(at: pa.DataType, code: pa.DataType) -> pa.DataType:
    return pa.struct([("at", pa.list_(pa.field("element", at))), ("code", pa.map_(pa.string(), code))])


def test_more_columns_than_a_schema_may_have_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(avro_schemas, "MAX_TYPES", 20)
    with pytest.raises(UnsupportedError, match=r"rows\.parquet.*more than 20 types"):
        evolved(pa.table({f"c{number}": ["x"] for number in range(10)}), tmp_path)


def with_more(rows: pa.Table) -> pa.Table:
    """With a column of text, one of decimals and a list."""
    count = rows.num_rows
    rows = rows.append_column("new_note", pa.array([f"n{at}" for at in range(count)]))
    rows = rows.append_column("new_price", pa.array([Decimal(at) for at in range(count)], pa.decimal128(12, 2)))
    return rows.append_column("new_tags", pa.array([["a", str(at)] for at in range(count)]))


@pytest.mark.parametrize("case", tiered(["mdt_all_cow", "mdt_all_mor"], ["mdt_all_mor"]))
@pytest.mark.parametrize("version", tiered(["6", "8", "9"], ["9"]))
def test_a_table_has_the_columns_from_then_on(golden: Golden, tmp_path: Path, version: str, case: str) -> None:
    table = golden(version, case).table
    rows = read_rows(table)
    names = sorted(set(rows.column("_hoodie_partition_path").to_pylist()))
    given = with_more(own_rows(table, within(rows, names[0])))
    done = overwrite(table, put_source(given, tmp_path))
    schema = commit_of(table, done.instant).schema_text
    assert schema is not None
    assert [entry["name"] for entry in parse_schema(schema, path="T")["fields"]][-3:] == [
        "new_note",
        "new_price",
        "new_tags",
    ]
    after = read_rows(table)
    assert places(after) == places(rows)
    new = own_rows(table, within(after, names[0]))
    assert_same_rows(new, given.select(new.column_names), ignore=())
    assert (
        within(after, names[0], outside=True).column("new_note").null_count
        == within(rows, names[0], outside=True).num_rows
    )
    assert_metadata_true(table)
    found = HudiTable.open(str(table)).read(where="new_note = 'n1'")
    assert sum(batch.num_rows for batch in found.batches) == 1
    again = overwrite(table, put_source(own_rows(table, within(after, names[0])), tmp_path, name="again"))
    assert commit_of(table, again.instant).schema_text == schema


@pytest.mark.parametrize("version", tiered(["6", "9"], ["9"]))
def test_a_wider_number(golden: Golden, tmp_path: Path, version: str) -> None:
    table = golden(version, "types_cow").table
    rows = read_rows(table)
    name = min(rows.column("_hoodie_partition_path").to_pylist())
    given = own_rows(table, within(rows, name))
    column = next(field.name for field in given.schema if field.type == pa.int32())
    at = given.schema.get_field_index(column)
    large = pa.array([2**40 + at for at in range(given.num_rows)], pa.int64())
    overwrite(table, put_source(given.set_column(at, column, large), tmp_path))
    after = read_rows(table)
    assert after.schema.field(column).type == pa.int64()
    assert sorted(within(after, name).column(column).to_pylist()) == large.to_pylist()
    assert sorted(map(str, within(after, name, outside=True).column(column).to_pylist())) == sorted(
        map(str, within(rows, name, outside=True).column(column).to_pylist())
    )
    assert_metadata_true(table)


def test_two_that_change_the_schema_at_once_do_not_overwrite_each_other(
    golden: Golden, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = golden("9", "cow_basic").table
    rows = read_rows(table)
    first, second = sorted(set(rows.column("_hoodie_partition_path").to_pylist()))[:2]
    mine = put_source(with_more(own_rows(table, within(rows, first))), tmp_path / "mine")
    other = own_rows(table, within(rows, second)).append_column(
        "other", pa.nulls(within(rows, second).num_rows, pa.int32())
    )
    begins = job.OverwriteJob.begin

    def other_first(*given: Any) -> None:
        monkeypatch.setattr(job.OverwriteJob, "begin", begins)
        overwrite(
            table,
            put_source(other, tmp_path / "other"),
            {"hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL"},
        )
        begins(*given)

    monkeypatch.setattr(job.OverwriteJob, "begin", other_first)
    with pytest.raises(ConflictError, match="schema was changed"):
        overwrite(table, mine, {"hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL"})
    assert {"new_note", "other"} & set(read_rows(table).column_names) == {"other"}


def test_a_deletion_changes_no_schema(golden: Golden) -> None:
    table = golden("9", "cow_basic").table
    rows = read_rows(table)
    delete(table, min(rows.column("_hoodie_partition_path").to_pylist()))
    assert read_rows(table).schema == rows.schema
