"""Missing actions applied to the metadata table: golden tables whose metadata table loses its last deltacommits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pytest

from hudi_core.config.metadata_config import REBUILD_ROW_INDEXES
from hudi_core.engine.local import LocalEngine
from hudi_core.errors import ConflictError, TimelineError
from hudi_core.metadata_table.partition_type import is_row_level
from hudi_core.metadata_table.read.file_group import ROOT
from hudi_core.metadata_table.write.rollback import files_written_by
from hudi_core.metadata_table.write.staged_logs import STAGING
from hudi_core.services.clean.planner import CleanService
from hudi_core.services.context import TableContext
from hudi_core.services.metadata.maintain import Updated, update_metadata
from hudi_core.services.metadata.row_changes import RowsUnknownError
from hudi_core.storage.base import Storage
from hudi_core.table import HudiTable
from hudi_core.timeline.actions.rollback import (
    RestoredInstant,
    RestoreMetadata,
    RestorePlan,
    encode_restore_metadata,
    encode_restore_plan,
)
from hudi_core.timeline.instant import Action, Instant, State
from hudi_core.transaction.owner import Owner
from hudi_health.table import validate_metadata
from tests.support.damaged_tables import DamagedTable
from tests.support.golden_cleans import context_of, data_files, run_clean
from tests.support.golden_data import GoldenCase
from tests.support.kill_points import killed_at_each_change
from tests.support.metadata_records import (
    Records,
    Table,
    comparable,
)
from tests.support.tiers import tiered
from tests.unit.hudi_core.metadata_table.initialize.test_exchange import timeless
from tests.unit.hudi_core.metadata_table.write.test_publish_partition_types import remove_data

Golden = Callable[[str, str], GoldenCase]
OWNER = Owner.current("test")
ENGINE = LocalEngine(2)
NEVER = {"hoodie.metadata.compact.max.delta.commits": "1000", "spark.sql.session.timeZone": "UTC"}
# With a version 9 table real Hudi takes the data table's setting for filters of expressions, before that its default.
OF_9 = {"hoodie.index.bloom.num_entries": "1000"}


REBUILDS = {REBUILD_ROW_INDEXES.name: "true"}


def updated(table: Table, storage: Storage | None = None, options: Mapping[str, str] | None = None) -> Updated:
    chosen = NEVER | (OF_9 if table.config.raw["hoodie.table.version"] == "9" else {}) | dict(options or {})
    return update_metadata(context_of(table.path, chosen, storage), ENGINE, OWNER, 3)


def update(table: Table, storage: Storage | None = None) -> tuple[str, ...]:
    return updated(table, storage).applied


def forget(table: Table, count: int, action: str | None = None) -> list[str]:
    """Removes the last deltacommits of the data table's actions from the metadata table, with their blocks, as if they
    had never been written.
    """
    data = [item for item in table.data.load().completed() if action is None or item.action == action]
    metadata_timeline = table.metadata_timeline.load()
    recorded = [
        item.requested_time
        for item in data
        if metadata_timeline.find(item.requested_time, Action.DELTA_COMMIT) is not None
    ]
    gone = recorded[-count:]
    forget_these(table, gone)
    return gone


def forget_these(table: Table, gone: list[str]) -> None:
    metadata_timeline, features = table.metadata_timeline.load(), table.config.features
    for time in gone:
        if features.log_name_has_delta_commit:
            written = [info.path for info, _ in files_written_by(table.storage, frozenset({time}))]
        else:
            stats = table.metadata_timeline.read_commit(metadata_timeline.get(time, Action.DELTA_COMMIT)).write_stats()
            written = [f"{ROOT}/{stat.path}" for stat in stats]
        table.metadata_timeline.delete_instant(time, Action.DELTA_COMMIT)
        for path in written:
            table.storage.delete(path)


def findings(table: Table) -> list[Any]:
    return list(
        validate_metadata(HudiTable.open(str(table.path), options={"airflow_hudi.read.zone": "UTC"})).differences
    )


def plain(records: Records) -> Records:
    return comparable(records)


CASES = [(version, case) for version in ("6", "8", "9") for case in ("mdt_all_cow", "mdt_all_mor")]


@pytest.mark.slow
@pytest.mark.parametrize(("version", "case"), tiered(CASES, [("6", "mdt_all_mor"), ("9", "mdt_all_cow")]))
@pytest.mark.parametrize("count", tiered([1, 2], [2]))
def test_missing_commits_are_applied(golden: Golden, version: str, case: str, count: int) -> None:
    table = Table(golden(version, case).table)
    before = plain(table.live())
    gone = forget(table, count)
    assert plain(table.live()) != before
    assert update(table) == tuple(gone)
    after = plain(table.live())
    for name in before:
        assert after[name] == before[name], name
    assert findings(table) == []
    assert not (table.path / STAGING).exists() or not any(path.is_file() for path in (table.path / STAGING).rglob("*"))
    names = table.metadata_timeline.names()
    assert update(table) == ()
    assert table.metadata_timeline.names() == names


def commits_of(table: Table) -> list[str]:
    return [item.requested_time for item in table.data.load().commits()]


MIDDLE = [
    "cow_basic",
    "mor_basic",
    "mor_compacted",
    "clustered_cow",
    "insert_overwrite_partition_cow",
    "delete_partition_cow",
]


@pytest.mark.parametrize("version", tiered(["6", "8", "9"], ["6", "9"]))
@pytest.mark.parametrize(
    "case", tiered(MIDDLE, ["cow_basic", "mor_compacted", "clustered_cow", "insert_overwrite_partition_cow"])
)
def test_a_missing_commit_in_the_middle(golden: Golden, version: str, case: str) -> None:
    """An older commit than those that are recorded."""
    table = Table(golden(version, case).table)
    before, real = plain(table.live()), findings(table)
    recorded = [
        item.requested_time
        for item in table.data.load().commits()
        if table.metadata_timeline.load().find(item.requested_time, Action.DELTA_COMMIT)
    ]
    target = recorded[len(recorded) // 2]
    forget_these(table, [target])
    assert update(table) == (target,)
    after = plain(table.live())
    # Statistics of whole partitions are made of the files as they are now.
    for name in before.keys() - {"partition_stats"}:
        assert after[name] == before[name], name
    assert findings(table) == real


EVERYWHERE = [
    ("6", 12),
    ("8", 24),
    *(pytest.param(version, 1, marks=pytest.mark.conformance) for version in ("6", "8")),
]


@pytest.mark.slow
@pytest.mark.parametrize(("version", "step"), EVERYWHERE)
def test_killed_anywhere_it_is_continued(golden: Golden, version: str, step: int) -> None:
    origin = golden(version, "mdt_all_mor").table
    whole = Table(origin)
    before = plain(whole.live())
    forget(whole, 2)
    crashes = 0
    for at, table in killed_at_each_change(origin, step, update):
        crashes += 1
        update(table)
        after = plain(table.live())
        for name in before:
            assert after[name] == before[name], (at, name)
    assert crashes > 1


@pytest.mark.parametrize("version", ["8", "9"])
def test_rows_that_a_commit_moved_which_is_archived_already(
    golden: Golden, version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was requested before the missing commit, and completed after it."""
    table = Table(golden(version, "mdt_all_mor").table)
    commits = table.data.load().commits().instants
    metadata, left = table.data.read_commit(commits[0]), commits[-1]
    assert left.completion_time is not None
    overtaken = replace(
        commits[0],
        requested_time=f"{int(commits[0].requested_time) - 1}",
        completion_time=f"{int(left.completion_time) + 1}",
    )

    archive = context_of(table.path, {}).history()
    monkeypatch.setattr(
        archive, "completed_in", lambda begin, end: [overtaken] if (begin, end) == (left.completion_time, None) else []
    )
    monkeypatch.setattr(archive, "commit", {overtaken.requested_time: metadata}.get)
    forget_these(table, [left.requested_time])
    monkeypatch.setattr(TableContext, "history", lambda self: archive)
    with pytest.raises(
        RowsUnknownError,
        match=f"have {overtaken.action} {overtaken.requested_time}, but not {left.action} {left.requested_time}",
    ):
        update(table)


