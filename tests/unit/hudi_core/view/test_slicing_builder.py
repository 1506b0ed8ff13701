from __future__ import annotations

import pytest

from hudi_core.errors import UnsupportedError
from hudi_core.model.names import FileGroupId
from hudi_core.storage.base import FileInfo
from hudi_core.timeline.naming import timeline_of
from hudi_core.view.file_group import FileGroup
from hudi_core.view.slicing import build_file_groups, slicing_for
from tests.support.listed_names import base, log


def groups(*files: str | tuple[str, int], states: list[str], **options: object) -> list[FileGroup]:
    infos = [
        FileInfo(f"p/{file[0]}", file[1], 0.0) if isinstance(file, tuple) else FileInfo(f"p/{file}", 1, 0.0)
        for file in files
    ]
    slicing = slicing_for(1, timeline_of(states), lambda instant: None)
    return build_file_groups("p", infos, slicing, **options)  # type: ignore[arg-type]


STATES = ["001.commit", "003.deltacommit"]


def test_groups_by_id_and_slices_newest_first() -> None:
    found = groups(base("001", file_id="b-0"), base("001"), base("003"), "notes.txt", states=STATES)
    assert [group.id.file_id for group in found] == ["b-0", "f-0"]
    assert [item.base_instant for item in found[1].slices] == ["003", "001"]


def test_files_of_pending_instants_are_not_visible() -> None:
    (group,) = groups(base("001"), base("002"), states=[*STATES, "002.inflight"])
    assert [item.base_instant for item in group.slices] == ["001"]
    assert [item.base_instant for item in group.uncommitted] == ["002"]


def test_the_longest_of_several_base_files_is_the_whole_one() -> None:
    """A task that was tried again leaves two of one instant."""
    (group,) = groups((base("001", "0-1-2"), 5), (base("001", "0-2-3"), 9), states=STATES)
    (item,) = group.slices
    assert item.base_file is not None
    assert item.base_file.name == base("001", "0-2-3")


def test_a_pending_compaction_opens_a_slice() -> None:
    pending = [(FileGroupId("p", "f-0"), "002"), (FileGroupId("q", "f-0"), "003"), (FileGroupId("p", "g-0"), "003")]
    (group,) = groups(base("001"), log("002"), states=STATES, compactions=pending)
    newest, *older = group.slices
    assert older[-1].base_instant == "001"
    assert (newest.base_instant, newest.base_file) == ("002", None)


def test_logs_of_changes_are_kept_apart() -> None:
    (group,) = groups(base("001"), log("001", 2), log("001", 1), log("001", 3, tail=".cdc"), states=STATES)
    (item,) = group.slices
    assert [file.name for file in item.log_files] == [log("001", 1), log("001", 2)]
    assert [file.name for file in item.cdc_files] == [log("001", 3, tail=".cdc")]


def test_a_file_that_no_writer_of_hudi_made_is_refused_by_name() -> None:
    """The metadata table lists it so, of a table that Apache XTable made; passed over, its rows would be lost."""
    name = "part-0.parquet_001_hudiext"
    with pytest.raises(UnsupportedError, match="not by a writer of Hudi") as caught:
        groups(base("001"), name, states=STATES)
    assert caught.value.path == name
