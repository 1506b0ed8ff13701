"""hudictl run, with the engine that needs no Spark."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import pytest

from hudi_core.engine.local import LocalEngine
from hudi_core.errors import ExecutionError
from hudi_core.metadata_table.extract.expressions import SESSION_ZONE
from hudi_core.verbs.run import RunRequest
from tests.support.damaged_files import tree
from tests.support.golden_data import GoldenCase
from tests.support.hudictl_runner import hudictl
from tests.support.rows import assert_same_rows, read_parquet
from tests.support.tiers import tiered

Golden = Callable[[str, str], GoldenCase]


def names(table: Path) -> list[str]:
    return sorted(str(path.relative_to(table)) for path in table.rglob("*"))


def test_the_oldest_pending_compaction_is_run(golden: Golden, tmp_path: Path) -> None:
    case = golden("6", "mor_compaction_requested")
    done = hudictl("run", "compaction", case.table, "--engine", "local", "--json")
    assert done.code == 0
    (result,) = done.document["instants"]
    assert sorted(result) == [
        "action",
        "bytes_written",
        "files_deleted",
        "files_written",
        "instant",
        "records",
        "seconds",
        "state",
    ]
    assert (result["action"], result["state"], result["files_written"]) == ("compaction", "completed", 3)
    for query in ("snapshot", "read_optimized"):
        target = tmp_path / f"{query}.parquet"
        assert hudictl("read", case.table, "--query", query, "--output", target).code == 0
        assert_same_rows(read_parquet(target), read_parquet(case.expected / f"after_{query}.parquet"))


@pytest.mark.parametrize("version", tiered(["6", "9"], ["6"]))
@pytest.mark.parametrize("every", [(), ("--all-pending",)])
def test_a_run_of_a_plan_of_others_says_which_options_it_does_not_use(
    golden: Golden, caplog: pytest.LogCaptureFixture, version: str, every: tuple[str, ...]
) -> None:
    table = golden(version, "mor_basic").table
    columns = "hoodie.clustering.plan.strategy.sort.columns"
    planned = hudictl("schedule", "clustering", table, "--option", f"{columns}=name", "--json").document["instant"]
    command = ("run", "clustering", table, "--schedule", *every, "--engine", "local", "--option", f"{columns}=id")
    adopted, own = hudictl(*command, "--json"), hudictl(*command, "--json")
    said = f"clustering {planned} was planned before, and is run by its plan, not by this run's {columns}"
    first, *more = adopted.document["instants"]
    assert (first["instant"], first["state"], first["reason"]) == (planned, "completed", said)
    assert [line for line in caplog.messages if "was planned before" in line] == [said]
    assert not [item for item in [*more, *own.document["instants"]] if "reason" in item]
    assert own.document["instants"] or every


def test_a_budget_of_bytes_makes_several_instants(golden: Golden) -> None:
    table = golden("9", "mor_basic").table
    due, budget = ("--option", "hoodie.compact.inline.max.delta.commits=1"), ("--max-bytes", "1")
    planned = hudictl("schedule", "compaction", table, *due, *budget, "--dry-run", "--json")
    assert (planned.code, planned.document["plan"]["left_by_budget"]) == (0, 2)
    options = (*due, *budget, "--schedule", "--all-pending", "--engine", "local", "--json")
    done = hudictl("run", "compaction", table, *options)
    assert (done.code, [item["files_written"] for item in done.document["instants"]]) == (0, [1, 1, 1])


def refuse_to_start(master: str, *_: object, **__: object) -> None:
    raise ExecutionError(f"no Spark on {master}")


def test_the_plan_chooses_the_engine(golden: Golden, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hudi_spark.session.open_session", refuse_to_start)
    table = golden("9", "mor_compaction_requested").table
    done = hudictl("run", "compaction", table, "--engine", "auto", "--json")
    assert (done.code, done.document["engine"]) == (0, "local")
    large = golden("8", "mor_compaction_requested").table
    option = "airflow_hudi.engine.local.max.units=1"
    refused = hudictl(
        "run", "compaction", large, "--engine", "auto", "--option", option, "--master", "nonsense", "--json"
    )
    assert "more than 1 units (airflow_hudi.engine.local.max.units)" in refused.err
    assert (refused.code, refused.error["message"]) == (1, "no Spark on nonsense")
    assert hudictl("run", "compaction", large, "--engine", "local", "--option", option, "--json").code == 0


@pytest.mark.spark
@pytest.mark.conformance
def test_a_master_that_spark_does_not_know_is_named(golden: Golden) -> None:
    table = golden("8", "mor_compaction_requested").table
    refused = hudictl("run", "compaction", table, "--engine", "spark", "--master", "nonsense", "--json")
    assert (refused.code, "Spark did not start on nonsense" in refused.error["message"]) == (1, True)


class LocalSession(LocalEngine):
    """Stands for Spark's session."""

    name = "spark"
    requests: ClassVar[list[RunRequest]] = []

    def start(self) -> None:
        pass

    def with_zone(self, request: RunRequest) -> RunRequest:
        self.requests.append(request)
        return request


