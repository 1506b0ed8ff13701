"""Slices of layout 2, by the rules of Hudi 1.x: a log file's name carries its own instant, and its completion decides
the slice.
"""

from __future__ import annotations

import random
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_core.history.archived import ArchivedTimeline
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.timeline.naming import timeline_of
from hudi_core.timeline.timeline import Timeline
from hudi_core.view.file_group import FileGroup
from hudi_core.view.file_system_view import FileSystemView, PendingWork, load_view
from hudi_core.view.listing import StorageListing
from hudi_core.view.slicing import Slicing, build_file_groups
from tests.support.listed_names import F, Listing, base, log, names_of, plan
from tests.support.memory_storage import MemoryStorage
from tests.support.views import view_of


def slicing(timeline: Timeline, archived: dict[str, str] | None = None) -> Slicing:
    """The rule over a timeline; `archived` are completions that an archive knows. Asking for anything else older fails
    the test.
    """
    known = {instant.requested_time: instant.completion_time for instant in timeline if instant.is_completed}
    if archived is not None:
        known |= archived

    def completion_of(instant: str) -> str | None:
        assert archived is not None or instant in known
        return known.get(instant)

    return Slicing(timeline, completion_of)


def group_of(
    *names: str, states: list[str], archived: dict[str, str] | None = None, compactions: tuple[str, ...] = ()
) -> FileGroup:
    pending = [(F, instant) for instant in compactions]
    (group,) = build_file_groups(
        "p", Listing(*names).infos, slicing(timeline_of(states, 2), archived), compactions=pending
    )
    return group


def shown(group: FileGroup) -> dict[str, list[str]]:
    return {item.base_instant: names_of(item) for item in group.slices}


WRITES = ["001_002.deltacommit", "003_004.deltacommit", "005_006.deltacommit"]


def test_a_log_belongs_to_the_base_file_before_its_completion() -> None:
    group = group_of(
        base("001"),
        log("003"),
        log("005"),
        base("007"),
        log("009"),
        states=[*WRITES, "007_008.commit", "009_010.deltacommit"],
    )
    assert shown(group) == {"007": [base("007"), log("009")], "001": [base("001"), log("003"), log("005")]}


def test_a_log_that_was_requested_before_a_compaction_and_completed_after_it_began_is_in_the_new_slice() -> None:
    states = ["001_002.deltacommit", "003_008.deltacommit", "005_006.commit", "005.compaction.requested"]
    assert shown(group_of(base("001"), log("003"), base("005"), states=states)) == {
        "005": [base("005"), log("003")],
        "001": [base("001")],
    }


def test_a_log_that_completes_when_the_base_instant_is_requested_is_in_the_new_slice() -> None:
    states = ["001_002.deltacommit", "003_005.deltacommit", "005_006.commit"]
    assert shown(group_of(base("001"), log("003"), base("005"), states=states))["005"] == [base("005"), log("003")]


def test_logs_without_a_base_file_are_one_slice_from_the_first_on() -> None:
    assert shown(group_of(log("005"), log("003"), log("001"), states=WRITES)) == {
        "001": [log("001"), log("003"), log("005")]
    }


def test_a_log_that_completed_before_every_base_file_starts_a_slice() -> None:
    group = group_of(log("001"), log("003"), base("005"), states=WRITES)
    assert shown(group) == {"005": [base("005")], "001": [log("001"), log("003")]}


def test_files_of_incomplete_instants_are_hidden_one_by_one() -> None:
    states = ["001_002.deltacommit", "003.deltacommit.inflight", "003.deltacommit.requested", "005_006.deltacommit"]
    group = group_of(base("001"), log("003"), log("005"), log("007"), base("009"), states=states)
    assert shown(group) == {"001": [base("001"), log("005")]}
    assert {item.base_instant: names_of(item) for item in group.uncommitted} == {
        "009": [base("009")],
        "007": [log("007")],
        "003": [log("003")],
    }


def test_a_failed_write_does_not_draw_committed_logs_into_its_own_slice() -> None:
    """Hudi 1.x hides them until the rollback: its group fills up with files of every instant, and a slice is seen by
    its base instant.
    """
    failed = ["002.deltacommit.requested", "002.deltacommit.inflight"]
    assert shown(
        group_of(base("001"), base("002"), log("003"), states=["001_001.deltacommit", *failed, "003_004.deltacommit"])
    ) == {"001": [base("001"), log("003")]}
    assert shown(group_of(log("002"), log("003"), states=[*failed, "003_004.deltacommit"])) == {"003": [log("003")]}


