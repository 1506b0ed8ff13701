"""Slices of layout 1, by the rules of Hudi 0.15, and the verbs of the view: from names and a timeline alone."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_core.errors import FormatError, TimelineError, UnsupportedVersionError
from hudi_core.model.names import FileGroupId
from hudi_core.storage.base import FileInfo
from hudi_core.timeline.actions.commit import CommitMetadata, encode_commit, encode_commit_avro
from hudi_core.timeline.actions.compaction import CompactionPlan
from hudi_core.timeline.actions.write_stats import WriteStat
from hudi_core.timeline.instant import Action, Instant, State
from hudi_core.timeline.naming import timeline_of
from hudi_core.timeline.timeline import Timeline
from hudi_core.view import file_system_view
from hudi_core.view.file_group import FileGroup
from hudi_core.view.file_system_view import FileSystemView, PendingWork
from hudi_core.view.slicing import Slicing, build_file_groups, slicing_for
from tests.support.golden_cleans import context_of
from tests.support.golden_data import GoldenCase
from tests.support.hudictl_runner import hudictl
from tests.support.listed_names import F, Listing, base, log, names_of, plan


def groups_of(infos: list[FileInfo], timeline: Timeline) -> list[FileGroup]:
    return build_file_groups("p", infos, Slicing(timeline))


def replacecommit(time: str, completion: str | None = None) -> Instant:
    return Instant(time, "replacecommit", State.COMPLETED, completion)


def test_slices_newest_first_and_logs_in_scan_order() -> None:
    listing = Listing(
        log("001", 10),
        log("001", 2),
        log("001", 2, "0-0-9"),
        base("001"),
        base("004"),
        ".hoodie_partition_metadata",
        "notes.txt",
    )
    (group,) = groups_of(listing.infos, timeline_of(["001.commit", "004.commit"]))
    assert group.id == F
    assert [item.base_instant for item in group.slices] == ["004", "001"]
    assert names_of(group.slices[1]) == [base("001"), log("001", 2, "0-0-9"), log("001", 2), log("001", 10)]
    assert group.slices[1].size == 40
    assert group.slices[1].log_files[0].path == f"p/{log('001', 2, '0-0-9')}"
    assert group.latest_slice_up_to("003") == group.latest_slice_before("004") == group.slices[1]


def test_files_of_instants_that_are_not_completed_are_hidden() -> None:
    listing = Listing(base("001"), base("002"), base("003"), log("003", 1), base("009"))
    timeline = timeline_of(["001.commit", "002.inflight", "002.commit.requested"])
    (group,) = groups_of(listing.infos, timeline)
    assert [item.base_instant for item in group.slices] == ["001"]
    assert [item.base_instant for item in group.uncommitted] == ["009", "003", "002"]


def test_older_than_the_timeline_is_committed_unless_the_timeline_shows_it_pending() -> None:
    timeline = timeline_of(["002.inflight", "004.commit"])
    (group,) = groups_of(Listing(base("001"), base("002"), base("003"), base("004")).infos, timeline)
    assert [item.base_instant for item in group.slices] == ["004", "003", "001"]
    assert [item.base_instant for item in group.uncommitted] == ["002"]


def test_no_completed_write_no_visible_slice() -> None:
    (group,) = groups_of(Listing(base("001")).infos, timeline_of(["001.commit.requested", "002.clean"]))
    assert group.slices == ()
    assert group.latest_slice() is None


def test_of_two_base_files_of_one_instant_the_longest_counts() -> None:
    infos = [
        FileInfo(f"p/{base('001', '0-1-2')}", 5, 0.0),
        FileInfo(f"p/{base('001', '0-1-3')}", 9, 0.0),
        FileInfo(f"p/{base('001', '0-1-4')}", 7, 0.0),
    ]
    (group,) = groups_of(infos, timeline_of(["001.commit"]))
    assert names_of(group.slices[0]) == [base("001", "0-1-3")]


def test_change_data_logs_hold_no_rows() -> None:
    (group,) = groups_of(
        Listing(log("001", 1, tail=".cdc"), log("001", 1), base("001")).infos, timeline_of(["001.commit"])
    )
    assert [item.name for item in group.slices[0].log_files] == [log("001", 1)]
    assert [item.name for item in group.slices[0].cdc_files] == [log("001", 1, tail=".cdc")]


def test_a_layout_that_does_not_exist_is_refused() -> None:
    with pytest.raises(UnsupportedVersionError):
        slicing_for(3, timeline_of([]), lambda instant: None)


COMPACTING = ["001.commit", "002.deltacommit", "003.compaction.requested", "003.compaction.inflight", "004.deltacommit"]


def test_a_pending_compaction_merges_two_slices() -> None:
    listing = Listing(base("001"), log("001", 1), base("003"), log("003", 1), log("003", 1, tail=".cdc"))
    view = FileSystemView(listing, timeline_of(COMPACTING), PendingWork({"003": plan("f-0")}))
    (merged,) = view.latest_merged_slices("p")
    assert merged.base_instant == "001"
    assert names_of(merged) == [base("001"), log("001", 1), log("003", 1), log("003", 1, tail=".cdc")]
    (latest,) = view.latest_slices("p")
    assert (latest.base_instant, latest.base_file, names_of(latest)[0]) == ("003", None, log("003", 1))
    assert [item.name for item in view.latest_base_files("p")] == [base("001")]
    assert view.pending.compaction_of(F) == "003"
    assert [names_of(item) for item in view.all_file_groups("p")[0].uncommitted] == [[base("003")]]
    (before,) = view.latest_merged_slices("p", as_of="002")
    assert names_of(before) == [base("001"), log("001", 1)]


def test_a_compaction_that_was_just_requested_opens_an_empty_slice() -> None:
    view = FileSystemView(
        Listing(base("001"), log("001", 1)), timeline_of(COMPACTING), PendingWork({"003": plan("f-0", "gone-0")})
    )
    (latest,) = view.latest_slices("p")
    assert (latest.base_instant, latest.is_empty) == ("003", True)
    (merged,) = view.latest_merged_slices("p")
    assert names_of(merged) == [base("001"), log("001", 1)]


def test_a_partition_is_built_with_the_pending_compactions_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a plan over every partition each would go through all of it otherwise."""
    given: list[list[FileGroupId]] = []

    def build(*args: Any, compactions: Iterable[tuple[FileGroupId, str]] = ()) -> list[FileGroup]:
        given.append([group for group, _ in compactions])
        return build_file_groups(*args, compactions=compactions)

    monkeypatch.setattr(file_system_view, "build_file_groups", build)
    other = replace(plan("f-0").operations[0], partition="q")
    both = PendingWork({"003": CompactionPlan((*plan("f-0").operations, other))})
    view = FileSystemView(Listing(base("001"), log("001", 1)), timeline_of(COMPACTING), both)
    assert [item.base_instant for item in view.latest_slices("p")] == ["003"]
    assert view.latest_slices("q") == view.latest_slices("r") == []
    assert given == [[F], [FileGroupId("q", "f-0")], []]


