"""Tables whose indexes real Hudi left something out of: no query of ours loses a row by them, `metadata update` mends
them, and doctor names them.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hudi_core.config.metadata_config import REBUILD_ROW_INDEXES
from hudi_core.metadata_table.read.completeness import may_be_narrow
from tests.support.golden_compactions import compact
from tests.support.stale_indexes import BULK, INDEX, StaleTable

Stale = Callable[[str], StaleTable]
REBUILD = {REBUILD_ROW_INDEXES.name: "true"}
NARROW = ("narrow_v8", "overtaken_v8")
PARTITIONS = ("2024-01-01", "2024-01-02")
BULKS = ("bulk_v8", "bulk_v9", "clustered_v9")


def of_ranges(table: StaleTable) -> list[str]:
    return [text for text in table.differences() if text.startswith("partition_stats")]


def of_secondary(table: StaleTable) -> list[str]:
    return [text for text in table.differences() if text.startswith("secondary_index")]


@pytest.mark.parametrize("name", NARROW)
def test_ranges_that_1_0_narrowed_hide_no_row(stale: Stale, name: str) -> None:
    """An upsert behind a pending compaction; that the compaction completes does not help."""
    table = stale(name)
    assert of_ranges(table), "the ranges lack the files of the slices to compact"
    for amount in (3.0, 500.0, 1000.0):
        assert table.due("amount", amount)
        assert table.found(f"amount = {amount}") == table.due("amount", amount)


@pytest.mark.parametrize("name", NARROW)
def test_an_update_widens_them(stale: Stale, name: str) -> None:
    table = stale(name)
    before = table.table.live()["partition_stats"]
    assert table.update().widened == PARTITIONS
    assert of_ranges(table) == []
    assert table.table.live()["partition_stats"].keys() == before.keys()
    instants = table.table.metadata_instants()
    assert table.update().widened == ()
    assert table.table.metadata_instants() == instants


def test_our_compaction_widens_them(stale: Stale) -> None:
    """Records under the compaction's own instant would be beneath the narrow ones."""
    table = stale("narrow_v8")
    compact(table.path)
    assert of_ranges(table) == []
    assert table.found("amount = 500.0") == table.due("amount", 500.0)


def test_ranges_of_1_2_hold_and_are_used(stale: Stale) -> None:
    table = stale("behind_v9")
    assert of_ranges(table) == []
    assert not may_be_narrow(table.table.storage, table.table.config)
    assert table.update().widened == ()


@pytest.mark.parametrize("name", BULKS)
def test_a_lookup_finds_what_bulk_insert_did_not_record(stale: Stale, name: str) -> None:
    table = stale(name)
    assert of_secondary(table), "the index lacks the rows"
    assert len(table.due("name", "bulk name 3")) == 1
    for value in ("bulk name 3", "told name 1", "name 3", "later 0"):
        assert table.found(f"name = '{value}'") == table.due("name", value) != []


@pytest.mark.parametrize("name", BULKS)
def test_only_the_file_groups_that_may_lack_rows_are_read_beside(stale: Stale, name: str) -> None:
    table = stale(name)
    groups = {group.file_id for group in table.metadata().groups_in_doubt(INDEX) or ()}
    places = {
        file.split("_")[0]
        for key, file in zip(
            table.rows["_hoodie_record_key"].to_pylist(), table.rows["_hoodie_file_name"].to_pylist(), strict=True
        )
        if key.startswith("bulk")
    }
    assert groups >= places
    if name != "clustered_v9":  # which put all rows into groups with some of these, and replaced the others
        assert groups == places
        assert {file.split("_")[0] for file in table.rows["_hoodie_file_name"].to_pylist()} - groups


@pytest.mark.parametrize("name", BULKS)
def test_an_update_rebuilds_the_index(stale: Stale, name: str) -> None:
    table = stale(name)
    without = table.update()
    assert (without.rebuilt, without.incomplete) == ((), (INDEX,)), "only where the options allow it"
    assert of_secondary(table)
    done = table.update(REBUILD)
    assert (done.rebuilt, done.incomplete) == ((INDEX,), ())
    assert table.differences() == []
    assert table.metadata().groups_in_doubt(INDEX) == frozenset()
    assert table.found(BULK) == table.due("name", "bulk name 3")
    assert table.update(REBUILD).rebuilt == ()
