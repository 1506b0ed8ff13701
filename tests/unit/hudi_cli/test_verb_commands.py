"""schedule, rollback, restore, savepoint, unschedule and takeover, as scripts and as people see them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.golden_data import GoldenCase
from tests.support.hudictl_runner import hudictl
from tests.support.tiers import tiered

Golden = Callable[[str, str], GoldenCase]
VERSIONS = ["6", "8", "9"]
EAGER = ("--option", "hoodie.cleaner.policy.failed.writes=EAGER")


def instants(table: Path, state: str, *more: str) -> list[dict[str, Any]]:
    return list(hudictl("timeline", table, "--state", state, *more, "--json").document["instants"])


def names(table: Path) -> list[str]:
    return sorted(path.relative_to(table).as_posix() for path in table.rglob("*") if path.is_file())


@pytest.mark.parametrize("version", VERSIONS)
def test_a_clean_is_planned(golden: Golden, version: str) -> None:
    table = golden(version, "mor_compacted").table
    before = names(table)
    few = ("--option", "hoodie.clean.commits.retained=1")
    looked = hudictl("schedule", "clean", table, *few, "--dry-run", "--json").document
    assert (looked["instant"], looked["reason"]) == (None, None)
    assert looked["plan"]["files"] > 0
    assert "would plan" in hudictl("schedule", "clean", table, *few, "--dry-run").out
    assert names(table) == before
    planned = hudictl("schedule", "clean", table, *few, "--json").document
    assert planned["plan"] == looked["plan"]
    (found,) = instants(table, "requested", "--action", "clean")
    assert found["requested_time"] == planned["instant"]


def test_what_cannot_be_planned_is_said(golden: Golden) -> None:
    table = golden("9", "mor_basic").table
    done = hudictl("schedule", "clean", table, "--option", "hoodie.clean.commits.retained=50")
    assert "nothing to plan:" in done.out
    assert "hoodie.clean.commits.retained" in done.out
    for words in (("schedule", "indexing", table), ("run", "indexing", table, "--schedule", "--engine", "local")):
        unnamed = hudictl(*words, "--json")
        assert unnamed.code == 0
        assert "hoodie.metadata.global.record.level.index.enable" in unnamed.document["reason"]
    assert hudictl("schedule", "indexing", table, "--json").document.keys() == {"instant", "plan", "reason"}
    refused = hudictl("schedule", "log_compaction", table, "--json").document
    assert refused["instant"] is None
    assert "hoodie.log.compaction.enable=true" in refused["reason"]


@pytest.mark.parametrize("version", tiered(VERSIONS, ["9"]))
def test_a_clustering_is_planned_run_and_not_planned_again(golden: Golden, version: str) -> None:
    table = golden(version, "cow_basic").table
    chosen = ("--option", "hoodie.clustering.plan.strategy.sort.columns=name")
    looked = hudictl("schedule", "clustering", table, *chosen, "--dry-run", "--json").document
    assert (looked["instant"], len(looked["plan"]["groups"])) == (None, 3)
    planned = hudictl("schedule", "clustering", table, *chosen, "--json").document
    assert planned["plan"] == looked["plan"]
    (found,) = instants(table, "requested")
    assert found["requested_time"] == planned["instant"]
    assert found["action"] == ("replacecommit" if version == "6" else "clustering")
    done = hudictl("run", "clustering", table, "--engine", "local", "--schedule", *chosen, "--json").document
    assert [(item["instant"], item["action"], item["state"]) for item in done["instants"]] == [
        (planned["instant"], "clustering", "completed")
    ]
    again = hudictl("run", "clustering", table, "--engine", "local", "--schedule", *chosen, "--json").document
    assert (again["instants"], "an earlier clustering left" in again["reason"]) == ([], True)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_failed_write_is_rolled_back(golden: Golden, version: str) -> None:
    table = golden(version, "failed_inflight_mor").table
    failed = [item["requested_time"] for item in instants(table, "inflight")]
    before = names(table)
    would = hudictl("rollback", table, *EAGER, "--dry-run", "--json").document
    assert (would["instant"], [would["target"]], would["removed"]["instants"]) == (None, failed, failed)
    assert f"would roll back {failed[0]}" in hudictl("rollback", table, *EAGER, "--dry-run").out
    assert names(table) == before
    did = hudictl("rollback", table, *EAGER)
    assert f"rolled back {failed[0]} as rollback " in did.out
    assert instants(table, "inflight") == []
    nothing = hudictl("rollback", table, *EAGER)
    assert (nothing.code, nothing.out.startswith("nothing to do: ")) == (0, True)


@pytest.mark.slow
@pytest.mark.parametrize("version", tiered(VERSIONS, ["6"]))
def test_a_table_goes_back_to_a_savepoint(golden: Golden, version: str) -> None:
    table = golden(version, "mor_basic").table
    commits = [item["requested_time"] for item in instants(table, "completed")]
    looked = hudictl("restore", table, "--instant", commits[-1], "--dry-run", "--json").document
    usable = [item["instant"] for item in looked["restorable"] if item["reason"] is None]
    target = usable[0]
    assert (
        f"{len(usable)} of {len(looked['restorable'])} commits"
        in hudictl("restore", table, "--instant", target, "--dry-run").out
    )
    assert '"restorable"' not in hudictl("restore", table, "--dry-run").out
    kept = hudictl("savepoint", "create", table, "--instant", target, "--comment", "before the migration")
    assert f"commit {target} is kept from now on" in kept.out
    assert "is kept already" in hudictl("savepoint", "create", table, "--instant", target).out
    (listed,) = hudictl("savepoint", "list", table, "--json").document["savepoints"]
    assert (listed["instant"], listed["comment"]) == (target, "before the migration")
    assert "before the migration" in hudictl("savepoint", "list", table).out
    restored = hudictl("restore", table, "--instant", target)
    assert f"restored to {target} as restore " in restored.out
    assert "instants that went:" in restored.out
    assert "nothing was written after it" in hudictl("restore", table, "--instant", target, "--json").document["reason"]
    gone = hudictl("savepoint", "delete", table, "--instant", target)
    assert f"the savepoint of commit {target} is deleted" in gone.out
    assert hudictl("savepoint", "list", table, "--json").document == {"savepoints": []}
    assert hudictl("savepoint", "delete", table, "--instant", target, "--json").code == 2


@pytest.mark.parametrize("version", VERSIONS)
def test_what_can_be_restored_is_listed_without_an_instant(golden: Golden, version: str) -> None:
    table = golden(version, "mor_basic").table
    before = names(table)
    listed = hudictl("restore", table, "--dry-run", "--json").document
    assert (listed["instant"], listed["target"], listed["reason"], listed["removed"]["files"]) == (None, None, None, 0)
    target = listed["restorable"][-1]["instant"]
    assert (
        listed["restorable"]
        == hudictl("restore", table, "--instant", target, "--dry-run", "--json").document["restorable"]
    )
    people = hudictl("restore", table, "--dry-run")
    assert (people.code, target in people.out, "would restore" in people.out) == (0, True, False)
    refused = hudictl("restore", table, "--instant", "123", "--json").error
    assert "hudictl restore TABLE --dry-run" in refused["remedy"]
    assert hudictl("restore", table, "--instant", "abc", "--json").error["message"] == "'abc' is not an instant time"
    assert names(table) == before


@pytest.mark.parametrize("version", VERSIONS)
def test_a_plan_is_dropped(golden: Golden, version: str) -> None:
    table = golden(version, "clustering_requested_cow").table
    (plan,) = instants(table, "requested")
    instant = plan["requested_time"]
    before = names(table)
    would = hudictl("unschedule", table, instant, "--dry-run")
    assert f"would drop clustering {instant}" in would.out
    assert "file groups that would be free: " in would.out
    assert names(table) == before
    did = hudictl("unschedule", table, instant, "--json").document
    assert (did["action"], did["removed"]["instants"], did["dry_run"]) == ("clustering", [instant], False)
    assert did["unblocks"]["file_groups"] > 0
    assert "writes to its file groups" in did["unblocks"]["work"]
    assert instants(table, "requested") == []
    again = hudictl("unschedule", table, instant, "--json")
    assert again.code == 0
    assert "it was dropped before" in again.document["reason"]
    assert "nothing to do: the timeline holds no instant" in hudictl("unschedule", table, instant).out


@pytest.mark.parametrize("version", VERSIONS)
def test_a_dry_run_names_what_an_attempt_at_the_plan_left(golden: Golden, version: str) -> None:
    table = golden(version, "compaction_inflight").table
    (found,) = instants(table, "inflight", "--action", "compaction")
    before = names(table)
    would = hudictl("unschedule", table, found["requested_time"], "--dry-run", "--json").document
    assert would["removed"]["files"] > 0
    assert names(table) == before
    did = hudictl("unschedule", table, found["requested_time"], "--json").document
    assert did == {**would, "dry_run": False}


@pytest.mark.parametrize("version", VERSIONS)
def test_a_dead_attempt_is_taken_over(golden: Golden, version: str) -> None:
    table = golden(version, "compaction_inflight").table
    (found,) = instants(table, "inflight", "--action", "compaction")
    instant = found["requested_time"]
    done = hudictl("takeover", table, instant)
    assert done.code == 0, done.err
    assert f"compaction {instant} is free and requested" in done.out
    assert "it was run by: no process of this engine" in done.out
    assert "may proceed once it is run or dropped: archival of later instants" in done.out
    assert "  may proceed: " not in done.out
    assert f"next: hudictl run compaction TABLE --instant {instant}" in done.out
    assert [item["requested_time"] for item in instants(table, "requested", "--action", "compaction")] == [instant]
    again = hudictl("takeover", table, instant)
    assert "there was nothing to free" in again.out
    assert "it was run by" not in again.out
    reported = hudictl("takeover", table, instant, "--json").document
    assert reported["reason"] in again.out
    assert (reported["unblocks"]["work"], "archival of later instants" in reported["after_the_run"]["work"]) == (
        [],
        True,
    )


@pytest.mark.parametrize(
    "arguments",
    [
        ["restore"],
        ["savepoint", "delete"],
        ["unschedule"],
        ["takeover"],
        ["schedule", "vacuum"],
        ["takeover", "--dry-run", "1"],
    ],
    ids=" ".join,
)
def test_wrong_usage_is_bad_input(golden: Golden, arguments: list[str]) -> None:
    table = golden("6", "mor_basic").table
    before = names(table)
    done = hudictl(*arguments, table, "--json")
    assert (done.code, done.error["type"]) == (2, "ConfigError" if arguments == ["restore"] else "UsageError")
    assert names(table) == before


def test_a_group_alone_is_wrong_usage() -> None:
    done = hudictl("savepoint")
    assert (done.code, done.err) == (2, "error: Missing command.\n  fix:  see hudictl savepoint --help\n")
