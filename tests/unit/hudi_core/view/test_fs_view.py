"""Slices by the rules of Hudi 0.15: from names and a timeline alone."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_core.errors import FormatError, TimelineError, UnsupportedVersionError
from hudi_core.model.ids import FileGroupId
from hudi_core.storage.base import FileInfo
from hudi_core.timeline.layout import timeline_of
from hudi_core.timeline.plans import CompactionOperation, CompactionPlan
from hudi_core.view.builder import build_file_groups
from hudi_core.view.file_group import FileSlice
from hudi_core.view.fs_view import FileSystemView

F = FileGroupId("p", "f-0")


class Listing:
    """One partition of named files, each of ten bytes."""

    def __init__(self, *names: str, partition: str = "p") -> None:
        self.partition = partition
        self.infos = [FileInfo(f"{partition}/{name}", 10, 0.0) for name in names]

    def partitions(self) -> list[str]:
        return [self.partition]

    def files(self, partition: str) -> list[FileInfo]:
        return self.infos if partition == self.partition else []


def base(instant: str, token: str = "0-1-2", file_id: str = "f-0") -> str:
    return f"{file_id}_{token}_{instant}.parquet"


def log(instant: str, version: int, token: str = "0-1-2", file_id: str = "f-0", tail: str = "") -> str:
    return f".{file_id}_{instant}.log.{version}_{token}{tail}"


def names_of(item: FileSlice) -> list[str]:
    return [data_file.name for data_file in item.files]


def plan(*file_ids: str, instant: str = "003") -> CompactionPlan:
    return CompactionPlan(tuple(CompactionOperation("p", file_id, "001", f"{file_id}_0-1-2_001.parquet", ()) for file_id in file_ids))


def test_slices_newest_first_and_logs_in_scan_order() -> None:
    listing = Listing(log("001", 10), log("001", 2), log("001", 2, "0-0-9"), base("001"), base("004"), ".hoodie_partition_metadata", "notes.txt")
    (group,) = build_file_groups("p", listing.infos, timeline_of(["001.commit", "004.commit"]))
    assert group.id == F
    assert [item.base_instant for item in group.slices] == ["004", "001"]
    assert names_of(group.slices[1]) == [base("001"), log("001", 2, "0-0-9"), log("001", 2), log("001", 10)]
    assert group.slices[1].size == 40
    assert group.slices[1].log_files[0].path == f"p/{log('001', 2, '0-0-9')}"
    assert group.latest_slice_up_to("003") == group.latest_slice_before("004") == group.slices[1]


def test_files_of_instants_that_are_not_completed_are_hidden() -> None:
    listing = Listing(base("001"), base("002"), base("003"), log("003", 1), base("009"))
    timeline = timeline_of(["001.commit", "002.inflight", "002.commit.requested"])
    (group,) = build_file_groups("p", listing.infos, timeline)
    assert [item.base_instant for item in group.slices] == ["001"]
    assert [item.base_instant for item in group.uncommitted] == ["009", "003", "002"]


def test_older_than_the_timeline_is_committed_unless_the_timeline_shows_it_pending() -> None:
    timeline = timeline_of(["002.inflight", "004.commit"])
    (group,) = build_file_groups("p", Listing(base("001"), base("002"), base("003"), base("004")).infos, timeline)
    assert [item.base_instant for item in group.slices] == ["004", "003", "001"]
    assert [item.base_instant for item in group.uncommitted] == ["002"]


def test_no_completed_write_no_visible_slice() -> None:
    (group,) = build_file_groups("p", Listing(base("001")).infos, timeline_of(["001.commit.requested", "002.clean"]))
    assert group.slices == ()
    assert group.latest_slice() is None


def test_of_two_base_files_of_one_instant_the_longest_counts() -> None:
    infos = [
        FileInfo(f"p/{base('001', '0-1-2')}", 5, 0.0),
        FileInfo(f"p/{base('001', '0-1-3')}", 9, 0.0),
        FileInfo(f"p/{base('001', '0-1-4')}", 7, 0.0),
    ]
    (group,) = build_file_groups("p", infos, timeline_of(["001.commit"]))
    assert names_of(group.slices[0]) == [base("001", "0-1-3")]


def test_change_data_logs_hold_no_rows() -> None:
    (group,) = build_file_groups("p", Listing(log("001", 1, tail=".cdc"), log("001", 1), base("001")).infos, timeline_of(["001.commit"]))
    assert [item.name for item in group.slices[0].log_files] == [log("001", 1)]
    assert [item.name for item in group.slices[0].cdc_files] == [log("001", 1, tail=".cdc")]


def test_layout_2_is_refused() -> None:
    with pytest.raises(UnsupportedVersionError):
        build_file_groups("p", [], timeline_of([]), layout=2)


COMPACTING = ["001.commit", "002.deltacommit", "003.compaction.requested", "003.compaction.inflight", "004.deltacommit"]


def test_a_pending_compaction_merges_two_slices() -> None:
    listing = Listing(base("001"), log("001", 1), base("003"), log("003", 1), log("003", 1, tail=".cdc"))
    view = FileSystemView(listing, timeline_of(COMPACTING), {"003": plan("f-0")})
    (merged,) = view.latest_merged_slices("p")
    assert merged.base_instant == "001"
    assert names_of(merged) == [base("001"), log("001", 1), log("003", 1), log("003", 1, tail=".cdc")]
    (latest,) = view.latest_slices("p")
    assert (latest.base_instant, latest.base_file, names_of(latest)[0]) == ("003", None, log("003", 1))
    assert [item.name for item in view.latest_base_files("p")] == [base("001")]
    assert view.pending_compaction(F) == "003"
    assert [names_of(item) for item in view.all_file_groups("p")[0].uncommitted] == [[base("003")]]
    (before,) = view.latest_merged_slices("p", as_of="002")
    assert names_of(before) == [base("001"), log("001", 1)]


def test_a_compaction_that_was_just_requested_opens_an_empty_slice() -> None:
    view = FileSystemView(Listing(base("001"), log("001", 1)), timeline_of(COMPACTING), {"003": plan("f-0", "gone-0")})
    (latest,) = view.latest_slices("p")
    assert (latest.base_instant, latest.is_empty) == ("003", True)
    (merged,) = view.latest_merged_slices("p")
    assert names_of(merged) == [base("001"), log("001", 1)]


def test_logs_of_a_pending_compaction_without_an_older_slice_stand_alone() -> None:
    view = FileSystemView(Listing(log("003", 1), base("003")), timeline_of(COMPACTING), {"003": plan("f-0")})
    assert [names_of(item) for item in view.latest_merged_slices("p")] == [[log("003", 1)]]


def test_a_completed_compaction_starts_over() -> None:
    view = FileSystemView(Listing(base("001"), log("001", 1), base("003"), log("003", 1)), timeline_of([*COMPACTING, "003.commit"]))
    (merged,) = view.latest_merged_slices("p")
    assert names_of(merged) == [base("003"), log("003", 1)]
    assert [item.name for item in view.latest_base_files("p")] == [base("003")]
    assert [item.name for item in view.latest_base_files("p", as_of="002")] == [base("001")]


def test_a_view_refuses_to_guess_at_a_pending_plan() -> None:
    with pytest.raises(TimelineError, match="003"):
        FileSystemView(Listing(), timeline_of(COMPACTING))


def test_one_file_group_in_two_pending_plans_is_refused() -> None:
    with pytest.raises(FormatError, match=r"f-0 is in the pending compactions 003 and 005"):
        FileSystemView(Listing(), timeline_of([*COMPACTING, "005.compaction.requested"]), {"003": plan("f-0"), "005": plan("f-0")})


def test_replaced_groups_are_gone_from_the_replacecommit_on() -> None:
    view = FileSystemView(Listing(base("001"), base("003", file_id="g-0")), timeline_of(["001.commit", "003.replacecommit"]), replaced={F: "003"})
    assert [item.file_group.file_id for item in view.latest_merged_slices("p")] == ["g-0"]
    assert [item.file_group.file_id for item in view.latest_slices("p")] == ["g-0"]
    assert [item.name for item in view.latest_base_files("p")] == [base("003", file_id="g-0")]
    assert [item.file_group.file_id for item in view.latest_merged_slices("p", as_of="002")] == ["f-0"]
    assert view.replaced_at(F) == "003"
    assert [group.id.file_id for group in view.all_file_groups("p")] == ["f-0", "g-0"]
    assert view.partitions() == ["p"]


_instants = st.integers(1, 9).map(lambda number: f"{number:03d}")
_files = st.lists(
    st.one_of(
        st.builds(base, _instants, st.just("0-1-2"), st.sampled_from(["f-0", "g-0"])),
        st.builds(log, _instants, st.integers(1, 12), st.just("0-1-2"), st.sampled_from(["f-0", "g-0"])),
    ),
    unique=True,
)
_timelines = st.dictionaries(_instants, st.sampled_from(["commit", "deltacommit", "inflight", "deltacommit.requested"]))


@given(_files, _timelines, st.randoms())
def test_every_file_is_in_one_slice_whatever_the_order_of_the_listing(files: list[str], states: dict[str, str], shuffle: random.Random) -> None:
    timeline = timeline_of([f"{time}.{state}" for time, state in states.items()])
    infos = Listing(*files).infos
    groups = build_file_groups("p", infos, timeline)
    shuffle.shuffle(infos)
    assert build_file_groups("p", infos, timeline) == groups
    slices = [item for group in groups for item in (*group.slices, *group.uncommitted)]
    assert sorted(name for item in slices for name in names_of(item)) == sorted(files)
    commits = timeline.commits()
    for group in groups:
        assert [item.base_instant for item in group.slices] == sorted((item.base_instant for item in group.slices), reverse=True)
        assert all(commits.contains_or_before_start(item.base_instant) for item in group.slices)
        for item in group.slices:
            orders = [int(data_file.name.split(".log.")[1].split("_")[0]) for data_file in item.log_files]
            assert orders == sorted(orders)
