"""Dropping plans of real Hudi's tables: what goes, what is refused, and that a kill at any change leaves nothing half
done.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from hudi_core.engine.local import LocalEngine
from hudi_core.errors import ConflictError, HudiError, StorageError
from hudi_core.services.compaction.planner import CompactionService
from hudi_core.services.context import TableContext
from hudi_core.services.indexing.planner import IndexingService
from hudi_core.services.unschedule import Unscheduled, unschedule
from hudi_core.storage.local import LocalStorage
from hudi_core.timeline.instant import Action, Instant
from hudi_core.transaction.claim_file import current_claim
from hudi_core.transaction.owner import Owner
from tests.support.changed_tables import (
    an_owner,
    data_files,
    known_times,
    leftovers,
    listed,
    new_instants,
    open_context,
    shown,
)
from tests.support.fault_storage import MUTATIONS, FaultPlan, FaultStorage, InjectedCrash
from tests.support.golden_data import GoldenCase, open_case
from tests.support.rows import assert_same_rows
from tests.support.table_invariants import has_metadata_table, read_rows
from tests.support.tiers import tiered

Golden = Callable[[str, str], GoldenCase]

DROPPED = [
    ("6", "mor_compaction_requested_only", "compaction"),
    ("6", "clustering_requested_cow", "clustering"),
    ("6", "clustering_requested_mor", "clustering"),
    ("6", "clean_requested_mor", "clean"),
    *((version, name, kind) for version in ("8", "9") for name, kind in (
        ("mor_compaction_requested", "compaction"),
        ("compaction_inflight", "compaction"),
        ("log_compaction_requested", "log_compaction"),
        ("clustering_requested_cow", "clustering"),
        ("clustering_requested_mor", "clustering"),
        ("clean_requested_mor", "clean"),
    )),
]  # fmt: skip


def the_plan(context: TableContext) -> Instant:
    planned = [
        item
        for item in context.active.load().pending()
        if item.pending_action not in (Action.COMMIT, Action.DELTA_COMMIT)
    ]
    return planned[0]


def drop(path: Path, instant: str, owner: Owner, faults: FaultPlan | None = None) -> Unscheduled:
    storage = LocalStorage(path)
    return unschedule(
        open_context(path, storage=storage if faults is None else FaultStorage(storage, faults)), instant, owner
    )


def state_of(path: Path, known: set[str], instant: str) -> dict[str, object]:
    state: dict[str, object] = {
        "files": data_files(path),
        "timeline": shown(path, known),
        "leftovers": leftovers(path, instant),
    }
    if has_metadata_table(path):
        state["listed"] = listed(path)
    return state


@pytest.mark.parametrize(
    ("version", "name", "kind"),
    tiered(DROPPED, [case for case in DROPPED if case[0] != "8"]),
    ids=lambda value: str(value),
)
def test_the_plan_goes_and_the_rows_stay(golden: Golden, version: str, name: str, kind: str) -> None:
    table = golden(version, name).table
    context = open_context(table)
    plan = the_plan(context)
    before, rows, files = shown(table, known_times(table)), read_rows(table, "off"), data_files(table)
    would = unschedule(context, plan.requested_time, an_owner(), dry_run=True)
    assert (shown(table, known_times(table)), data_files(table)) == (before, files)
    did = unschedule(context, plan.requested_time, an_owner())
    assert (did.action, did.removed.instants, did.dry_run) == (kind, (plan.requested_time,), False)
    assert (would.unblocks, would.action) == (did.unblocks, kind)
    assert (did.unblocks["file_groups"] > 0) == (kind != "clean")
    assert not context.active.load().contains(plan.requested_time)
    assert data_files(table) == {path: size for path, size in files.items() if path not in did.removed.files}
    assert leftovers(table, plan.requested_time) == []
    for mode in ("off", "on") if has_metadata_table(table) else ("off",):
        assert_same_rows(read_rows(table, mode), rows)


def test_what_an_attempt_wrote_goes_with_the_plan(golden: Golden) -> None:
    table = golden("8", "compaction_inflight").table
    plan = the_plan(open_context(table))
    known = known_times(table)
    written = [name for name in data_files(table) if plan.requested_time in name]
    assert written, "the case holds files of the attempt"
    did = drop(table, plan.requested_time, an_owner())
    assert sorted(did.removed.files) == sorted(written)
    assert len(new_instants(table, known)) == 1, "the rollback of the attempt is on the timeline, as Hudi's would be"


def refuses(path: Path, instant: str, kind: type[HudiError], words: str) -> None:
    known = known_times(path)
    before = shown(path, known)
    with pytest.raises(kind, match=words) as refused:
        drop(path, instant, an_owner())
    assert str(refused.value.path).startswith(".hoodie")
    assert shown(path, known) == before


@pytest.mark.parametrize("version", ["6", "8", "9"])
def test_an_indexing_plan_goes_with_what_was_built(golden: Golden, version: str) -> None:
    """Before any attempt at it, and after one that was killed when the index was inflight."""
    for killed in (False, True):
        table = golden(version, "indexing_requested").table
        plan = the_plan(open_context(table))
        listed = open_context(table).config.metadata_partitions
        if killed:
            storage = FaultStorage(
                LocalStorage(table),
                FaultPlan(when=lambda item: item.path.endswith("hoodie.properties"), timing="after"),
            )
            dead = replace(an_owner(), process_start="1")
            with pytest.raises(InjectedCrash):
                IndexingService().run(
                    open_context(table, storage=storage), plan.requested_time, LocalEngine(1), dead, None
                )
        did = unschedule(open_context(table), plan.requested_time, an_owner())
        assert (did.action, did.removed.instants) == ("indexing", (plan.requested_time,))
        config = open_context(table).config
        assert (config.metadata_partitions, config.metadata_partitions_inflight) == (listed, frozenset())
        assert not (table / ".hoodie" / "metadata" / "column_stats").exists()
        assert leftovers(table, plan.requested_time) == []


def test_a_plan_with_a_live_owner_is_left(golden: Golden) -> None:
    table = golden("8", "clustering_requested_cow").table
    context = open_context(table)
    plan = the_plan(context)
    with (
        context.claim(plan.requested_time, replace(an_owner(), boot_id="another machine")),
        pytest.raises(ConflictError),
    ):
        drop(table, plan.requested_time, an_owner())
    assert context.active.load().contains(plan.requested_time)


SWEPT = tiered(
    [
        ("6", "clustering_requested_mor", "after"),
        ("9", "compaction_inflight", "before"),
        *(
            (version, name, timing)
            for version, name in (
                ("6", "mor_compaction_requested_only"),
                ("8", "compaction_inflight"),
                ("9", "clean_requested_mor"),
            )
            for timing in ("before", "after")
        ),
    ],
    [("8", "compaction_inflight", "after"), ("9", "clean_requested_mor", "after")],
)


def drop_again(path: Path, instant: str, owner: Owner) -> None:
    """What the next process does after a kill; there may be nothing left to drop, nor to clean up."""
    context = open_context(path)
    if context.active.load().contains(instant) or current_claim(context.storage, instant) is not None:
        unschedule(context, instant, owner)


@pytest.mark.slow
@pytest.mark.parametrize(("version", "name", "timing"), SWEPT)
def test_killed_at_any_change_and_run_again(tmp_path: Path, version: str, name: str, timing: str) -> None:
    source = open_case(version, name, tmp_path).table
    instant = the_plan(open_context(source)).requested_time
    known = known_times(source)
    rows = read_rows(source, "off")
    dead = replace(Owner.current("the process that dies"), process_start="1")
    undisturbed = Path(shutil.copytree(source, tmp_path / "undisturbed"))
    faults = FaultPlan(counts=MUTATIONS)
    drop(undisturbed, instant, dead, faults)
    end = state_of(undisturbed, known, instant)
    assert end["leftovers"] == []
    assert faults.counted == len(faults.mutations()) > 5
    for number in range(faults.counted):
        path = Path(shutil.copytree(source, tmp_path / f"killed-{number}"))
        with pytest.raises(InjectedCrash):
            drop(path, instant, dead, FaultPlan(kill_at=number, timing=timing, counts=MUTATIONS))  # type: ignore[arg-type]
        assert_same_rows(read_rows(path), rows)
        drop_again(path, instant, Owner.current("another process"))
        assert state_of(path, known, instant) == end, number
        shutil.rmtree(path)


@pytest.mark.slow
@pytest.mark.parametrize("version", ["6", "9"])
def test_a_storage_error_and_the_same_owner_again(tmp_path: Path, version: str) -> None:
    source = open_case(version, "clustering_requested_cow", tmp_path).table
    instant = the_plan(open_context(source)).requested_time
    owner, known = an_owner(), known_times(source)
    undisturbed = Path(shutil.copytree(source, tmp_path / "undisturbed"))
    faults = FaultPlan(counts=MUTATIONS)
    drop(undisturbed, instant, owner, faults)
    end = state_of(undisturbed, known, instant)
    for number in range(faults.counted):
        path = Path(shutil.copytree(source, tmp_path / f"failed-{number}"))
        plan = FaultPlan(
            kill_at=number, counts=MUTATIONS, error=lambda operation: StorageError("injected", path=operation.path)
        )
        with pytest.raises(StorageError, match="injected"):
            drop(path, instant, owner, plan)
        drop_again(path, instant, owner)
        assert state_of(path, known, instant) == end, number


def test_a_dropped_compaction_of_version_6_is_no_longer_pending(golden: Golden) -> None:
    table = golden("6", "mor_compaction_requested_only").table
    context = open_context(table)
    drop(table, the_plan(context).requested_time, an_owner())
    assert CompactionService().pending(context, context.active.load()) == []