def test_logs_of_a_pending_compaction_without_an_older_slice_stand_alone() -> None:
    view = FileSystemView(
        Listing(log("003", 1), base("003")), timeline_of(COMPACTING), PendingWork({"003": plan("f-0")})
    )
    assert [names_of(item) for item in view.latest_merged_slices("p")] == [[log("003", 1)]]


def test_a_completed_compaction_starts_over() -> None:
    view = FileSystemView(
        Listing(base("001"), log("001", 1), base("003"), log("003", 1)), timeline_of([*COMPACTING, "003.commit"])
    )
    (merged,) = view.latest_merged_slices("p")
    assert names_of(merged) == [base("003"), log("003", 1)]
    assert [item.name for item in view.latest_base_files("p")] == [base("003")]
    assert [item.name for item in view.latest_base_files("p", as_of="002")] == [base("001")]


def test_a_view_refuses_to_guess_at_a_pending_plan() -> None:
    with pytest.raises(TimelineError, match="003"):
        FileSystemView(Listing(), timeline_of(COMPACTING))


def test_one_file_group_in_two_pending_plans_is_refused() -> None:
    with pytest.raises(FormatError, match=r"f-0 is in the pending compactions 003 and 005") as refused:
        FileSystemView(
            Listing(),
            timeline_of([*COMPACTING, "005.compaction.requested"]),
            PendingWork({"003": plan("f-0"), "005": plan("f-0")}),
        )
    assert "hudictl unschedule TABLE 005" in str(refused.value.remedy)


def test_replaced_groups_are_gone_from_the_replacecommit_on() -> None:
    view = FileSystemView(
        Listing(base("001"), base("003", file_id="g-0")),
        timeline_of(["001.commit", "003.replacecommit"]),
        replaced={F: replacecommit("003")},
    )
    assert [item.file_group.file_id for item in view.latest_merged_slices("p")] == ["g-0"]
    assert [item.file_group.file_id for item in view.latest_slices("p")] == ["g-0"]
    assert [item.name for item in view.latest_base_files("p")] == [base("003", file_id="g-0")]
    assert [item.file_group.file_id for item in view.latest_merged_slices("p", as_of="002")] == ["f-0"]
    assert view.replaced_at(F) == "003"
    assert [group.id.file_id for group in view.all_file_groups("p")] == ["f-0", "g-0"]
    assert view.partitions() == ["p"]


HISTORY = ["001.commit", "003.commit", "005.deltacommit", "007.commit"]


