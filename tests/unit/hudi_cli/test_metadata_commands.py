"""metadata validate and perf, as scripts and as people see them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hudi_core.config.table_config import METADATA, TableConfig, update_properties
from hudi_core.metadata_table.record import FileEntry
from hudi_core.storage.local import LocalStorage
from tests.support.damaged_tables import DamagedTable
from tests.support.golden_data import GoldenCase
from tests.support.hudictl_runner import hudictl
from tests.support.metadata_records import Table
from tests.support.table_files import contents
from tests.support.tiers import tiered
from tests.unit.hudi_core.services.metadata.test_catch_up import forget

Golden = Callable[[str, str], GoldenCase]


@pytest.mark.parametrize("version", ["6", "8", "9"])
def test_the_document_of_a_whole_table(golden: Golden, version: str) -> None:
    table = golden(version, "mor_basic").table
    before = contents(table)
    done = hudictl("metadata", "validate", table, "--json")
    assert done.code == 0
    assert sorted(done.document) == ["counts", "differences", "files", "kinds", "not_checked", "partitions", "rows"]
    assert done.document["differences"] == []
    assert contents(table) == before
    people = hudictl("metadata", "validate", table)
    assert people.code == 0
    assert ": no difference in " in people.out
    assert "examined 3 partitions, " in people.out


def test_differences_end_with_exit_code_1(golden: Golden) -> None:
    table = DamagedTable(golden("9", "mor_compacted").table)
    partition = table.metadata.partitions()[0]
    table.list_files(partition, {f"gone-{number:03d}.parquet": FileEntry(1) for number in range(120)})
    done = hudictl("metadata", "validate", table.path, "--json")
    assert done.code == 1
    assert done.document["counts"] == {"files": 120}
    assert done.document["differences"][0] == {
        "kind": "files",
        "partition": partition,
        "file": "gone-000.parquet",
        "what": "listed, but it is not there",
    }
    people = hudictl("metadata", "validate", table.path)
    assert people.code == 1
    assert ": 120 differences in files\n" in people.out
    assert f"files {partition}/gone-000.parquet: listed, but it is not there\n" in people.out
    assert "files and 20 more\n" in people.out
    assert "gone-100" not in people.out


def test_what_was_not_compared_is_said(golden: Golden) -> None:
    table = golden("9", "mdt_all_cow").table
    people = hudictl("metadata", "validate", table)
    assert "not checked expr_index_idx_day: values, as they depend on the zone of local time" in people.out
    assert (
        "expr_index_idx_day"
        not in hudictl("metadata", "validate", table, "--option", "airflow_hudi.read.zone=UTC").out.split("\n", 1)[1]
    )


@pytest.mark.parametrize("command", ["validate", "perf"])
def test_a_table_without_a_metadata_table_is_bad_input(golden: Golden, command: str) -> None:
    table = golden("6", "hive_style").table
    done = hudictl("metadata", command, table, "--json")
    assert done.code == 2
    assert done.error["type"] == "MetadataUnavailableError"
    assert "no metadata table" in done.error["message"]
    assert done.error["remedy"]


def test_a_damaged_metadata_table_is_bad_input(golden: Golden) -> None:
    table = golden("8", "mor_compacted").table
    log = max((table / ".hoodie/metadata/files").glob(".*.log.*"), key=lambda path: path.name)
    data = bytearray(log.read_bytes())
    data[len(data) // 2] ^= 0xFF
    log.write_bytes(data)
    done = hudictl("metadata", "validate", table, "--json")
    assert done.code == 2
    assert done.error["path"]


def test_the_document_of_perf_and_its_table(golden: Golden) -> None:
    table = golden("8", "mdt_all_mor").table
    done = hudictl("metadata", "perf", table, "--json")
    assert done.code == 0
    assert sorted(done.document) == ["files", "kinds", "partitions", "timings"]
    assert all(item["cold_ms"] >= 0 for item in done.document["timings"])
    people = hudictl("metadata", "perf", table)
    assert people.code == 0
    some = hudictl("metadata", "perf", table, "--partition", "column_stats", "--json").document["timings"]
    assert 0 < len(some) < len(done.document["timings"])
    lacking = hudictl("metadata", "perf", table, "--partition", "no_such", "--json")
    assert (lacking.code, bool(lacking.error["remedy"])) == (2, True)
    for text in ("15 files in 3 partitions", "all partitions", "record keys, at once", "without"):
        assert text in people.out


@pytest.mark.slow
@pytest.mark.parametrize("version", tiered(["6", "8", "9"], ["6"]))
def test_a_metadata_table_is_dropped_created_and_updated(golden: Golden, version: str) -> None:
    table = golden(version, "mor_basic").table
    gone = hudictl("metadata", "drop", table, "--json")
    assert (gone.code, gone.document["partitions"], gone.document["reason"]) == (0, [], None)
    assert "files" in gone.document["dropped"]
    assert hudictl("metadata", "drop", table, "--json").document == {
        "dropped": [],
        "partitions": [],
        "columns": [],
        "reason": "none of them was there",
    }
    lacking = hudictl("metadata", "update", table, "--json")
    assert (lacking.code, "no metadata table" in lacking.error["message"]) == (2, True)
    come = hudictl("metadata", "create", table, "--partition", "column_stats", "--partition", "bloom_filters", "--json")
    assert (come.code, come.document["created"]) == (0, ["bloom_filters", "column_stats", "files"])
    people = hudictl("metadata", "create", table, "--partition", "column_stats")
    assert people.out.splitlines() == [
        "nothing to do: all of them are there",
        "the metadata table has: bloom_filters, column_stats, files",
    ]
    done = hudictl("metadata", "update", table, "--option", "hoodie.metadata.compact.max.delta.commits=1", "--json")
    assert (done.code, done.document["applied"], done.document["rolled_back"]) == (0, [], [])
    assert done.document["compacted"]["files"] >= 3
    assert "applied: nothing was missing" in hudictl("metadata", "update", table).out
    assert hudictl("metadata", "validate", table, "--json").code == 0
    part = hudictl("metadata", "drop", table, "--partition", "bloom_filters")
    assert (part.code, part.out.splitlines()[0]) == (0, "dropped: bloom_filters")
    assert hudictl("metadata", "validate", table, "--json").code == 0


@pytest.mark.slow
def test_columns_are_added_and_dropped(golden: Golden) -> None:
    table = golden("8", "mor_basic").table
    parts = hudictl("metadata", "create", table, "--json").document["partitions"]
    gone = hudictl("metadata", "drop", table, "--column", "amount", "--column", "note", "--json")
    assert (gone.code, gone.document) == (
        0,
        {"dropped": [], "partitions": parts, "columns": ["amount", "note"], "reason": None},
    )
    again = hudictl("metadata", "drop", table, "--partition", "column_stats", "--column", "note", "--json")
    assert again.document == {"dropped": [], "partitions": parts, "columns": [], "reason": "none of them was there"}
    come = hudictl("metadata", "create", table, "--column", "note", "--json")
    assert (come.code, come.document) == (0, {"created": [], "partitions": parts, "columns": ["note"], "reason": None})
    people = hudictl("metadata", "create", table, "--column", "note", "--column", "amount")
    assert people.out.splitlines() == ["columns created: amount", f"the metadata table has: {', '.join(parts)}"]
    assert hudictl("metadata", "validate", table, "--json").code == 0
    assert hudictl("metadata", "drop", table, "--json").code == 0
    for column, more in (("no_such", []), ("note", ["--option", "hoodie.metadata.index.column.stats.column.list=id"])):
        assert hudictl("metadata", "create", table, "--column", column, *more, "--json").code == 2
    started = hudictl("metadata", "create", table, "--column", "note", "--json").document
    assert (started["created"], started["columns"]) == (["column_stats", "files"], ["note"])
    assert hudictl("metadata", "validate", table, "--json").code == 0


@pytest.mark.parametrize(
    "arguments",
    [
        ("create", "--column", "no_such"),
        ("create", "--column", "note", "--option", "hoodie.metadata.index.column.stats.column.list=id"),
        ("drop", "--column", "_hoodie_record_key"),
        ("drop", "--column", "note", "--partition", "record_index"),
        ("drop", "--column", " "),
    ],
)
def test_wrong_columns_are_bad_input(golden: Golden, arguments: tuple[str, ...]) -> None:
    table = golden("8", "mor_basic").table
    before = contents(table)
    verb, *more = arguments
    done = hudictl("metadata", verb, table, *more, "--json")
    assert (done.code, bool(done.error["remedy"])) == (2, True)
    assert contents(table) == before


def test_wrong_partitions_are_bad_input(golden: Golden) -> None:
    table = golden("8", "mor_basic").table
    before = contents(table)
    for arguments in (
        ("create", "--partition", "unheard_of"),
        ("create", "--partition", "secondary_index_none"),
        ("update", "--partition", "record_index"),
        ("drop", "--partition", ".hoodie"),
        ("drop", "--partition", "a/b"),
    ):
        verb, *more = arguments
        done = hudictl("metadata", verb, table, *more, "--json")
        assert (done.code, bool(done.error["remedy"])) == (2, True), arguments
    assert contents(table) == before


@pytest.mark.slow
@pytest.mark.parametrize("version", tiered(["6", "8", "9"], ["9"]))
def test_what_a_writer_did_not_record_is_applied_and_named(golden: Golden, version: str) -> None:
    table = golden(version, "mor_basic").table
    gone = forget(Table(table), 2)
    assert hudictl("metadata", "validate", table, "--json").code == 1
    done = hudictl("metadata", "update", table, "--json")
    assert (done.code, done.document["applied"]) == (0, gone)
    assert hudictl("metadata", "validate", table, "--json").code == 0
    assert "applied: nothing was missing" in hudictl("metadata", "update", table).out


@pytest.mark.parametrize("version", ["6", "8", "9"])
def test_a_kind_that_no_release_of_ours_keeps_is_delisted_when_the_user_asks(golden: Golden, version: str) -> None:
    """Until then whatever would leave it stale is refused, and says how."""
    table = golden(version, "mor_compaction_requested").table
    storage = LocalStorage(table)
    listed = TableConfig.load(storage).metadata_partitions
    update_properties(storage, {METADATA.name: ",".join(sorted({*listed, "vector_index"}))})
    storage.write(".hoodie/metadata/vector_index/.hoodie_partition_metadata", b"#partition metadata\n")
    before = contents(table)
    refused = hudictl("run", "compaction", table, "--engine", "local", "--json")
    assert (refused.code, "--partition vector_index" in str(refused.error["remedy"])) == (2, True)
    assert {path: data for path, data in contents(table).items() if "/.airflow_hudi/" not in path} == before
    gone = hudictl("metadata", "drop", table, "--partition", "vector_index", "--json")
    assert (gone.code, gone.document["dropped"]) == (0, ["vector_index"])
    assert TableConfig.load(storage).metadata_partitions == listed
    assert not (table / ".hoodie/metadata/vector_index").exists()
    assert hudictl("run", "compaction", table, "--engine", "local", "--json").code == 0
    assert hudictl("metadata", "validate", table, "--json").code == 0
