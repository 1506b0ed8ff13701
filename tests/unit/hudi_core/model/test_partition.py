from __future__ import annotations

import pytest

from hudi_core.errors import FormatError
from hudi_core.model.partition import check_file_name, check_partition, check_relative_path, join


@pytest.mark.parametrize("path", ["", "a", "a/b", "city=são paulo/dt=2024-01-01", "a%2Fb", "__HIVE_DEFAULT_PARTITION__", "a:b", "..a", "a..b/..."])
def test_plain_paths_pass(path: str) -> None:
    assert check_partition(path, source="plan") == path


@pytest.mark.parametrize(
    "path", ["/etc/passwd", "..", "../x", "a/../b", "a/./b", "a//b", "a/", "s3://bucket/x", "file:/x", "a\\b", "a\x00b", "a\nb", "\x7f"]
)
def test_paths_that_may_leave_the_table_are_refused(path: str) -> None:
    with pytest.raises(FormatError) as caught:
        check_relative_path(path, source=".hoodie/1.compaction.requested")
    assert caught.value.path == ".hoodie/1.compaction.requested"
    assert caught.value.exit_code == 2


@pytest.mark.parametrize("partition", [".hoodie", ".hoodie/metadata/files"])
def test_the_tables_own_folder_is_no_partition(partition: str) -> None:
    with pytest.raises(FormatError):
        check_partition(partition, source="plan")


@pytest.mark.parametrize("name", ["", "a/b", "..", "/a"])
def test_a_file_name_is_one_segment(name: str) -> None:
    with pytest.raises(FormatError):
        check_file_name(name, source="plan")


def test_join() -> None:
    assert join("", "f") == "f"
    assert join("a/b", "f") == "a/b/f"
