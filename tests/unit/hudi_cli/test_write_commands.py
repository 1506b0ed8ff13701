"""`hudictl write`, as scripts and as people see it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from hudi_core.errors import StorageError
from hudi_core.table import HudiTable
from hudi_core.verbs.write import OPERATIONS, WriteRequest
from tests.support.golden_data import GoldenCase
from tests.support.hudictl_runner import hudictl
from tests.support.overwrites import own_rows, places, put_source, within
from tests.support.table_invariants import assert_metadata_true, read_rows
from tests.support.tiers import tiered

Golden = Callable[[str, str], GoldenCase]
LOCAL = ("--engine", "local")
COUNTS = ("inserted", "updated", "deleted")


def some_rows(table: Path, count: int) -> pa.Table:
    """Rows of one partition, with the columns that Hudi adds."""
    rows = read_rows(table)
    return within(rows, min(rows.column("_hoodie_partition_path").to_pylist())).slice(0, count)


def with_new_key(table: Path, rows: pa.Table) -> pa.Table:
    """The table's own columns of the rows, and of the first of them once more, by a key that the table lacks."""
    (field,) = HudiTable.open(str(table)).config.record_key_fields
    own = own_rows(table, rows)
    new = own.slice(0, 1)
    key = pa.array(["none has this key"]).cast(own.schema.field(field).type)
    return pa.concat_tables([own, new.set_column(new.schema.get_field_index(field), own.schema.field(field), key)])


@pytest.mark.parametrize("version", tiered(["6", "8", "9"], ["6"]))
def test_rows_are_updated_and_inserted_once(golden: Golden, tmp_path: Path, version: str) -> None:
    table = golden(version, "cow_basic").table
    before = read_rows(table)
    given = put_source(with_new_key(table, some_rows(table, 4)), tmp_path)
    asked = ("write", table, "--operation", "upsert", "--source", given, "--token", "today", *LOCAL)
    assert "would upsert 5 rows in 1 partitions\n" in hudictl(*asked, "--dry-run").out
    would = hudictl(*asked, "--dry-run", "--json").document
    assert (would["instant"], would["records"], would["files_written"], would["reason"]) == (None, 5, 0, "a dry run")
    assert places(read_rows(table)) == places(before)
    document = hudictl(*asked, "--json").document
    assert [document[name] for name in COUNTS] == [1, 4, 0]
    assert (document["operation"], document["partitions"], document["engine"]) == ("UPSERT", 1, "local")
    assert (document["repeated"], document["reason"], document["replaced_file_groups"]) == (False, None, 0)
    assert read_rows(table).num_rows == before.num_rows + 1
    assert not places(before) - places(read_rows(table))
    again = hudictl(*asked, "--json").document
    why = f"an earlier run with the same token did it, as instant {document['instant']}"
    assert again == {**document, "repeated": True, "reason": why, "engine": None}
    told = hudictl(*asked).out
    assert f"done before, as {document['instant']}: upsert in 1 partitions" in told
    assert told == hudictl(*asked[:-1], "spark").out, "Spark is not started for that"
    assert_metadata_true(table)


def test_what_became_of_rows_is_told(golden: Golden, tmp_path: Path) -> None:
    table = golden("9", "cow_basic").table
    before = read_rows(table)
    rows = some_rows(table, 3)
    given = put_source(own_rows(table, rows), tmp_path)
    (field,) = HudiTable.open(str(table)).config.record_key_fields
    partition = HudiTable.open(str(table)).config.partition_fields[0]
    keys = put_source(own_rows(table, rows).select([field, partition]), tmp_path, name="keys")

    def told(operation: str, source: Path) -> str:
        done = hudictl("write", table, "--operation", operation, "--source", source, *LOCAL)
        assert done.code == 0, done.err
        instant = HudiTable.open(str(table)).timeline().commits().instants[-1].requested_time
        return done.out.strip().removeprefix(f"{instant}: ")

    counts = "1 partitions: {} rows inserted, {} updated, {} deleted; {} files written"
    assert told("delete", keys) == f"delete in {counts.format(0, 0, 3, 1)}"
    assert places(read_rows(table)) == places(before) - places(rows)
    assert told("bulk_insert", given) == f"bulk_insert in {counts.format(3, 0, 0, 1)}"
    assert told("insert", given) == f"insert in {counts.format(3, 0, 0, 1)}"
    assert places(read_rows(table)) == places(before) + places(rows)
    assert told("upsert", given).startswith("upsert in 1 partitions: 0 rows inserted, 6 updated, 0 deleted")
    assert_metadata_true(table)


