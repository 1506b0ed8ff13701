from __future__ import annotations

from hudi_core.model.ids import FileGroupId
from hudi_core.view.file_group import DataFile, FileGroup, FileSlice
from tests.support.listed_names import base, log

GROUP = FileGroupId("p", "f-0")
BASE = DataFile("p", base("001"), 10)
FIRST, SECOND, THIRD = (DataFile("p", log("001", version), version) for version in (1, 2, 3))
CDC = DataFile("p", log("001", 2, tail=".cdc"), 5)


def test_a_slice_has_files_and_a_size() -> None:
    item = FileSlice(GROUP, "001", BASE, (FIRST, SECOND), (CDC,))
    assert item.files == (BASE, FIRST, SECOND, CDC)
    assert item.size == 13, "changes are no rows of it"
    assert BASE.path == f"p/{BASE.name}"
    assert DataFile("", "x", 1).path == "x"
    assert [FileSlice(GROUP, "001", file).is_empty for file in (None, BASE)] == [True, False]


def test_logs_of_the_next_slice_are_put_in_scan_order() -> None:
    newer = FileSlice(GROUP, "002", None, (SECOND,), (CDC,))
    merged = FileSlice(GROUP, "001", BASE, (FIRST, THIRD)).merged_with(newer)
    assert (merged.base_instant, merged.base_file) == ("001", BASE)
    assert merged.log_files == (FIRST, SECOND, THIRD)
    assert merged.cdc_files == (CDC,)


def test_the_latest_slice_up_to_an_instant() -> None:
    newest, oldest = FileSlice(GROUP, "005", BASE), FileSlice(GROUP, "001", BASE)
    group = FileGroup(GROUP, (newest, oldest))
    assert group.latest_slice() == newest
    assert [group.latest_slice_up_to(time) for time in ("000", "001", "004", "005")] == [None, oldest, oldest, newest]
    assert [group.latest_slice_before(time) for time in ("001", "005", "006")] == [None, oldest, newest]
    assert FileGroup(GROUP, ()).latest_slice() is None