def test_each_plan_of_a_run_is_for_the_engine_that_suits_it(golden: Golden, monkeypatch: pytest.MonkeyPatch) -> None:
    """A small plan is pending, and what is planned behind it is large: Spark runs that, in the minutes left."""
    table = golden("9", "mor_basic").table
    due, most = "hoodie.compact.inline.max.delta.commits=1", "airflow_hudi.engine.local.max.bytes=460000"
    options = ("--option", due, "--option", most, "--json")
    assert hudictl("schedule", "compaction", table, "--max-bytes", "1", *options).document["plan"]["file_groups"] == 1
    monkeypatch.setattr("hudi_cli.runner.spark_engine", lambda *_, **__: LocalSession(1))
    arguments = ("--schedule", "--all-pending", "--max-minutes", "60", *options)
    done = hudictl("run", "compaction", table, "--engine", "auto", *arguments)
    assert (done.code, done.document["engine"]) == (0, "spark")
    assert [item["files_written"] for item in done.document["instants"]] == [1, 2]
    assert "Spark runs this: more than 0 MiB (airflow_hudi.engine.local.max.bytes) to read" in done.err
    (request,) = LocalSession.requests
    assert request.max_minutes is None
    assert request.starts_until is not None


PLANNED = {
    "compaction": "mor_compaction_requested",
    "clustering": "clustering_requested_cow",
    "log_compaction": "log_compaction_requested",
    "clean": "clean_requested_mor",
}
FOUND_NONE = {"dry_run": True, "instants": []}


class ZonedSession(LocalSession):
    """Its zone is that of Spark's configuration."""

    def with_zone(self, request: RunRequest) -> RunRequest:
        return replace(request, options={**request.options, SESSION_ZONE: "UTC"})


@pytest.mark.parametrize("service", tiered(["compaction", "clustering"], ["clustering"]))
@pytest.mark.parametrize("version", tiered(["8", "9"], ["8"]))
def test_a_plan_may_need_the_zone_of_sparks_session(
    golden: Golden, monkeypatch: pytest.MonkeyPatch, version: str, service: str
) -> None:
    """Where an expression index is of local time."""
    table = golden(version, "mdt_all_mor").table
    before = names(table)
    due = ("--option", "hoodie.compact.inline.max.delta.commits=1", "--schedule", "--json")
    refused = hudictl("run", service, table, "--engine", "local", *due)
    assert (refused.code, SESSION_ZONE in refused.error["message"], names(table)) == (2, True, before)
    monkeypatch.setattr("hudi_cli.runner.spark_engine", lambda *_, **__: ZonedSession(1))
    done = hudictl("run", service, table, *due)
    assert (done.code, done.document["engine"]) == (0, "spark")
    assert [item["state"] for item in done.document["instants"]] == ["completed"]
    again = hudictl("run", service, golden(version, "mdt_all_mor").table, "--dry-run", *due)
    assert (again.code, again.document["plan"] is None) == (0, False)
    valid = hudictl("metadata", "validate", table, "--option", f"{SESSION_ZONE}=UTC", "--json")
    assert (valid.code, valid.document["differences"]) == (0, [])