@pytest.mark.slow
@pytest.mark.parametrize("version", ["6", "8", "9"])
def test_rows_that_later_commits_moved(golden: Golden, version: str) -> None:
    """Row-level indexes are refused, or rebuilt; they hold what they held before."""
    table = Table(golden(version, "mdt_all_mor").table)
    rows = {name for name in table.config.metadata_partitions if is_row_level(name)}
    before = timeless(table.live())
    first, second = commits_of(table)[-2:]
    forget_these(table, [first])
    names = table.metadata_timeline.names()
    with pytest.raises(RowsUnknownError, match=f"have deltacommit {second}, but not deltacommit {first}"):
        update(table)
    assert table.metadata_timeline.names() == names
    done = updated(table, options=REBUILDS)
    assert (done.applied, set(done.rebuilt)) == ((first,), rows)
    after = timeless(table.live())
    assert {name: after[name] for name in rows} == {name: before[name] for name in rows}
    assert findings(table) == []
    assert updated(table, options=REBUILDS).rebuilt == ()


@pytest.mark.slow
@pytest.mark.parametrize("version", ["6", "9"])
def test_rows_whose_older_files_were_cleaned(golden: Golden, version: str) -> None:
    table = Table(golden(version, "mdt_all_cow").table)
    assert clean_to_one(table)
    late = commits_of(table)[-1]
    forget_these(table, [late])
    with pytest.raises(
        RowsUnknownError, match=f"cannot be updated by .* {late}: what .* held before was cleaned since"
    ):
        update(table)
    assert findings(table) != []
    done = updated(table, options=REBUILDS)
    assert done.applied == (late,)
    assert {"record_index"} <= set(done.rebuilt)
    assert findings(table) == []


