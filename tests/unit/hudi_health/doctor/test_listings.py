from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from hudi_core.metadata_table.read.metadata_table import MetadataTable
from hudi_core.timeline.instant import Action
from hudi_health.doctor.findings import DataFiles, Finding
from hudi_health.doctor.listings import listings
from tests.support.golden_cleans import context_of
from tests.support.golden_data import golden_cases, golden_root
from tests.support.tiers import tiered
from tests.unit.hudi_health.doctor.test_examine import VERSIONS, Golden, findings, rules


def compared_lists(table: Path) -> list[Finding]:
    context = context_of(table)
    return list(listings(DataFiles(context, context.active.load())))


@pytest.mark.parametrize("version", VERSIONS)
def test_the_metadata_table_and_the_storage_that_differ(
    golden: Golden, monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    table = golden(version, "mor_compacted").table
    gone, *_, late = sorted(table.glob("*/*.parquet"))
    gone.unlink()
    listed = MetadataTable.list_files
    monkeypatch.setattr(
        MetadataTable,
        "list_files",
        lambda self, at: {name: size for name, size in listed(self, at).items() if name != late.name},
    )
    found = {finding.rule: finding.path for finding in findings(table)}
    assert found["metadata_unlisted"] == late.relative_to(table).as_posix()
    assert found["metadata_missing_file"] == gone.relative_to(table).as_posix()
    assert findings(table, files=False) == []
    context = context_of(table)
    clean = context.new_instant(context.active.load())
    context.active.create_requested(clean, Action.CLEAN, b"")
    context.active.to_inflight(clean, Action.CLEAN)
    assert not {"metadata_unlisted", "metadata_missing_file"} & set(rules(table)), (
        "a clean at work has deleted, and not recorded it yet"
    )


@pytest.mark.parametrize("version", VERSIONS)
def test_a_file_of_a_failed_task_attempt_of_a_completed_commit_is_to_be_unlisted(golden: Golden, version: str) -> None:
    """The commit names the file of the attempt that succeeded; readers do not take the other one."""
    table = golden(version, "cow_basic").table
    newest = context_of(table).active.load().commits().instants[-1].requested_time
    written = next(path for path in sorted(table.glob("*/*.parquet")) if path.stem.endswith(newest))
    file_id, _, instant = written.stem.split("_")
    attempt = written.with_name(f"{file_id}_7-77-777_{instant}.parquet")
    attempt.write_bytes(written.read_bytes())
    assert "metadata_unlisted" not in {finding.rule for finding in compared_lists(table)}


@pytest.mark.parametrize("version", tiered(VERSIONS, ["6", "9"]))
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


@pytest.mark.parametrize("version", tiered([*VERSIONS, "6-by-1.2.0", "8-by-1.2.0"], ["6", "8-by-1.2.0", "9"]))
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
        table = golden(version, name).table
        assert compared_lists(table) == [], name
        context = context_of(table)
        compared += context.has_metadata_table
    assert compared >= 5


@pytest.mark.parametrize(("version", "expected"), [("6", 0), ("8", 1), ("9", 1)])
def test_a_log_file_may_be_longer_than_its_commits_say_where_it_holds_several(
    golden: Golden, version: str, expected: int
) -> None:
    """A pending or rolled-back write of version 6 appends to the last log file, of which the metadata table records
    nothing, or a stub.
    """
    table = golden(version, "mor_basic").table
    path = sorted(table.glob("*/.*.log.*"))[-1]
    with path.open("ab") as file:
        file.write(bytes(64))
    assert len(compared_lists(table)) == expected
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size - 65)
    (cut,) = compared_lists(table)
    where, size = path.relative_to(table).as_posix(), path.stat().st_size
    assert (cut.rule, cut.path) == ("metadata_wrong_size", where)
    assert f"({where}: {size + 1} bytes listed, {size} there)" in cut.what


def test_a_partition_that_no_listing_finds(golden: Golden) -> None:
    """As one below another, or one whose mark is gone: its files are there, and a new metadata table lacks them."""
    table = golden("9", "mor_compacted").table
    mark, *_ = sorted(table.glob("*/.hoodie_partition_metadata"))
    mark.unlink()
    (finding,) = [item for item in findings(table) if item.rule != "stuck_instant"]
    assert (finding.rule, finding.severity) == ("partition_below_another", "error")
    assert str(finding.path).startswith(f"{mark.parent.name}/")
    assert "keep the metadata table" in str(finding.fix)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_list_that_cannot_be_read(golden: Golden, version: str) -> None:
    table = golden(version, "mor_compacted").table
    for path in (table / ".hoodie/metadata/files").glob("*.hfile"):
        path.write_bytes(b"no HFile")
    (finding,) = [item for item in findings(table) if item.rule == "metadata_unreadable"]
    assert (finding.severity, finding.path) == ("error", None)
    assert finding.what.startswith("the metadata table's list of files cannot be read: .hoodie/metadata/files/")