@pytest.mark.parametrize("version", ["6", "8", "9"])
@pytest.mark.parametrize("service", ["compaction", "clustering", "log_compaction", "clean"])
def test_a_dry_run_shows_what_is_pending(
    golden: Golden, monkeypatch: pytest.MonkeyPatch, version: str, service: str
) -> None:
    no_spark(monkeypatch)
    table = golden(version, PLANNED[service]).table
    before = tree(table)
    done = hudictl("run", service, table, "--dry-run", "--schedule", "--json")
    assert (done.code, done.document["dry_run"], done.document["plan"]) == (0, True, None)
    (found,) = done.document["instants"]
    (planned,) = pending(table, found["action"])
    assert (found["instant"], found["state"]) == (planned, "requested")
    named = hudictl("run", service, table, "--dry-run", "--instant", planned, "--json")
    assert named.document == done.document
    people = hudictl("run", service, table, "--dry-run", "--all-pending")
    assert people.out == f"would run: {found['action']} {planned}\n"
    assert tree(table) == before


@pytest.mark.parametrize("version", ["6", "8", "9"])
def test_a_dry_run_shows_the_plan_or_why_there_is_none(
    golden: Golden, monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    no_spark(monkeypatch)
    table = golden(version, "mor_basic").table
    before = tree(table)
    due = ("--option", "hoodie.compact.inline.max.delta.commits=1")
    done = hudictl("run", "compaction", table, "--dry-run", "--schedule", *due, "--json").document
    planned = hudictl("schedule", "compaction", table, "--dry-run", *due, "--json").document
    assert done == {**FOUND_NONE, "plan": planned["plan"], "reason": None}
    assert "would plan and run:" in hudictl("run", "compaction", table, "--dry-run", "--schedule", *due).out
    for service, how in (("compaction", ()), ("clean", ("--schedule",)), ("archive", ())):
        idle = hudictl("run", service, table, "--dry-run", *how, "--json").document
        reason = hudictl("run", service, table, *how, "--json").document["reason"]
        assert idle == {**FOUND_NONE, "plan": None, "reason": reason}
    other = golden(version, "mor_compaction_requested").table
    both = hudictl("run", "compaction", table, other, "--dry-run", "--schedule", *due, "--json").document["results"]
    assert [(item["plan"], len(item["instants"])) for item in both] == [(done["plan"], 0), (None, 1)]
    assert tree(table) == before


@pytest.mark.parametrize("version", ["6", "8", "9"])
def test_a_dry_run_of_what_is_completed_finds_nothing_to_do(golden: Golden, version: str) -> None:
    table = golden(version, "mor_compaction_requested").table
    (instant,) = pending(table, "compaction")
    named = ("run", "compaction", table, "--engine", "local", "--instant", instant)
    assert hudictl(*named, "--json").document["instants"][0]["state"] == "completed"
    looked, done = hudictl(*named, "--dry-run", "--json").document, hudictl(*named, "--json").document
    assert looked == {**FOUND_NONE, "plan": None, "reason": done["reason"]}
    assert "was completed before" in looked["reason"]


@pytest.mark.parametrize("version", tiered(["6", "8", "9"], ["9"]))
def test_a_dry_run_of_a_clean_says_what_goes_before_it(golden: Golden, version: str) -> None:
    table = golden(version, "failed_inflight_mor").table
    before = tree(table)
    lazy = ("--option", "hoodie.cleaner.policy.failed.writes=LAZY")
    clean = ("run", "clean", table, "--schedule", "--engine", "local", *lazy, "--json")
    assert hudictl(*clean, "--dry-run").document["reason"].endswith("; failed writes would be rolled back first")
    assert tree(table) == before
    assert "rolled back first" not in hudictl(*clean).document["reason"]
    assert len(list((table / ".hoodie").rglob("*.rollback.requested"))) > 0


def test_several_tables_have_results_of_their_own(golden: Golden, tmp_path: Path) -> None:
    whole, broken, idle = (
        golden("9", "mor_compaction_requested").table,
        golden("8", "mor_compaction_requested").table,
        golden("6", "mor_basic").table,
    )
    lost = a_log_file(broken)
    lost.unlink()
    tables = [whole, broken, idle, tmp_path / "nothing"]
    done = hudictl("run", "compaction", *tables, "--engine", "local", "--json")
    results = done.document["results"]
    assert [(item["table"], item["exit_code"]) for item in results] == list(
        zip(map(str, tables), [0, 2, 0, 2], strict=True)
    )
    assert results[0]["instants"][0]["state"] == "completed"
    assert results[1]["error"]["path"].endswith(lost.name)
    assert "no compaction is pending" in results[2]["reason"]
    assert done.code == 2
    people = hudictl("run", "compaction", whole, idle, whole, "--engine", "local")
    assert (people.code, people.out.count("nothing to do")) == (0, 2)
    assert hudictl("run", "compaction", whole, idle, "--instant", "1", "--json").error["message"].endswith("one table")


@pytest.mark.parametrize(
    "how", [[], ["--all-pending"], ["--engine", "local"], ["--engine", "local", "--all-pending"]], ids=" ".join
)
@pytest.mark.parametrize(
    ("service", "reason"),
    [
        ("archive", "hoodie.keep.max.commits"),
        ("clean", "no clean is pending on mor_basic; --schedule plans one"),
        ("compaction", "no compaction is pending on mor_basic; --schedule plans one"),
        ("rollback", "no rollback is pending on mor_basic; --schedule plans one"),
    ],
)
def test_nothing_to_do_is_no_error_and_has_a_reason(golden: Golden, service: str, reason: str, how: list[str]) -> None:
    table = golden("6", "mor_basic").table
    before = names(table)
    done = hudictl("run", service, table, *how, "--json")
    assert (done.code, sorted(done.document), done.document["instants"]) == (0, ["instants", "reason"], [])
    assert reason in done.document["reason"]
    people = hudictl("run", service, table, *how)
    assert (people.code, people.out) == (0, f"nothing to do: {done.document['reason']}\n")
    assert names(table) == before


@pytest.mark.parametrize("service", ["clean", "rollback"])
@pytest.mark.parametrize("how", [["--schedule"], ["--schedule", "--all-pending"]], ids=" ".join)
def test_nothing_to_plan_has_the_planners_reason(golden: Golden, service: str, how: list[str]) -> None:
    table = golden("9", "mor_basic").table
    done = hudictl("run", service, table, *how, "--json").document
    assert done == {"instants": [], "reason": hudictl("schedule", service, table, "--json").document["reason"]}
    assert done["reason"]


def test_people_see_a_table_and_where_it_stands(golden: Golden) -> None:
    done = hudictl(
        "run", "compaction", golden("6", "mor_compaction_requested").table, "--engine", "local", "--all-pending"
    )
    assert done.code == 0
    assert "completed" in done.out
    assert "3 of 3 file groups written" in done.err


def a_log_file(table: Path) -> Path:
    """One that the plan names, and not its checksum."""
    return min(path for path in table.glob("2024-*/.*.log.1_*") if path.suffix != ".crc")


def test_a_failed_instant_keeps_its_state_and_error(golden: Golden) -> None:
    case = golden("6", "mor_compaction_requested")
    lost = a_log_file(case.table)
    lost.unlink()
    done = hudictl("run", "compaction", case.table, "--engine", "local", "--all-pending", "--json")
    (result,) = done.document["instants"]
    assert (done.code, result["state"]) == (2, "requested")
    assert lost.name in result["error"]
    assert lost.name in done.err


def test_a_named_instant_that_fails_is_the_error(golden: Golden) -> None:
    case = golden("6", "mor_compaction_requested")
    lost = a_log_file(case.table)
    lost.unlink()
    before = names(case.table)
    (plan,) = (case.table / ".hoodie").glob("*.compaction.requested")
    done = hudictl("run", "compaction", case.table, "--engine", "local", "--instant", plan.name.split(".")[0], "--json")
    assert done.code == 2
    assert done.error["path"].endswith(lost.name)
    assert names(case.table) == before


@pytest.mark.parametrize("version", tiered(["6", "8", "9"], ["9"]))
def test_log_compactions_are_scheduled_and_run(golden: Golden, tmp_path: Path, version: str) -> None:
    case = golden(version, "log_compaction_requested")
    done = hudictl("run", "log_compaction", case.table, "--engine", "local", "--json")
    assert done.code == 0
    (result,) = done.document["instants"]
    assert (result["action"], result["state"], result["files_written"]) == ("logcompaction", "completed", 3)
    target = tmp_path / "rows.parquet"
    assert hudictl("read", case.table, "--output", target).code == 0
    rewritten = ("_hoodie_commit_time", "_hoodie_commit_seqno") if version == "9" else ()
    assert_same_rows(
        read_parquet(target),
        read_parquet(case.expected / "after_snapshot.parquet"),
        ignore=(*rewritten, "_hoodie_file_name"),
    )
    said = hudictl("schedule", "log_compaction", case.table, "--json").document
    assert (said["instant"], said["plan"]) == (None, None)
    assert "hoodie.log.compaction.enable=true" in said["reason"]
    options = ["--option", "hoodie.log.compaction.enable=true", "--option", "hoodie.log.compaction.blocks.threshold=1"]
    merged = hudictl("schedule", "log_compaction", case.table, "--dry-run", *options, "--json").document
    assert merged["plan"] is None
    table = golden(version, "mor_basic").table
    dry = hudictl("schedule", "log_compaction", table, "--dry-run", *options, "--json").document
    assert (dry["instant"], dry["plan"]["file_groups"]) == (None, 3)
    ours = hudictl("run", "log_compaction", table, "--schedule", "--engine", "local", *options, "--json")
    assert [item["state"] for item in ours.document["instants"]] == ["completed"]


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["--instant", "1", "--schedule"], "exclude"),
        (["--instant", "1", "--all-pending"], "exclude"),
        (["--instant", "../../etc"], "not an instant time"),
        (["--option", "novalue"], "key=value"),
        (["--option", "a=1", "--option", "a=2"], "twice"),
        (["--storage-option", "secret=hidden"], "secret"),
        (["--option", "fs.s3a.secret.key=hidden"], "secret"),
        (["--storage-options-file", "/nowhere/at/all.json"], "cannot be read"),
        (["--max-minutes", "0"], "max-minutes"),
        (["--engine", "flink"], "flink"),
        (["--master", "local", "--spark-conf", "novalue"], "key=value"),
    ],
)
def test_wrong_usage_changes_nothing_and_shows_no_secret(golden: Golden, arguments: list[str], word: str) -> None:
    table = golden("6", "mor_compaction_requested").table
    before = names(table)
    done = hudictl("run", "compaction", table, "--json", *arguments)
    assert done.code == 2
    assert word in done.error["message"]
    assert "hidden" not in done.out + done.err
    assert names(table) == before


