"""Column statistics of files that a clean deleted: Hudi 0.15's cleans leave them, later ones do not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from hudi_core.engine.local import LocalEngine
from hudi_core.metadata_table.keys import (
    column_stats_key,
)
from hudi_core.table import HudiTable
from hudi_core.timeline.instant import Action
from hudi_core.verbs.metadata import MetadataUpdateRequest
from hudi_core.verbs.request import Request
from hudi_core.verbs.run import RunRequest
from tests.support.changed_tables import data_files
from tests.support.damaged_tables import DamagedTable, changed
from tests.support.golden_data import GoldenCase
from tests.support.tiers import tiered
from tests.unit.hudi_health.validate.test_run import STATS, VERSIONS, metadata_snapshot

Golden = Callable[[str, str], GoldenCase]
BY_VERSIONS = {"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.clean.fileversions.retained": "1"}
TIGHT = {"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3", "hoodie.cleaner.commits.retained": "1"}
COMPACT_AT_ONCE = {"hoodie.metadata.compact.max.delta.commits": "1"}
CASE = "mdt_all_cow_compacted"


def with_what_a_clean_leaves(table: Path) -> tuple[DamagedTable, set[str]]:
    """The table after a clean, whose deletions of statistics were removed; the files that it deleted."""
    damaged = DamagedTable(table)
    stored = damaged.raw("column_stats")
    before = data_files(table)
    serve(table, "clean", BY_VERSIONS)
    gone = {path.rpartition("/")[2] for path in before.keys() - data_files(table).keys()}
    assert damaged.found() == []
    left = [(key, datum) for key, datum in stored.items() if datum["ColumnStatsMetadata"]["fileName"] in gone]
    assert {datum["ColumnStatsMetadata"]["fileName"] for _, datum in left} == gone
    damaged.write({"column_stats": left})
    return damaged, gone


def serve(table: Path, verb: str, options: dict[str, str]) -> None:
    """A verb, or the run of a service."""
    request: Request = MetadataUpdateRequest(str(table), owner="the tests", options=options)
    if verb != "metadata_update":
        request = RunRequest(str(table), verb, schedule=verb == "clean", owner="the tests", options=options)
    assert HudiTable.open(str(table)).run(request, LocalEngine(1)).exit_code == 0


def test_cleans_of_version_6_leave_statistics(golden: Golden) -> None:
    table, gone = with_what_a_clean_leaves(golden("6", CASE).table)
    assert gone
    assert table.found() == []


def test_archived_cleans_of_version_6_count_too(golden: Golden) -> None:
    table, _ = with_what_a_clean_leaves(golden("6", CASE).table)
    (first, *_) = table.context.active.load().of_actions(Action.CLEAN)
    for _ in range(3):
        table.write({})
    serve(table.path, "metadata_update", COMPACT_AT_ONCE)
    serve(table.path, "archive", TIGHT)
    assert first not in table.context.active.load()
    assert table.found() == []


@pytest.mark.slow
def test_later_cleans_do_not(golden: Golden) -> None:
    table, gone = with_what_a_clean_leaves(golden("8", CASE).table)
    assert {item.file for item in table.found()} == gone
    assert {(item.partition_type, item.what) for item in table.found()} == {
        ("column_stats", "has statistics, but `files` does not list it")
    }


@pytest.mark.parametrize(
    ("version", "name"),
    tiered(
        [(version, name) for version in ("6", "8", "9") for name in ("mdt_all_cow", "mdt_all_mor")],
        [("6", "mdt_all_cow"), ("9", "mdt_all_mor")],
    ),
)
@pytest.mark.parametrize(
    ("from_", "to", "word"), [("maxValue", "minValue", "minimum"), ("minValue", "maxValue", "maximum")]
)
def test_a_stale_bound(golden: Golden, version: str, name: str, from_: str, to: str, word: str) -> None:
    table = metadata_snapshot(golden, version, name)
    partition, file = table.latest_base()
    values = pq.read_table(table.path / partition / file)["qty"]
    key = column_stats_key("qty", partition, file)
    datum = table.raw("column_stats")[key]
    table.rewrite("column_stats", {key: changed(datum, STATS, **{to: datum[STATS][from_]})})
    (found,) = table.found()
    least, greatest = pc.min(values).as_py(), pc.max(values).as_py()
    stored, true = (greatest, least) if word == "minimum" else (least, greatest)
    assert (found.partition_type, found.partition, found.file) == ("column_stats", partition, file)
    assert found.what == f"column qty: the stored {word} is {stored}, but there is {true}"


@pytest.mark.parametrize("version", VERSIONS)
def test_a_stale_bound_of_text_and_wrong_counts(golden: Golden, version: str) -> None:
    table = metadata_snapshot(golden, version)
    partition, file = table.latest_base()
    key = column_stats_key("id", partition, file)
    datum = table.raw("column_stats")[key]
    rows = datum[STATS]["valueCount"]
    table.rewrite(
        "column_stats",
        {key: changed(datum, STATS, minValue=datum[STATS]["maxValue"], nullCount=1, valueCount=rows + 3)},
    )
    counts, bound = table.found()
    assert counts.what == f"column id: stored are 1 nulls of {rows + 3} values, but there are 0 of {rows}"
    assert bound.what.startswith("column id: the stored minimum is ")
    assert counts.file == bound.file == file


@pytest.mark.parametrize("version", VERSIONS)
def test_values_that_are_said_to_be_null(golden: Golden, version: str) -> None:
    table = metadata_snapshot(golden, version)
    partition, file = table.latest_base()
    key = column_stats_key("ts", partition, file)
    datum = table.raw("column_stats")[key]
    rows = datum[STATS]["valueCount"]
    table.rewrite("column_stats", {key: changed(datum, STATS, minValue=None, maxValue=None, nullCount=rows)})
    assert any(
        item.what.startswith(f"column ts: stored are {rows} values, all null, but there is ") for item in table.found()
    )


@pytest.mark.parametrize("version", VERSIONS)
def test_a_wider_bound_is_no_difference(golden: Golden, version: str) -> None:
    table = metadata_snapshot(golden, version)
    partition, file = table.latest_base()
    key = column_stats_key("qty", partition, file)
    datum = table.raw("column_stats")[key]
    wrapper = datum[STATS]["minValue"][0]
    table.rewrite("column_stats", {key: changed(datum, STATS, minValue=(wrapper, {"value": -(10**6)}), maxValue=None)})
    assert table.found() == []


@pytest.mark.parametrize("version", VERSIONS)
def test_a_stale_bound_of_a_log_file(golden: Golden, version: str) -> None:
    table = metadata_snapshot(golden, version, "mdt_all_mor")
    data = {key: datum for key, datum in table.raw("column_stats").items() if ".log." in datum[STATS]["fileName"]}
    key, datum = next(
        (key, item) for key, item in data.items() if item[STATS]["columnName"] == "qty" and item[STATS]["minValue"]
    )
    low, high = (datum[STATS][end][1]["value"] for end in ("minValue", "maxValue"))
    assert low < high
    table.rewrite("column_stats", {key: changed(datum, STATS, maxValue=datum[STATS]["minValue"])})
    (found,) = table.found()
    assert (found.partition_type, found.file) == ("column_stats", datum[STATS]["fileName"])
    assert found.what == f"column qty: the stored maximum is {low}, but there is {high}"


@pytest.mark.parametrize("version", VERSIONS)
def test_statistics_of_a_deleted_file(golden: Golden, version: str) -> None:
    table = metadata_snapshot(golden, version)
    partition, file = table.latest_base()
    datum = table.raw("column_stats")[column_stats_key("qty", partition, file)]
    table.write(
        {
            "column_stats": [
                (column_stats_key("qty", partition, "gone.parquet"), changed(datum, STATS, fileName="gone.parquet"))
            ]
        }
    )
    (found,) = table.found()
    assert (found.partition_type, found.partition, found.file) == ("column_stats", partition, "gone.parquet")
    assert found.what == "has statistics, but `files` does not list it"


@pytest.mark.parametrize("version", VERSIONS)
def test_a_file_without_statistics(golden: Golden, version: str) -> None:
    table = metadata_snapshot(golden, version)
    _, file = table.latest_base()
    data = {key: datum for key, datum in table.raw("column_stats").items() if datum[STATS]["fileName"] == file}
    gone = [(key, changed(datum, STATS, isDeleted=True)) for key, datum in data.items()]
    assert len(gone) >= 10
    table.write({"column_stats": gone})
    (found,) = table.found()
    assert (found.partition_type, found.file) == ("column_stats", file)
    assert found.what.startswith("has no statistics of _hoodie_commit_time, ")
    assert found.what.endswith(f" and {len(gone) - 3} more")
