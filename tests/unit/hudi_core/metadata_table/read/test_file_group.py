"""Slices of metadata-table file groups."""

from __future__ import annotations

from hudi_core.metadata_table.read.file_group import MergedSlice, merged_slices
from hudi_core.storage.base import FileInfo
from hudi_core.timeline.instant import Action, Instant, State
from hudi_core.timeline.timeline import Timeline

FOLDER = ".hoodie/metadata/files"


def names(found: list[MergedSlice]) -> list[tuple[str, str | None, list[str]]]:
    return [
        (item.file_id, None if item.base_file is None else item.base_file.name, [log.name for log in item.logs])
        for item in found
    ]


def slices(timeline: Timeline, layout: int, *files: str) -> list[tuple[str, str | None, list[str]]]:
    return names(merged_slices(FOLDER, [FileInfo(f"{FOLDER}/{name}", 5, 1.0) for name in files], timeline, layout))


def done(time: str, action: str = Action.DELTA_COMMIT, completed: str | None = None) -> Instant:
    return Instant(time, action, State.COMPLETED, completed)


def test_layout_1_reads_a_pending_compactions_slice_with_the_one_before() -> None:
    timeline = Timeline([done("10"), done("20"), Instant("30", Action.COMPACTION, State.REQUESTED), done("40")])
    files = (
        "a-0_0-1-2_10.hfile",
        ".a-0_10.log.1_0-0-0",
        ".a-0_10.log.2_0-0-1",
        ".a-0_30.log.1_0-0-2",
        "a-0_0-1-3_30.hfile",
        ".b-0_10.log.1_0-0-0",
    )
    logs = [".a-0_10.log.1_0-0-0", ".a-0_10.log.2_0-0-1", ".a-0_30.log.1_0-0-2"]
    assert slices(timeline, 1, *files) == [("a-0", "a-0_0-1-2_10.hfile", logs), ("b-0", None, [".b-0_10.log.1_0-0-0"])]
    compacted = Timeline([*timeline.completed(), done("30", Action.COMMIT)])
    assert slices(compacted, 1, *files)[0] == ("a-0", "a-0_0-1-3_30.hfile", [".a-0_30.log.1_0-0-2"])


def test_layout_2_goes_by_when_a_logs_instant_completed() -> None:
    files = (
        "a-0_0-1-2_30.hfile",
        ".a-0_10.log.1_0-0-0",
        ".a-0_20.log.1_0-0-1",
        ".a-0_25.log.1_0-0-2",
        ".a-0_40.log.1_0-0-3",
    )
    timeline = Timeline(
        [done("10", completed="11"), done("20", completed="29"), done("25", completed="35"), done("40", completed="41")]
    )
    compacted = Timeline([*timeline, done("30", Action.COMMIT, "34")])
    assert slices(compacted, 2, *files) == [
        ("a-0", "a-0_0-1-2_30.hfile", [".a-0_25.log.1_0-0-2", ".a-0_40.log.1_0-0-3"])
    ]
    assert slices(timeline, 2, *files) == [("a-0", None, list(files[1:]))], "the compaction did not complete"


def test_a_log_of_an_archived_instant_joins_the_newest_slice() -> None:
    timeline = Timeline([done("30", Action.COMMIT, "34"), done("40", completed="41")])
    assert slices(timeline, 2, "a-0_0-1-2_30.hfile", ".a-0_10.log.1_0-0-0") == [
        ("a-0", "a-0_0-1-2_30.hfile", [".a-0_10.log.1_0-0-0"])
    ]


def test_other_files_and_empty_folders() -> None:
    assert slices(Timeline([done("10")]), 1, ".hoodie_partition_metadata", "x.txt") == []
    found = merged_slices(FOLDER, [FileInfo(f"{FOLDER}/.a-0_10.log.1_0-0-0", 80, 3.0)], Timeline([done("10")]), 1)
    assert found[0].logs == (FileInfo(f"{FOLDER}/.a-0_10.log.1_0-0-0", 80, 0.0),)
