"""How many requests a run makes: each is 20 to 100 ms on an object store (docs/decisions/0027)."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from benchmarks.delaying_proxy import in_turn
from hudi_core.engine.local import LocalEngine
from hudi_core.request.policy import Policy
from hudi_core.table import HudiTable
from hudi_core.verbs.run import RunRequest, ScheduleRequest
from hudi_core.verbs.write import InsertOverwriteRequest
from tests.support.golden_statistics import Golden
from tests.support.request_log import RequestLog, log_requests

LISTS = ("list_files", "list_names", "list_folders", "list_tree")
CASE = "mor_compaction_requested"


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> RequestLog:
    return log_requests(monkeypatch)


@pytest.mark.parametrize("version", ["6", "8", "9"])
def test_a_compaction_of_three_file_groups(golden: Golden, log: RequestLog, version: str) -> None:
    table = str(golden(version, CASE).table)
    done = HudiTable.open(table).run(RunRequest(table, "compaction"), LocalEngine(1))
    assert done.instants[0].files_written == 3
    timelines = {".hoodie", ".hoodie/timeline", ".hoodie/metadata/.hoodie", ".hoodie/metadata/.hoodie/timeline"}
    assert len([path for path in log.of(*LISTS) if path in timelines]) <= 8
    assert len(log.of("read", folder=".hoodie/hoodie.properties")) <= 3
    assert len(log.requests) <= 110


def test_requests_of_a_compaction_overlap(golden: Golden, monkeypatch: pytest.MonkeyPatch) -> None:
    """On an object store it waits for some fifty requests in turn, and did for 157. A busy machine adds some."""
    table = str(golden("9", CASE).table)
    log = log_requests(monkeypatch, seconds=0.01)
    done = HudiTable.open(table).run(RunRequest(table, "compaction"), LocalEngine(3))
    assert done.instants[0].files_written == 3
    assert in_turn(log.spans) <= 70
    assert len(log.requests) <= 140


@pytest.mark.parametrize("version", ["6", "8", "9"])
def test_what_is_due(golden: Golden, log: RequestLog, version: str) -> None:
    table = HudiTable.open(str(golden(version, CASE).table))
    assert table.due(Policy()).to_dict()
    assert len(log.requests) <= 12


def test_a_run_with_nothing_to_do(golden: Golden, log: RequestLog) -> None:
    table = str(golden("9", CASE).table)
    assert HudiTable.open(table).nothing_to_do(RunRequest(table, "clean")) is not None
    assert len(log.requests) <= 3


def test_a_clustering(golden: Golden, log: RequestLog) -> None:
    """It made 197 requests when each step opened the table again; so the numbers below, too."""
    table = str(golden("9", "clustering_requested_cow").table)
    done = HudiTable.open(table).run(RunRequest(table, "clustering"), LocalEngine(1))
    assert done.instants[0].files_written == 3
    assert len(log.requests) <= 197 // 2


def test_a_clean_of_one_file(golden: Golden, log: RequestLog) -> None:
    table = str(golden("9", "cow_basic").table)
    options = {
        "hoodie.clean.commits.retained": "1",
        "hoodie.clean.partition.filter.selected": "2024-01-01",
        "hoodie.clean.incremental.enabled": "false",
    }
    request = RunRequest(table, "clean", schedule=True, options=options)
    done = HudiTable.open(table).run(request, LocalEngine(1))
    assert done.instants[0].files_deleted == 1
    assert len(log.requests) <= 134 // 2 + 3, "the table is looked at once more when the plan is there"


def test_an_overwrite_of_one_partition(golden: Golden, log: RequestLog, tmp_path: Path) -> None:
    table = golden("9", "cow_basic").table
    rows = pq.read_table(next((table / "2024-01-01").glob("*.parquet")))
    source = tmp_path / "rows.parquet"
    pq.write_table(rows.select([name for name in rows.column_names if not name.startswith("_hoodie")]), source)
    request = InsertOverwriteRequest(str(table), source=str(source), partitions=("2024-01-01",))
    done = HudiTable.open(str(table)).run(request, LocalEngine(1))
    assert dict(done.document or {})["files_written"] == 1
    assert len(log.requests) <= 245 // 2


def test_three_pending_compactions(golden: Golden, log: RequestLog) -> None:
    table = str(golden("9", "mor_basic").table)
    one_at_a_time = {"hoodie.compact.inline.max.delta.commits": "1", "airflow_hudi.plan.max.bytes": "1"}
    for _ in range(3):
        HudiTable.open(table).run(ScheduleRequest(table, "compaction", options=one_at_a_time), LocalEngine(1))
    log.requests.clear()
    done = HudiTable.open(table).run(RunRequest(table, "compaction", all_pending=True), LocalEngine(1))
    assert len(done.instants) == 3
    assert len(log.requests) <= 480 // 2