def history_view() -> FileSystemView:
    """One group with a slice at 001, 003 and 007, another at 003 alone."""
    listing = Listing(
        base("001"),
        log("001"),
        base("003"),
        log("003"),
        base("007"),
        base("003", file_id="g-0"),
        ".hoodie_partition_metadata",
    )
    return FileSystemView(listing, timeline_of(HISTORY))


def test_all_files_slices_and_base_files() -> None:
    view = history_view()
    assert [info.name for info in view.files("p")] == [
        base("001"),
        log("001"),
        base("003"),
        log("003"),
        base("007"),
        base("003", file_id="g-0"),
    ]
    assert [(item.file_group.file_id, item.base_instant) for item in view.all_slices("p")] == [
        ("f-0", "007"),
        ("f-0", "003"),
        ("f-0", "001"),
        ("g-0", "003"),
    ]
    assert [item.name for item in view.all_base_files("p")] == [
        base("007"),
        base("003"),
        base("001"),
        base("003", file_id="g-0"),
    ]
    group = view.file_group(F)
    assert group is not None
    assert group.id == F
    assert view.file_group(FileGroupId("p", "none-0")) is None
    assert view.all_slices("elsewhere") == []


def test_latest_slices_up_to_a_time() -> None:
    view = history_view()
    assert [(item.file_group.file_id, item.base_instant) for item in view.latest_slices_up_to("p", "006")] == [
        ("f-0", "003"),
        ("g-0", "003"),
    ]
    assert [item.base_instant for item in view.latest_slices_up_to("p", "002")] == ["001"]
    assert view.latest_slices_up_to("p", "000") == []


def test_latest_slices_up_to_a_time_around_a_pending_compaction() -> None:
    listing = Listing(base("001"), log("001"), base("001", file_id="g-0"))
    view = FileSystemView(listing, timeline_of(COMPACTING), PendingWork({"003": plan("f-0")}))
    assert [(item.file_group.file_id, item.base_instant) for item in view.latest_slices_up_to("p", "009")] == [
        ("f-0", "001"),
        ("g-0", "001"),
    ]


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
def test_every_file_is_in_one_slice_whatever_the_order_of_the_listing(
    files: list[str], states: dict[str, str], shuffle: random.Random
) -> None:
    timeline = timeline_of([f"{time}.{state}" for time, state in states.items()])
    infos = Listing(*files).infos
    groups = groups_of(infos, timeline)
    shuffle.shuffle(infos)
    assert groups_of(infos, timeline) == groups
    slices = [item for group in groups for item in (*group.slices, *group.uncommitted)]
    assert sorted(name for item in slices for name in names_of(item)) == sorted(files)
    commits = timeline.commits()
    for group in groups:
        assert [item.base_instant for item in group.slices] == sorted(
            (item.base_instant for item in group.slices), reverse=True
        )
        assert all(commits.contains_or_before_start(item.base_instant) for item in group.slices)
        for item in group.slices:
            orders = [int(data_file.name.split(".log.")[1].split("_")[0]) for data_file in item.log_files]
            assert orders == sorted(orders)


@pytest.mark.parametrize("version", ["6", "9"])
def test_a_table_with_files_of_another_writer_is_not_read_as_empty(
    golden: Callable[[str, str], GoldenCase], tmp_path: Path, version: str
) -> None:
    """Apache XTable registers files of other formats by replacecommits; without a metadata table nothing else tells of
    them. They have to be neither passed over nor left beside what replaces them.
    """
    table = golden(version, "cow_basic").table
    context = context_of(table, {})
    active, instant, name = context.active, "20990101000000000", "2024-01-01/part-0.parquet_20990101000000000_hudiext"
    stat = WriteStat("part-0.parquet", name, "2024-01-01", "null", 3, 0, 0, 3, 100, 100)
    commit = CommitMetadata({"2024-01-01": (stat,)}, operation_type="INSERT", replaced_file_ids={})
    encode, completion = (encode_commit, None) if active.layout == 1 else (encode_commit_avro, "20990101000000001")
    active.create_requested(instant, Action.REPLACE_COMMIT, encode(replace(commit, partition_to_write_stats={})))
    active.to_inflight(instant, Action.REPLACE_COMMIT, b"")
    active.complete(instant, Action.REPLACE_COMMIT, encode(commit), completion)
    before = {path: path.read_bytes() for path in table.rglob("*") if path.is_file()}
    for arguments in (
        ("read", table, "--output", tmp_path / "rows.parquet"),
        ("delete-partition", table, "--partition", "2024-01-01"),
        ("schedule", "clustering", table),
    ):
        done = hudictl(*arguments, "--json")
        assert (done.code, done.error["path"]) == (2, name)
    assert {path: path.read_bytes() for path in table.rglob("*") if path.is_file()} == before
