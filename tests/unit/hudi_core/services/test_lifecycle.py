"""The line that every service runs through, by a service that adds no more than a planner and a job."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from hudi_core.config.table_config import TableConfig
from hudi_core.engine.local import LocalEngine
from hudi_core.errors import ConfigError, ConflictError
from hudi_core.filegroup.write.markers import TEMP_FOLDER
from hudi_core.model.names import CLAIMS, HUDI_HEARTBEATS, parse_base_file
from hudi_core.request.results import Result
from hudi_core.request.services import SERVICES, ServiceEntry
from hudi_core.services.context import TableContext
from hudi_core.services.runner import ServiceRunner
from hudi_core.services.service import service_of
from hudi_core.storage.local import LocalStorage
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.timeline.instant import Action
from hudi_core.transaction.owner import Owner
from hudi_core.verbs.run import RunRequest
from tests.support.fault_storage import MUTATIONS, FaultPlan, FaultStorage, InjectedCrash
from tests.support.golden_data import GoldenCase
from tests.support.table_invariants import assert_metadata_true, assert_readable, read_rows
from tests.support.tiers import tiered
from tests.support.toy_service import job as toy_job

Golden = Callable[[str, str], GoldenCase]
ME = Owner.current("a test")
CASES = [("6", "cow_basic"), ("9", "cow_basic")]


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    """The one line of registration."""
    monkeypatch.setitem(SERVICES, "copy", ServiceEntry("tests.support.toy_service.planner:CopyService"))


@pytest.fixture(params=CASES, ids="-".join)
def table(request: pytest.FixtureRequest, golden: Golden) -> Path:
    return golden(*request.param).table


def context_of(table: Path, plan: FaultPlan | None = None) -> TableContext:
    local = LocalStorage(table)
    storage = local if plan is None else FaultStorage(local, plan)
    config = TableConfig.load(storage)
    options = {"hoodie.time.generator.max_expected_clock_skew_ms": "0"}
    return TableContext(str(table), storage, config, ActiveTimeline(storage, config), options)


def run(table: Path, owner: Owner = ME, plan: FaultPlan | None = None, **request: object) -> Result:
    """Plans where nothing is pending, and runs; all of it is under `plan`, the units included."""
    requested = replace(RunRequest(str(table), service="copy", schedule=True), **request)  # type: ignore[arg-type]
    with pytest.MonkeyPatch.context() as patch:
        if plan is not None:
            patch.setattr(toy_job, "open_data_storage", lambda uri, options: FaultStorage(LocalStorage(uri), plan))
        return ServiceRunner(context_of(table, plan), LocalEngine(1), owner).run(requested)


def dead_process() -> Owner:
    """An owner of this machine whose process is gone: its PID belongs to one that was started at another time."""
    return replace(Owner.current("the process that dies"), process_start="1")


def base_files(table: Path) -> list[Path]:
    return sorted(path for path in table.rglob("*.parquet") if ".hoodie" not in path.parts)


def assert_copied(table: Path, rows: pa.Table, before: list[Path]) -> None:
    """Each file has one copy, of a completed instant, and no attempt left anything."""
    assert_readable(table, rows)
    assert_metadata_true(table)
    timeline = context_of(table).active.load()
    assert not timeline.pending().instants
    new = [path for path in base_files(table) if path not in before]
    latest = {(path.parent, parse_base_file(path.name).file_id) for path in before}
    assert {(path.parent, parse_base_file(path.name).file_id) for path in new} == latest
    assert len(new) == len(latest)
    completed = timeline.completed().requested_times
    assert {parse_base_file(path.name).instant for path in new} <= completed
    left = [path for folder in (CLAIMS, HUDI_HEARTBEATS, TEMP_FOLDER) for path in (table / folder).rglob("*")]
    assert [path for path in left if path.is_file()] == []


def test_the_toy_service_runs_end_to_end(table: Path) -> None:
    rows, before = read_rows(table), base_files(table)
    steps: list[tuple[str, int, int]] = []
    runner = ServiceRunner(context_of(table), LocalEngine(1), ME, lambda *step: steps.append(step))
    (done,) = runner.run(RunRequest(str(table), service="copy", schedule=True)).instants
    assert (done.action, done.state) == (Action.COMPACTION, "completed")
    assert steps[-1] == (done.instant, done.files_written, done.files_written)
    assert done.bytes_written > 0
    assert done.records == rows.num_rows
    assert_copied(table, rows, before)
    assert run(table) == Result((), "every base file is a copy")
    (again,) = run(table, instant=done.instant, schedule=False).instants
    assert (again.state, again.files_written) == ("completed", 0)


def kills(table: Path, tmp_path: Path) -> Iterator[int]:
    copy, plan = Path(shutil.copytree(table, tmp_path / "undisturbed")), FaultPlan(counts=MUTATIONS)
    run(copy, dead_process(), plan)
    yield from range(len(plan.mutations()))


@pytest.mark.slow
@pytest.mark.parametrize("part", tiered([0, 1], [0]))
@pytest.mark.parametrize(
    "table", tiered([pytest.param(case, id="-".join(case)) for case in CASES], ["9-cow_basic"]), indirect=True
)
def test_a_kill_at_every_change_is_made_good_by_the_next_run(table: Path, tmp_path: Path, part: int) -> None:
    """Before each change, which is what a kill after the one before it leaves."""
    rows, before = read_rows(table), base_files(table)
    seen = 0
    for number in [*kills(table, tmp_path)][part::2]:
        path = Path(shutil.copytree(table, tmp_path / "killed"))
        files = [path / item.relative_to(table) for item in before]
        with pytest.raises(InjectedCrash):
            run(path, dead_process(), FaultPlan(kill_at=number, counts=MUTATIONS))
        assert_readable(path, rows)
        run(path)
        run(path, schedule=True)  # what died right behind the completion is cleaned up by the instant's next run
        instants = [item.requested_time for item in context_of(path).active.load().commits()]
        run(path, instant=instants[-1], schedule=False)
        assert_copied(path, rows, files)
        shutil.rmtree(path)
        seen += 1
    assert seen > 5


def test_an_instant_that_another_owner_runs_is_left_to_it(table: Path) -> None:
    planned = service_of("copy").schedule(context_of(table), ME, dry_run=False)  # type: ignore[union-attr]
    with context_of(table).claim(planned.instant, ME), pytest.raises(ConflictError, match="is run by"):
        run(table)
    assert not list(table.rglob(f"*_{planned.instant}.parquet"))


def test_an_instant_of_another_action_is_bad_input(table: Path) -> None:
    with pytest.raises(ConfigError, match="holds no compaction"):
        run(table, instant="20000101000000000", schedule=False)
