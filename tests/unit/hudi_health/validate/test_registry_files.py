"""Every damage to the list of files is found, and nothing else; and damaged data files."""

from __future__ import annotations

import shutil
from collections.abc import Callable

import pytest

from hudi_core.metadata_table.record import ALL_PARTITIONS, FileEntry, FilesRecord, RecordType, files_datum
from hudi_core.metadata_table.records.files import partition_key
from tests.support.damaged_tables import DamagedTable
from tests.support.golden_data import GoldenCase
from tests.support.tiers import tiered

Golden = Callable[[str, str], GoldenCase]
VERSIONS = tiered(["6", "8", "9"], ["6", "9"])
BASIC = tiered(
    [("6", "cow_basic"), ("6-by-1.2.0", "mor_basic"), ("8", "cow_basic"), ("9", "mor_basic")],
    [("6", "cow_basic"), ("9", "mor_basic")],
)


def metadata_snapshot(golden: Golden, version: str, name: str = "mdt_all_cow") -> DamagedTable:
    return DamagedTable(golden(version, name).table)


@pytest.mark.parametrize(("version", "name"), BASIC)
def test_a_file_that_is_not_there(golden: Golden, version: str, name: str) -> None:
    table = metadata_snapshot(golden, version, name)
    partition = table.metadata.partitions()[1]
    table.list_files(partition, {"gone.parquet": FileEntry(77)})
    (found,) = table.found()
    assert (found.partition_type, found.partition, found.file, found.what) == (
        "files",
        partition,
        "gone.parquet",
        "listed, but it is not there",
    )


@pytest.mark.parametrize(("version", "name"), BASIC)
def test_a_file_that_was_deleted(golden: Golden, version: str, name: str) -> None:
    table = metadata_snapshot(golden, version, name)
    partition, oldest = min(table.base_files(), key=lambda item: item[1].split("_")[-1])
    (table.path / partition / oldest).unlink()
    assert [
        (item.partition_type, item.file, item.what) for item in table.found() if item.partition_type == "files"
    ] == [("files", oldest, "listed, but it is not there")]


@pytest.mark.parametrize(("version", "name"), BASIC)
def test_a_file_that_is_not_listed(golden: Golden, version: str, name: str) -> None:
    table = metadata_snapshot(golden, version, name)
    partition, oldest = min(table.base_files(), key=lambda item: item[1].split("_")[-1])
    size = (table.path / partition / oldest).stat().st_size
    table.list_files(partition, {oldest: FileEntry(0, is_deleted=True)})
    found = table.found()
    files = [
        (item.partition_type, item.partition, item.file, item.what) for item in found if item.partition_type == "files"
    ]
    assert files == [("files", partition, oldest, f"not listed: {size} bytes of a completed commit")]
    # Its statistics are those of a file that no listing has now.
    assert [(item.partition_type, item.file) for item in found if item.partition_type != "files"] == (
        [("column_stats", oldest)] if len(found) > 1 else []
    )
    assert (len(found) > 1) is ("column_stats" in table.context.config.metadata_partitions)


@pytest.mark.parametrize(
    ("version", "name"), tiered([("6-by-1.2.0", "mor_basic"), ("9", "mor_basic")], [("9", "mor_basic")])
)
def test_a_log_file_that_is_not_listed(golden: Golden, version: str, name: str) -> None:
    table = metadata_snapshot(golden, version, name)
    metadata = table.metadata
    partition, log = next(
        (partition, name)
        for partition in metadata.partitions()
        for name in metadata.list_files(partition)
        if ".log." in name
    )
    table.list_files(partition, {log: FileEntry(0, is_deleted=True)})
    assert [(item.partition, item.file) for item in table.found() if item.partition_type == "files"] == [
        (partition, log)
    ]


@pytest.mark.parametrize(("version", "name"), BASIC)
def test_a_wrong_size(golden: Golden, version: str, name: str) -> None:
    table = metadata_snapshot(golden, version, name)
    partition, oldest = min(table.base_files(), key=lambda item: item[1].split("_")[-1])
    size = (table.path / partition / oldest).stat().st_size
    table.list_files(partition, {oldest: FileEntry(size + 1)})
    (found,) = table.found()
    assert (found.partition_type, found.file, found.what) == (
        "files",
        oldest,
        f"listed with {size + 1} bytes, but it has {size}",
    )


@pytest.mark.parametrize("version", VERSIONS)
def test_a_log_file_that_is_shorter_than_listed(golden: Golden, version: str) -> None:
    table = metadata_snapshot(golden, version, "mdt_all_mor")
    metadata = table.metadata
    partition, log, size = next(
        (p, name, size)
        for p in metadata.partitions()
        for name, size in metadata.list_files(p).items()
        if ".log." in name
    )
    table.list_files(partition, {log: FileEntry(size + 5)})
    (found,) = table.found()
    assert (found.partition_type, found.file, found.what) == (
        "files",
        log,
        f"listed with {size + 5} bytes, but it has {size}",
    )


