"""Scheduling a clean: what is requested, what is not and why, and where the next one looks."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from hudi_core.engine.local import LocalEngine
from hudi_core.errors import ConfigError, ConflictError, MetadataUnavailableError
from hudi_core.services.clean import planner as planning
from hudi_core.services.clean.planner import CleanService
from hudi_core.storage.local import LocalStorage
from hudi_core.timeline.actions.clean import CleanedPartition, CleanMetadata, encode_clean_metadata
from hudi_core.timeline.actions.commit import CommitMetadata, encode_commit, encode_commit_avro
from hudi_core.timeline.actions.rollback import SavepointMetadata, encode_savepoint
from hudi_core.timeline.actions.write_stats import WriteStat
from hudi_core.timeline.instant import Action
from hudi_core.transaction.owner import Owner
from tests.support.fault_storage import FaultPlan, FaultStorage
from tests.support.golden_cleans import before_clean, context_of, data_files, run_clean
from tests.support.golden_data import GoldenCase
from tests.unit.hudi_core.services.clean.test_job import clean_of

Golden = Callable[[str, str], GoldenCase]
TWO = {"hoodie.cleaner.commits.retained": "2"}
VERSIONS = ("6", "8", "9")
OWNER = Owner.current("test")


def unplanned(golden: Golden, folder: str) -> Path:
    """A table with old slices and no clean."""
    case = golden(folder, "clean_requested_mor")
    return before_clean(case, clean_of(case.table)).table


def schedule(table: Path, options: dict[str, str] | None = None, **arguments: bool) -> str | None:
    """The instant that was requested, else None; a failing expectation shows the reason."""
    done = CleanService().schedule(context_of(table, options or TWO), OWNER, dry_run=arguments.get("dry_run", False))
    return done.instant


def reason(table: Path, options: dict[str, str]) -> str:
    done = CleanService().schedule(context_of(table, options), OWNER, dry_run=False)
    assert (done.instant, done.plan) == (None, None)
    assert done.reason is not None
    return done.reason


@pytest.mark.parametrize("folder", VERSIONS)
def test_planned_run_and_then_nothing_is_due(folder: str, golden: Golden) -> None:
    table = unplanned(golden, folder)
    instant = schedule(table)
    assert instant is not None
    context = context_of(table)
    assert CleanService().pending(context, context.active.load()) == [instant]
    assert reason(table, TWO) == f"clean {instant} is pending: run it first, or set hoodie.clean.multiple.enabled=true"
    assert run_clean(table, instant) == "completed"
    assert CleanService().pending(context, context.active.load()) == []
    assert reason(table, TWO) == "0 commits since the last clean, but hoodie.clean.trigger.max.commits is 1"
    assert "nothing to delete in the 0 partitions that changed" in reason(
        table, {**TWO, "hoodie.clean.max.commits": "0"}
    )


@pytest.mark.parametrize("folder", VERSIONS)
@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "hoodie.clean.commits.retained keeps 10"),
        (
            {"hoodie.cleaner.fileversions.retained": "9"},
            "KEEP_LATEST_FILE_VERSIONS keeps 9 versions of each file group (hoodie.clean.fileversions.retained)",
        ),
        ({"hoodie.cleaner.hours.retained": "876000"}, "keeps 876000 hours (hoodie.clean.hours.retained)"),
        ({**TWO, "hoodie.clean.max.commits": "99"}, "hoodie.clean.trigger.max.commits is 99"),
        (
            {**TWO, "hoodie.clean.incremental.enabled": "false", "hoodie.clean.partition.filter.selected": "nowhere"},
            "0 partitions that the filter lets through",
        ),
    ],
)
def test_every_reason_names_the_option_that_would_change_it(
    options: dict[str, str], words: str, folder: str, golden: Golden
) -> None:
    assert words in reason(unplanned(golden, folder), options)


def test_a_filter_leaves_partitions_out(golden: Golden) -> None:
    table = unplanned(golden, "9")
    options = {
        **TWO,
        "hoodie.clean.incremental.enabled": "false",
        "hoodie.clean.partition.filter.regex": r"2024-01-0[12]",
    }
    done = CleanService().schedule(context_of(table, options), OWNER, dry_run=True)
    assert done.plan is not None
    assert sorted(done.plan["partitions"]) == ["2024-01-01", "2024-01-02"]


def test_options_that_are_not_valid_are_refused_before_anything(golden: Golden) -> None:
    table = unplanned(golden, "9")
    files = sorted(table.rglob("*"))
    with pytest.raises(ConfigError):
        schedule(table, {"hoodie.cleaner.policy": "EVERYTHING"})
    assert sorted(table.rglob("*")) == files


@pytest.mark.parametrize("folder", VERSIONS)
def test_many_planners_request_one_clean(folder: str, golden: Golden) -> None:
    table = unplanned(golden, folder)
    with ThreadPoolExecutor(8) as pool:
        done = list(pool.map(lambda number: schedule(table), range(8)))
    context = context_of(table)
    assert [instant for instant in done if instant is not None] == CleanService().pending(
        context, context.active.load()
    )
    assert len([instant for instant in done if instant is not None]) == 1


def savepoint(table: Path) -> None:
    """A savepoint of everything that the oldest commit's slices hold."""
    active = context_of(table).active
    oldest = active.load().commits().instants[0].requested_time
    names: dict[str, tuple[str, ...]] = {}
    for path in table.rglob(f"*_{oldest}.parquet"):
        names[path.parent.name] = (*names.get(path.parent.name, ()), path.name)
    active.to_inflight(oldest, Action.SAVEPOINT)
    layout_1 = active.layout == 1
    active.complete(
        oldest,
        Action.SAVEPOINT,
        encode_savepoint(SavepointMetadata("x", 0, "", names)),
        None if layout_1 else "20261121000000000",
    )


