from __future__ import annotations

import json
from typing import Any

import pytest

from hudi_core.errors import CorruptFileError, UnsupportedError
from hudi_core.timeline.actions.write_stats import WriteStat, stat_from_json, stat_to_json

STAT = WriteStat("f-0", "p/f-0_0-0-0_5.parquet", "p", "3", 41, 7, 21, 0, 4371, 4371, total_scan_time_ms=5)


def crossed(raw: Any) -> WriteStat:
    return stat_from_json(json.loads(json.dumps(raw)), path="x")


def test_a_stat_comes_back() -> None:
    raw = stat_to_json(STAT)
    assert crossed(raw) == STAT
    assert (raw["prevCommit"], raw["runtimeStats"]["totalScanTime"], raw["tempPath"]) == ("3", 5, None)
    assert "logVersion" not in raw


def test_members_that_we_do_not_know_are_kept() -> None:
    raw = {**stat_to_json(STAT), "recordsStats": {"a": 1}, "tempPath": "t"}
    assert crossed(raw).extra == {"recordsStats": {"a": 1}, "tempPath": "t"}
    assert stat_to_json(crossed(raw)) == raw


def test_a_log_file_has_a_version_and_its_files() -> None:
    raw = {**stat_to_json(STAT), "logVersion": 2, "logOffset": 7, "baseFile": "b", "logFiles": ["l"]}
    stat = crossed(raw)
    assert (stat.log_version, stat.log_offset, stat.base_file, stat.log_files) == (2, 7, "b", ("l",))
    assert stat_to_json(stat) == raw


@pytest.mark.parametrize("raw", [[], {"numWrites": "1"}, {"logFiles": [1]}, {"runtimeStats": 1}, {"path": 1}])
def test_members_of_another_type(raw: Any) -> None:
    with pytest.raises(CorruptFileError) as caught:
        crossed(raw)
    assert caught.value.path == "x"


def test_a_file_that_no_writer_of_hudi_made_is_refused_by_name() -> None:
    """Its file in storage has another name, so that only a commit or the metadata table tells."""
    name = "p/part-0.parquet_20240101000000000_hudiext"
    with pytest.raises(UnsupportedError, match="not by a writer of Hudi") as caught:
        crossed({**stat_to_json(STAT), "path": name})
    assert caught.value.path == name
