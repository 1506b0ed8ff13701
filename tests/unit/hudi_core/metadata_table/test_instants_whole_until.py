from __future__ import annotations

from collections.abc import Iterable

import pytest

from hudi_core.config.table_config import TableConfig
from hudi_core.metadata_table.instants import PREFIX, completed_up_to, marked_until, marks, reaches_back
from hudi_core.storage.base import FileInfo
from hudi_core.timeline.instant import Action, Instant, State
from hudi_core.timeline.timeline import Timeline

FOLDER = (FileInfo("i/.hoodie_partition_metadata", 90, 77.6), FileInfo("i/secondary-index-0_0-0-0_5.hfile", 9, 99.0))


def commit(requested: int, completed: int | None = None, action: str = Action.DELTA_COMMIT) -> Instant:
    """One that completed at `completed`, or is pending."""
    if completed is None:
        return Instant(str(requested), action, State.INFLIGHT)
    return Instant(str(requested), action, State.COMPLETED, str(completed))


def timeline(*instants: Instant) -> Timeline:
    return Timeline(instants)


@pytest.mark.parametrize(
    ("instants", "moment", "expected"),
    [
        ([], None, None),
        ([commit(10, 11), commit(20, 21)], None, "20"),
        ([commit(10, 11), commit(20), commit(30, 31)], None, "10"),
        ([commit(20), commit(30, 31)], None, None),
        ([commit(10, 11), commit(15, action=Action.COMPACTION), commit(20, 21)], None, "20"),
        ([commit(10, 11), commit(15, action=Action.CLUSTERING), commit(20, 21)], None, "10"),
        ([commit(10, 11), commit(20, 29), commit(24, 25), commit(30, 31)], "27", "10"),
        ([commit(10, 11), commit(20, 21), commit(30, 31)], "25", "20"),
        ([commit(10, 19)], "15", None),
    ],
)
def test_the_last_commit_before_all_that_were_under_way(
    instants: Iterable[Instant], moment: str | None, expected: str | None
) -> None:
    """A compaction changes no row: that it is pending does not matter."""
    assert completed_up_to(timeline(*instants), moment) == expected


def properties(**raw: str) -> TableConfig:
    return TableConfig.of(
        {"hoodie.table.name": "t", "hoodie.table.type": "COPY_ON_WRITE", "hoodie.table.version": "8"} | raw
    )


def test_a_mark_holds_for_the_folder_that_it_was_made_of() -> None:
    found = marks(timeline(commit(10, 11)), {"i": FOLDER})
    assert found == {f"{PREFIX}i": "10:77"}
    config = properties(**found)
    assert marked_until(config, "i", FOLDER) == "10"
    assert marked_until(config, "j", FOLDER) is None
    assert marked_until(config, "i", [FileInfo("i/.hoodie_partition_metadata", 90, 78.0)]) is None
    assert marked_until(config, "i", []) is None


@pytest.mark.parametrize("text", ["", "10", "10:", ":77", "ten:77", "10:x", "10:77:1", "-1:77"])
def test_what_is_no_mark_says_nothing(text: str) -> None:
    assert marked_until(properties(**{f"{PREFIX}i": text}), "i", FOLDER) is None


def test_nothing_is_marked_without_a_completed_commit_or_a_folder() -> None:
    assert marks(timeline(), {"i": FOLDER}) == {}
    assert marks(timeline(commit(10, 11)), {"i": FOLDER[1:]}) == {}


def saved(time: int) -> Instant:
    return commit(time, time + 1, Action.SAVEPOINT)


@pytest.mark.parametrize(
    ("instants", "expected"),
    [
        ([], False),
        ([commit(20, 21), commit(30, 31)], True),
        ([commit(21, 22), commit(30, 31)], False),
        ([commit(10, 11), saved(10), commit(30, 31)], False),
        ([commit(10, 11), saved(10), commit(20, 21), commit(30, 31)], True),
        ([commit(10, 11), commit(15, action=Action.RESTORE), commit(30, 31)], True),
        ([commit(10, 11), commit(25, 26, Action.RESTORE), commit(30, 31)], False),
        ([commit(10, 11), commit(25, action=Action.RESTORE)], False),
    ],
)
def test_what_came_after_an_instant_is_all_on_the_timeline(instants: Iterable[Instant], expected: bool) -> None:
    assert reaches_back(timeline(*instants), "20") is expected
