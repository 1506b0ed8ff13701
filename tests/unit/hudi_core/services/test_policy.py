"""Conditions on tables: what counts, and what a service is planned with."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from hudi_core.engine.local import LocalEngine
from hudi_core.history.lsm import LsmHistory
from hudi_core.services.compaction.candidates import Candidates
from hudi_core.services.policy import always_planned, answer, file_sizes, last_run
from hudi_core.services.runner import plan_due
from hudi_core.services.service import service_of
from hudi_core.table import HudiTable
from hudi_core.timeline.instant import Instant
from hudi_core.timeline.instant_time import parse_instant, zone_of
from hudi_core.verbs.run import RunRequest
from hudi_core.verbs.write import DeletePartitionRequest
from tests.support.changed_tables import QUICK_CLOCK, an_owner, open_context
from tests.support.golden_clusterings import cluster, plan_of_all
from tests.support.golden_compactions import OPTIONS
from tests.support.golden_data import GoldenCase
from tests.support.tiers import tiered

Golden = Callable[[str, str], GoldenCase]
NOW = datetime(2026, 11, 25, 12, tzinfo=timezone.utc)
STRATEGIES = "org.apache.hudi.table.action.compact.strategy"
ARCHIVING = {"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3", "hoodie.clean.commits.retained": "1"}


@pytest.fixture(params=tiered(["6", "8", "9"], ["6", "9"]))
def table(request: pytest.FixtureRequest, golden: Golden) -> Path:
    return golden(request.param, "mor_basic").table


def due(table: Path, service: str, now: datetime | None = None, **when: object) -> bool:
    found = answer(open_context(table), service, {name: str(value) for name, value in when.items()}, now)
    assert found is not None
    assert found.why
    return found.due


def test_without_conditions_the_service_decides(table: Path) -> None:
    assert answer(open_context(table), "compaction", {}) is None


def test_delta_commits_make_a_compaction_due(table: Path) -> None:
    context = open_context(table)
    deltas = [item for item in context.active.load().commits() if item.action == "deltacommit"]
    assert due(table, "compaction", commits=len(deltas))
    assert not due(table, "compaction", commits=len(deltas) + 1)
    found = answer(context, "compaction", {"commits": str(len(deltas) + 1)})
    assert found is not None
    assert found.why == f"{len(deltas)} commits since the beginning of the timeline, due at {len(deltas) + 1}"


def test_the_age_is_that_of_the_oldest_commit_that_was_not_seen(table: Path) -> None:
    context = open_context(table)
    first = min(item.completed_at for item in context.active.load().commits() if item.action == "deltacommit")
    since = parse_instant(first, context.zone).astimezone(timezone.utc)
    assert due(table, "compaction", since + timedelta(seconds=61), age="60s")
    assert not due(table, "compaction", since + timedelta(seconds=59), age="60s")
    assert not due(table, "compaction", since - timedelta(days=1), age="1s")


def test_bytes_and_shares_of_log_files(table: Path) -> None:
    context = open_context(table)
    sizes = file_sizes(context, context.active.load(), "compaction", NOW)
    assert sizes.logs > 0
    assert sizes.base > 0
    assert due(table, "compaction", bytes=sizes.logs)
    assert not due(table, "compaction", bytes=sizes.logs + 1)
    ratio = sizes.logs / sizes.base
    assert due(table, "compaction", log_ratio=f"{ratio - 0.001:.6f}")
    assert not due(table, "compaction", log_ratio=f"{ratio + 0.001:.6f}")


def test_one_condition_of_several_is_enough(table: Path) -> None:
    assert due(table, "compaction", commits=10_000, bytes=1)
    found = answer(open_context(table), "compaction", {"commits": "10000", "bytes": "1"})
    assert found is not None
    assert "commits" not in found.why


def test_small_files_until_they_are_clustered(table: Path) -> None:
    context = open_context(table)
    sizes = file_sizes(context, context.active.load(), "clustering", NOW)
    assert sizes.small == sizes.base
    assert due(table, "clustering", small_files=sizes.small_files)
    assert not due(table, "clustering", small_files=sizes.small_files + 1)
    assert due(table, "clustering", bytes=sizes.small)
    cluster(table, plan_of_all(table, {}))
    found = answer(open_context(table), "clustering", {"small_files": "1"})
    assert found is not None
    assert not found.due
    assert found.why.startswith("no commit since")


def test_a_compaction_that_has_run_starts_again_at_nothing(table: Path) -> None:
    request = RunRequest(
        str(table), service="compaction", owner="test", options=OPTIONS, schedule=True, when={"commits": "1"}
    )
    opened = HudiTable.open(str(table))
    assert [item.state for item in opened.run(request, LocalEngine(1)).instants] == ["completed"]
    again = opened.run(request, LocalEngine(1))
    assert again.instants == ()
    assert "no commit since" in str(again.reason)


@pytest.mark.parametrize(
    ("service", "triggers"),
    [
        ("compaction", {"hoodie.compact.inline.max.delta.commits": "1000"}),
        (
            "compaction",
            {
                "hoodie.compact.inline.trigger.strategy": "TIME_ELAPSED",
                "hoodie.compact.inline.max.delta.seconds": "2000000000",
            },
        ),
        ("clustering", {"hoodie.clustering.async.enabled": "true", "hoodie.clustering.async.max.commits": "1000"}),
        ("clustering", {"hoodie.clustering.inline": "true", "hoodie.clustering.inline.max.commits": "1000"}),
        ("clean", {"hoodie.clean.trigger.max.commits": "1000", "hoodie.clean.commits.retained": "1"}),
        ("clean", {"hoodie.clean.max.commits": "1000", "hoodie.clean.commits.retained": "1"}),
    ],
)
def test_what_a_condition_makes_due_is_planned_whatever_the_triggers_are(
    golden: Golden, service: str, triggers: dict[str, str]
) -> None:
    """Those of the writers, which say when the writers plan."""
    context = open_context(golden("8", "mor_compacted" if service == "clean" else "mor_basic").table, triggers)
    planner = service_of(service)
    assert planner.schedule(context, an_owner(), dry_run=True).plan is None
    assert always_planned(context, service, {}) is context
    found = plan_due(context, planner, an_owner(), {"commits": "1"}, dry_run=True)
    assert found.plan is not None, found.reason


def test_what_did_not_fit_into_a_plan_is_due(table: Path) -> None:
    options = {**OPTIONS, "airflow_hudi.plan.max.bytes": "1"}
    request = RunRequest(
        str(table), service="compaction", owner="test", options=options, schedule=True, when={"commits": "1"}
    )
    assert len(HudiTable.open(str(table)).run(request, LocalEngine(1)).instants) == 1
    found = answer(open_context(table), "compaction", {"commits": "1000"})
    assert found is not None
    assert found.due
    assert "left out what did not fit" in found.why


@pytest.mark.parametrize(
    ("service", "options", "files"),
    [
        (
            "clustering",
            {
                "hoodie.clustering.plan.strategy.max.num.groups": "1",
                "hoodie.clustering.plan.strategy.sort.columns": "_hoodie_record_key",
            },
            {"small_files": "1"},
        ),
        (
            "compaction",
            {
                "hoodie.compaction.strategy": f"{STRATEGIES}.BoundedIOCompactionStrategy",
                "hoodie.compaction.target.io": "1",
                "hoodie.compact.inline.max.delta.commits": "40",
            },
            {"bytes": "1"},
        ),
    ],
)
@pytest.mark.parametrize("table", tiered(["6", "8", "9"], ["9"]), indirect=True)
def test_of_what_a_plan_left_out_files_are_asked_again(
    table: Path, service: str, options: dict[str, str], files: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the number of its groups, or its I/O, one of three each; commits and their age wait for the next commit."""
    # No file of these tables is as large as a MiB.
    monkeypatch.setattr(Candidates, "io_mb", property(lambda candidates: candidates.log_bytes))
    opened = HudiTable.open(str(table))

    def run(**when: str) -> tuple[int, str]:
        request = RunRequest(
            str(table), service=service, options=options, schedule=True, all_pending=True, when=when, owner="test"
        )
        done = opened.run(request, LocalEngine(1))
        assert {item.state for item in done.instants} <= {"completed"}
        return len(done.instants), str(done.reason)

    assert run(commits="1", age="1s")[0] == 1
    instants, reason = run(commits="1", age="1s")
    assert (instants, reason[:15]) == (0, "no commit since")
    instants, reason = run(commits="1", **dict.fromkeys(files, "100000000"))
    assert (instants, reason[:15]) == (0, "no commit since")
    assert ", due at" in reason
    assert run(**files)[0] == 2
    instants, reason = run(**files)
    assert instants == 0
    assert "no commit since" in reason or "an earlier clustering left" in reason


