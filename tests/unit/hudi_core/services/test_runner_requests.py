"""How many requests a run makes: each is 20 to 100 ms on an object store (docs/decisions/0027)."""

from __future__ import annotations

import pytest

from hudi_core.engine.local import LocalEngine
from hudi_core.request.policy import Policy
from hudi_core.table import HudiTable
from hudi_core.verbs.run import RunRequest
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
    assert len(log.requests) <= 130


@pytest.mark.parametrize("version", ["6", "8", "9"])
def test_what_is_due(golden: Golden, log: RequestLog, version: str) -> None:
    table = HudiTable.open(str(golden(version, CASE).table))
    assert table.due(Policy()).to_dict()
    assert len(log.requests) <= 35


def test_a_run_with_nothing_to_do(golden: Golden, log: RequestLog) -> None:
    table = str(golden("9", CASE).table)
    assert HudiTable.open(table).nothing_to_do(RunRequest(table, "clean")) is not None
    assert len(log.requests) <= 3
