"""The doctor on golden tables that something was done to; it writes nothing, whatever it meets."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from hudi_core.engine.local import LocalEngine
from hudi_core.services.archive.job import ArchiveService
from hudi_core.services.indexing.planner import IndexingService
from hudi_core.storage.local import LocalStorage
from hudi_core.timeline.instant import Action
from hudi_core.transaction.owner import Owner
from hudi_health.doctor.examine import StoreObservations, examine, unproven_store
from hudi_health.doctor.findings import Finding
from tests.support.changed_tables import an_owner
from tests.support.fault_storage import MUTATIONS, FaultPlan, FaultStorage
from tests.support.golden_cleans import context_of
from tests.support.golden_data import GoldenCase
from tests.support.tiers import tiered

Golden = Callable[[str, str], GoldenCase]
VERSIONS = ["6", "8", "9"]
HEALTHY = [
    "mor_compacted",
    "archived_timeline_mor",
    "archived_timeline_cow",
    "clustered_mor",
    "rolled_back_mor",
    "savepoint_cow",
]
STRANGE = [
    "20261120223342658_20xx.deltacommit",
    "zz20261120223342658_20261120223342659.commit",
    "2026112x.rollback.requested",
]


def findings(table: Path, options: dict[str, str] | None = None, *, files: bool = True) -> list[Finding]:
    """Of a storage that refuses no change and reports every one: there must be none."""
    plan = FaultPlan(counts=MUTATIONS)
    report = examine(context_of(table, options, FaultStorage(LocalStorage(table), plan)), files=files)
    assert plan.mutations() == []
    json.dumps(report.to_dict())
    return list(report.findings)


def rules(table: Path, options: dict[str, str] | None = None) -> list[str]:
    return [finding.rule for finding in findings(table, options)]


@pytest.mark.parametrize("version", tiered(VERSIONS, ["6", "9"]))
@pytest.mark.parametrize("name", HEALTHY)
def test_healthy_tables_of_real_hudi_have_no_finding(golden: Golden, version: str, name: str) -> None:
    assert findings(golden(version, name).table) == []


@pytest.mark.parametrize("version", VERSIONS)
def test_a_write_that_died(golden: Golden, version: str) -> None:
    table = golden(version, "failed_inflight_mor").table
    (finding,) = findings(table)
    assert finding.rule == "stuck_instant"
    assert "archival of later instants" in finding.blocks
    assert f"hudictl rollback {table} --instant {finding.instant}" in finding.fix


@pytest.mark.parametrize("version", VERSIONS)
def test_a_plan_whose_owner_died_is_found_at_once_and_one_at_work_is_not(golden: Golden, version: str) -> None:
    table = golden(version, "mor_compaction_requested").table
    patient = {"airflow_hudi.doctor.stuck_minutes": "1000000"}
    context = context_of(table)
    (instant,) = [item.requested_time for item in context.active.load().pending_compactions()]
    dead = replace(Owner.current("nightly"), process_start="1")
    context.active.to_inflight(instant, "compaction")
    held = context.claim(instant, dead)
    held.heartbeat.stop()
    (finding,) = findings(table, patient)
    assert (finding.rule, finding.instant, finding.owner) == ("stuck_instant", instant, dead.describe())
    assert "compaction and clustering of its file groups" in finding.blocks
    with context.claim(instant, Owner.current("the next")):
        assert findings(table, patient) == []


@pytest.mark.parametrize(
    ("version", "folder"), [("6", ".hoodie"), ("8", ".hoodie/timeline"), ("9", ".hoodie/timeline")]
)
@pytest.mark.parametrize("name", STRANGE)
def test_names_that_do_not_parse(golden: Golden, version: str, folder: str, name: str) -> None:
    table = golden(version, "mor_compacted").table
    (table / folder / name).write_bytes(b"{}")
    (finding,) = findings(table)
    assert (finding.rule, finding.path) == ("timeline_name", f"{folder}/{name}")


@pytest.mark.parametrize("version", VERSIONS)
def test_a_drop_of_the_metadata_table_that_was_cut_off(golden: Golden, version: str) -> None:
    table = golden(version, "mor_compacted").table
    properties = table / ".hoodie" / "hoodie.properties"
    properties.write_text(
        "\n".join(
            line
            for line in properties.read_text().splitlines()
            if not line.startswith("hoodie.table.metadata.partitions")
        )
    )
    (table / ".hoodie" / "metadata" / ".hoodie" / "hoodie.properties").unlink()
    assert rules(table) == ["metadata_drop_unfinished"]
    shutil.rmtree(table / ".hoodie" / "metadata")
    assert rules(table) == []


@pytest.mark.parametrize("version", VERSIONS)
def test_a_compaction_is_offered(golden: Golden, version: str) -> None:
    (finding,) = findings(golden(version, "mor_compaction_requested").table)
    assert "hudictl run compaction" in finding.fix
    assert "hudictl unschedule" in finding.fix


@pytest.mark.parametrize("version", tiered(VERSIONS, ["6", "9"]))
def test_another_writer_that_is_alive_and_seems_eager(golden: Golden, version: str) -> None:
    table = golden(version, "mor_compacted").table
    active = context_of(table).active
    instant = context_of(table).new_instant(active.load())
    active.create_requested(instant, Action.DELTA_COMMIT)
    active.to_inflight(instant, Action.DELTA_COMMIT)
    found = {finding.rule: finding for finding in findings(table)}
    assert {"failed_writes_policy", "lock_provider"} <= set(found)
    assert "stuck_instant" not in found
    assert instant in found["lock_provider"].what
    heartbeat = table / ".hoodie" / ".heartbeat" / instant
    heartbeat.parent.mkdir(exist_ok=True)
    heartbeat.write_bytes(b"")
    assert "failed_writes_policy" not in rules(table)


@pytest.mark.parametrize("version", tiered(VERSIONS, ["6", "9"]))
def test_an_indexing_that_hudi_planned_is_the_latest_action(golden: Golden, version: str) -> None:
    table = golden(version, "indexing_requested").table
    (indexing,) = context_of(table).active.load().pending().of_actions(Action.INDEXING).requested_times
    assert "latest_is_indexing" not in rules(table)
    IndexingService().run(context_of(table), indexing, LocalEngine(1), an_owner(), None)
    (finding,) = [item for item in findings(table) if item.severity != "info"]
    assert (finding.rule, finding.severity, finding.instant) == ("latest_is_indexing", "warning", indexing)


@pytest.mark.parametrize("version", ["8", "9"])
def test_commits_that_real_hudi_archived_behind_an_indexing(golden: Golden, version: str) -> None:
    """Our archival takes away what Hudi's leaves there; the archive has it then."""
    table = golden(version, "archived_timeline_mor").table
    context = context_of(table)
    first, *_, last = [item.requested_time for item in context.history().instants()]
    indexing = str(int(first) + 1)
    for name in (
        f"{indexing}.indexing.requested",
        f"{indexing}.indexing.inflight",
        f"{indexing}_{int(indexing) + 1}.indexing",
    ):
        table.joinpath(".hoodie/timeline", name).write_bytes(b"{}")
    (finding,) = findings(table)
    assert (finding.rule, finding.severity, finding.instant) == ("archive_overtook", "error", indexing)
    assert last in finding.what
    assert finding.fix.endswith(f"hudictl run archive {table}")
    ArchiveService().run_now(
        context_of(table, {"hoodie.keep.max.commits": "1000", "hoodie.keep.min.commits": "999"}), an_owner(), None
    )
    assert not [*table.joinpath(".hoodie/timeline").glob(f"{indexing}*")]
    assert findings(table) == []
    assert (indexing, Action.INDEXING) in {
        (item.requested_time, item.action) for item in context_of(table).history().instants()
    }


@pytest.mark.parametrize(
    ("store", "expected"),
    [
        (StoreObservations("file", True, True), []),
        (StoreObservations("s3", True, True), [("store_unproven", "info")]),
        (StoreObservations("gs", False, False), [("store_not_atomic", "error")]),
    ],
)
def test_stores(store: StoreObservations, expected: list[tuple[str, str]]) -> None:
    assert [(finding.rule, finding.severity) for finding in unproven_store(store, "/data/t")] == expected


def test_the_worst_comes_first(golden: Golden, monkeypatch: pytest.MonkeyPatch) -> None:
    table = golden("9", "mor_compaction_requested").table
    path, *_ = sorted(table.glob("*/*.parquet"))
    path.write_bytes(b"")
    monkeypatch.setattr("hudi_health.doctor.examine.scheme_of", lambda uri: "s3")
    severities = [item.severity for item in findings(table)]
    assert severities == sorted(severities, key=["error", "warning", "info"].index)
    assert set(severities) == {"error", "warning", "info"}
