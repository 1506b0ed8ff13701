from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from hudi_core.errors import FormatError
from hudi_core.model import partition
from hudi_core.model.partition import (
    check_file_name,
    check_file_names,
    check_partition,
    check_partitions,
    check_relative_path,
    join,
)


@pytest.mark.parametrize(
    "path",
    [
        *("", "a", "a/b", "city=são paulo/dt=2024-01-01", "a%2Fb", "__HIVE_DEFAULT_PARTITION__", "a:b", "..a"),
        *("a..b/...", "a\\b", "\\", "p=C:\\x", "a\tb", "a\nb", "a\n", "\x1b[1m", "\x7f", "a\\..b", "a\n../b"),
    ],
)
def test_plain_paths_pass(path: str) -> None:
    """With every character that Hudi's writers put into a partition path."""
    assert check_partition(path, source="plan") == path
    check_partitions([path, "b"] if path else [path], source="plan")


@pytest.mark.parametrize(
    "path",
    [
        "/etc/passwd",
        "..",
        "../x",
        "a/../b",
        "a/./b",
        "a//b",
        "a/",
        "s3://bucket/x",
        "file:/x",
        "a\x00b",
        "a\\..\\b",
        "a/..\\b",
        "..\\b",
        "a\\..",
    ],
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


@pytest.mark.parametrize("name", ["", "a/b", "..", "/a", "a\\b", "a\nb", "a\tb", "\x7f"])
def test_a_file_name_is_one_segment(name: str) -> None:
    with pytest.raises(FormatError):
        check_file_name(name, source="plan")


def test_many_plain_names_are_not_checked_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(partition, "check_file_name")
    monkeypatch.delattr(partition, "check_partition")
    check_file_names(["a", "b=c", "..d"], source="plan")
    check_partitions(["a", "b=c/..d", "e"], source="plan")


@settings(deadline=None)
@given(st.lists(st.text(st.sampled_from("a.:/\\ \x00\x7f\u00e9\u2028\ud800"), max_size=4), max_size=4))
@example(["a/b", ""])
@example(["a:", "b"])
@example([""])
@example(["", ""])
@example([".hoodie", "a"])
@example(["a", "b/.hoodie"])
@example(["/a"])
@example(["s3:/a"])
@pytest.mark.parametrize(("one", "many"), [(check_file_name, check_file_names), (check_partition, check_partitions)])
def test_many_are_checked_as_each_would_be(
    one: Callable[..., object], many: Callable[..., object], names: list[str]
) -> None:
    def refused(check: Callable[[], object]) -> str:
        try:
            check()
        except FormatError as error:
            return error.message
        return ""

    singly = next((message for name in names if (message := refused(partial(one, name, source="plan")))), "")
    assert refused(partial(many, names, source="plan")) == singly


def test_join() -> None:
    assert join("", "f") == "f"
    assert join("a/b", "f") == "a/b/f"
