"""The torn end of a log file is passed over, lost bytes of a completed commit are refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hudi_core.codec.log.blocks import CorruptBlock
from hudi_core.filegroup.read.torn_tails import CompletedWrites
from hudi_core.model.names import parse_log_file
from hudi_core.table import HudiTable
from hudi_health.table import doctor_report
from tests.support.golden_cleans import context_of
from tests.support.golden_data import GoldenCase
from tests.support.hudictl_runner import hudictl
from tests.support.log_files import rollback
from tests.support.rows import assert_same_rows
from tests.support.table_invariants import read_rows
from tests.support.tiers import tiered

Golden = Callable[[str, str], GoldenCase]

VERSIONS = ("6", "8", "9")
DUE = {
    "compaction": ("hoodie.compact.inline.max.delta.commits=1",),
    "clustering": ("hoodie.clustering.inline.max.commits=1",),
    "log_compaction": ("hoodie.log.compaction.enable=true", "hoodie.log.compaction.blocks.threshold=2"),
}


def run(table: Path, service: str, *arguments: str) -> tuple[int, str, dict[str, Any]]:
    options = [part for option in DUE[service] for part in ("--option", option)]
    done = hudictl("run", service, table, "--schedule", "--engine", "local", *options, *arguments, "--json")
    return done.code, done.err, done.document


@pytest.mark.parametrize("service", DUE)
@pytest.mark.parametrize("version", tiered(VERSIONS, ["9"]))
def test_a_torn_tail_stops_no_service(
    golden: Golden, caplog: pytest.LogCaptureFixture, version: str, service: str
) -> None:
    table = golden(version, "log_corrupt_tail").table
    before = read_rows(table)
    code, said, document = run(table, service)
    assert code == 0, said
    (done,) = document["instants"]
    assert (done["state"], done["corrupt_log_blocks"]) == ("completed", 3)
    assert "passed over 3 corrupt log blocks" in caplog.text
    assert_same_rows(read_rows(table), before)


@pytest.mark.parametrize("service", ["compaction", "clustering"])
@pytest.mark.parametrize("version", VERSIONS)
def test_lost_bytes_of_a_commit_stop_it(golden: Golden, version: str, service: str) -> None:
    table = golden(version, "log_truncated").table
    code, said, document = run(table, service)
    assert (code, document["error"]["type"]) == (1, "CorruptFileError"), said
    assert "of the file are of deltacommit" in document["error"]["message"]
    assert "--allow-corrupt-log-blocks" in document["error"]["remedy"]


def rolled_back_behind(table: Path) -> list[str]:
    """Puts a rollback command behind each log file; the rules that the doctor finds broken then."""
    for log in table.glob("*/.*.log.*"):
        if not log.name.endswith(".crc"):
            log.write_bytes(log.read_bytes() + rollback("20200101000000001", "20200101000000000"))
    return [item.rule for item in doctor_report(HudiTable.open(str(table))).findings]


@pytest.mark.parametrize("version", VERSIONS)
def test_lost_bytes_stay_lost_behind_a_rollback(golden: Golden, version: str) -> None:
    """Its command block removes the corrupt one before it, whosever that was."""
    table = golden(version, "log_truncated").table
    assert "corrupt_log_block" in rolled_back_behind(table)
    code, said, document = run(table, "compaction")
    assert (code, document["error"]["type"]) == (1, "CorruptFileError"), said
    assert "of the file are of deltacommit" in document["error"]["message"]


@pytest.mark.parametrize("version", tiered(VERSIONS, ["6", "9"]))
def test_a_torn_tail_behind_a_rollback_is_none(golden: Golden, version: str) -> None:
    table = golden(version, "log_corrupt_tail").table
    before = read_rows(table)
    assert "corrupt_log_block" not in rolled_back_behind(table)
    assert run(table, "compaction")[0] == 0
    assert_same_rows(read_rows(table), before)


ADDED = {"numWrites": 0, "numUpdateWrites": 0, "numInserts": 0, "numDeletes": 0, "logOffset": 0, "runtimeStats": None}


@pytest.mark.parametrize("counted", [{}, {"numDeletes": 1}, {"runtimeStats": {"totalUpsertTime": 1}}])
def test_a_file_of_a_failed_task_holds_no_row_of_its_commit(golden: Golden, counted: dict[str, Any]) -> None:
    """A writer of version 6 finds it by its marker, and adds it to the commit as here; what a task that succeeded has
    written counts rows, or at least the time for them.
    """
    table = golden("6", "mor_basic").table
    assert hudictl("metadata", "drop", table).code == 0, "it does not list the file"
    last = max((table / ".hoodie").glob("*.deltacommit"))
    metadata = json.loads(last.read_text())
    stats = next(iter(metadata["partitionToWriteStats"].values()))
    log = table / stats[0]["path"]
    token = log.name.rpartition("_")[2]
    torn = log.with_name(log.name.replace(token, "9-9-9"))
    torn.write_bytes(log.read_bytes()[:-40])
    size, path = torn.stat().st_size, torn.relative_to(table).as_posix()
    stats.append({**stats[0], **ADDED, "path": path, "totalWriteBytes": size, "fileSizeInBytes": size, **counted})
    last.write_text(json.dumps(metadata))
    before = read_rows(table)
    code, said, document = run(table, "compaction")
    if counted:
        assert (code, document["error"]["type"]) == (1, "CorruptFileError"), said
        assert f"of the file are of deltacommit {last.stem}" in document["error"]["message"]
        return
    assert code == 0, said
    assert document["instants"][0]["corrupt_log_blocks"] == 1
    assert_same_rows(read_rows(table), before)


@pytest.mark.parametrize("offset", [None, 0])
def test_a_write_behind_a_torn_one_covers_what_it_appended(golden: Golden, offset: int | None) -> None:
    """As on HDFS: the first write, the torn one and the third are in one file of version 6."""
    table = golden("6", "log_corrupt_middle").table
    first, last = sorted((table / ".hoodie").glob("*.deltacommit"))[-2:]
    written = {
        stat["fileId"]: stat
        for stats in json.loads(first.read_text())["partitionToWriteStats"].values()
        for stat in stats
    }
    metadata = json.loads(last.read_text())
    for stat in [stat for stats in metadata["partitionToWriteStats"].values() for stat in stats]:
        size = (table / written[stat["fileId"]]["path"]).stat().st_size
        behind = size - stat["totalWriteBytes"]
        stat.update(path=written[stat["fileId"]]["path"], fileSizeInBytes=size, logOffset=behind)
        if offset is not None:
            stat["logOffset"] = offset
    last.write_text(json.dumps(metadata))
    before = read_rows(table)
    code, said, document = run(table, "compaction")
    if offset is not None:
        assert code == 1, said
        assert "bytes 0 to" in document["error"]["message"]
        return
    assert (code, document["instants"][0]["corrupt_log_blocks"]) == (0, 6)
    assert_same_rows(read_rows(table), before)


@pytest.mark.parametrize("version", VERSIONS)
def test_archived_commits_count(golden: Golden, version: str) -> None:
    context = context_of(golden(version, "archived_timeline_mor").table)
    writes = CompletedWrites(context.active, context.active.load(), context.history)
    history = context.history()
    commit, metadata = next(iter(history.commits(history.instants()[1:])))
    stat = next(stat for stat in metadata.write_stats() if ".log." in stat.name)

    def why(path: str, offset: int) -> str | None:
        return writes.why_lost(CorruptBlock(path, offset, 100, "cut"))

    size = stat.file_size_in_bytes
    assert why(stat.path, size - 1) == f"bytes 0 to {size} of the file are of deltacommit {commit.requested_time}"
    assert why(stat.path, size) is None
    older = stat.path.replace(parse_log_file(stat.name).instant, "20200101000000000")
    assert "the archive does not go back to 20200101000000000" in str(why(older, size))
