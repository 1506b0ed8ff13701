"""Cleans, archivals and rollbacks of the metadata table: they change nothing of what it holds, wherever they are
killed.
"""

from __future__ import annotations

import contextlib
import shutil
from pathlib import Path

import pytest

from hudi_core.config.metadata_config import METADATA_DELTA_COMMITS
from hudi_core.errors import ConfigError
from hudi_core.metadata_table.records.file_statistics import FileChanges
from hudi_core.metadata_table.services.table_services import ServiceResults, perform_table_services, roll_back_failed
from hudi_core.storage.base import Storage
from hudi_core.timeline.instant import Action, State
from tests.support.fault_storage import MUTATIONS, FaultPlan, FaultStorage, InjectedCrash
from tests.support.metadata_records import TOKEN, Table
from tests.support.metadata_services import VERSIONS, Golden, clock, many_slices
from tests.support.tiers import tiered
from tests.unit.hudi_core.metadata_table.services.test_compaction import held


def run_services(table: Table, trigger: str, storage: Storage | None = None) -> ServiceResults:
    options = {
        "hoodie.keep.min.commits": "2",
        "hoodie.keep.max.commits": "3",
        "hoodie.clean.commits.retained": "1",
        METADATA_DELTA_COMMITS.name: trigger,
    }
    return perform_table_services(storage or table.storage, table.config, TOKEN, options, lambda: None, clock(table))


@pytest.mark.slow
@pytest.mark.parametrize("version", tiered(VERSIONS, ["9"]))
def test_all_of_it_killed_anywhere(golden: Golden, version: str, tmp_path: Path) -> None:
    source = many_slices(golden, version)
    # Every thirteenth place to die at, most of them between two deletions; test_begin_and_compact_faults dies at each
    # of its own.
    expected = held(source)
    number = 0
    while True:
        table = Table(shutil.copytree(source.path, tmp_path / str(number)))
        plan = FaultPlan(kill_at=number, counts=MUTATIONS)
        with contextlib.suppress(InjectedCrash):
            run_services(table, "2", FaultStorage(table.storage, plan))
        assert held(table) == expected, number
        done = run_services(table, "2")
        assert held(table) == expected, (number, done)
        assert not table.metadata_timeline.load().pending().instants
        shutil.rmtree(table.path)
        if not plan.crashed:
            break
        number += 13
    assert number > 21


def test_options_are_checked_first(golden: Golden) -> None:
    table = Table(golden("8", "mor_basic").table)
    names = table.metadata_timeline.names()
    with pytest.raises(ConfigError, match="commits is"):
        run_services(table, "none")
    assert table.metadata_timeline.names() == names
    assert "deltacommits since" in run_services(table, "1000").compacted.reason


def test_an_indexers_deltacommit_is_left_while_the_indexing_is_pending(golden: Golden) -> None:
    """Version 6: the indexer builds without the table lock, under an instant that the data table does not have."""
    table = Table(golden("6", "mor_basic").table)
    last = table.data.load().last_completed()
    assert last is not None
    building, indexing = f"{last.requested_time}004", table.new_instant()
    table.data.create_requested(indexing, Action.INDEXING, b"")
    table.metadata_timeline.create_requested(building, Action.DELTA_COMMIT)
    table.metadata_timeline.to_inflight(building, Action.DELTA_COMMIT)
    assert roll_back_failed(table.storage, table.config, TOKEN, clock(table)) == ()
    assert table.metadata_timeline.load().find(building, Action.DELTA_COMMIT) is not None
    table.data.delete_instant(indexing, Action.INDEXING)
    assert roll_back_failed(table.storage, table.config, TOKEN, clock(table)) == (building,)


@pytest.mark.parametrize("version", VERSIONS)
def test_what_a_dead_writer_left_is_rolled_back(golden: Golden, version: str) -> None:
    table = Table(golden(version, "mor_basic").table)
    before = held(table)
    dead = table.new_instant()
    plan = FaultPlan(
        when=lambda operation: operation.kind == "create_exclusive" and operation.path.endswith(".deltacommit")
    )
    with contextlib.suppress(InjectedCrash):
        partition, *_ = sorted(path.name for path in table.path.iterdir() if path.name.startswith("2"))
        files = frozenset(path.name for path in (table.path / partition).glob("*.parquet"))
        table.publisher(FaultStorage(table.storage, plan)).publish_deletes(
            dead, FileChanges(deleted={partition: files})
        )
    assert plan.crashed
    assert table.metadata_timeline.load().find(dead, Action.DELTA_COMMIT) is not None
    assert roll_back_failed(table.storage, table.config, TOKEN, clock(table)) == (dead,)
    assert table.metadata_timeline.load().find(dead, Action.DELTA_COMMIT) is None
    assert held(table) == before
    assert roll_back_failed(table.storage, table.config, TOKEN, clock(table)) == ()


@pytest.mark.parametrize("version", VERSIONS)
def test_beside_an_unfinished_savepoint_what_a_dead_writer_left_is_rolled_back(golden: Golden, version: str) -> None:
    table = Table(golden(version, "mor_basic").table)
    last = table.data.load().commits().instants[-1].requested_time
    table.metadata_timeline.remove(last, Action.DELTA_COMMIT, State.COMPLETED)
    table.data.to_inflight(last, Action.SAVEPOINT)
    assert roll_back_failed(table.storage, table.config, TOKEN, clock(table)) == (last,)


def test_what_is_pending_on_the_data_table_is_left_to_its_rollback(golden: Golden) -> None:
    table = Table(golden("8", "failed_after_metadata_mor").table)
    (failed,) = table.data.load().pending().requested_times
    table.metadata_timeline.remove(failed, Action.DELTA_COMMIT, State.COMPLETED)
    assert roll_back_failed(table.storage, table.config, TOKEN, clock(table)) == ()
    assert table.metadata_timeline.load().find(failed, Action.DELTA_COMMIT) is not None