def test_commits_make_a_clean_due(table: Path) -> None:
    commits = len(open_context(table).active.load().commits())
    assert due(table, "clean", commits=commits)
    assert not due(table, "clean", commits=commits + 1)


def test_a_commit_at_a_time_that_is_no_date_is_long_ago(golden: Golden) -> None:
    """As those of a table that was written with numbers; layout 1 has no other time of a commit."""
    table = golden("6", "mor_basic").table
    first = open_context(table).active.load().commits().instants[0].requested_time
    for path in (table / ".hoodie").glob(f"{first}.*"):
        path.rename(path.with_name("001" + path.name.removeprefix(first)))
    assert due(table, "compaction", age="1000d")
    found = answer(open_context(table), "compaction", {"age": "1000d"})
    assert found is not None
    assert "001, which is no date" in found.why


@pytest.mark.parametrize("version", ["6", "8", "9"])
def test_commits_that_were_archived_since_the_last_run_count(golden: Golden, version: str) -> None:
    service, table = "clustering", golden(version, "archived_timeline_cow").table
    every, left = all_commits(table), len(open_context(table).active.load().commits())
    assert due(table, service, commits=left)
    archive(table)
    context = open_context(table)
    active = context.active.load().commits()
    assert len(active) < left < len(every)
    assert due(table, service, commits=left)
    assert due(table, service, commits=len(every))
    found = answer(context, service, {"commits": str(len(every) + 1)})
    assert found is not None
    assert found.why == f"{len(every)} commits since the beginning of the timeline, due at {len(every) + 1}"
    first = parse_instant(min(item.completed_at for item in every), context.zone).astimezone(timezone.utc)
    of_active = parse_instant(min(item.completed_at for item in active), context.zone).astimezone(timezone.utc)
    age = int((of_active - first).total_seconds()) + 10
    assert due(table, service, first + timedelta(seconds=age + 1), age=f"{age}s")
    assert not due(table, service, first + timedelta(seconds=age - 1), age=f"{age}s")


