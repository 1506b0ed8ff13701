"""Pipes, sockets, links and folders in the place of files, and files by two names."""

from __future__ import annotations

import json
import os
import shutil
import socket
import stat
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from tests.hostile.refusals import LOCAL, HostileTable
from tests.support.overwrites import own_rows, put_source
from tests.support.rows import assert_same_rows
from tests.support.table_invariants import read_rows

Hostile = Callable[[str, str], HostileTable]


def pipe(path: Path, _: Path) -> None:
    os.mkfifo(path)


def listening(path: Path, _: Path) -> None:
    here = os.getcwd()
    os.chdir(path.parent)  # a socket's path may have 108 bytes only
    try:
        with closing(socket.socket(socket.AF_UNIX)) as made:
            made.bind("s")
        os.rename("s", path)
    finally:
        os.chdir(here)


def link_outside(path: Path, outside: Path) -> None:
    path.symlink_to(outside)


def link_to_itself(path: Path, _: Path) -> None:
    path.symlink_to(path)


def device(path: Path, _: Path) -> None:
    """Zeros without end; what only root can make."""
    os.mknod(path, 0o666 | stat.S_IFCHR, os.makedev(1, 5))


DEVICES = (device,) if os.geteuid() == 0 else ()
TYPES = (pipe, listening, link_outside, link_to_itself, *DEVICES)
FILES = (
    ".hoodie/hoodie.properties",
    ".hoodie/timeline/*_*.deltacommit",
    ".hoodie/metadata/.hoodie/hoodie.properties",
    ".hoodie/metadata/files/*.hfile",
    ".hoodie/metadata/files/.*.log.*",
    "*/*.parquet",
    "*/.*.log.*",
)


@pytest.mark.parametrize("mode", ["on", "off"])
@pytest.mark.parametrize("pattern", FILES)
@pytest.mark.parametrize("put", TYPES, ids=lambda put: put.__name__)
def test_what_is_no_file_is_refused(
    hostile: Hostile, put: Callable[[Path, Path], None], pattern: str, mode: str
) -> None:
    table = hostile("9", "mor_compaction_requested")
    expected = table.rows("--metadata", "off")
    path = table.path(pattern, -1)
    aside = table.scratch / "aside"
    shutil.move(path, aside)
    put(path, aside)
    if "/metadata/" in pattern and mode == "off":
        assert_same_rows(table.rows("--metadata", "off"), expected)
    else:
        table.refuses_read("--metadata", mode)


@pytest.mark.parametrize("put", TYPES, ids=lambda put: put.__name__)
def test_a_plan_that_is_no_file_is_not_waited_for(hostile: Hostile, put: Callable[[Path, Path], None]) -> None:
    table = hostile("9", "mor_compaction_requested")
    path = table.path(".hoodie/timeline/*.compaction.requested")
    shutil.move(path, table.scratch / "aside")
    put(path, table.scratch / "aside")
    table.refuses("run compaction", *LOCAL)


LISTING_VERBS = (
    "files",
    "doctor",
    "plan",
    "read --output rows.parquet",
    "metadata create --partition files",
    "savepoint create",
    "schedule clean --option hoodie.clean.commits.retained=1",
    "schedule clustering",
    "run clustering --schedule",
    "run clean --schedule --option hoodie.clean.commits.retained=1",
    "insert-overwrite --source SOURCE --whole-table",
)


@pytest.mark.parametrize("verb", LISTING_VERBS)
@pytest.mark.parametrize("version", ["6", "9"])
def test_a_partition_whose_name_is_not_utf_8_is_refused(hostile: Hostile, version: str, verb: str) -> None:
    """As a writer in another locale may have left it."""
    table = hostile(version, "mdt_disabled")
    source = put_source(own_rows(table.base, read_rows(table.base)), table.scratch)
    shutil.copytree(table.path("*/*.parquet").parent, table.base / os.fsdecode(b"bad\xff"))
    words, *options = verb.replace("SOURCE", str(source)).split(" --")
    given = [part for option in options for part in f"--{option}".split(" ")]
    local = LOCAL if words.startswith(("run", "insert", "metadata create")) else ()
    error = table.refuses(words, *given, *local, codes=(2,))
    assert error["path"] == "bad\\xff"
    assert error["remedy"]