def test_secrets_may_come_from_the_file(golden: Golden, tmp_path: Path) -> None:
    file = tmp_path / "options.json"
    file.write_text('{"secret": "hidden"}')
    done = hudictl(
        "run",
        "compaction",
        golden("6", "mor_compaction_requested").table,
        "--engine",
        "local",
        "--storage-options-file",
        file,
        "--json",
    )
    assert done.code == 0
    assert "hidden" not in done.out + done.err


def no_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("Spark was started")

    monkeypatch.setattr("hudi_spark.session.open_session", refuse)


def pending(table: Path, action: str) -> list[str]:
    document = hudictl("timeline", table, "--action", action, "--json").document
    return [item["requested_time"] for item in document["instants"] if item["state"] != "completed"]


@pytest.mark.parametrize("version", ["6", "8", "9"])
def test_a_planned_clean_is_run_and_what_went_is_counted(golden: Golden, version: str) -> None:
    case = golden(version, "clean_requested_mor")
    (planned,) = pending(case.table, "clean")
    done = hudictl("run", "clean", case.table, "--engine", "local", "--json")
    (result,) = done.document["instants"]
    assert (done.code, result["instant"], result["action"], result["state"]) == (0, planned, "clean", "completed")
    assert result["files_deleted"] > 0
    assert pending(case.table, "clean") == []