COMPACTING = ["001_002.deltacommit", "003_004.deltacommit", "005.compaction.requested", "005.compaction.inflight"]


def test_a_pending_compaction_opens_a_slice_for_what_completes_after_it() -> None:
    states = [*COMPACTING, "0045_006.deltacommit", "007_008.deltacommit"]
    group = group_of(base("001"), log("003"), log("0045"), base("005"), log("007"), states=states, compactions=("005",))
    assert shown(group) == {"005": [log("0045"), log("007")], "001": [base("001"), log("003")]}
    assert [names_of(item) for item in group.uncommitted] == [[base("005")]]


def test_readers_merge_the_two_slices_of_a_pending_compaction_in_scan_order() -> None:
    states = ["001_002.deltacommit", "003_008.deltacommit", "004_0045.deltacommit", "005.compaction.requested"]
    timeline = timeline_of(states, 2)
    listing = Listing(base("001"), log("003"), log("003", tail=".cdc"), log("004"), base("005"))
    view = FileSystemView(listing, timeline, PendingWork({"005": plan("f-0")}), slicing=slicing(timeline))
    (merged,) = view.latest_merged_slices("p")
    assert (merged.base_instant, names_of(merged)) == (
        "001",
        [base("001"), log("003"), log("004"), log("003", tail=".cdc")],
    )
    (latest,) = view.latest_slices("p")
    assert names_of(latest) == [log("003"), log("003", tail=".cdc")]
    (before,) = view.latest_merged_slices("p", as_of="004")
    assert names_of(before) == [base("001"), log("004")]


def test_an_archived_instant_is_committed_and_its_completion_is_read_only_where_it_matters() -> None:
    states = ["009_010.deltacommit", "011_012.commit"]
    one = group_of(base("001"), log("003"), states=states)
    assert shown(one) == {"001": [base("001"), log("003")]}
    both = group_of(
        base("001"), log("003"), log("005"), base("006"), states=states, archived={"003": "004", "005": "007"}
    )
    assert shown(both) == {"006": [base("006"), log("005")], "001": [base("001"), log("003")]}


def test_a_log_of_unknown_completion_is_in_the_newest_slice() -> None:
    assert shown(group_of(base("001"), log("003"), base("006"), states=["009_010.commit"], archived={})) == {
        "006": [base("006"), log("003")],
        "001": [base("001")],
    }


def test_completions_of_another_length_give_way_to_the_requested_time() -> None:
    states = ["001_00000000000000002.deltacommit", "003_00000000000000009.deltacommit", "005_00000000000000010.commit"]
    assert shown(group_of(base("001"), log("003"), base("005"), states=states))["001"] == [base("001"), log("003")]


def test_logs_that_an_upgrade_left_stay_with_the_base_file_that_they_name() -> None:
    timeline = timeline_of(
        ["001.deltacommit", "003.commit", "005_006.deltacommit"], 2, {"001.deltacommit": 4e9, "003.commit": 4e9}
    )
    (group,) = build_file_groups(
        "p", Listing(base("001"), log("001", 2), base("003"), log("005")).infos, slicing(timeline)
    )
    assert shown(group) == {"003": [base("003"), log("005")], "001": [base("001"), log("001", 2)]}


def test_change_data_logs_go_with_the_slice_of_their_commit() -> None:
    states = ["001_002.commit", "003_004.commit"]
    group = group_of(base("001"), base("003"), log("003", tail=".cdc"), log("001", tail=".cdc"), states=states)
    assert shown(group) == {
        "003": [base("003"), log("003", tail=".cdc")],
        "001": [base("001"), log("001", tail=".cdc")],
    }
    assert all(item.log_files == () for item in group.slices)


def test_of_several_logs_of_one_instant_the_version_orders() -> None:
    group = group_of(base("001"), log("003", 10), log("003", 2), log("003", 2, "0-0-9"), states=WRITES)
    assert shown(group)["001"] == [base("001"), log("003", 2, "0-0-9"), log("003", 2), log("003", 10)]


def test_the_output_of_a_pending_log_compaction_is_hidden() -> None:
    group = group_of(
        base("001"),
        log("003"),
        log("005"),
        states=[*WRITES[:2], "005.logcompaction.requested", "005.logcompaction.inflight"],
    )
    assert shown(group) == {"001": [base("001"), log("003")]}


