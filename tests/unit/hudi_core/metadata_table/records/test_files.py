"""What commits and rollbacks add to the `files` partition, and how records merge."""

from __future__ import annotations

import pytest

from hudi_core.codec.hfile.reader import HFileReader
from hudi_core.errors import CorruptFileError, FormatError
from hudi_core.metadata_table.record import (
    ALL_PARTITIONS,
    FileEntry,
    FilesRecord,
    MetadataCodec,
    RecordType,
    files_record,
)
from hudi_core.metadata_table.records.files import (
    commit_records,
    live_entries,
    merge,
    partition_key,
    partition_of_key,
    rollback_records,
)
from hudi_core.timeline.actions.commit import decode_commit
from hudi_core.timeline.actions.content import decode_any
from hudi_core.timeline.actions.write_stats import WriteStat
from tests.support.golden_data import golden_cases
from tests.support.hfiles import golden_members, log_hfiles

DELETED = FileEntry(0, is_deleted=True)


def stat(partition: str, path: str, size: int, cdc: tuple[tuple[str, int], ...] = ()) -> WriteStat:
    return WriteStat("id", path, partition, "null", 1, 0, 0, 1, size, size, cdc_stats=cdc)


def files(entries: dict[str, FileEntry], key: str = "p") -> FilesRecord:
    return FilesRecord(key, RecordType.FILES, entries)


def by_key(records: list[FilesRecord]) -> dict[str, FilesRecord]:
    return {record.key: record for record in records}


def golden_records(case: str) -> dict[str, dict[str, FilesRecord]]:
    """The records that real Hudi logged in `files`, by instant and key."""
    found: dict[str, dict[str, FilesRecord]] = {}
    for name, content, block in log_hfiles(case):
        if name.split("/")[-2:-1] == ["files"] and "/.hoodie/metadata/" in name:
            codec = MetadataCodec(block.schema or "", path=name)
            records = [
                files_record(*codec.decode(*item), path=name) for item in HFileReader.of_bytes(content, name).items()
            ]
            found.setdefault(block.instant_time or "", {}).update(by_key(records))
    return found


def test_commits_give_the_records_of_real_hudi() -> None:
    seen = 0
    for case in golden_cases("6"):
        logged = golden_records(case)
        for name, data in golden_members(case):
            folder, _, file = name.rpartition("/")
            instant, _, action = file.partition(".")
            if (
                folder.endswith("/.hoodie")
                and "/metadata/" not in name
                and action in ("commit", "deltacommit", "replacecommit")
                and instant in logged
            ):
                metadata = decode_commit(data, path=name)
                assert by_key(commit_records(metadata.partition_to_write_stats)) == logged[instant], name
                seen += 1
    assert seen > 60


def test_rollbacks_give_the_records_of_real_hudi() -> None:
    seen = 0
    for case in golden_cases("6"):
        logged = golden_records(case)
        for name, data in golden_members(case):
            instant, _, action = name.rsplit("/", 1)[-1].partition(".")
            if action == "rollback" and "/metadata/" not in name and instant in logged:
                appended: dict[str, dict[str, int]] = {}
                for partition, part in decode_any(data, path=name)["partitionMetadata"].items():
                    if part["rollbackLogFiles"]:
                        paths = {**part["logFilesFromFailedCommit"], **part["rollbackLogFiles"]}
                        appended[partition] = {path.rsplit("/", 1)[-1]: size for path, size in paths.items()}
                assert by_key(rollback_records(appended)) == logged[instant], name
                seen += 1
    assert seen


def test_a_commit_lists_its_partitions_and_files() -> None:
    cdc = ((".f_1.log.1_0-0-0.cdc", 7),)
    records = by_key(
        commit_records({"a/b": [stat("a/b", "a/b/x", 5), stat("a/b", "a/b/x", 9), stat("a/b", "a/b/y", 4)], "c": []})
    )
    assert records[ALL_PARTITIONS] == FilesRecord(
        ALL_PARTITIONS, RecordType.PARTITIONS, {"a/b": FileEntry(0), "c": FileEntry(0)}
    )
    assert records["a/b"] == files({"x": FileEntry(9), "y": FileEntry(4)}, "a/b")
    assert records["c"] == files({}, "c")
    root = by_key(commit_records({"": [stat("", "x", 5, cdc)]}))
    assert root[ALL_PARTITIONS].entries == {".": FileEntry(0)}
    assert root["."] == files({"x": FileEntry(5), cdc[0][0]: FileEntry(7)}, ".")


@pytest.mark.parametrize("path", ["q/x", "px", "p/", "p", "p/d/x", ""])
def test_a_stat_outside_its_partition_is_refused(path: str) -> None:
    with pytest.raises(FormatError, match="elsewhere"):
        commit_records({"p": [stat("p", path, 5)]})


@pytest.mark.parametrize("size", [0, -1])
def test_an_empty_file_cannot_be_listed(size: int) -> None:
    with pytest.raises(FormatError, match="cannot be listed"):
        commit_records({"p": [stat("p", "p/x", size)]})


def test_a_rollback_appends_and_deletes() -> None:
    records = rollback_records({"p": {"log": 5}}, {"p": ["base"], "": ["other"]})
    assert records == [files({"other": DELETED}, "."), files({"log": FileEntry(5), "base": DELETED})]
    with pytest.raises(FormatError, match="append to a file and delete it"):
        rollback_records({"p": {"log": 5}}, {"p": ["log"]})


@pytest.mark.parametrize(
    ("older", "newer", "merged"),
    [
        ({}, {"f": FileEntry(5)}, {"f": FileEntry(5)}),
        ({"f": FileEntry(5)}, {}, {"f": FileEntry(5)}),
        ({"f": FileEntry(5)}, {"f": FileEntry(3)}, {"f": FileEntry(5)}),
        ({"f": FileEntry(3)}, {"f": FileEntry(5)}, {"f": FileEntry(5)}),
        ({"f": FileEntry(3)}, {"f": DELETED}, {}),
        ({}, {"f": DELETED}, {"f": DELETED}),
        ({"f": DELETED}, {"f": DELETED}, {"f": DELETED}),
        ({"f": DELETED}, {"f": FileEntry(5)}, {"f": FileEntry(5)}),
        (
            {"f": FileEntry(1), "g": FileEntry(2)},
            {"g": DELETED, "h": FileEntry(3)},
            {"f": FileEntry(1), "h": FileEntry(3)},
        ),
    ],
)
def test_merge(older: dict[str, FileEntry], newer: dict[str, FileEntry], merged: dict[str, FileEntry]) -> None:
    assert merge(files(older), files(newer), path="f") == files(merged)


def test_a_tombstone_that_met_no_file_in_the_logs_meets_it_in_the_base_file() -> None:
    base, log = files({"f": FileEntry(3)}), files({"f": DELETED})
    assert live_entries(merge(base, log, path="f")) == {}
    assert live_entries(log) == live_entries(None) == {}


def test_records_of_different_keys_or_types_do_not_merge() -> None:
    for other in (files({}, "q"), FilesRecord("p", RecordType.PARTITIONS, {})):
        with pytest.raises(CorruptFileError, match="do not merge") as caught:
            merge(files({}), other, path="x.log")
        assert caught.value.path == "x.log"


def test_the_key_of_a_table_without_partitions() -> None:
    assert (partition_key(""), partition_of_key("."), partition_key("a"), partition_of_key("a")) == (".", "", "a", "a")
