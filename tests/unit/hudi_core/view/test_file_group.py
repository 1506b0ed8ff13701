from __future__ import annotations

from dataclasses import replace

import pytest

from hudi_core.engine.serializer import from_text, to_text
from hudi_core.errors import FormatError
from hudi_core.model.names import FileGroupId
from hudi_core.view.file_group import DataFile, FileGroup, FileSlice, check_slice
from tests.support.listed_names import base, log

GROUP = FileGroupId("p", "f-0")
BASE = DataFile("p", base("001"), 10)
FIRST, SECOND, THIRD = (DataFile("p", log("001", version), version) for version in (1, 2, 3))
CDC = DataFile("p", log("001", 2, tail=".cdc"), 5)


def test_a_slice_has_files_and_a_size() -> None:
    item = FileSlice(GROUP, "001", BASE, (FIRST, SECOND), (CDC,))
    assert item.files == (BASE, FIRST, SECOND, CDC)
    assert item.data_files == (BASE, FIRST, SECOND)
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


STORED = DataFile("day=1", "f-0_1-2-3_20260101000000000.parquet", 7)
LOG = DataFile("day=1", ".f-0_20260101000000000.log.1_1-2-3", 5)
SLICE = FileSlice(FileGroupId("day=1", "f-0"), "20260101000000000", STORED, (LOG,))


@pytest.mark.parametrize("item", [SLICE, replace(SLICE, base_file=None), replace(SLICE, log_files=())])
def test_a_slice_comes_back_from_its_text(item: FileSlice) -> None:
    assert from_text(FileSlice, to_text(item)) == item


def test_a_slice_is_checked_where_it_arrives_as_it_is() -> None:
    assert check_slice(SLICE) is SLICE
    with pytest.raises(FormatError, match="not in the partition"):
        check_slice(replace(SLICE, log_files=(replace(LOG, partition="day=2"),)))
    for file in (replace(STORED, name="../f.parquet"), replace(STORED, name="a/b.parquet")):
        with pytest.raises(FormatError):
            check_slice(replace(SLICE, base_file=file))
    with pytest.raises(FormatError):
        check_slice(replace(SLICE, file_group=FileGroupId("../day=1", "f-0")))
