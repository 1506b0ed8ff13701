"""Files that are shorter than what was written: of the metadata table they are refused, of the data reported."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from tests.hostile.refusals import LOCAL, HostileTable
from tests.support.rows import assert_same_rows

Hostile = Callable[[str, str], HostileTable]


@pytest.mark.parametrize("keeps", [0.0, 0.5, 0.99])
@pytest.mark.parametrize("partition_type", ["files", "column_stats", "record_index"])
@pytest.mark.parametrize("version", ["6", "8", "9"])
def test_a_torn_log_of_the_metadata_table(hostile: Hostile, version: str, partition_type: str, keeps: float) -> None:
    table = hostile(version, "mdt_record_index_lookup")
    expected = table.rows("--metadata", "off")
    if not (table.base / ".hoodie/metadata" / partition_type).exists():
        partition_type = "files"  # version 6 has no column_stats here
    table.change(f".hoodie/metadata/{partition_type}/.*.log.*", lambda data: data[: int(len(data) * keeps)], -1)
    table.keeps_rows(expected, "--metadata", "on")
    table.keeps_rows(expected, "--metadata", "off")


@pytest.mark.parametrize("keeps", [0.0, 0.5])
@pytest.mark.parametrize("at", range(-1, -4, -1))
def test_a_compaction_does_not_go_on_from_a_torn_log(hostile: Hostile, keeps: float, at: int) -> None:
    table = hostile("9", "mor_compaction_requested")
    expected = table.rows("--metadata", "off")
    table.change(".hoodie/metadata/files/.*.log.*", lambda data: data[: int(len(data) * keeps)], at)
    table.run("run compaction", *LOCAL)
    assert_same_rows(table.rows("--metadata", "off"), expected)
    table.keeps_rows(expected, "--metadata", "on")


@pytest.mark.parametrize("case", ["log_corrupt_middle", "log_corrupt_tail", "log_truncated"])
@pytest.mark.parametrize("version", ["6", "8", "9"])
def test_a_torn_log_of_the_data_is_reported(hostile: Hostile, version: str, case: str) -> None:
    table = hostile(version, case)
    ended = table.read()
    assert ended.code == 0
    assert json.loads(ended.out)["corrupt_log_blocks"] > 0
    assert ".log." in ended.err
    table.refuses_read("--strict", names=".log.")
    found = json.loads(table.run("doctor").out)["findings"]
    assert any(".log." in str(finding["path"]) for finding in found)


@pytest.mark.parametrize("version", ["6", "9"])
def test_a_compaction_of_a_torn_log_is_refused(hostile: Hostile, version: str) -> None:
    table = hostile(version, "mor_compaction_requested")
    path = table.change("*/.*.log.*", lambda data: data[: len(data) // 2])
    expected = table.read("--metadata", "off")
    table.refuses("run compaction", *LOCAL, names=path.name)
    after = table.read("--metadata", "off")
    assert (after.code, after.out) == (expected.code, expected.out)