@pytest.mark.parametrize("version", ["6", "8", "9"])
def test_a_rollback_is_planned_and_run_without_spark(
    golden: Golden, version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    no_spark(monkeypatch)
    case = golden(version, "failed_inflight_mor")
    (failed,) = pending(case.table, "deltacommit")
    options = ("--option", "hoodie.cleaner.policy.failed.writes=EAGER", "--json")
    done = hudictl("run", "rollback", case.table, "--schedule", "--all-pending", *options)
    (result,) = done.document["instants"]
    assert (done.code, result["action"], result["state"]) == (0, "rollback", "completed")
    assert result["instant"] > failed
    assert pending(case.table, "deltacommit") == pending(case.table, "rollback") == []
    again = hudictl("run", "rollback", case.table, "--schedule", *options)
    assert again.document["instants"] == []
    assert "no rollback is pending" in again.document["reason"]


def test_nothing_to_plan_starts_no_spark_and_says_why(golden: Golden, monkeypatch: pytest.MonkeyPatch) -> None:
    no_spark(monkeypatch)
    table = golden("8", "mor_basic").table
    before = names(table)
    done = hudictl("run", "clean", table, "--schedule", "--option", "hoodie.clean.commits.retained=50", "--json")
    assert (done.code, done.document["instants"]) == (0, [])
    assert "hoodie.clean.commits.retained" in done.document["reason"]
    shown = hudictl("run", "clean", table, "--schedule", "--option", "hoodie.clean.commits.retained=50")
    assert done.document["reason"] in shown.out
    assert names(table) == before


@pytest.mark.parametrize("version", ["6", "8", "9"])
def test_a_clean_is_planned_and_run_at_once(golden: Golden, version: str) -> None:
    table = golden(version, "mor_compacted").table
    done = hudictl(
        "run",
        "clean",
        table,
        "--schedule",
        "--engine",
        "local",
        "--option",
        "hoodie.clean.commits.retained=1",
        "--json",
    )
    (result,) = done.document["instants"]
    assert (result["action"], result["state"]) == ("clean", "completed")
    assert result["files_deleted"] > 0


@pytest.mark.parametrize("version", ["6", "8", "9"])
def test_old_instants_are_archived_without_spark(golden: Golden, version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    no_spark(monkeypatch)
    table = golden(version, "cleaned_commits_mor").table
    few = ("hoodie.keep.min.commits=2", "hoodie.keep.max.commits=3", "hoodie.clean.commits.retained=1")
    options = [part for option in few for part in ("--option", option)]
    would = hudictl("schedule", "archive", table, *options, "--json").document["plan"]
    done = hudictl("run", "archive", table, *options, "--json").document
    assert {item["state"] for item in done["instants"]} == {"archived"}
    assert [item["instant"] for item in done["instants"]] == [item["instant"] for item in would["instants"]]
    again = hudictl("run", "archive", table, *options, "--json").document
    assert again["instants"] == []
    assert again["reason"] == would["held_by"]