@pytest.mark.parametrize("version", VERSIONS)
def test_a_file_that_is_listed_in_the_wrong_partition(golden: Golden, version: str) -> None:
    table = metadata_snapshot(golden, version, "insert_overwrite_table")
    (right, name), wrong = next(table.base_files()), table.metadata.partitions()[-1]
    size = (table.path / right / name).stat().st_size
    table.list_files(right, {name: FileEntry(0, is_deleted=True)})
    table.list_files(wrong, {name: FileEntry(size)})
    assert {(item.partition_type, item.partition, item.file, item.what) for item in table.found()} == {
        ("files", right, name, f"not listed: {size} bytes of a completed commit"),
        ("files", wrong, name, "listed, but it is not there"),
        ("files", wrong, name, f"listed in partition {wrong!r}, but it is in {right!r}"),
    }


@pytest.mark.parametrize(("version", "name"), BASIC)
def test_a_partition_that_is_not_in_the_list(golden: Golden, version: str, name: str) -> None:
    table = metadata_snapshot(golden, version, name)
    partition = table.metadata.partitions()[1]
    entries = {partition_key(partition): FileEntry(0, is_deleted=True)}
    table.write({"files": [(ALL_PARTITIONS, files_datum(FilesRecord(ALL_PARTITIONS, RecordType.PARTITIONS, entries)))]})
    assert partition not in table.metadata.partitions()
    found = [item for item in table.found() if item.partition_type == "files"]
    what = "the partition is not in the list of partitions, and has files of completed commits"
    assert [(item.partition, item.file, item.what) for item in found] == [(partition, None, what)]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_partition_that_is_not_there(golden: Golden, version: str) -> None:
    table = metadata_snapshot(golden, version, "cow_basic")
    entries = {"2031-01-01": FileEntry(0)}
    table.write({"files": [(ALL_PARTITIONS, files_datum(FilesRecord(ALL_PARTITIONS, RecordType.PARTITIONS, entries)))]})
    (found,) = table.found()
    assert (found.partition_type, found.partition, found.what) == (
        "files",
        "2031-01-01",
        "the partition is in the list of partitions, but it is not there",
    )


@pytest.mark.parametrize("version", VERSIONS)
def test_a_partition_whose_folder_is_gone(golden: Golden, version: str) -> None:
    table = metadata_snapshot(golden, version, "savepoint_cow")
    partition = table.metadata.partitions()[0]
    names = {name for place, name in table.base_files() if place == partition}
    shutil.rmtree(table.path / partition)
    assert {item.file for item in table.found() if item.partition == partition} == {None, *names}


@pytest.mark.parametrize("version", VERSIONS)
def test_missing_files_are_not_judged_while_something_deletes_them(golden: Golden, version: str) -> None:
    table = metadata_snapshot(golden, version, "savepoint_cow")
    table.list_files(table.metadata.partitions()[0], {"gone.parquet": FileEntry(77)})
    context = table.context
    context.active.create_requested("29990101000000000", "clean", b"plan")
    context.active.to_inflight("29990101000000000", "clean")
    report = table.report()
    assert report.is_clean
    (skipped,) = report.not_checked
    assert (skipped.partition_type, skipped.why) == (
        "files",
        "listed files that are missing: clean 29990101000000000 is inflight and may delete them",
    )


@pytest.mark.parametrize("version", VERSIONS)
def test_what_an_attempt_at_a_task_left_needs_no_entry(golden: Golden, version: str) -> None:
    """The commit does not name it."""
    table = metadata_snapshot(golden, version, "cow_basic")
    partition, file = table.latest_base()
    file_id, _, rest = file.split("_")
    shutil.copy(table.path / partition / file, table.path / partition / f"{file_id}_7-7-7_{rest}")
    assert table.found() == []


@pytest.mark.parametrize("version", VERSIONS)
def test_a_damaged_base_file_does_not_hide_the_rest(golden: Golden, version: str) -> None:
    table = metadata_snapshot(golden, version)
    partition, file = table.latest_base()
    path = table.path / partition / file
    size = path.stat().st_size
    path.write_bytes(path.read_bytes()[: size // 2])
    table.list_files(table.metadata.partitions()[1], {"gone.parquet": FileEntry(77)})
    found = table.found()
    files = [(item.partition, item.file, item.what.split(":")[0]) for item in found if item.partition_type == "files"]
    assert (partition, file, "cannot be read") in files
    assert (partition, file, f"listed with {size} bytes, but it has {size // 2}") in files
    assert (partition, file.split("_")[0], "the rows of the file group cannot be read") in files
    assert (table.metadata.partitions()[1], "gone.parquet", "listed, but it is not there") in files
    assert len(files) == 4
    assert {item.partition for item in found if item.partition_type == "record_index"} == {partition}
    assert all(item.what.endswith("no row has it") for item in found if item.partition_type == "record_index")


@pytest.mark.parametrize("version", VERSIONS)
def test_a_damaged_log_file_does_not_hide_the_rest(golden: Golden, version: str) -> None:
    table = metadata_snapshot(golden, version, "mdt_all_mor")
    partition = table.metadata.partitions()[0]
    log = next(name for name in table.metadata.list_files(partition) if ".log." in name)
    path = table.path / partition / log
    path.write_bytes(b"x" * path.stat().st_size)
    assert any(item.partition_type == "files" and item.partition == partition for item in table.found())
