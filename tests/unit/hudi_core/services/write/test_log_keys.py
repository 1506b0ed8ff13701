"""Keys that only log files have are found: no row is doubled. test_append.py does so for a compaction of Hudi's."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from hudi_core.engine.local import LocalEngine
from hudi_core.errors import ConflictError
from hudi_core.services.compaction.planner import CompactionService
from hudi_core.services.write import verb
from hudi_core.services.write.append import LogAppend
from hudi_core.services.write.log_keys import slices_with_own_keys_in_logs
from hudi_core.services.write.tagging import tag
from hudi_core.services.write.tagging.places import NEW
from hudi_core.timeline.instant import Action
from hudi_core.view.file_group import FileSlice
from tests.support.changed_tables import an_owner, open_context
from tests.support.golden_data import GoldenCase
from tests.support.overwrites import put_source
from tests.support.table_invariants import assert_metadata_true, read_rows
from tests.support.tiers import tiered
from tests.support.writes import APART, Model, changed, like, own_columns, write

Golden = Callable[[str, str], GoldenCase]
DAY = "2024-01-01"
ONE_DELTA = {
    "hoodie.compact.inline.max.delta.commits": "1",
    "hoodie.write.concurrency.mode": "optimistic_concurrency_control",
}


def logged(table: Path, archived: str | None = None) -> list[FileSlice]:
    """The commit `archived` leaves the timeline between the look at that and the look at the times of its files."""
    context = open_context(table)
    timeline = context.active.load()
    if archived is not None:
        (table / context.active.path_of(timeline.commits().get(archived, Action.COMMIT))).unlink()
    slices = [item for item in context.view(timeline).latest_merged_slices(DAY) if item.base_file is not None]
    return [slices[number] for number in sorted(slices_with_own_keys_in_logs(context, timeline, slices))]


@pytest.mark.parametrize("is_planned", ["before", "after"])
@pytest.mark.parametrize("few", [True, False], ids=["few keys", "many keys"])
@pytest.mark.parametrize(
    ("version", "name"),
    tiered(
        [(version, name) for version in ("6", "8", "9") for name in ("mor_basic", "no_meta_fields_mor")],
        [("6", "mor_basic"), ("9", "no_meta_fields_mor")],
    ),
)
def test_a_key_that_was_put_back_beside_a_compaction_is_found(
    golden: Golden, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, name: str, few: bool, is_planned: str
) -> None:
    """Also by the next upsert, and once another compaction has brought it to a base file. The compaction is planned
    before the write that puts it back, or after that was requested: by the rules of 1.0 that is a conflict.
    """
    if not few:
        monkeypatch.setattr("hudi_core.services.write.tagging.exchange._MOST_WANTED", 0)
    table = golden(version, name).table
    model = Model.of(table, event_time=version != "6")
    own = own_columns(read_rows(table)).sort_by("id")
    gone = own.filter(pc.equal(own.column("dt"), DAY)).slice(2, 3)
    later = iter(range(1, 9))

    def put(operation: str, rows: pa.Table) -> None:
        getattr(model, operation)(rows)
        source = put_source(rows, tmp_path, name=str(next(later)))
        assert getattr(write(table, operation, source), {"upsert": "updated"}.get(operation, "deleted")) == 3
        model.check(table)

    def compact() -> str:
        planned = CompactionService().schedule(open_context(table, ONE_DELTA), an_owner(), dry_run=False).instant
        assert planned is not None
        return planned

    def run(planned: str) -> None:
        CompactionService().run(open_context(table), planned, LocalEngine(1), an_owner(), None)
        model.check(table)

    put("delete", gone)
    planned: list[str] = []
    if is_planned == "before":
        planned.append(compact())
    request = verb._request

    def requested(*arguments: Any) -> str | None:
        instant = request(*arguments)
        if not planned:
            planned.append(compact())
        return instant

    monkeypatch.setattr(verb, "_request", requested)
    back = changed(gone, ts=lambda ts: ts + 999_999)
    if version != "9" and is_planned == "after":
        with pytest.raises(ConflictError, match=r"requested compaction .* changes file groups that deltacommit"):
            write(table, "upsert", put_source(back, tmp_path))
        model.check(table)
        return
    put("upsert", back)
    run(planned[0])
    assert logged(table)
    assert logged(Path(shutil.copytree(table, tmp_path / "copy")), archived=planned[0])
    put("upsert", changed(gone, ts=lambda ts: ts + 1_999_999))
    run(compact())
    assert not logged(table)
    put("upsert", changed(gone, ts=lambda ts: ts + 2_999_999))
    assert_metadata_true(table)


@pytest.mark.parametrize("version", ["6", "9"])
def test_log_files_of_an_archived_compaction_are_read(golden: Golden, version: str) -> None:
    """When it completed is not looked up."""
    context = open_context(golden(version, "mor_basic").table)
    timeline = context.active.load()
    slices = [item for item in context.view(timeline).latest_merged_slices(DAY) if item.log_files]
    assert slices
    last = timeline.commits().last()
    assert last is not None
    assert len(slices_with_own_keys_in_logs(context, timeline.after(last.requested_time), slices)) == len(slices)


@pytest.mark.parametrize(
    ("version", "few"),
    tiered([(version, few) for version in ("6", "8", "9") for few in (True, False)], [("6", True), ("9", False)]),
)
def test_a_key_that_a_writer_put_into_a_log_file_as_new_is_found(
    golden: Golden, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, few: bool
) -> None:
    """As one does whose index has the keys of log files. Its stats count the row as inserted (HoodieAppendHandle)."""
    if not few:
        monkeypatch.setattr("hudi_core.services.write.tagging.exchange._MOST_WANTED", 0)
    table = golden(version, "mor_basic").table
    model = Model.of(table, event_time=version != "6")
    own = own_columns(read_rows(table))
    new = like(own, {"id": "only in a log", "dt": DAY, "ts": own.column("ts")[0].as_py() + 999_999})
    placed, stat = tag._placed, LogAppend._stat

    def into_a_log(target: tag.TagTarget, *arguments: Any) -> Any:
        places = placed(target, *arguments)
        places.groups[places.groups == NEW] = target.partitions.index(DAY)
        return places

    def as_inserts(appended: LogAppend, size: int) -> Any:
        written = stat(appended, size)
        return replace(written, num_inserts=written.num_writes, num_update_writes=0)

    assert not logged(table)
    with monkeypatch.context() as foreign:
        foreign.setattr(tag, "_placed", into_a_log)
        foreign.setattr(LogAppend, "_stat", as_inserts)
        model.upsert(new)
        write(table, "upsert", put_source(new, tmp_path, name="new"), APART)
    model.check(table)
    assert logged(table)
    later = changed(new, ts=lambda ts: ts + 1)
    model.upsert(later)
    assert write(table, "upsert", put_source(later, tmp_path, name="later"), APART).updated == 1
    model.check(table)
    model.delete(later)
    assert write(table, "delete", put_source(later, tmp_path, name="gone"), APART).deleted == 1
    model.check(table)
    assert_metadata_true(table)
