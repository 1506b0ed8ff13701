"""The run of a log compaction's plan: what must hold before it, what its results must show, and who may run it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hudi_core.engine.local import LocalEngine
from hudi_core.engine.protocol import UnitTask
from hudi_core.errors import (
    ConfigError,
    ConflictError,
    ExecutionError,
    FormatError,
    StorageNotFoundError,
    TimelineError,
)
from hudi_core.services.compaction.job import check_copied_counts, check_not_overtaken
from hudi_core.services.compaction.merge_logs import MergedLogs
from hudi_core.services.rewriting.proof import prove_operations
from hudi_core.timeline.instant import Action, Instant, State
from hudi_core.timeline.timeline import Timeline
from hudi_core.transaction.claim import claim
from hudi_core.transaction.owner import Owner
from tests.support.golden_compactions import context_of
from tests.support.golden_data import GoldenCase
from tests.support.log_compactions import PLANNED, VERSIONS, merge_logs, planned
from tests.support.rows import assert_same_rows
from tests.support.table_invariants import pending_instants, read_rows
from tests.support.tiers import tiered

Golden = Callable[[str, str], GoldenCase]
LATER = "20990101000000000"


class HookedEngine:
    """A local engine that calls `before` ahead of the units and lets `change` alter the results."""

    name = "hooked"

    def __init__(self, before: Callable[[], object] | None = None, change: Callable[[list[Any]], list[Any]] = list):
        self._before, self._change = before, change

    def run(self, task: UnitTask[Any, Any], units: Any, *, run_epoch: int, progress: Any = None) -> list[Any]:
        if self._before is not None:
            self._before()
        return self._change(LocalEngine(2).run(task, units, run_epoch=run_epoch, progress=progress))


def data_files(table: Path) -> set[str]:
    return {path.name for path in table.glob("2024-*/*")} | {path.name for path in table.glob("2024-*/.*.log.*")}


@pytest.mark.parametrize("version", tiered(VERSIONS, ["6", "9"]))
def test_a_compaction_that_was_requested_later_stops_it(golden: Golden, version: str) -> None:
    """Before anything is written, and when it comes while it runs."""
    table = golden(version, PLANNED).table
    instant, before = planned(table), data_files(table)
    context = context_of(table)
    compaction = table / context.active.path(LATER, Action.COMPACTION, State.REQUESTED)
    content = (table / context.active.path(instant, Action.LOG_COMPACTION, State.REQUESTED)).read_bytes()
    compaction.write_bytes(content)
    with pytest.raises(
        TimelineError, match=f"compaction {LATER} was requested after log compaction {instant}"
    ) as caught:
        merge_logs(table, instant)
    assert f"unschedule TABLE {instant}" in str(caught.value.remedy)
    assert data_files(table) == before
    compaction.unlink()
    rows = read_rows(table)
    with pytest.raises(TimelineError, match="was requested after log compaction"):
        merge_logs(table, instant, engine=HookedEngine(lambda: compaction.write_bytes(content)))
    compaction.unlink()
    assert_same_rows(read_rows(table), rows)
    merge_logs(table, instant)
    assert_same_rows(read_rows(table), rows, ignore=())


def test_an_earlier_compaction_does_not() -> None:
    done = Instant("001", Action.COMMIT, State.COMPLETED)
    check_not_overtaken(Timeline([done]), "002", path="p")
    with pytest.raises(TimelineError):
        check_not_overtaken(Timeline([done]), "000", path="p")


@pytest.mark.parametrize("version", VERSIONS)
def test_only_a_log_compaction_is_found(golden: Golden, version: str) -> None:
    table = golden(version, PLANNED).table
    write = min(context_of(table).active.load().commits().requested_times)
    for instant in (write, LATER):
        with pytest.raises(ConfigError, match=f"no log compaction at instant {instant}"):
            merge_logs(table, instant)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_lost_file_of_the_plan_is_named(golden: Golden, version: str) -> None:
    table = golden(version, PLANNED).table
    lost = sorted(table.glob("2024-01-01/.*.log.*"))[0]
    lost.unlink()
    with pytest.raises(StorageNotFoundError) as caught:
        merge_logs(table)
    assert str(caught.value.path).endswith(lost.name)


@pytest.mark.parametrize("version", VERSIONS)
def test_one_owner_runs_it(golden: Golden, version: str) -> None:
    table = golden(version, PLANNED).table
    context, instant = context_of(table), planned(table)
    with claim(context.storage, instant, Owner.current("alive")), pytest.raises(ConflictError, match="alive"):
        merge_logs(table, instant)
    assert merge_logs(table, instant).state == "completed"


@pytest.mark.parametrize("version", tiered(VERSIONS, ["9"]))
def test_results_that_do_not_prove_the_plan_are_not_published(golden: Golden, version: str) -> None:
    """Whatever the engine lost, doubled or renamed; the next run ends well."""
    table = golden(version, PLANNED).table
    instant, rows = planned(table), read_rows(table)

    def stat_of(changed: dict[str, Any]) -> Callable[[list[MergedLogs]], list[MergedLogs]]:
        def change(results: list[MergedLogs]) -> list[MergedLogs]:
            assert results[0].stat is not None
            return [replace(results[0], stat=replace(results[0].stat, **changed)), *results[1:]]

        return change

    changes: list[Callable[[list[MergedLogs]], list[MergedLogs]]] = [
        lambda results: results[1:],
        lambda results: [results[1], results[0], *results[2:]],
        lambda results: [replace(results[0], records=results[0].records - 1), *results[1:]],
        lambda results: [replace(results[0], keys=results[0].keys + 1), *results[1:]],
        stat_of({"path": "2024-01-01/x.parquet"}),
        stat_of({"file_size_in_bytes": 0}),
        stat_of({"num_writes": 1}),
    ]
    for change in changes:
        with pytest.raises(ExecutionError) as caught:
            merge_logs(table, instant, engine=HookedEngine(change=change))
        assert "nothing was published" in str(caught.value.remedy)
        assert_same_rows(read_rows(table), rows)
    assert merge_logs(table, instant).state == "completed"
    assert pending_instants(table) == set()
    assert_same_rows(read_rows(table), rows, ignore=())


def test_statistics_are_required_where_the_metadata_table_needs_them() -> None:
    assert prove_operations([], [], "001", check_copied_counts, is_base=False, with_statistics=True).stats == []
    with pytest.raises(ExecutionError, match="0 operations, the engine returned 1"):
        prove_operations(
            [], [MergedLogs(None, None, 0)], "001", check_copied_counts, is_base=False, with_statistics=False
        )


@pytest.mark.parametrize("version", VERSIONS)
def test_a_write_beside_the_plan(golden: Golden, version: str) -> None:
    """In layout 2 one that was requested later comes behind; in version 6 some readers would read it too early."""
    table = golden(version, PLANNED).table
    instant = planned(table)
    (slice_log, *_) = sorted(table.glob("2024-01-01/.*.log.*"))
    copy_of_a_write(table, slice_log)
    rows = read_rows(table)
    if version == "6":
        with pytest.raises(FormatError, match="completed beside the plan"):
            merge_logs(table, instant)
        assert_same_rows(read_rows(table), rows, ignore=())
        return
    merge_logs(table, instant)
    assert_same_rows(read_rows(table), rows, ignore=())


def copy_of_a_write(table: Path, log: Path) -> None:
    """A completed delta commit behind the plan: the blocks of a log file once more, under a later instant."""
    context = context_of(table)
    first = min(context.active.load().of_actions(Action.DELTA_COMMIT).requested_times - {""})
    old = next(time for time in context.active.load().commits().requested_times if time.encode() in log.read_bytes())
    content = log.read_bytes().replace(old.encode(), LATER.encode())
    name = log.name.replace(f"_{old}.", f"_{LATER}.") if old in log.name else log.name.replace(".log.1_", ".log.9_")
    log.with_name(name).write_bytes(content)
    folder = table / context.active.folder
    (done,) = (path for path in folder.iterdir() if path.name.startswith(first) and path.name.endswith(".deltacommit"))
    completed = f"{LATER}.deltacommit" if "_" not in done.name else f"{LATER}_{int(LATER) + 5}.deltacommit"
    for state in ("requested", "inflight"):
        (folder / f"{LATER}.deltacommit.{state}").write_bytes(b"")
    (folder / completed).write_bytes(done.read_bytes())