@pytest.mark.parametrize("version", tiered(["6", "8", "9"], ["6", "9"]))
def test_an_archived_run_is_the_last_one(golden: Golden, version: str) -> None:
    """Commits before a clustering that was archived do not count any more."""
    table = golden(version, "archived_timeline_cow").table
    cluster(table, plan_of_all(table, {}))
    (run,) = (
        item for item in open_context(table).active.load() if item.pending_action in ("clustering", "replacecommit")
    )
    for partition in HudiTable.open(str(table)).view().partitions():
        overwrite(table, partition)
    clean(table)
    archive(table)
    context = open_context(table)
    timeline = context.active.load()
    assert last_run(context, timeline, "clustering") is None
    assert due(table, "clustering", commits=3)
    found = answer(context, "clustering", {"commits": "4"})
    assert found is not None
    assert found.why == f"3 commits since {run.action} {run.requested_time}, due at 4"
    assert not due(table, "clustering", age="1000d")


@pytest.mark.parametrize(
    ("version", "service", "action"),
    [*((version, "compaction", "commit") for version in "689"), ("8", "clean", "clean"), ("9", "clean", "clean")],
)
def test_archived_compactions_and_cleans_are_found(golden: Golden, version: str, service: str, action: str) -> None:
    """Those that are not archived are removed."""
    table = golden(version, "archived_timeline_mor").table
    for item in open_context(table).active.load().of_actions(action):
        for path in (table / ".hoodie").rglob(f"{item.requested_time}*.{action}"):
            path.unlink()
        for path in (table / ".hoodie").rglob(f"{item.requested_time}.*.*"):
            path.unlink()
    every = HudiTable.open(str(table)).timeline(archived=True)
    last = every.of_actions(action).last()
    assert last is not None
    commits = every.commits().of_actions("deltacommit") if service == "compaction" else every.commits()
    since = commits.after(last.requested_time)
    found = answer(open_context(table), service, {"commits": "1000"})
    assert found is not None
    assert found.why == f"{len(since)} commits since {last.pending_action} {last.requested_time}, due at 1000"


