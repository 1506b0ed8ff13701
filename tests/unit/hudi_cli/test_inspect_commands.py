"""hudictl timeline, show and files on tables that real Hudi wrote."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from hudi_core.timeline.instant import COMMIT_ACTIONS
from tests.support.golden_data import GoldenCase
from tests.support.hudictl_runner import hudictl

Golden = Callable[[str, str], GoldenCase]


def compaction_instant(table: Path) -> str:
    (plan,) = (table / ".hoodie").glob("*.compaction.requested")
    return plan.name.split(".")[0]


def test_timeline_in_json(golden: Golden) -> None:
    table = golden("6", "mor_compaction_requested").table
    done = hudictl("timeline", table, "--json")
    assert (done.code, done.err) == (0, "")
    document = done.document
    assert (document["table"], document["version"]) == (str(table), 6)
    instants = document["instants"]
    names = ["action", "bytes", "completion_time", "operation", "requested_time", "rows", "state"]
    assert [sorted(instant) for instant in instants] == [names] * 6
    assert [(instant["action"], instant["state"]) for instant in instants] == [
        *[("deltacommit", "completed")] * 3,
        ("compaction", "requested"),
        *[("deltacommit", "completed")] * 2,
    ]
    assert [instant["requested_time"] for instant in instants] == sorted(
        instant["requested_time"] for instant in instants
    )


def test_a_completed_compaction_is_shown_as_its_own_file_says(golden: Golden) -> None:
    table = golden("6", "mor_compaction_requested").after()
    (instant,) = hudictl("timeline", table, "--json", "--action", "commit").document["instants"]
    assert (instant["action"], instant["state"], instant["requested_time"]) == (
        "commit",
        "completed",
        compaction_instant(table),
    )


@pytest.mark.parametrize(
    ("filters", "count"),
    [
        (["--state", "requested"], 1),
        (["--state", "completed"], 5),
        (["--state", "inflight"], 0),
        (["--action", "compaction"], 1),
        (["--action", "deltacommit", "--state", "requested"], 0),
        (["--action", "clean"], 0),
    ],
)
def test_timeline_filters(golden: Golden, filters: list[str], count: int) -> None:
    assert (
        len(hudictl("timeline", golden("6", "mor_compaction_requested").table, "--json", *filters).document["instants"])
        == count
    )


def test_timeline_for_people(golden: Golden) -> None:
    table = golden("6", "mor_compaction_requested").table
    done = hudictl("timeline", table)
    assert done.code == 0
    assert "6 instants" in done.out
    assert compaction_instant(table) in done.out


def test_an_unknown_action_is_refused_with_the_known_ones(golden: Golden) -> None:
    done = hudictl("timeline", golden("6", "mor_compaction_requested").table, "--json", "--action", "compactoin")
    assert done.code == 2
    assert "compaction" in done.error["remedy"]


@pytest.mark.parametrize("version", ["6", "8", "9"])
def test_archived_instants_stand_among_the_active_ones(golden: Golden, version: str) -> None:
    case = golden(version, "archived_timeline_mor")
    active = hudictl("timeline", case.table, "--json").document["instants"]
    whole = hudictl("timeline", case.table, "--json", "--archived").document["instants"]
    written = [word for step in case.info["operations"] for word in step["new_instants"]]
    assert len(active) < len(whole) == len(written)
    assert [instant for instant in whole if instant in active] == active
    assert [instant["requested_time"] for instant in whole] == sorted(instant["requested_time"] for instant in whole)
    shown = {(instant["requested_time"], instant["action"]) for instant in whole}
    assert shown == {(parts[0], parts[1].partition("(")[0]) for text in written for parts in [text.split()]}
    assert all(instant["state"] == "completed" for instant in whole)
    assert all((instant["completion_time"] is None) == (version == "6") for instant in whole)


def test_archived_instants_are_filtered_and_shown_to_people(golden: Golden) -> None:
    table = golden("9", "archived_timeline_mor").table
    instants = hudictl("timeline", table, "--json", "--archived", "--action", "replacecommit").document["instants"]
    assert [instant["action"] for instant in instants] == ["replacecommit"]
    people = hudictl("timeline", table, "--archived")
    assert (people.code, instants[0]["completion_time"] in people.out) == (0, True)


def test_show_decodes_a_pending_plan(golden: Golden) -> None:
    table = golden("6", "mor_compaction_requested").table
    instant = compaction_instant(table)
    document = hudictl("show", table, instant, "--json").document
    assert (document["instant"], document["metadata"]) == (instant, None)
    assert len(document["plan"]["operations"]) == 3


def test_show_decodes_plan_and_metadata_of_a_completed_one(golden: Golden) -> None:
    table = golden("6", "mor_compaction_requested").after()
    document = hudictl("show", table, compaction_instant(table), "--json").document
    assert len(document["plan"]["operations"]) == 3
    assert document["metadata"]["compacted"] is True
    people = hudictl("show", table, compaction_instant(table))
    assert people.code == 0
    assert "partitionToWriteStats" in people.out


@pytest.mark.parametrize("version", ["6", "8", "9"])
def test_the_timeline_tells_what_commits_wrote(golden: Golden, caplog: pytest.LogCaptureFixture, version: str) -> None:
    """Of the active timeline and of the archive; a damaged file hides no other instant."""
    table = golden(version, "archived_timeline_mor").table
    rows = hudictl("timeline", table, "--json", "--archived").document["instants"]
    commits = [row for row in rows if row["action"] in COMMIT_ACTIONS]
    assert all(row["operation"] and row["bytes"] > 0 for row in commits)
    assert {row["operation"] for row in rows if row["action"] == "clean"} == {None}
    active = hudictl("timeline", table, "--json").document["instants"]
    newest = [row for row in active if row["action"] in COMMIT_ACTIONS][-1]
    shown = hudictl("show", table, newest["requested_time"], "--json").document["metadata"]
    stats = [stat for stats in shown["partitionToWriteStats"].values() for stat in stats]
    assert newest["rows"] == sum(stat["numWrites"] + stat["numDeletes"] for stat in stats)
    (file,) = table.rglob(f"{newest['requested_time']}*.{newest['action']}")
    file.write_bytes(b"{")
    damaged = hudictl("timeline", table, "--json").document["instants"]
    assert [row["rows"] is None for row in damaged].count(True) > [row["rows"] is None for row in active].count(True)
    assert len(damaged) == len(active)
    assert f"what {newest['action']} {newest['requested_time']} wrote is unknown" in caplog.text


@pytest.mark.parametrize("version", ["6", "8", "9"])
def test_show_takes_the_beginning_of_one_instant_alone(golden: Golden, version: str) -> None:
    table = golden(version, "archived_timeline_mor").table
    times = sorted(
        {row["requested_time"] for row in hudictl("timeline", table, "--json", "--archived").document["instants"]}
    )
    for whole in (times[0], times[-1]):
        beginning = next(whole[:size] for size in range(1, 18) if sum(t.startswith(whole[:size]) for t in times) == 1)
        assert hudictl("show", table, beginning, "--json").document["instant"] == whole
    several = hudictl("show", table, times[0][:4], "--json")
    assert (several.code, times[0] in several.error["message"]) == (2, True)
    assert "more digits" in several.error["remedy"]


def test_a_folder_that_is_not_there_is_said_to_be_that(tmp_path: Path) -> None:
    gone, other = hudictl("timeline", tmp_path / "gone", "--json"), tmp_path / "other"
    other.mkdir()
    (other / "file").write_text("")
    assert (gone.code, "the folder does not exist" in gone.error["message"]) == (2, True)
    assert "the file is missing" in hudictl("timeline", other, "--json").error["message"]


def test_show_refuses_an_instant_that_is_not_there(golden: Golden) -> None:
    done = hudictl("show", golden("6", "mor_compaction_requested").table, "20200101000000000", "--json")
    assert done.code == 2
    assert "20200101000000000" in done.error["message"]


@pytest.mark.parametrize("version", ["6", "8", "9"])
def test_show_of_a_commit_that_a_savepoint_holds(golden: Golden, version: str) -> None:
    table = golden(version, "savepoint_mor").table
    (saved,) = hudictl("timeline", table, "--json", "--action", "savepoint").document["instants"]
    document = hudictl("show", table, saved["requested_time"], "--json").document
    assert sorted(document) == ["action", "instant", "metadata", "plan", "savepoint", "state"]
    assert document["action"] == "deltacommit"
    assert document["metadata"]["operationType"]
    assert document["savepoint"]["partitionMetadata"]
    chosen = hudictl("show", table, saved["requested_time"], "--json", "--action", "savepoint").document
    assert (chosen["action"], chosen["metadata"]) == ("savepoint", document["savepoint"])
    people = hudictl("show", table, saved["requested_time"])
    assert {"metadata", "savepoint"} <= set(people.out.splitlines())
    assert hudictl("show", table, saved["requested_time"], "--action", "clean").code == 2


@pytest.mark.parametrize("metadata", ["auto", "on", "off"])
def test_files_lists_every_slice(golden: Golden, metadata: str) -> None:
    table = golden("6", "mor_compaction_requested").table
    slices = hudictl("files", table, "--json", "--metadata", metadata).document["slices"]
    assert [sorted(item) for item in slices] == [
        ["base_file", "base_instant", "bytes", "file_id", "log_files", "partition"]
    ] * 3
    for item in slices:
        files = [item["base_file"], *item["log_files"]]
        assert item["bytes"] == sum((table / item["partition"] / name).stat().st_size for name in files)


def test_files_of_one_partition(golden: Golden) -> None:
    table = golden("6", "mor_compaction_requested").table
    (item,) = hudictl("files", table, "--json", "--partition", "2024-01-02").document["slices"]
    assert item["partition"] == "2024-01-02"
    people = hudictl("files", table, "--partition", "2024-01-02")
    assert "1 file slice," in people.out
    assert item["file_id"] in people.out


@pytest.mark.parametrize("metadata", ["on", "off"])
def test_files_of_a_partition_that_does_not_exist(golden: Golden, metadata: str) -> None:
    table = golden("6", "mor_compaction_requested").table
    done = hudictl("files", table, "--json", "--partition", "2024-01-09", "--metadata", metadata)
    assert (done.code, done.error["type"]) == (2, "ConfigError")
    assert "2024-01-09" in done.error["message"]


@pytest.mark.parametrize("version", ["6", "8", "9"])
def test_show_finds_archived_instants(golden: Golden, version: str) -> None:
    table = golden(version, "archived_timeline_mor").table
    active = {instant["requested_time"] for instant in hudictl("timeline", table, "--json").document["instants"]}
    whole = hudictl("timeline", table, "--json", "--archived").document["instants"]
    archived = [instant for instant in whole if instant["requested_time"] not in active]
    compaction = next(instant for instant in archived if instant["action"] == "commit")
    document = hudictl("show", table, compaction["requested_time"], "--json").document
    assert (document["action"], document["state"]) == ("commit", "completed")
    assert document["metadata"]["operationType"] == "COMPACT"
    assert len(document["plan"]["operations"]) == 3
    delta = next(instant for instant in archived if instant["action"] == "deltacommit")
    document = hudictl("show", table, delta["requested_time"], "--json").document
    assert document["metadata"]["operationType"] == "INSERT"
    assert document["plan"] is None


@pytest.mark.parametrize("version", ["6", "8", "9"])
def test_files_as_of(golden: Golden, version: str) -> None:
    table = golden(version, "cow_basic").table
    instants = [instant["requested_time"] for instant in hudictl("timeline", table, "--json").document["instants"]]
    now = hudictl("files", table, "--json").document["slices"]
    first = hudictl("files", table, "--json", "--as-of", instants[0]).document["slices"]
    assert {item["base_instant"] for item in first} == {instants[0]}
    assert {item["file_id"] for item in first} == {item["file_id"] for item in now}
    assert max(item["base_instant"] for item in now) > instants[0]
    second = (
        f"{instants[0][:4]}-{instants[0][4:6]}-{instants[0][6:8]} "
        f"{instants[0][8:10]}:{instants[0][10:12]}:{instants[0][12:14]}"
    )
    assert hudictl("files", table, "--json", "--as-of", second).document["slices"] == first


@pytest.mark.parametrize("text", ["yesterday", "2024", "", "2026-13-40"])
def test_files_as_of_what_is_no_time(golden: Golden, text: str) -> None:
    done = hudictl("files", golden("6", "mor_compaction_requested").table, "--as-of", text, "--json")
    assert (done.code, done.error["type"]) == (2, "ConfigError")