@pytest.mark.parametrize("folder", VERSIONS)
def test_a_savepoint_that_comes_while_it_is_planned_is_honoured(
    folder: str, golden: Golden, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = unplanned(golden, folder)
    plain = CleanService().schedule(context_of(table, TWO), OWNER, dry_run=True)
    calls: list[int] = []
    make_plan = planning.make_plan

    def slow(*arguments: object, **named: object) -> object:
        made = make_plan(*arguments, **named)  # type: ignore[arg-type]
        calls.append(1)
        if len(calls) == 1:
            savepoint(table)
        return made

    monkeypatch.setattr(planning, "make_plan", slow)
    done = CleanService().schedule(context_of(table, TWO), OWNER, dry_run=False)
    assert done.instant is not None
    assert len(calls) == 2
    assert done.plan is not None
    assert plain.plan is not None
    assert 0 < done.plan["files"] < plain.plan["files"]
    assert len(done.plan["savepoints"]) == 1


def test_plans_that_never_hold_still_are_a_conflict(golden: Golden, monkeypatch: pytest.MonkeyPatch) -> None:
    table = unplanned(golden, "9")
    counts = iter(range(1000))
    monkeypatch.setattr(planning, "_basis", lambda timeline: next(counts))
    with pytest.raises(ConflictError, match="changed each time"):
        schedule(table)
    assert list(table.rglob("*.clean.requested")) == []


def commit_to(table: Path, partition: str, numbers: range) -> None:
    """Commits that each write a new base file of one file group of the partition."""
    active = context_of(table).active
    file_id = next(iter((table / partition).glob("*.parquet"))).name.split("_")[0]
    for number in numbers:
        time = f"202612010000{number:02d}000"
        name = f"{file_id}_0-0-0_{time}.parquet"
        (table / partition / name).write_bytes(b"rows")
        stat = WriteStat(file_id, f"{partition}/{name}", partition, "null", 1, 0, 0, 1, 4, 4)
        metadata = CommitMetadata({partition: (stat,)}, operation_type="UPSERT", extra_metadata={"schema": "{}"})
        active.create_requested(time, Action.DELTA_COMMIT)
        active.to_inflight(time, Action.DELTA_COMMIT)
        layout_1 = active.layout == 1
        active.complete(
            time,
            Action.DELTA_COMMIT,
            encode_commit(metadata) if layout_1 else encode_commit_avro(metadata),
            None if layout_1 else f"{time[:-3]}500",
        )


def folders_listed(table: Path) -> tuple[set[str], int]:
    """The partitions that a plan of the table looks at, and how many files it would delete."""
    plan = FaultPlan()
    done = CleanService().schedule(context_of(table, TWO, FaultStorage(LocalStorage(table), plan)), OWNER, dry_run=True)
    assert done.plan is not None, done.reason
    return {
        operation.path
        for operation in plan.operations
        if operation.kind == "list_files" and operation.path.startswith("2024")
    }, done.plan["files"]


@pytest.mark.parametrize("folder", VERSIONS)
def test_the_next_clean_looks_only_where_commits_were(folder: str, golden: Golden) -> None:
    """Our clean records a real commit as the earliest to retain, so that the next one, ours or Hudi's, may be
    incremental.
    """
    table = unplanned(golden, folder)
    plan_and_run(table)
    commit_to(table, "2024-01-02", range(5))
    looked_at, _ = folders_listed(table)
    assert looked_at == {"2024-01-01", "2024-01-02", "2024-01-03"}, (
        "all of them had commits after the earliest retained one"
    )
    plan_and_run(table)
    commit_to(table, "2024-01-02", range(5, 9))
    looked_at, files = folders_listed(table)
    assert looked_at == {"2024-01-02"}
    assert files > 0
    active = context_of(table).active
    last = active.load().completed().of_actions(Action.CLEAN).last()
    assert last is not None
    assert active.load().commits().contains(active.read_of(last)["earliestCommitToRetain"])


def plan_and_run(table: Path) -> None:
    instant = schedule(table)
    assert instant is not None
    run_clean(table, instant)


@pytest.mark.parametrize("folder", VERSIONS)
def test_incremental_finds_what_a_full_clean_finds(folder: str, golden: Golden) -> None:
    table = unplanned(golden, folder)
    plan_and_run(table)
    commit_to(table, "2024-01-02", range(6))
    plan_and_run(table)
    assert run_twice_is_idle(table)
    full = CleanService().schedule(
        context_of(table, {**TWO, "hoodie.clean.incremental.enabled": "false", "hoodie.clean.max.commits": "0"}),
        OWNER,
        dry_run=True,
    )
    assert full.plan is None
    assert "nothing to delete in 3 partitions" in (full.reason or "")


def run_twice_is_idle(table: Path) -> bool:
    return (
        CleanService().schedule(context_of(table, {**TWO, "hoodie.clean.max.commits": "0"}), OWNER, dry_run=True).plan
        is None
    )


@pytest.mark.parametrize("folder", VERSIONS)
@pytest.mark.parametrize("earliest", ["", "00000000000000000", "20261120999999999", "99991231235959999"])
def test_an_earliest_commit_that_is_not_real_makes_the_next_clean_look_everywhere(
    earliest: str, folder: str, golden: Golden
) -> None:
    """Facts 12.5: a clean of another writer whose metadata names no commit of the table would hide what was left before
    it.
    """
    table = unplanned(golden, folder)
    everything = folders_listed(table)
    active = context_of(table).active
    last = active.load().commits().instants[-2].requested_time
    time = f"{last[:-3]}999"
    done = CleanMetadata(
        time,
        "KEEP_LATEST_COMMITS",
        {"2024-01-01": CleanedPartition(())},
        earliest,
        active.load().commits().instants[0].requested_time,
    )
    active.create_requested(time, Action.CLEAN, b"x")
    active.to_inflight(time, Action.CLEAN, b"x")
    active.complete(time, Action.CLEAN, encode_clean_metadata(done), None if active.layout == 1 else f"{int(time) + 1}")
    assert folders_listed(table) == everything
    assert everything[1] == 18


def test_units_report_their_progress(golden: Golden) -> None:
    table = golden("9", "clean_requested_mor").table
    seen: list[tuple[int, int]] = []
    CleanService().run(
        context_of(table), clean_of(table), LocalEngine(1), OWNER, lambda done, total: seen.append((done, total))
    )
    assert seen == [(1, 1)]
    assert data_files(table)


@pytest.mark.parametrize("folder", VERSIONS)
def test_failed_writes_go_first_where_lazy_is_set_by_name(folder: str, golden: Golden) -> None:
    table = golden(folder, "failed_inflight_mor").table
    lazy = {**TWO, "hoodie.cleaner.policy.failed.writes": "LAZY"}
    pending = list(context_of(table).active.load().pending())
    assert pending
    schedule(table)
    schedule(table, lazy, dry_run=True)
    assert list(context_of(table).active.load().pending()) == pending
    schedule(table, lazy)
    assert list(context_of(table).active.load().pending().of_actions(Action.DELTA_COMMIT)) == []


@pytest.mark.parametrize("folder", VERSIONS)
def test_no_plan_is_left_where_the_metadata_table_is_gone(folder: str, golden: Golden) -> None:
    table = golden(folder, "cow_basic").table
    options = {"hoodie.clean.commits.retained": "1"}
    shutil.rmtree(table / ".hoodie/metadata")
    before = sorted(table.rglob("*"))
    with pytest.raises(MetadataUnavailableError, match="hudictl metadata create TABLE"):
        schedule(table, options)
    assert sorted(table.rglob("*")) == before
