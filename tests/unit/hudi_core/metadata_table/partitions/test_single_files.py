"""The partition type `files`: the listing after commits, cleans, rollbacks and restores."""

from __future__ import annotations

from typing import Any

import pytest

from hudi_core.errors import CorruptFileError, FormatError
from hudi_core.metadata_table.partitions.registry import merge_data
from hudi_core.metadata_table.partitions.single_files import FilesPartition, initial_listing, merge_files
from hudi_core.metadata_table.record import ALL_PARTITIONS
from hudi_core.metadata_table.records.file_statistics import (
    CommitUpdate,
    DataFileRef,
    FileChanges,
    FileStatistics,
    Record,
)
from hudi_core.timeline.actions.write_stats import WriteStat
from tests.support.clean_updates import BASE, INDEXED, LOG, records
from tests.support.golden_metadata_cells import GoldenCells, plain_datum
from tests.support.golden_statistics import Golden, compared_commits

FILES = FilesPartition("files", INDEXED)


def listed(found: Any) -> dict[str, dict[str, int | None]]:
    """By key the sizes of files; None is a deletion."""
    return {
        key: {
            name: None if entry["isDeleted"] else entry["size"]
            for name, entry in plain_datum(datum)["filesystemMetadata"].items()
        }
        for key, datum in found
    }


@pytest.mark.parametrize(("version", "case"), [("6", "mor_compacted"), ("8", "clustered_cow"), ("9", "mdt_all_mor")])
def test_the_records_of_commits_are_those_that_hudi_wrote(golden: Golden, version: str, case: str) -> None:
    count, found = compared_commits(GoldenCells(golden(version, case).table), "files")
    assert count > 0
    assert found == []


def test_a_commit_lists_its_files_and_those_of_its_changes() -> None:
    stat = WriteStat("f1", f"p1/{BASE}", "p1", "null", 1, 0, 0, 1, 9, 9, cdc_stats=((f"p1/{LOG}.cdc", 5),))
    found = list(FILES.of_commit(CommitUpdate("1", "UPSERT", {"p1": (stat,), "p2": ()}, ())))
    assert listed(found) == {ALL_PARTITIONS: {"p1": 0, "p2": 0}, "p1": {BASE: 9, f"{LOG}.cdc": 5}, "p2": {}}
    assert [plain_datum(datum)["type"] for _, datum in found] == [1, 2, 2]


def test_a_clean_lists_deleted_files_and_partitions() -> None:
    found = dict(records({"files"})["files"])
    assert found["p1"]["filesystemMetadata"] == {name: {"size": 0, "isDeleted": True} for name in (BASE, LOG)}
    assert found["p2"]["filesystemMetadata"] == {}
    assert (found[ALL_PARTITIONS]["type"], found[ALL_PARTITIONS]["filesystemMetadata"]) == (
        1,
        {"p2": {"size": 0, "isDeleted": True}},
    )


def test_a_rollback_lists_its_log_files_and_removes_deleted_ones_but_no_base_file() -> None:
    """The failed instant's base files go with its blocks."""
    changes = FileChanges({"p1": {f"{LOG}-2": 7}}, {"p1": frozenset({BASE, LOG}), "p2": frozenset({BASE})})
    assert listed(FILES.of_rollback(changes)) == {"p1": {f"{LOG}-2": 7, LOG: None}}
    assert listed(FILES.of_rollback(FileChanges())) == {}
    with pytest.raises(FormatError, match="append to a file and delete it"):
        list(FILES.of_rollback(FileChanges({"p1": {LOG: 7}}, {"p1": frozenset({LOG})})))


def test_a_restore_makes_the_listing_that_of_the_storage() -> None:
    changes = FileChanges({"p1": {LOG: 7}}, {"p1": frozenset({BASE}), "p2": frozenset({BASE})}, frozenset({"p2"}))
    assert listed(FILES.of_restore("1", changes)) == {
        "p1": {LOG: 7, BASE: None},
        "p2": {BASE: None},
        ALL_PARTITIONS: {"p2": None},
    }


def test_it_is_initialized_with_all_files_by_partition() -> None:
    files = [
        FileStatistics(DataFileRef(partition, name, size, is_base=True))
        for partition, name, size in (("p1", BASE, 9), ("", BASE, 8), ("p1", LOG, 5))
    ]
    expected = {ALL_PARTITIONS: {"p1": 0, ".": 0}, "p1": {BASE: 9, LOG: 5}, ".": {BASE: 8}}
    assert listed(FILES.initial("1", files)) == listed(initial_listing({"p1": {BASE: 9, LOG: 5}, "": {BASE: 8}}))
    assert listed(FILES.initial("1", files)) == expected
    with pytest.raises(FormatError, match="0 bytes"):
        list(initial_listing({"p1": {BASE: 0}}))


def test_a_compaction_merges_lists() -> None:
    def record(**sizes: int | None) -> Record:
        entries = {name: {"size": size or 0, "isDeleted": size is None} for name, size in sizes.items()}
        return "p1", {"type": 2, "filesystemMetadata": entries}

    (_, older), (_, newer) = record(a=5, b=6, c=7), record(a=4, b=None, d=None)
    assert older is not None
    assert newer is not None
    merged = merge_data("p1", plain_datum(older), plain_datum(newer), path="f")
    assert merged == merge_files("p1", plain_datum(older), plain_datum(newer), path="f")
    assert listed([("p1", merged)]) == {"p1": {"a": 5, "c": 7, "d": None}}
    with pytest.raises(CorruptFileError, match="do not merge"):
        merge_files("p1", {"type": 1, "filesystemMetadata": {}}, plain_datum(newer), path="f")
