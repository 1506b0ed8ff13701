"""hudictl timeline, show and files on tables that real Hudi wrote."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.golden_data import GoldenCase
from tests.unit.hudi_cli.runner import hudictl

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
    assert [sorted(instant) for instant in instants] == [["action", "completion_time", "requested_time", "state"]] * 6
    assert [(instant["action"], instant["state"]) for instant in instants] == [
        *[("deltacommit", "completed")] * 3,
        ("compaction", "requested"),
        *[("deltacommit", "completed")] * 2,
    ]
    assert [instant["requested_time"] for instant in instants] == sorted(instant["requested_time"] for instant in instants)


def test_a_completed_compaction_is_shown_as_its_own_file_says(golden: Golden) -> None:
    table = golden("6", "mor_compaction_requested").after()
    (instant,) = hudictl("timeline", table, "--json", "--action", "commit").document["instants"]
    assert (instant["action"], instant["state"], instant["requested_time"]) == ("commit", "completed", compaction_instant(table))


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
    assert len(hudictl("timeline", golden("6", "mor_compaction_requested").table, "--json", *filters).document["instants"]) == count


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


def test_archived_is_refused_in_words(golden: Golden) -> None:
    done = hudictl("timeline", golden("6", "mor_compaction_requested").table, "--json", "--archived")
    assert (done.code, done.error["type"], done.error["message"]) == (2, "UnsupportedError", "--archived is not in this release")


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


def test_show_refuses_an_instant_that_is_not_there(golden: Golden) -> None:
    done = hudictl("show", golden("6", "mor_compaction_requested").table, "20200101000000000", "--json")
    assert done.code == 2
    assert "20200101000000000" in done.error["message"]


@pytest.mark.parametrize("metadata", ["auto", "on", "off"])
def test_files_lists_every_slice(golden: Golden, metadata: str) -> None:
    table = golden("6", "mor_compaction_requested").table
    slices = hudictl("files", table, "--json", "--metadata", metadata).document["slices"]
    assert [sorted(item) for item in slices] == [["base_file", "base_instant", "bytes", "file_id", "log_files", "partition"]] * 3
    for item in slices:
        files = [item["base_file"], *item["log_files"]]
        assert item["bytes"] == sum((table / item["partition"] / name).stat().st_size for name in files)


def test_files_of_one_partition(golden: Golden) -> None:
    table = golden("6", "mor_compaction_requested").table
    (item,) = hudictl("files", table, "--json", "--partition", "2024-01-02").document["slices"]
    assert item["partition"] == "2024-01-02"
    people = hudictl("files", table, "--partition", "2024-01-02")
    assert "1 file slices" in people.out
    assert item["file_id"] in people.out


def test_files_as_of_is_refused_in_words(golden: Golden) -> None:
    done = hudictl("files", golden("6", "mor_compaction_requested").table, "--as-of", "2024", "--json")
    assert (done.code, done.error["message"]) == (2, "--as-of is not in this release")
