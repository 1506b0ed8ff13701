"""What an attempt at new file slices leaves when it ends before its commit; by the toy service, which adds nothing."""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hudi_core.engine.local import LocalEngine
from hudi_core.engine.protocol import TaskAttempt
from hudi_core.errors import ConflictError, FormatError, LockError
from hudi_core.filegroup.write.markers import list_markers
from hudi_core.metadata_table.timeline import MetadataTimeline
from hudi_core.metadata_table.write.delta_writer import DeltaWriter
from hudi_core.model.names import CLAIMS
from hudi_core.services.context import TableContext
from hudi_core.services.lifecycle import Run, run_instant
from hudi_core.services.rewriting import job as rewrite
from hudi_core.services.rewriting.job import Attempt
from hudi_core.timeline.instant import Action, State
from hudi_core.transaction.owner import Owner
from tests.support.changed_tables import open_context
from tests.support.golden_data import GoldenCase
from tests.support.table_invariants import assert_readable, read_rows
from tests.support.toy_service import job as toy_job
from tests.support.toy_service.job import CopyJob
from tests.support.toy_service.planner import CopyService

Golden = Callable[[str, str], GoldenCase]
ME = Owner.current("a test")


@pytest.fixture(params=["6", "9"])
def table(request: pytest.FixtureRequest, golden: Golden) -> Path:
    return golden(request.param, "cow_basic").table


def planned(table: Path) -> str:
    instant = CopyService().schedule(open_context(table), ME, dry_run=False).instant
    assert instant is not None
    return instant


def run(table: Path, instant: str, context: TableContext | None = None) -> int:
    return run_instant(CopyJob(Run(context or open_context(table), instant, ME, LocalEngine(1)))).files_written


def state(table: Path, instant: str) -> State:
    return open_context(table).active.load().get(instant, Action.COMPACTION).state


def written(table: Path, instant: str) -> list[Path]:
    return list(table.rglob(f"*_{instant}.parquet"))


def behind(monkeypatch: pytest.MonkeyPatch, does: Callable[[], object]) -> None:
    """Each unit does `does` when its file is written."""
    copy = toy_job.copy_base_file

    def task(unit: toy_job.CopyUnit, attempt: TaskAttempt) -> toy_job.CopiedFile:
        result = copy(unit, attempt)
        does()
        return result

    monkeypatch.setattr(toy_job, "copy_base_file", task)


def test_bad_input_that_shows_late_leaves_the_plan_alone(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    instant, rows = planned(table), read_rows(table)

    def refuse() -> None:
        raise FormatError("the file is damaged")

    with monkeypatch.context() as patch:
        behind(patch, refuse)
        with pytest.raises(FormatError, match="damaged"):
            run(table, instant)
    assert state(table, instant) is State.REQUESTED
    assert written(table, instant) == []
    assert list_markers(open_context(table).storage, instant) == []
    assert_readable(table, rows)
    assert run(table, instant) > 0
    assert_readable(table, rows)


def test_an_attempt_whose_instant_is_gone_deletes_its_files(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    instant, rows = planned(table), read_rows(table)
    active = open_context(table).active

    def remove() -> None:
        for each in (State.INFLIGHT, State.REQUESTED):
            active.remove(instant, Action.COMPACTION, each)

    behind(monkeypatch, remove)
    with pytest.raises(ConflictError, match="no longer on the timeline"):
        run(table, instant)
    assert written(table, instant) == []
    assert_readable(table, rows)


def test_an_index_that_comes_meanwhile_is_a_conflict(table: Path) -> None:
    instant, context = planned(table), open_context(table)
    before = replace(context.config, metadata_partitions_inflight=frozenset({"an index"}))
    with pytest.raises(ConflictError, match="got or lost an index"):
        run(table, instant, replace(context, config=before))
    assert state(table, instant) is State.INFLIGHT
    assert run(table, instant) > 0


def test_many_files_are_read_by_executors(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    instant, rows = planned(table), read_rows(table)
    monkeypatch.setattr(rewrite, "DRIVER_FILES", 0)
    assert run(table, instant) > 0
    assert_readable(table, rows)


@pytest.mark.parametrize("check", ["lock", "claim"])
def test_an_owner_that_slept_completes_nothing_in_the_metadata_table(
    table: Path, monkeypatch: pytest.MonkeyPatch, check: str
) -> None:
    """Its instant may have been rolled back meanwhile: readers would count a deltacommit whose instant is gone."""
    instant, rows = planned(table), read_rows(table)
    put = DeltaWriter._put

    def sleep(self: DeltaWriter, path: str, block: bytes) -> None:
        put(self, path, block)
        (lost := table / (".hoodie/lock" if check == "lock" else f"{CLAIMS}/{instant}/000001.json")).unlink(
            missing_ok=True
        )
        assert not lost.exists()

    with monkeypatch.context() as patch:
        patch.setattr(DeltaWriter, "_put", sleep)
        with pytest.raises(LockError if check == "lock" else ConflictError):
            run(table, instant)
    context = open_context(table)
    recorded = MetadataTimeline(context.storage, context.config).active.load()
    assert not recorded.get(instant, Action.DELTA_COMMIT).is_completed
    assert_readable(table, rows)


def test_a_late_file_of_an_attempt_that_hudi_rolled_back_goes(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hudi has made the instant requested, and deleted the markers. Its task closes a file behind our last look."""
    instant, rows = planned(table), read_rows(table)
    publish = Attempt._publish

    def late(self: Attempt, *arguments: Any) -> None:
        first = written(table, instant)[0]
        shutil.copy(first, first.with_name(f"{uuid.uuid4()}-0_7-77-777_{instant}.parquet"))
        publish(self, *arguments)

    monkeypatch.setattr(Attempt, "_publish", late)
    files = run(table, instant)
    assert len(written(table, instant)) == files
    assert_readable(table, rows)
