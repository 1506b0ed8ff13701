"""The metadata table or an index of it is dropped: the properties first, then the files, and a crash is cleaned up."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

import pytest

from hudi_core.errors import FormatError
from hudi_core.metadata_table.read.file_group import ROOT
from hudi_core.metadata_table.write.lifetime import (
    drop_metadata_table,
    drop_partitions,
    is_drop_unfinished,
    remove_dropped,
    with_dependents,
)
from tests.support.fault_storage import MUTATIONS, FaultPlan, FaultStorage, InjectedCrash
from tests.support.golden_data import GoldenCase
from tests.support.metadata_records import Table

Golden = Callable[[str, str], GoldenCase]


@pytest.fixture(params=["6", "9"])
def table(golden: Golden, request: pytest.FixtureRequest) -> Table:
    return Table(golden(request.param, "mdt_all_cow").table)


def test_a_drop_that_died_anywhere_is_finished(table: Table) -> None:
    """Until the properties say so the table is whole; from then on the remaining files are removed."""
    listed = table.config.metadata_partitions
    for number in range(4):
        plan = FaultPlan(kill_at=number, timing="after", counts=MUTATIONS)
        with contextlib.suppress(InjectedCrash):
            drop_metadata_table(FaultStorage(table.storage, plan))
        if table.config.metadata_partitions:
            assert table.config.metadata_partitions == listed
            assert not is_drop_unfinished(table.storage, table.config)
            assert (table.path / ROOT / "files").exists()
    assert table.config.metadata_partitions == table.config.metadata_partitions_inflight == frozenset()
    remove_dropped(table.storage, table.config)
    assert not (table.path / ROOT).exists()
    assert not is_drop_unfinished(table.storage, table.config)
    assert not remove_dropped(table.storage, table.config)


def test_what_is_left_of_a_drop_is_removed(table: Table) -> None:
    plan = FaultPlan(when=lambda operation: operation.path == f"{ROOT}/.hoodie")
    with pytest.raises(InjectedCrash):
        drop_metadata_table(FaultStorage(table.storage, plan))
    assert is_drop_unfinished(table.storage, table.config)
    assert remove_dropped(table.storage, table.config)
    assert not (table.path / ROOT).exists()


def test_indexes_go_with_those_made_of_them(table: Table) -> None:
    before = table.config
    changed = drop_partitions(table.storage, before, ["column_stats", "record_index"])
    gone = {"column_stats", "partition_stats", "record_index"}
    assert changed.metadata_partitions == table.config.metadata_partitions == before.metadata_partitions - gone
    left = {path.name for path in (table.path / ROOT).iterdir() if path.name != ".hoodie"}
    assert left == before.metadata_partitions - gone
    assert with_dependents(["record_index"]) == {"record_index"}


def test_dropping_files_drops_everything(table: Table) -> None:
    assert drop_partitions(table.storage, table.config, ["files", "column_stats"]).metadata_partitions == frozenset()
    assert not (table.path / ROOT).exists()


def test_dropping_nothing_changes_nothing(table: Table) -> None:
    before = (table.path / ".hoodie/hoodie.properties").read_bytes()
    config = table.config
    assert drop_partitions(table.storage, config, []) is config
    assert (table.path / ".hoodie/hoodie.properties").read_bytes() == before


def test_a_name_that_leaves_the_metadata_table_is_refused(table: Table) -> None:
    with pytest.raises(FormatError):
        drop_partitions(table.storage, table.config, ["../../2024-01-01"])
    assert (table.path / "2024-01-01").exists()