@pytest.mark.parametrize("case", ["cow_basic", "mor_basic"])
def test_rows_that_a_predicate_selects_are_deleted(golden: Golden, case: str) -> None:
    table = golden("9", case).table
    before = read_rows(table)
    names = before.column("_hoodie_partition_path")
    chosen = min(names.to_pylist())
    kept = before.filter(pa.compute.not_equal(names, chosen))
    asked = ("write", table, "--operation", "delete", "--where", f"dt = '{chosen}'", *LOCAL)
    gone = before.num_rows - kept.num_rows
    assert f"would delete {gone} rows in 1 partitions\n" in hudictl(*asked, "--dry-run").out
    assert hudictl(*asked, "--json").document["operation"] == "DELETE"
    assert places(read_rows(table)) == places(kept)
    assert hudictl(*asked).out == "nothing to do: the predicate selects no rows\n"
    assert_metadata_true(table)


@pytest.mark.parametrize("operation", OPERATIONS)
def test_nothing_to_do_is_told(golden: Golden, tmp_path: Path, operation: str) -> None:
    table = golden("9", "cow_basic").table
    given = put_source(own_rows(table, read_rows(table)).slice(0, 0), tmp_path)
    done = hudictl("write", table, "--operation", operation, "--source", given, *LOCAL)
    assert (done.code, done.out) == (0, "nothing to do: the source has no rows\n")


def test_bad_input_is_told(golden: Golden, tmp_path: Path) -> None:
    table = golden("9", "cow_basic").table
    before = read_rows(table)
    given = put_source(own_rows(table, some_rows(table, 1)), tmp_path)

    def refused(*words: str | Path) -> str:
        done = hudictl("write", table, *words, *LOCAL, "--json")
        assert done.code == 2
        return str(done.error["message"])

    assert "Missing option '--operation'" in refused("--source", given)
    assert "'merge' is not one of" in refused("--operation", "merge", "--source", given)
    assert "needs a source" in refused("--operation", "upsert")
    assert "exclude each other" in refused("--operation", "upsert", "--source", given, "--query", "SELECT 1")
    assert "answers no query" in refused("--operation", "insert", "--query", "SELECT 1")
    assert "`where` is for the operation delete" in refused("--operation", "upsert", "--where", "dt = '2024-01-01'")
    by_index = ("--option", "hoodie.index.type=HBASE")
    assert "hoodie.index.type=HBASE" in refused("--operation", "upsert", "--source", given, *by_index)
    assert hudictl("write", table, "--operation", "upsert", "--token", "a", "--source", given, *LOCAL).code == 0
    other = refused("--operation", "insert", "--token", "a", "--source", given)
    assert "the token is that of UPSERT" in other
    assert places(read_rows(table)) == places(before)


NEW = {
    "hoodie.table.name": "orders",
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "dt",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.hive_style_partitioning": "true",
}
ORDERS = pa.table({"id": ["a", "b", "a"], "dt": ["x", "y", "x"], "ts": [1, 2, 3], "price": [1.5, None, 2.0]})


def options(**given: str) -> list[str]:
    named = {**NEW, **{name.replace("__", "."): text for name, text in given.items()}}
    return [word for name, text in named.items() if text for word in ("--option", f"{name}={text}")]


