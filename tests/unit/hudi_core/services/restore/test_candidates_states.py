"""States to which no table can be restored, and what a savepoint keeps so that it can."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from hudi_core.errors import TimelineError
from hudi_core.services.clean.planner import CleanService
from hudi_core.services.restore.candidates import RestoreCandidates, restorable_instants
from hudi_core.services.restore.savepoint import read_savepoint, savepoint_create
from hudi_core.services.restore.verb import restore
from hudi_core.services.rollback.verb import rollback
from hudi_core.timeline.instant import Action, Instant
from tests.support.changed_tables import an_owner, open_context
from tests.support.golden_archives import archive_these
from tests.support.golden_cleans import run_clean, without_metadata_table
from tests.support.golden_compactions import compact
from tests.support.golden_data import GoldenCase
from tests.support.overwrites import delete
from tests.support.rows import assert_same_rows
from tests.support.table_invariants import read_rows
from tests.support.tiers import tiered

Golden = Callable[[str, str], GoldenCase]


def requested_at(table: Path, instant: str, time: str) -> None:
    """The instant's files as those of one that was requested at another time."""
    for path in (table / open_context(table).active.folder).glob(f"{instant}*"):
        path.rename(path.with_name(time + path.name.removeprefix(instant)))


def overtaken(golden: Golden, version: str) -> tuple[Path, str, str, str, pa.Table]:
    """A table whose last write, a delete of a partition, was requested before the last but one and completed after it.

    With the partition, the instants of the delete and of the other, and the rows before the delete.
    """
    table = without_metadata_table(golden(version, "cow_basic").table)
    rows = read_rows(table)
    partition = min(rows.column("_hoodie_partition_path").to_pylist())
    target = open_context(table).active.load().commits().instants[-1].requested_time
    deleted = delete(table, partition).instant
    assert deleted is not None
    early = str(int(target) - 1)
    requested_at(table, deleted, early)
    commits = open_context(table).active.load().commits().instants
    assert [item.requested_time for item in commits][-2:] == [early, target]
    assert commits[-2].completed_at > commits[-1].completed_at
    return table, partition, early, target, rows


def one_write_behind_its_compaction(table: Path) -> tuple[Instant, Instant]:
    """The pending compaction, and the one write since then that is not rolled back."""
    context = open_context(table)
    (compaction,) = context.active.load().pending_compactions()
    later = context.active.load().commits().after(compaction.requested_time).instants
    for item in reversed(later[1:]):
        rollback(context, item.requested_time, an_owner())
    return compaction, later[0]


def clean(table: Path) -> str | None:
    """Cleans everything but the last commit; the clean's instant."""
    context = open_context(table, {"hoodie.clean.commits.retained": "1"})
    instant = CleanService().schedule(context, an_owner(), dry_run=False).instant
    if instant is not None:
        run_clean(table, instant)
    return instant


@pytest.mark.parametrize("archived", [False, True])
@pytest.mark.parametrize("version", tiered(["8", "9"], ["9"]))
def test_what_a_clean_took_of_what_would_come_back(
    golden: Golden, version: str, archived: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cleans go by requested time, restores by completion."""
    table, partition, early, target, rows = overtaken(golden, version)
    cleaned = clean(table)
    assert cleaned is not None
    assert list((table / partition).glob("*.parquet")) == []
    if archived:
        archive_these(table, open_context(table).active.load().of_actions(Action.CLEAN))
    context = open_context(table)
    reasons = {item.instant: item.reason for item in restorable_instants(context)}
    assert reasons[target] == f"clean {cleaned} removes what replacecommit {early}, which completed after it, replaced"
    with pytest.raises(TimelineError, match="removes what replacecommit"):
        restore(context, target, an_owner())
    with pytest.raises(TimelineError, match="cannot be kept: clean"):
        savepoint_create(context, target, an_owner())
    monkeypatch.setattr(RestoreCandidates, "why_lost", lambda *_: None)
    restore(context, target, an_owner())
    assert read_rows(table).num_rows < rows.num_rows, "without the guard rows are lost"


@pytest.mark.parametrize("version", ["8", "9"])
def test_a_savepoint_keeps_what_was_replaced_by_a_write_that_was_requested_before(golden: Golden, version: str) -> None:
    table, partition, _, target, rows = overtaken(golden, version)
    context = open_context(table)
    savepoint_create(context, target, an_owner())
    saved = context.active.load().get(target, Action.SAVEPOINT)
    assert read_savepoint(context, saved).files[partition]
    clean(table)
    assert {item.instant: item.reason for item in restorable_instants(context)}[target] is None
    restore(context, target, an_owner())
    assert_same_rows(read_rows(table), rows)


@pytest.mark.parametrize("version", ["8", "9"])
def test_a_savepoint_keeps_log_files_that_lie_on_a_compaction_that_was_requested_since(
    golden: Golden, version: str
) -> None:
    """The write was requested before the compaction and completed after that was requested."""
    table = without_metadata_table(golden(version, "mor_compaction_requested").table)
    compaction, newest = one_write_behind_its_compaction(table)
    instant = str(int(newest.requested_time) + 1)
    assert compaction.requested_time < newest.requested_time < instant < newest.completed_at
    requested_at(table, compaction.requested_time, instant)
    compact(table, instant=instant)
    rows, context = read_rows(table), open_context(table)
    logs = {path.name for path in table.glob(f"*/.*_{newest.requested_time}.log.*") if path.suffix != ".crc"}
    assert logs
    savepoint_create(context, newest.requested_time, an_owner())
    saved = context.active.load().get(newest.requested_time, Action.SAVEPOINT)
    assert logs <= {name for names in read_savepoint(context, saved).files.values() for name in names}
    assert instant in restore(context, newest.requested_time, an_owner()).removed.instants
    assert_same_rows(read_rows(table), rows)


def test_rows_in_log_files_that_go_with_a_later_compaction(golden: Golden) -> None:
    """Table version 6: they have the compaction's instant in their names, and go with its slice."""
    table = golden("6", "mor_compaction_requested").table
    compaction, newest = one_write_behind_its_compaction(table)
    before = open_context(table).active.load().commits().instants[-2]
    early = str(int(compaction.requested_time) - 1)
    assert before.requested_time < early
    requested_at(table, newest.requested_time, early)
    context = open_context(table)
    reasons = {item.instant: item.reason for item in restorable_instants(context)}
    lost = f"rows of commit {early} are in log files of {compaction.requested_time} after it"
    assert lost in str(reasons[early])
    assert reasons[before.requested_time] is None
    with pytest.raises(TimelineError, match=lost):
        restore(context, early, an_owner())
    with pytest.raises(TimelineError, match=lost):
        savepoint_create(context, early, an_owner())