_times = st.integers(1, 30).map(lambda number: f"{number:03d}")
_files = st.lists(
    st.one_of(
        st.builds(base, _times, st.just("0-1-2"), st.sampled_from(["f-0", "g-0"])),
        st.builds(log, _times, st.integers(1, 3), st.just("0-1-2"), st.sampled_from(["f-0", "g-0"])),
    ),
    unique=True,
)
_states = st.dictionaries(_times, st.one_of(st.none(), st.integers(0, 12)))


def _timeline(states: dict[str, int | None]) -> Timeline:
    """Each instant pending, or completed so much later; no two completions differ from requested times by
    length.
    """
    names = []
    for time, lasted in states.items():
        names.append(
            f"{time}.deltacommit.requested" if lasted is None else f"{time}_{int(time) + lasted:03d}.deltacommit"
        )
    return timeline_of(names, 2)


@given(_files, _states, st.randoms())
def test_every_file_is_in_one_slice_and_every_committed_log_after_its_base(
    files: list[str], states: dict[str, int | None], shuffle: random.Random
) -> None:
    timeline = _timeline(states)
    infos = Listing(*files).infos
    rule = slicing(timeline, {})
    groups = build_file_groups("p", infos, rule)
    shuffle.shuffle(infos)
    assert build_file_groups("p", infos, rule) == groups
    slices = [item for group in groups for item in (*group.slices, *group.uncommitted)]
    assert sorted(name for item in slices for name in names_of(item)) == sorted(files)
    completed = {instant.requested_time: instant.completed_at for instant in timeline.commits()}
    for group in groups:
        starts = [item.base_instant for item in group.slices]
        assert starts == sorted(starts, reverse=True)
        for item in group.slices:
            assert rule.slice_visible(item.base_instant)
            for data_file in item.log_files:
                instant = data_file.name.split("_")[1].split(".")[0]
                assert rule.file_visible(instant)
                if instant in completed:
                    # The last slice that began when the log was complete: no other slice lies between.
                    assert item.base_instant <= completed[instant]
                    with_base = [other.base_instant for other in group.slices if other.base_file is not None]
                    assert not [start for start in with_base if item.base_instant < start <= completed[instant]]


@pytest.mark.parametrize("instant", ["002", "004"])
def test_a_group_without_a_committed_file_has_no_slice(instant: str) -> None:
    group = group_of(log(instant), states=["003_003.commit", "002.deltacommit.requested", "004.deltacommit.requested"])
    assert (group.slices, group.latest_slice()) == ((), None)
    assert [names_of(item) for item in group.uncommitted] == [[log(instant)]]


class Layout2:
    layout_version = 2
    timeline_folder = ".hoodie/timeline"


class Archive:
    """What the view reads of an archive; records the requests."""

    def __init__(self, completions: dict[str, str]) -> None:
        self.completions = completions
        self.requested: list[str] = []

    def completion_time(self, requested_time: str) -> str | None:
        self.requested.append(requested_time)
        return self.completions.get(requested_time)


def stored(*files: str) -> tuple[MemoryStorage, ActiveTimeline]:
    """A table of layout 2 whose active timeline begins at 009; commits without metadata."""
    storage = MemoryStorage()
    for name in ("009_010.deltacommit", "011_012.commit"):
        storage.write(f".hoodie/timeline/{name}", b"")
    for name in (".hoodie_partition_metadata", *files):
        storage.write(f"p/{name}", b"0123456789")
    return storage, ActiveTimeline(storage, Layout2())


def test_the_archive_is_opened_only_for_a_log_whose_slice_depends_on_it() -> None:
    storage, active = stored(base("001"), log("003"), log("009"))
    opened = view_of(active, StorageListing(storage))
    assert [names_of(item) for item in opened.latest_merged_slices("p")] == [[base("001"), log("003"), log("009")]]
    storage, active = stored(base("001"), log("003"), base("005"), log("009"))
    archive = Archive({"003": "006"})
    view = load_view(active, StorageListing(storage), active.load(), lambda: cast(ArchivedTimeline, archive))
    assert [names_of(item) for item in view.latest_slices("p")] == [[base("005"), log("003"), log("009")]]
    assert archive.requested == ["003"]
