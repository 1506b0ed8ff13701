from __future__ import annotations

from collections.abc import Callable

import pytest

from hudi_core.config.metadata_config import REBUILD_ROW_INDEXES
from hudi_core.metadata_table.instants import PREFIX
from hudi_core.metadata_table.partition_type import RECORD_INDEX
from hudi_core.services.metadata.catch_up import doubts_of
from hudi_core.timeline.instant import Action
from tests.support.fault_storage import MUTATIONS, FaultPlan, FaultStorage, InjectedCrash
from tests.support.golden_data import GoldenCase
from tests.support.metadata_records import Table
from tests.support.stale_indexes import BULK, INDEX, StaleTable
from tests.unit.hudi_core.services.metadata.test_catch_up import updated

Golden = Callable[[str, str], GoldenCase]
Stale = Callable[[str], StaleTable]
NAME = "secondary_index_idx_name"
REBUILD = {REBUILD_ROW_INDEXES.name: "true"}


def test_an_update_marks_what_is_whole(golden: Golden) -> None:
    table = Table(golden("8", "mdt_all_cow").table)
    assert updated(table).incomplete == ()
    last = table.data.load().commits().last()
    assert last is not None
    assert table.config.raw[f"{PREFIX}{NAME}"].split(":")[0] == last.requested_time


def test_an_index_that_nobody_knows_of_is_built_once(stale: Stale) -> None:
    """The bulk_insert is gone from the timeline, and so is what came before."""
    table = stale("bulk_v9")
    table.archive()
    assert doubts_of(table.metadata()) == {RECORD_INDEX: frozenset(), INDEX: None}
    assert table.found(BULK) == table.due("name", "bulk name 3"), "read without the index"
    assert table.update().incomplete == (INDEX,)
    assert [name for name in table.table.config.raw if name.startswith(PREFIX)] == [f"{PREFIX}{RECORD_INDEX}"]
    assert table.update(REBUILD).rebuilt == (INDEX,)
    assert table.update(REBUILD).rebuilt == ()
    assert doubts_of(table.metadata())[INDEX] == frozenset()
    table.copied_later()
    assert doubts_of(table.metadata())[INDEX] == frozenset(), "the mark is of another folder, but the build tells"


def test_only_the_incomplete_index_is_rebuilt(stale: Stale) -> None:
    table = stale("bulk_v9")
    before = {path: path.read_bytes() for path in (table.path / ".hoodie/metadata/record_index").iterdir()}
    assert table.update(REBUILD).rebuilt == (INDEX,)
    assert (
        before.items()
        <= {path: path.read_bytes() for path in (table.path / ".hoodie/metadata/record_index").iterdir()}.items()
    )


def test_nothing_is_rebuilt_while_the_indexes_hold_rows_of_a_pending_commit(
    golden: Golden, caplog: pytest.LogCaptureFixture
) -> None:
    """The rebuilt ones would be built again by the next update."""
    table = Table(golden("9", "mdt_all_mor_compacted").table)
    merged_at = max(table.metadata_timeline.load().completed().of_actions(Action.COMMIT).requested_times)
    *_, commit = (item for item in table.data.load().commits() if item.completed_at < merged_at)
    (table.path / table.data.path_of(commit)).unlink()
    did = updated(table, options=REBUILD)
    assert (did.rebuilt, did.widened) == ((), ())
    assert {RECORD_INDEX, NAME} <= set(did.incomplete)
    assert f"hold rows of {commit.requested_time}, which is not committed" in caplog.text


@pytest.mark.slow
@pytest.mark.parametrize("number", range(0, 40, 4))
def test_killed_at_any_change_and_run_again(stale: Stale, number: int) -> None:
    """Of a table with both: the ranges first, as they come with the lock that finds nothing to rebuild."""
    table = stale("narrow_v8")
    plan = FaultPlan(kill_at=number, counts=MUTATIONS)
    try:
        updated(table.table, FaultStorage(table.table.storage, plan))
    except InjectedCrash:
        assert table.found("amount = 500.0") == table.due("amount", 500.0)
    updated(table.table)
    assert [text for text in table.differences() if text.startswith("partition_stats")] == []
