from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_core.errors import TimelineError
from hudi_core.timeline.instant import Instant, State, completed_action
from hudi_core.timeline.naming import timeline_of
from hudi_core.timeline.timeline import Timeline

NAMES = [
    "hoodie.properties",
    "003.commit.requested", "003.inflight", "003.commit",
    "005.compaction.requested", "005.compaction.inflight", "005.commit",
    "006.deltacommit.requested", "006.deltacommit.inflight", "006.deltacommit",
    "007.compaction.requested", "007.compaction.inflight",
    "009.compaction.requested",
    "010.logcompaction.requested",
    "011.replacecommit.requested", "011.replacecommit.inflight",
    "012.clean",
    "013.inflight", "013.commit.requested",
]  # fmt: skip


def test_completed_savepoints_keep_their_commits() -> None:
    names = ["003.commit", "003.savepoint.inflight", "003.savepoint", "006.deltacommit", "006.savepoint.inflight"]
    assert timeline_of(names).savepoints() == {"003"}


def test_an_unfinished_savepoint_says_nothing_of_its_commit() -> None:
    timeline = timeline_of(["003.commit", "003.savepoint.inflight", "006.indexing.requested", "007.inflight"])
    assert timeline.pending().requested_times == {"003", "006", "007"}
    assert timeline.pending_changes().requested_times == {"006", "007"}


def test_queries() -> None:
    timeline = timeline_of(NAMES)

    def times(part: Timeline) -> list[str]:
        return [instant.requested_time for instant in part]

    assert times(timeline.completed()) == ["003", "005", "006", "012"]
    assert times(timeline.pending()) == ["007", "009", "010", "011", "013"]
    assert times(timeline.commits()) == ["003", "005", "006"]
    assert times(timeline.pending_compactions()) == ["007", "009"]
    assert times(timeline.pending_log_compactions()) == ["010"]
    assert times(timeline.visible_writes()) == ["003", "005", "006", "007", "009"]
    assert times(timeline.before("006")) == ["003", "005"]
    assert times(timeline.up_to("006")) == ["003", "005", "006"]
    assert times(timeline.after("011")) == ["012", "013"]
    assert timeline.completed().first() == Instant("003", "commit", State.COMPLETED)
    assert timeline.last_completed() == Instant("012", "clean", State.COMPLETED)
    assert timeline.contains("012")
    assert not timeline.contains("004")
    assert repr(timeline.before("004")).startswith("Timeline([Instant(requested_time='003'")
    assert Timeline().last_completed() is None
    assert Timeline().start is None


def test_find_takes_either_name_of_a_compaction() -> None:
    timeline = timeline_of(NAMES)
    assert (
        timeline.find("005", "compaction")
        == timeline.find("005", "commit")
        == Instant("005", "commit", State.COMPLETED)
    )
    assert timeline.find("005", "clean") is None
    with pytest.raises(TimelineError, match=r"no clean at instant 005"):
        timeline.get("005", "clean")


def test_older_than_the_start_is_archived() -> None:
    commits = timeline_of(NAMES).commits()
    assert commits.contains_or_before_start("001")
    assert commits.contains_or_before_start("005")
    assert not commits.contains_or_before_start("004")
    assert not commits.contains_or_before_start("013")
    assert not Timeline().contains_or_before_start("001")


def test_a_saved_commit_that_archival_left_behind_is_not_the_start() -> None:
    timeline = timeline_of(["001.commit", "001.savepoint", "004.commit"])
    assert timeline.start == "004"
    assert timeline.contains_or_before_start("002")


def test_one_listing_of_names_answers_a_sensor() -> None:
    timeline = timeline_of(iter(NAMES))
    assert [(instant.requested_time, instant.state) for instant in timeline.pending().of_actions("compaction")] == [
        ("007", State.INFLIGHT),
        ("009", State.REQUESTED),
    ]
    found = {time: timeline.find(time, "compaction") for time in ("005", "007", "008", "009")}
    states = {time: None if instant is None else instant.state for time, instant in found.items()}
    assert states == {"005": State.COMPLETED, "007": State.INFLIGHT, "008": None, "009": State.REQUESTED}


_instants = st.builds(
    Instant,
    st.integers(1, 30).map(lambda number: f"{number:03d}"),
    st.sampled_from(["commit", "deltacommit", "compaction", "clean", "savepoint"]),
    st.sampled_from(State),
)


@given(st.lists(_instants, unique_by=lambda instant: (instant.requested_time, completed_action(instant.action))))
def test_partitions_of_a_timeline(instants: list[Instant]) -> None:
    timeline = Timeline(instants)
    assert sorted((*timeline.completed(), *timeline.pending()), key=lambda instant: instant.sort_key) == list(timeline)
    assert Timeline(reversed(instants)) == timeline
    assert hash(Timeline(instants)) == hash(timeline)
    assert set(timeline.commits()) <= set(timeline.visible_writes()) <= set(timeline)


LAYOUT_2 = [
    "03_20.commit",
    "05_10.deltacommit",
    "06.deltacommit.inflight",
    "07_30.clean",
    "09_30.replacecommit",
    "10.clustering.requested",
]


@given(
    st.lists(
        st.tuples(
            st.integers(10, 99), st.integers(10, 99), st.sampled_from(["commit", "clean", "savepoint", "compaction"])
        ),
        max_size=30,
    )
)
def test_listings_give_the_timeline_in_order(files: list[tuple[int, int, str]]) -> None:
    names = [f"{time}_{completion}.{completed_action(action)}" for time, completion, action in files]
    names += [f"{time}.{action}.inflight" for time, _, action in files]
    for layout in (1, 2):
        timeline = timeline_of(names, layout)
        assert timeline == Timeline(reversed(timeline.instants))
        assert timeline.commits() == Timeline(timeline.commits().instants)