def test_names_that_are_not_utf_8_below_hoodie_are_left_out(hostile: Hostile) -> None:
    table = hostile("9", "mor_compaction_requested")
    expected = table.rows()
    for folder in (".hoodie", ".hoodie/timeline", ".hoodie/metadata", ".hoodie/metadata/files"):
        (table.base / folder / os.fsdecode(b"bad\xff")).touch()
    table.keeps_rows(expected)
    assert table.run("run compaction", *LOCAL).code == 0


@pytest.mark.parametrize("mode", ["on", "off"])
def test_a_fan_of_links_is_not_walked(hostile: Hostile, mode: str) -> None:
    """Ten links to the table in the table would be ten times as many folders at each level."""
    table = hostile("9", "mor_basic")
    for number in range(10):
        (table.base / "2024-01-01" / f"again{number}").symlink_to(table.base)
        (table.base / f"again{number}").symlink_to(table.base)
    expected = table.run("timeline").out
    assert expected
    ended = table.read("--metadata", mode)
    assert ended.code in (0, 2)
    assert ended.cpu_seconds < 5


@pytest.mark.parametrize("give", [os.link, shutil.copyfile, os.symlink], ids=["hard link", "copy", "symbolic link"])
@pytest.mark.parametrize(("version", "case"), [("6", "cow_basic"), ("9", "cow_basic"), ("9", "mor_basic")])
def test_a_base_file_by_two_names_is_not_read_twice(
    hostile: Hostile, version: str, case: str, give: Callable[[Path, Path], object]
) -> None:
    table = hostile(version, case)
    expected = table.rows("--metadata", "off")
    path = max(table.base.glob("2024-01-01/*.parquet"), key=lambda path: path.name.rsplit("_", 1)[-1])
    group, token, instant = path.name.split("_")
    give(path, path.with_name(f"{group}_9{token}_{instant}"))
    table.keeps_rows(expected, "--metadata", "off")


@pytest.mark.parametrize("case", ["cow_basic", "mor_basic"])
@pytest.mark.parametrize("version", ["6", "8", "9"])
def test_a_base_file_by_a_hard_link_as_another_group_is_refused(hostile: Hostile, version: str, case: str) -> None:
    table = hostile(version, case)
    expected = table.rows("--metadata", "on")
    path = table.path("2024-01-02/*.parquet", -1)
    os.link(path, path.with_name(f"other-{path.name}"))
    table.refuses_read("--metadata", "off", names="hard link")
    table.keeps_rows(expected, "--metadata", "on")


@pytest.mark.parametrize("partition", ["2024-01-01", "2024-01-02"])
@pytest.mark.parametrize(("version", "case"), [("6", "cow_basic"), ("8", "mor_basic"), ("9", "cow_basic")])
def test_a_copy_of_a_base_file_as_another_group_is_found(
    hostile: Hostile, version: str, case: str, partition: str
) -> None:
    table = hostile(version, case)
    assert "file_by_two_names" not in table.run("doctor").out
    expected = table.rows("--metadata", "on")
    path = max(table.base.glob("2024-01-01/*.parquet"), key=lambda path: path.name.rsplit("_", 1)[-1])
    copy = table.base / partition / f"other-{path.name}"
    shutil.copyfile(path, copy)
    (found,) = [item for item in json.loads(table.run("doctor").out)["findings"] if item["rule"] == "file_by_two_names"]
    assert found["path"] == f"{partition}/{copy.name}"
    assert path.name in found["what"]
    table.keeps_rows(expected, "--metadata", "on")


@pytest.mark.parametrize("pattern", ["*/*.parquet", "*/.*.log.*"])
def test_a_data_file_linked_as_another_group_is_no_file_of_any_commit(hostile: Hostile, pattern: str) -> None:
    table = hostile("9", "mor_basic")
    expected = table.rows("--metadata", "on")
    path = table.path(pattern)
    os.symlink(path, path.with_name(path.name.replace("0", "1", 1)))
    table.refuses_read("--metadata", "off", names="symbolic link")
    table.keeps_rows(expected, "--metadata", "on")
