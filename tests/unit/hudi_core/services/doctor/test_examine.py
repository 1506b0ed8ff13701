"""The doctor on golden tables that something was done to; it writes nothing, whatever it meets."""

from __future__ import annotations

import json
import os
import shutil
import time
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from hudi_core.metadata_table.read.metadata_table import MetadataTable
from hudi_core.services.archive.job import ArchiveService
from hudi_core.services.doctor.examine import examine
from hudi_core.services.doctor.finding import Finding
from hudi_core.services.doctor.listings import compare_listings
from hudi_core.services.doctor.observations import ListingObservations
from hudi_core.storage.local import LocalStorage
from hudi_core.testing.fault import MUTATIONS, FaultPlan, FaultStorage
from hudi_core.timeline.instant import Action, State
from hudi_core.timeline.instant_time import parse_instant
from hudi_core.transaction.claim import CLAIMS
from hudi_core.transaction.owner import Owner
from tests.golden_data import GoldenCase, golden_cases, golden_root
from tests.unit.hudi_core.services.after import an_owner
from tests.unit.hudi_core.services.clean.golden_cleans import context_of

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


@pytest.mark.parametrize("version", VERSIONS)
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
def test_a_plan_whose_owner_died_is_told_at_once_and_one_at_work_is_not(golden: Golden, version: str) -> None:
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


def test_the_lock_of_a_dead_process(golden: Golden) -> None:
    table = golden("6", "mor_compacted").table
    dead = replace(Owner.current("nightly"), process_start="1")
    lock = context_of(table).lock(dead)
    lock.acquire()
    (finding,) = findings(table)
    assert (finding.rule, finding.owner, finding.path) == ("lock_left_behind", dead.describe(), ".hoodie/lock")
    assert "delete .hoodie/lock" in finding.fix


def test_a_lock_of_hudi_that_is_held_for_hours(golden: Golden) -> None:
    table = golden("6", "mor_compacted").table
    (table / ".hoodie" / "lock").write_bytes(b"")
    assert findings(table) == []
    long_ago = time.time() - 7200
    os.utime(table / ".hoodie" / "lock", (long_ago, long_ago))
    (finding,) = findings(table)
    assert (finding.rule, finding.owner) == ("lock_held", "a Hudi writer (its lock has no owner's name)")


def test_a_lock_that_nobody_can_ask(golden: Golden) -> None:
    provider = "org.apache.hudi.hive.transaction.lock.HiveMetastoreBasedLockProvider"
    assert rules(golden("9", "mor_compacted").table, {"hoodie.write.lock.provider": provider}) == ["lock_unreadable"]


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
def test_the_metadata_table_and_the_storage_that_differ(golden: Golden, version: str) -> None:
    table = golden(version, "mor_compacted").table
    newest = context_of(table).active.load().commits().instants[0].requested_time
    gone, *_ = sorted(table.glob("*/*.parquet"))
    late = gone.with_name(f"late-0_0-0-0_{newest}.parquet")
    gone.rename(late)
    found = {finding.rule: finding.path for finding in findings(table)}
    assert found["metadata_unlisted"] == late.relative_to(table).as_posix()
    assert found["metadata_missing_file"] == gone.relative_to(table).as_posix()
    assert findings(table, files=False) == []
    context = context_of(table)
    clean = context.new_instant(context.active.load())
    context.active.create_requested(clean, Action.CLEAN, b"")
    context.active.to_inflight(clean, Action.CLEAN)
    assert not {"metadata_unlisted", "metadata_missing_file"} & set(rules(table)), (
        "a clean at work has deleted, and not told yet"
    )


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(("kind", "change"), [("parquet", -1), ("parquet", 1), ("log", -1)])
def test_a_size_that_the_metadata_table_has_wrong(
    golden: Golden, monkeypatch: pytest.MonkeyPatch, version: str, kind: str, change: int
) -> None:
    """As readers meet it that open files by the listed size; the file itself may have been cut as well."""
    table = golden(version, "mor_basic").table
    path = sorted(table.glob("*/*.parquet") if kind == "parquet" else table.glob("*/.*.log.*"))[-1]
    size = path.stat().st_size
    listed = MetadataTable.list_files
    with monkeypatch.context() as patched:
        patched.setattr(
            MetadataTable,
            "list_files",
            lambda self, at: {name: had + change * (name == path.name) for name, had in listed(self, at).items()},
        )
        (finding,) = [item for item in findings(table) if item.rule != "stuck_instant"]
    where = path.relative_to(table).as_posix()
    assert (finding.rule, finding.severity, finding.path) == ("metadata_wrong_size", "error", where)
    assert f"{where}: {size + change} bytes listed, {size} there" in finding.what
    assert not [item for item in findings(table) if item.rule != "stuck_instant"]


@pytest.mark.parametrize("version", [*VERSIONS, "6-by-1.2.0", "8-by-1.2.0"])
def test_no_metadata_table_of_real_hudi_is_blamed(golden: Golden, version: str) -> None:
    """Also not for the stubs of 1 byte that it lists for log files of a write that it rolled back (rolled_back_mor in
    version 6).
    """
    compared = 0
    for name in golden_cases(version):
        if not any(
            "/.hoodie/metadata/" in member
            for member in zipfile.ZipFile(golden_root() / version / f"{name}.zip").namelist()
        ):
            continue
        context = context_of(golden(version, name).table)
        assert compare_listings(context, context.active.load()) == ListingObservations(), name
        compared += context.has_metadata_table
    assert compared >= 5


