"""Rows that a query or a predicate took from the table: commits that came before the write was requested count, also
where an archival or a rollback has taken them from the timeline.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pytest

from hudi_core.errors import ConflictError
from hudi_core.metadata_table.write.lifetime import drop_metadata_table
from hudi_core.services.concurrent_changes import Seen
from hudi_core.services.overwrite.plan import Overwrite, plan_overwrite
from hudi_core.services.restore.savepoint import savepoint_create
from hudi_core.services.restore.verb import restore
from hudi_core.services.rollback.verb import rollback
from hudi_core.services.write import verb
from hudi_core.timeline.actions.commit import Operation
from hudi_core.timeline.timeline import Timeline
from tests.support.changed_tables import an_owner, open_context
from tests.support.golden_data import GoldenCase
from tests.support.overwrites import put_source
from tests.support.rows import assert_same_rows
from tests.support.table_invariants import read_rows
from tests.support.tiers import tiered
from tests.support.writes import archive_behind, changed, own_columns, write

Golden = Callable[[str, str], GoldenCase]
VERSIONS = tiered(["6", "8", "9"], ["6", "9"])
MARK = 777_777


def upsert_quantity(table: Path, qty: int) -> str:
    """Upserts the first row with another quantity."""
    row = own_columns(read_rows(table)).sort_by("id").slice(0, 1)
    given = put_source(changed(row, qty=qty, ts=lambda ts: ts + 1), table.parent, name=f"quantity-{qty}")
    return str(write(table, "upsert", given).instant)


def after_the_rows(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    """Acts once the rows to write were taken from the table, before the write is requested."""
    counted = verb.counted_rows

    def then(*given: Any) -> Any:
        rows = counted(*given)
        monkeypatch.setattr(verb, "counted_rows", counted)
        act()
        return rows

    monkeypatch.setattr(verb, "counted_rows", then)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_commit_that_was_archived_since_counts(golden: Golden, monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    table = golden(version, "cow_basic").table
    drop_metadata_table(open_context(table).storage)
    upsert_quantity(table, MARK)
    changes: list[str] = []

    def change_and_archive() -> None:
        changes.append(upsert_quantity(table, 5))
        archive_behind(table)

    after_the_rows(monkeypatch, change_and_archive)
    with pytest.raises(ConflictError, match="has changed file group") as caught:
        write(table, "delete", table, where=f"qty = {MARK}")
    assert changes[0] in caught.value.message
    assert not open_context(table).active.load().contains(changes[0]), "it was to be archived"
    rows = read_rows(table)
    assert (MARK in rows["qty"].to_pylist(), 5 in rows["qty"].to_pylist()) == (False, True)
    write(table, "delete", table, where=f"qty = {MARK}")
    assert_same_rows(read_rows(table), rows)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("case", ["cow_basic", "mor_basic"])
def test_a_commit_that_was_rolled_back_since_counts(
    golden: Golden, monkeypatch: pytest.MonkeyPatch, version: str, case: str
) -> None:
    table = golden(version, case).table
    rows = read_rows(table)
    instant = upsert_quantity(table, MARK)
    after_the_rows(monkeypatch, lambda: rollback(open_context(table), instant, an_owner()))
    with pytest.raises(ConflictError, match=f"commit {instant} was rolled back"):
        write(table, "delete", table, where=f"qty = {MARK}")
    assert_same_rows(read_rows(table), rows)


@pytest.mark.parametrize("version", VERSIONS)
def test_an_overwrite_is_not_planned_behind_an_archived_commit(golden: Golden, version: str) -> None:
    table = golden(version, "cow_basic").table
    upsert_quantity(table, MARK)
    seen = Seen.of(open_context(table).active.load())
    row = read_rows(table).filter(pc.field("qty") == MARK)
    work = Overwrite(Operation.INSERT_OVERWRITE, seen=seen, partitions=(row["_hoodie_partition_path"][0].as_py(),))
    context = open_context(table)
    plan_overwrite(context, context.active.load(), work, with_slices=False)
    instant = upsert_quantity(table, 5)
    archive_behind(table)
    context = open_context(table)
    with pytest.raises(ConflictError, match=f"{instant} has written to partition"):
        plan_overwrite(context, context.active.load(), work, with_slices=False)


@pytest.mark.parametrize("version", VERSIONS)
def test_after_a_restore_to_the_oldest_commit_rows_are_deleted(golden: Golden, version: str) -> None:
    """The timeline has no write that no savepoint keeps, so it has no begin; all older commits are archived."""
    table = golden(version, "cow_basic").table
    drop_metadata_table(open_context(table).storage)
    rows, instant = read_rows(table), upsert_quantity(table, MARK)
    savepoint_create(open_context(table), instant, an_owner())
    archive_behind(table)
    restore(open_context(table), instant, an_owner())
    timeline = open_context(table).active.load()
    assert timeline.commits().requested_times == {instant}
    assert Seen.of(timeline).begin is None
    write(table, "delete", table, where=f"qty = {MARK}")
    assert read_rows(table).num_rows == rows.num_rows - 1
    assert Seen.of(Timeline()) == Seen(frozenset(), None, "")