def test_the_archive_is_read_as_far_as_it_decides(golden: Golden, monkeypatch: pytest.MonkeyPatch) -> None:
    table = golden("9", "archived_timeline_cow").table
    archive(table)
    context = open_context(table)
    asked = list[str]()
    latest = LsmHistory.latest

    def recorded(self: LsmHistory) -> Iterator[Instant]:
        for item in latest(self):
            asked.append(item.action)
            yield item

    monkeypatch.setattr(LsmHistory, "latest", recorded)
    active = len(context.active.load().commits())
    for when in ({"commits": str(active)}, {"small_files": "1000"}, {"age": "1s"}):
        answer(context, "clustering", when)
    assert asked == []
    assert due(table, "clustering", commits=active + 2)
    assert asked.count("commit") == 2


def all_commits(table: Path) -> list[Instant]:
    return [*HudiTable.open(str(table)).timeline(archived=True).commits()]


def archive(table: Path) -> None:
    options = {**QUICK_CLOCK, **ARCHIVING}
    found = HudiTable.open(str(table)).run(RunRequest(str(table), "archive", options=options), LocalEngine(1))
    assert found.instants


def clean(table: Path) -> None:
    request = RunRequest(str(table), "clean", schedule=True, options={**QUICK_CLOCK, **ARCHIVING})
    assert HudiTable.open(str(table)).run(request, LocalEngine(1)).instants


def overwrite(table: Path, partition: str) -> None:
    """By nothing: a replacecommit that is no clustering."""
    request = DeletePartitionRequest(str(table), partitions=(partition,), options=QUICK_CLOCK)
    HudiTable.open(str(table)).run(request, LocalEngine(1))


@pytest.mark.parametrize(
    "options",
    [
        {"hoodie.clustering.plan.strategy.partition.selected": "{first}"},
        {"hoodie.clustering.plan.strategy.partition.regex.pattern": "{first}"},
        {
            "hoodie.clustering.plan.partition.filter.mode": "RECENT_DAYS",
            "hoodie.clustering.plan.strategy.daybased.lookback.partitions": "1",
        },
    ],
)
def test_files_count_in_the_partitions_that_a_clustering_looks_at(table: Path, options: dict[str, str]) -> None:
    context = open_context(table)
    timeline = context.active.load()
    partitions = sorted(context.view(timeline).partitions())
    given = {name: value.format(first=partitions[0]) for name, value in options.items()}
    everywhere = file_sizes(context, timeline, "clustering", NOW)
    some = file_sizes(open_context(table, given), timeline, "clustering", NOW)
    assert 0 < some.small_files < everywhere.small_files
    held = answer(open_context(table, given), "clustering", {"small_files": str(everywhere.small_files)})
    assert held is not None
    assert not held.due


def test_a_clustering_by_the_hour_counts_the_files_of_the_hour(table: Path) -> None:
    context = open_context(table, {"hoodie.clustering.plan.partition.filter.mode": "DAY_ROLLING"})
    timeline = context.active.load()
    zone = zone_of(context.zone)
    midnight, noon = (datetime(2026, 11, 25, hour, tzinfo=zone) for hour in (0, 12))
    assert file_sizes(context, timeline, "clustering", midnight).small_files > 0
    assert file_sizes(context, timeline, "clustering", noon).small_files == 0


def test_log_files_count_in_the_partitions_that_a_compaction_looks_at(table: Path) -> None:
    context = open_context(table)
    timeline = context.active.load()
    first = min(context.view(timeline).partitions())
    strategy = "org.apache.hudi.table.action.compact.strategy.PartitionRegexBasedCompactionStrategy"
    given = {"hoodie.compaction.strategy": strategy, "hoodie.compaction.partition.path.regex": first}
    everywhere = file_sizes(context, timeline, "compaction", NOW)
    assert 0 < file_sizes(open_context(table, given), timeline, "compaction", NOW).logs < everywhere.logs
    assert not due_with(table, given, "compaction", bytes=everywhere.logs)


def due_with(table: Path, options: dict[str, str], service: str, **when: object) -> bool:
    found = answer(open_context(table, options), service, {name: str(value) for name, value in when.items()})
    assert found is not None
    return found.due