@pytest.mark.parametrize(
    ("version", "operation"), [("6", "upsert"), ("8", "insert"), ("9", "bulk_insert"), ("", "upsert")]
)
def test_a_folder_becomes_a_table_by_the_options_of_a_write(tmp_path: Path, version: str, operation: str) -> None:
    """As with Spark's data source. Its next write finds the table; without a version it is that of Hudi 1.2."""
    table, given = tmp_path / "orders", put_source(ORDERS, tmp_path)
    asked = ("write", table, "--operation", operation, "--source", given, *LOCAL)
    asked = (*asked, *options(hoodie__write__table__version=version))
    would = hudictl(*asked, "--dry-run", "--json").document
    assert (would["created"], would["instant"]) == (False, None)
    assert "there is no table yet, and the write makes it" in hudictl(*asked, "--dry-run").out
    assert not table.exists()
    first = hudictl(*asked, "--json").document
    rows = 2 if operation == "upsert" else 3
    assert (first["created"], first["inserted"], first["repeated"]) == (True, rows, False)
    config = HudiTable.open(str(table)).config
    assert (config.version, config.name, config.is_merge_on_read) == (int(version or 9), "orders", True)
    assert (config.record_key_fields, config.ordering_fields) == (("id",), ("ts",))
    assert sorted(set(read_rows(table).column("_hoodie_partition_path").to_pylist())) == ["dt=x", "dt=y"]
    second = hudictl(*asked, "--json").document
    assert (second["created"], second["updated"], second["inserted"]) == (
        (False, 2, 0) if operation == "upsert" else (False, 0, 3)
    )
    assert read_rows(table).num_rows == (2 if operation == "upsert" else 6)
    assert_metadata_true(table)


STATISTICS = {"column_stats", "partition_stats"}


@pytest.mark.parametrize(
    ("given", "indexes", "died"),
    [
        ({"hoodie.write.table.version": "6"}, {"files"}, True),
        (
            {"hoodie.write.table.version": "6", "hoodie.metadata.record.index.enable": "true"},
            {"files", "record_index"},
            False,
        ),
        ({"hoodie.write.table.version": "8"}, {"files", *STATISTICS}, True),
        ({"hoodie.metadata.index.partition.stats.enable": "false"}, {"files", "column_stats"}, False),
        ({"hoodie.metadata.index.column.stats.enable": "false"}, {"files"}, False),
        ({"hoodie.datasource.write.partitionpath.field": ""}, {"files", "column_stats"}, False),
        ({"hoodie.metadata.enable": "false"}, set(), False),
    ],
)
def test_a_new_table_gets_the_metadata_table_of_hudis_first_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: dict[str, str], indexes: set[str], died: bool
) -> None:
    """Also where the first process `died` after it had made the table."""
    table, source = tmp_path / "orders", put_source(ORDERS, tmp_path)
    named = {name: text for name, text in {**NEW, **given}.items() if text}
    asked = ["write", table, "--operation", "insert", "--source", source, *LOCAL, "--json"]
    asked += [word for name, text in named.items() for word in ("--option", f"{name}={text}")]
    if died:
        with monkeypatch.context() as patch:
            patch.setattr(WriteRequest, "after_making", lambda *_: (_ for _ in ()).throw(StorageError("died")))
            assert hudictl(*asked).code == 1
    assert hudictl(*asked).document["created"] is not died
    assert HudiTable.open(str(table)).config.metadata_partitions == indexes
    assert_metadata_true(table)


@pytest.mark.parametrize(
    ("operation", "wrong", "said"),
    [
        ("delete", {}, "is not a Hudi table"),
        ("upsert", {"hoodie__table__name": ""}, "is not a Hudi table"),
        ("upsert", {"hoodie__datasource__write__recordkey__field": ""}, "has no record key"),
        ("upsert", {"hoodie__datasource__write__precombine__field": "absent"}, "no column 'absent'"),
        ("upsert", {"hoodie__write__table__version": "7"}, "not one of 6, 8, 9"),
    ],
)
def test_no_table_is_made_of_what_lacks_something(
    tmp_path: Path, operation: str, wrong: dict[str, str], said: str
) -> None:
    table, given = tmp_path / "orders", put_source(ORDERS, tmp_path)
    asked = ("write", table, "--operation", operation, "--source", given, *LOCAL, *options(**wrong))
    refused = hudictl(*asked, "--json")
    assert refused.code == 2
    assert said in refused.document["error"]["message"]
    assert not table.exists()


def test_no_table_is_made_among_other_files(tmp_path: Path) -> None:
    given = put_source(ORDERS, tmp_path)
    asked = ("write", tmp_path, "--operation", "insert", "--source", given, *LOCAL, *options(), "--json")
    refused = hudictl(*asked)
    assert (refused.code, "holds files" in refused.document["error"]["message"]) == (2, True)
    assert not (tmp_path / ".hoodie").exists()
