"""Rollbacks of completed commits on tables whose metadata table, or an index of it, began behind them."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from hudi_core.engine.local import LocalEngine
from hudi_core.errors import ConflictError, TimelineError
from hudi_core.metadata_table.write.lifetime import drop_metadata_table
from hudi_core.services.metadata.columns import add_columns, drop_columns
from hudi_core.services.metadata.index_drop import drop_metadata
from hudi_core.services.metadata.maintain import create_metadata, update_metadata
from hudi_core.services.rollback.verb import request_rollback, rollback
from hudi_core.storage.local import LocalStorage
from tests.support.changed_tables import an_owner, data_files, open_context
from tests.support.fault_storage import MUTATIONS, FaultPlan, FaultStorage, InjectedCrash
from tests.support.fully_indexed_tables import compacted
from tests.support.golden_data import GoldenCase
from tests.support.rows import assert_same_rows
from tests.support.service_calls import dead_process
from tests.support.table_invariants import assert_metadata_true, read_rows
from tests.support.tiers import tiered

Golden = Callable[[str, str], GoldenCase]
VERSIONS = ["6", "8", "9"]


def newest(table: Path) -> str:
    return [item.requested_time for item in open_context(table).active.load().commits()][-1]


def rebuild(table: Path, names: frozenset[str]) -> None:
    if "files" in names:
        drop_metadata_table(LocalStorage(table))
    else:
        drop_metadata(open_context(table), names, an_owner())
    create_metadata(open_context(table), names, LocalEngine(1), an_owner(), 3)


@pytest.mark.parametrize("version", tiered(VERSIONS, ["6", "9"]))
@pytest.mark.parametrize("name", ["record_index", "files"])
def test_refused_before_anything_is_written(golden: Golden, version: str, name: str) -> None:
    """A record index that began behind a delete has no record of the rows that come back (found here: 15 of 112
    keys).
    """
    table = golden(version, "mdt_all_mor").table
    instant = newest(table)
    rebuild(table, frozenset({name}))
    before = data_files(table)
    with pytest.raises(TimelineError, match=f"{name}.* began after deltacommit {instant}") as refused:
        rollback(open_context(table), instant, an_owner())
    assert "hudictl metadata drop TABLE" in str(refused.value.remedy)
    assert data_files(table) == before
    assert list(open_context(table).active.load().of_actions("rollback")) == []
    # The remedy.
    drop_metadata(open_context(table), {name}, an_owner())
    rollback(open_context(table), instant, an_owner())
    create_metadata(open_context(table), {name}, LocalEngine(1), an_owner(), 4)
    assert_metadata_true(table)


@pytest.mark.parametrize("version", tiered(VERSIONS, ["6", "9"]))
def test_checked_again_when_the_rollback_begins(golden: Golden, version: str) -> None:
    """It was only planned when the index began; version 6 begins none beside it."""
    table = golden(version, "mdt_all_mor").table
    context = open_context(table)
    target = context.active.load().commits().instants[-1]
    plan = FaultPlan(
        when=lambda operation: operation.kind in MUTATIONS and operation.path.endswith(".rollback.inflight")
    )
    with pytest.raises(InjectedCrash):
        request_rollback(open_context(table, storage=FaultStorage(LocalStorage(table), plan)), target, dead_process())
    if version == "6":
        with pytest.raises(ConflictError, match="while actions of the table are pending"):
            rebuild(table, frozenset({"record_index"}))
        return
    rebuild(table, frozenset({"record_index"}))
    with pytest.raises(TimelineError, match="record_index of the metadata table began after"):
        rollback(open_context(table), target.requested_time, an_owner())
    assert open_context(table).active.load().find(target.requested_time, target.action) == target
    assert_metadata_true(table)


@pytest.mark.parametrize("version", tiered(["8", "9"], ["9"]))
@pytest.mark.parametrize("name", ["record_index", "bloom_filters"])
def test_what_begins_while_the_commit_is_rolled_back_holds_nothing_of_it(
    golden: Golden, version: str, name: str
) -> None:
    """The rollback takes the commit off the completed ones before it touches anything else."""
    table = golden(version, "mdt_all_mor").table
    kinds, instant = open_context(table).config.metadata_partitions, newest(table)
    plan = FaultPlan(when=lambda operation: operation.kind == "delete" and not operation.path.startswith(".hoodie/"))
    with pytest.raises(InjectedCrash):
        rollback(open_context(table, storage=FaultStorage(LocalStorage(table), plan)), instant, dead_process())
    rebuild(table, frozenset({name}))
    rollback(open_context(table), instant, an_owner())
    assert open_context(table).config.metadata_partitions == kinds
    assert not open_context(table).active.load().contains(instant)
    assert_same_rows(read_rows(table, "on"), read_rows(table, "off"))
    assert_metadata_true(table)


@pytest.mark.slow
@pytest.mark.parametrize("version", ["8", "9"])
def test_columns_that_were_added_since(golden: Golden, version: str) -> None:
    """The statistics of a compaction's files came without it, so they would stay; version 6 records no columns."""
    table = golden(version, "mdt_all_mor").table
    drop_columns(open_context(table), ["qty"], an_owner())
    instant = compacted(table)
    without = Path(shutil.copytree(table, table.with_name("without")))
    rollback(open_context(without), instant, an_owner())
    assert_metadata_true(without)
    add_columns(open_context(table), ["qty"], LocalEngine(1), an_owner(), 3)
    with pytest.raises(TimelineError, match=r"column_stats, partition_stats .*began after"):
        rollback(open_context(table), instant, an_owner())
    assert_metadata_true(table)


@pytest.mark.slow
@pytest.mark.parametrize("version", VERSIONS)
def test_a_commit_that_the_metadata_table_has_compacted(golden: Golden, version: str) -> None:
    table = golden(version, "mdt_all_mor").table
    kinds, instant = open_context(table).config.metadata_partitions, newest(table)
    once = open_context(table, {"hoodie.metadata.compact.max.delta.commits": "1"})
    assert update_metadata(once, LocalEngine(1), an_owner(), 3).upkeep.compacted.instants
    assert_metadata_true(table)
    before = data_files(table)
    with pytest.raises(TimelineError, match="was compacted") as refused:
        rollback(open_context(table), instant, an_owner())
    assert "hudictl metadata drop TABLE" in str(refused.value.remedy)
    assert data_files(table) == before
    drop_metadata_table(LocalStorage(table))  # definitions stay, as where Hudi's next write rebuilds all
    rollback(open_context(table), instant, an_owner())
    create_metadata(open_context(table, {"spark.sql.session.timeZone": "UTC"}), kinds, LocalEngine(1), an_owner(), 4)
    assert open_context(table).config.metadata_partitions == kinds
    assert_metadata_true(table)


@pytest.mark.parametrize("version", tiered(VERSIONS, ["6", "9"]))
def test_a_write_that_failed_is_in_no_index_that_began_beside_it(golden: Golden, version: str) -> None:
    table = golden(version, "failed_inflight_mor").table
    context = open_context(table)
    failed = context.active.load().pending().instants[-1].requested_time
    if version != "6":
        create_metadata(context, {"column_stats", "record_index"}, LocalEngine(1), an_owner(), 3)
    rollback(open_context(table), failed, an_owner())
    assert_metadata_true(table)
