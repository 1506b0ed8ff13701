"""Tables that years of writers, services and deaths have left odd, without anybody's intent."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.hostile.hudictl_server import hudictl
from tests.hostile.judge import rows_in
from tests.hostile.refusals import LOCAL, HostileTable
from tests.hostile.table_copies import difference, tree_of
from tests.support.damaged_tables import DamagedTable, changed
from tests.support.rows import assert_same_rows
from tests.support.stale_indexes import BULK, INDEX, StaleTable

Hostile = Callable[[str, str], HostileTable]
Stale = Callable[[str], StaleTable]


def options(*given: str) -> tuple[str, ...]:
    return tuple(word for option in given for word in ("--option", option))


def test_the_first_secondary_index_of_a_table_without_definitions(hostile: Hostile) -> None:
    table = hostile("8", "savepoint_cow")
    assert not (table.base / ".hoodie/.index_defs").exists()
    expected = table.rows("--metadata", "off")
    secondary = options("hoodie.metadata.index.secondary.column=name", "hoodie.index.name=idx_name")
    record = options("hoodie.metadata.record.index.enable=true")
    ended = table.run("run indexing", "--schedule", *LOCAL, *record, *secondary)
    assert ended.code == 0, ended
    assert_same_rows(table.rows("--metadata", "on"), expected)
    assert_same_rows(table.rows("--metadata", "on", "--where", "name <> 'x'"), expected)


def test_an_index_that_cannot_be_built_leaves_no_definition(hostile: Hostile) -> None:
    table = hostile("8", "savepoint_cow")
    secondary = options("hoodie.metadata.index.secondary.column=no_such_column", "hoodie.index.name=idx_name")
    table.refuses("run indexing", "--schedule", *LOCAL, *secondary, of_file=False)
    assert not (table.base / ".hoodie/.index_defs/index.json").exists()
    assert not list(table.base.glob(".hoodie/timeline/*.indexing.*"))


@pytest.mark.parametrize("case", ["savepoint_cow", "mdt_record_index_lookup"])
def test_a_plan_that_is_never_begun_takes_its_definition_along(hostile: Hostile, case: str) -> None:
    """The plan was put with its definition, and nothing is claimed."""
    table = hostile("8", case)
    definitions = table.base / ".hoodie/.index_defs/index.json"
    before = {*_defined(definitions)}
    secondary = options("hoodie.metadata.index.secondary.column=name", "hoodie.index.name=idx_new")
    assert table.run("schedule indexing", *secondary).code == 0
    (plan,) = table.base.glob(".hoodie/timeline/*.indexing.requested")
    assert {*_defined(definitions)} == {*before, "secondary_index_idx_new"}
    assert not list(table.base.glob(".hoodie/.airflow_hudi/claims/*"))
    assert table.run("unschedule", plan.name.split(".")[0]).code == 0
    assert {*_defined(definitions)} == before
    assert not list(table.base.glob(".hoodie/timeline/*.indexing.*"))


def _defined(path: Path) -> dict[str, object]:
    found: dict[str, object] = json.loads(path.read_bytes())["indexDefinitions"] if path.exists() else {}
    return found


@pytest.mark.parametrize("case", ["cleaned_versions_cow", "cleaned_versions_mor"])
@pytest.mark.parametrize("version", ["6", "8", "9"])
def test_time_travel_to_before_a_clean_by_versions(hostile: Hostile, version: str, case: str) -> None:
    table = hostile(version, case)
    instants = json.loads(table.run("timeline").out)["instants"]
    first = min(item["requested_time"] for item in instants if item["state"] == "completed")
    table.refuses_read("--as-of", first, "--metadata", "off", of_file=False)


@pytest.mark.parametrize("bound", ["minValue", "maxValue"])
def test_ranges_of_partitions_that_are_narrow(hostile: Hostile, bound: str) -> None:
    """Hudi 1.0.2 leaves such ranges behind a pending compaction; they are not to be believed in version 8."""
    table = hostile("8", "mdt_all_mor")
    damaged = DamagedTable(table.base)
    before = {key: datum for key, datum in damaged.raw("partition_stats").items() if _is_double(datum)}
    narrow = {"minValue": 1e300, "maxValue": -1e300}[bound]
    damaged.rewrite(
        "partition_stats",
        {
            key: changed(datum, "ColumnStatsMetadata", **{bound: _wrapped(datum, bound, narrow)})
            for key, datum in before.items()
        },
    )
    where = ("--where", "amount > -1000000 AND amount < 1000000")
    expected = table.rows("--metadata", "off", *where)
    assert expected.num_rows > 0
    assert_same_rows(table.rows("--metadata", "on", *where), expected)


def _is_double(datum: dict[str, object]) -> bool:
    statistics = datum["ColumnStatsMetadata"]
    return isinstance(statistics, dict) and statistics["columnName"] == "amount" and bool(statistics["minValue"])


def _wrapped(datum: dict[str, object], bound: str, value: float) -> object:
    """The bound with another value, in the wrapper that the record has."""
    statistics = datum["ColumnStatsMetadata"]
    assert isinstance(statistics, dict)
    old = statistics[bound]
    return (old[0], {"value": value}) if isinstance(old, tuple) else {**old, "value": value}


def test_unschedule_again(hostile: Hostile) -> None:
    table = hostile("9", "mor_compaction_requested")
    instant = table.path(".hoodie/timeline/*.compaction.requested").name.split(".")[0]
    assert table.run("unschedule", instant).code == 0
    again = table.run("unschedule", instant)
    assert again.code == 0
    assert json.loads(again.out)["reason"]


def test_a_rollback_behind_a_pending_write_may_be_asked_for_again(hostile: Hostile) -> None:
    table = hostile("9", "failed_inflight_mor")
    instants = json.loads(table.run("timeline").out)["instants"]
    pending = max(item["requested_time"] for item in instants if item["state"] != "completed")
    completed = max(item["requested_time"] for item in instants if item["state"] == "completed")
    assert completed < pending
    before = tree_of(table.base)
    ended = table.run("rollback", "--instant", completed)
    assert ended.code == 3, ended
    error = json.loads(ended.out)["error"]
    assert f"{pending} pending beside it" in error["message"]
    assert f"--instant {pending}" in error["remedy"]
    assert difference(before, tree_of(table.base)) == []


@pytest.mark.parametrize("case", ["cow_basic", "mor_basic"])
def test_no_deltacommit_of_an_index_has_the_name_of_the_latest_instant(hostile: Hostile, case: str) -> None:
    """Hudi 1.0.2 rolls such a deltacommit back at its next write, and with it the files of the index."""
    table = hostile("8", case)
    asked = options("hoodie.metadata.index.bloom.filter.enable=true")
    ended = table.run("run indexing", "--schedule", *LOCAL, *asked)
    (done,) = json.loads(ended.out)["instants"]
    assert (ended.code, done["state"]) == (0, "completed")
    latest = max(path.name[:17] for path in table.base.glob(".hoodie/timeline/*_*.*") if path.name[0].isdigit())
    assert done["instant"] < latest
    names = [path.name[:17] for path in table.base.glob(".hoodie/metadata/.hoodie/timeline/*.deltacommit")]
    assert done["instant"] in names


@pytest.mark.parametrize("name", ["bulk_v8", "bulk_v9"])
def test_lookups_behind_a_bulk_insert_find_its_rows(stale: Stale, tmp_path: Path, name: str) -> None:
    table = stale(name)
    output = tmp_path / "rows.parquet"
    ended = hudictl("read", table.path, "--where", BULK, "--metadata", "on", "--output", output, "--json")
    assert ended.code == 0, ended
    assert sorted(rows_in(output).column("_hoodie_record_key").to_pylist()) == table.due("name", "bulk name 3") != []
    assert INDEX in hudictl("doctor", table.path, "--json").out


def test_metadata_create_beside_a_dead_write_names_the_rollback(hostile: Hostile) -> None:
    """In version 6, whose writers initialize the metadata table at rest alone."""
    table = hostile("6", "failed_inflight_mor")
    table.run("metadata drop")
    ended = table.run("metadata create", *LOCAL)
    assert ended.code == 3, ended
    assert "hudictl rollback" in json.loads(ended.out)["error"]["remedy"]
    later = hostile("9", "failed_inflight_mor")
    later.run("metadata drop")
    assert later.run("metadata create", *LOCAL).code == 0


def test_a_secondary_index_without_a_record_index_is_warned_of(hostile: Hostile) -> None:
    table = hostile("9", "savepoint_cow")
    secondary = options("hoodie.metadata.index.secondary.column=name", "hoodie.index.name=idx_name")
    ended = table.run("run indexing", "--schedule", *LOCAL, *secondary)
    assert "record" in ended.err + ended.out
    assert ended.code in (0, 2)