def clean_to_one(table: Table) -> int:
    """Cleans all but the newest slices; the files deleted."""
    context = context_of(
        table.path, {"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.clean.fileversions.retained": "1"}
    )
    before = len(data_files(table.path))
    planned = CleanService().schedule(context, OWNER, dry_run=False)
    assert planned.instant is not None
    assert run_clean(table.path, planned.instant) == "completed"
    return before - len(data_files(table.path))


def test_a_pending_restore_comes_first(golden: Golden) -> None:
    table = Table(golden("8", "mor_basic").table)
    forget(table, 1)
    restore = table.new_instant()
    table.data.create_requested(restore, Action.RESTORE, b"")
    with pytest.raises(ConflictError, match=f"restore {restore} of the table is pending"):
        update(table)


@pytest.mark.parametrize("version", ["6", "8", "9"])
def test_what_the_table_has_archived_is_refused(golden: Golden, version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    table = Table(golden(version, "mor_basic").table)
    archived = table.data.load().commits().instants[1]
    forget_these(table, [archived.requested_time])
    table.data.delete_instant(archived.requested_time, archived.pending_action)
    monkeypatch.setattr(TableContext, "history", lambda self: Archive([archived]))
    names = table.metadata_timeline.names()
    with pytest.raises(TimelineError, match=f"{archived.requested_time}, and the table has archived it"):
        update(table)
    assert table.metadata_timeline.names() == names


@dataclass(frozen=True)
class Archive:
    """history.archived.ArchivedTimeline, as far as it is used here."""

    held: list[Instant]

    def instants(self, after: str | None = None, up_to: str | None = None) -> list[Instant]:
        return [item for item in self.held if after is None or item.requested_time > after]


@pytest.mark.parametrize("version", ["6", "9"])
def test_a_restore_that_later_actions_followed_is_refused(golden: Golden, version: str) -> None:
    """Also where these are recorded: the metadata table still holds what the restore undid."""
    table = Table(golden(version, "cow_basic").table)
    *_, target, last = table.data.load().commits().instants
    restore = table.new_instant()
    remove_data(table, target.completed_at, restore)
    gone = (RestoredInstant(last.requested_time, last.action),)
    plan = table.data.path(restore, Action.RESTORE, State.REQUESTED)
    table.storage.write(plan, encode_restore_plan(RestorePlan(target.requested_time, gone)))
    table.data.complete(
        restore, Action.RESTORE, encode_restore_metadata(RestoreMetadata(restore, 1, gone)), table.later(restore)
    )
    DamagedTable(table.path).write({})
    with pytest.raises(TimelineError, match=f"lacks restore {restore}"):
        update(table)