@pytest.mark.parametrize(("version", "expected"), [("6", 0), ("8", 1), ("9", 1)])
def test_a_log_file_may_be_longer_than_its_commits_say_where_it_holds_several(
    golden: Golden, version: str, expected: int
) -> None:
    """A pending or rolled-back write of version 6 appends to the last log file, of which the metadata table hears
    nothing, or a stub.
    """
    table = golden(version, "mor_basic").table
    path = sorted(table.glob("*/.*.log.*"))[-1]
    with path.open("ab") as file:
        file.write(bytes(64))
    context = context_of(table)
    assert compare_listings(context, context.active.load()).wrong_size_count == expected
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size - 65)
    (cut,) = compare_listings(context, context.active.load()).wrong_size
    assert (cut.path, cut.listed - cut.there) == (path.relative_to(table).as_posix(), 1)


@pytest.mark.parametrize("version", VERSIONS)
def test_the_age_of_a_plan_is_the_younger_of_its_files_and_its_instants(golden: Golden, version: str) -> None:
    table = golden(version, "mor_compaction_requested").table
    active = context_of(table).active
    (plan,) = active.load().pending_compactions()
    path = table / active.path(plan.requested_time, plan.action, State.REQUESTED)
    drawn = parse_instant(plan.requested_time, "UTC").timestamp()
    zone = {"airflow_hudi.timeline.zone": "UTC"}
    for made, age in ((0.0, time.time() - drawn), (time.time() - 5000, 5000.0)):
        os.utime(path, (made, made))
        (finding,) = [item for item in findings(table, zone) if item.rule == "stuck_instant"]
        assert finding.age_seconds == pytest.approx(min(age, time.time() - drawn), abs=60)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_compaction_is_offered(golden: Golden, version: str) -> None:
    (finding,) = findings(golden(version, "mor_compaction_requested").table)
    assert "hudictl run compaction" in finding.fix
    assert "hudictl unschedule" in finding.fix


@pytest.mark.parametrize("version", VERSIONS)
def test_writers_in_another_zone(golden: Golden, version: str) -> None:
    """The files' times are set to when their instants say they were made, in another zone."""
    table = golden(version, "mor_compacted").table
    context = context_of(table)
    for instant in context.active.load():
        path = table / context.active.path(instant.requested_time, instant.pending_action, State.REQUESTED)
        if path.exists():
            made = parse_instant(instant.requested_time, "Asia/Kolkata").timestamp() + 0.3
            os.utime(path, (made, made))
    utc = {"airflow_hudi.timeline.zone": "UTC"}
    (finding,) = [item for item in findings(table, utc) if item.rule == "timeline_zone"]
    assert "+5.5 h" in finding.what
    assert "timeline_zone" not in rules(table, {"airflow_hudi.timeline.zone": "Asia/Kolkata"})


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("when", ["before the timeline begins", "after it began"])
def test_a_base_file_that_landed_after_its_rollback(golden: Golden, version: str, when: str) -> None:
    """Older than the timeline it is visible to readers, later it will be (facts 10.5)."""
    table = golden(version, "archived_timeline_cow").table
    context = context_of(table)
    first = min(context.active.load().commits().requested_times)
    archived = sorted(context.history().timeline().requested_times)
    instant = str(int(archived[len(archived) // 2] if when.startswith("before") else first) + 1)
    (whole, *_) = table.glob("*/*.parquet")
    late = whole.with_name(f"late-0_0-0-0_{instant}.parquet")
    shutil.copy(whole, late)
    (finding,) = findings(table)
    expected = "orphan_visible" if when.startswith("before") else "orphan_hidden"
    assert (finding.rule, finding.instant, finding.path) == (expected, instant, late.relative_to(table).as_posix())
    assert findings(table, files=False) == []


@pytest.mark.parametrize("version", VERSIONS)
def test_a_plan_that_cannot_be_read_is_a_finding(golden: Golden, version: str) -> None:
    table = golden(version, "mor_compaction_requested").table
    active = context_of(table).active
    (pending,) = active.load().pending_compactions()
    path = table / active.path(pending.requested_time, pending.action, State.REQUESTED)
    written = path.stat()
    path.write_bytes(b"no plan")
    os.utime(
        path, ns=(written.st_atime_ns, written.st_mtime_ns)
    )  # its age is evidence of the zone: now may be a whole quarter of an hour later
    (finding,) = findings(table)
    assert (finding.rule, finding.instant) == ("unreadable_plan", pending.requested_time)
    assert "not an Avro container" in finding.what


def test_a_claim_that_cannot_be_read_is_a_finding(golden: Golden) -> None:
    table = golden("9", "mor_compaction_requested").table
    (pending,) = context_of(table).active.load().pending_compactions()
    claim = table / CLAIMS / pending.requested_time / "000001.json"
    claim.parent.mkdir(parents=True)
    claim.write_bytes(b"no claim")
    (finding,) = findings(table)
    assert (finding.rule, finding.instant) == ("unreadable_plan", pending.requested_time)
    assert "the claim is not JSON" in finding.what


@pytest.mark.parametrize("version", VERSIONS)
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
