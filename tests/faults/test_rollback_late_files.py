"""What comes too late: files of an attempt, or of a failed write, behind the rollback that took it away."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hudi_core.services.rollback.verb import rollback
from hudi_core.timeline.instant import State
from tests.faults.test_metadata_zombie_writers import Late
from tests.support.changed_tables import an_owner, data_files, leftovers, listed, open_context
from tests.support.golden_archives import archive_these
from tests.support.golden_clusterings import cluster, planned
from tests.support.golden_data import GoldenCase
from tests.support.table_invariants import has_metadata_table

Golden = Callable[[str, str], GoldenCase]


@pytest.mark.parametrize("version", ["6", "8", "9"])
@pytest.mark.parametrize("name", ["compaction_inflight", "clustering_requested_cow"])
def test_a_late_file_of_an_attempt_goes_and_its_plan_stays(golden: Golden, version: str, name: str) -> None:
    """The plan waits already when the zombie's file is found: it must not go with that, as the rows that writers put
    behind it would.
    """
    case = golden(version, name)
    context = open_context(case.table)
    (found,) = context.active.load().pending()
    instant, pending = found.requested_time, found.pending_action
    context.active.to_inflight(instant, pending)
    partition = next(path.rpartition("/")[0] for path in data_files(case.table) if path.endswith(".parquet"))
    late = case.table / partition / f"00000000-0000-0000-0000-000000000000-0_0-1-0_{instant}.parquet"
    late.write_bytes(b"in time")
    rollback(context, instant, an_owner())
    assert context.active.load().get(instant, pending).state is State.REQUESTED
    plan, before = context.active.read_requested(instant, pending), data_files(case.table)
    late.write_bytes(b"late")
    rollback(context, instant, an_owner())
    assert not late.exists()
    assert context.active.load().get(instant, pending).state is State.REQUESTED
    assert context.active.read_requested(instant, pending) == plan
    assert data_files(case.table) == before


@pytest.mark.parametrize("version", ["6", "8", "9"])
def test_what_the_metadata_table_records_too_late_goes_when_the_instant_is_named_again(
    golden: Golden, version: str
) -> None:
    late = Late(golden, version, "mor_basic")
    table = late.table.path
    rollback(open_context(table), late.failed, an_owner())
    files = {path: size for path, size in data_files(table).items() if not path.endswith("_partition_metadata")}
    assert has_metadata_table(table)
    late.write()
    assert listed(table) != files
    rollback(open_context(table), late.failed, an_owner())
    assert listed(table) == files
    assert leftovers(table, late.failed) == []


@pytest.mark.parametrize("named", ["rollback", "clustering"])
@pytest.mark.parametrize("version", ["6", "8", "9"])
def test_a_clustering_that_was_run_again_and_archived_keeps_its_files(golden: Golden, version: str, named: str) -> None:
    """It is not on the timeline, as an instant that was rolled back; but its files hold rows."""
    table = golden(version, "clustering_requested_cow").table
    context, instant = open_context(table), planned(table)
    (pending,) = context.active.load().pending()
    context.active.to_inflight(instant, pending.pending_action)
    partition = next(path.rpartition("/")[0] for path in data_files(table) if path.endswith(".parquet"))
    (table / partition / f"00000000-0000-0000-0000-000000000000-0_0-1-0_{instant}.parquet").write_bytes(b"half")
    done = rollback(context, instant, an_owner()).instant
    assert done is not None
    cluster(table, instant)
    archive_these(table, [context.active.load().get(instant, pending.pending_action)])
    files, shown = data_files(table), listed(table) if has_metadata_table(table) else {}
    assert any(instant in path for path in files)
    again = rollback(context, done if named == "rollback" else instant, an_owner())
    assert (again.instant, again.target, again.removed.files, again.removed.instants) == (done, instant, {}, ())
    assert data_files(table) == files
    assert (listed(table) if has_metadata_table(table) else {}) == shown
