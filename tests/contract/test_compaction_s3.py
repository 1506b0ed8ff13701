"""The whole straight line on an object store: conditional creates for the timeline, Arrow's S3 for the data."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from hudi_core.engine.local import LocalEngine
from hudi_core.table import HudiTable
from hudi_core.verbs.run import RunRequest
from hudi_health.table import validate_metadata
from tests.contract.s3_server import S3Server, keys, rows, s3_server, upload
from tests.support.golden_data import GoldenCase
from tests.support.rows import assert_same_rows, read_parquet
from tests.support.tiers import tiered

Golden = Callable[[str, str], GoldenCase]


@pytest.fixture(scope="module")
def server() -> Iterator[S3Server]:
    with s3_server() as started:
        yield started


TABLES = (
    ("6", "mor_compaction_requested"),
    ("6", "compaction_inflight"),
    ("8", "compaction_inflight"),
    ("9", "mor_compaction_requested"),
)
CASES = [(*table, lost) for table in TABLES for lost in (0, 2)]
CORE = [("8", "compaction_inflight", 0), ("9", "mor_compaction_requested", 2)]
"""test_services_s3 compacts a table of version 6."""


@pytest.mark.parametrize(("version", "case", "lost_answers"), tiered(CASES, CORE))
def test_a_compaction_on_s3(server: S3Server, golden: Golden, version: str, case: str, lost_answers: int) -> None:
    """Also when the store carries a conditional PUT out and the answer is lost: the retry finds its own
    object.
    """
    found = golden(version, case)
    uri = upload(server, found.table, f"{version}-{case}-{lost_answers}")
    table = HudiTable.open(uri, server.options, {"hoodie.index.bloom.num_entries": "100"})
    before = server.conditional_puts
    server.lost_answers = lost_answers
    (done,) = table.run(RunRequest(uri, "compaction"), LocalEngine(2)).instants
    assert (done.state, done.files_written) == ("completed", 3)
    assert server.conditional_puts - before > 5
    for metadata in ("on", "off"):
        assert_same_rows(rows(table, metadata), read_parquet(found.expected / "after_snapshot.parquet"))
    assert validate_metadata(table).differences == ()
    assert table.run(RunRequest(uri, "compaction", instant=done.instant), LocalEngine(2)).instants[0].files_written == 0
    left = [".hoodie/.temp/", ".hoodie/.airflow_hudi/", ".hoodie/.heartbeat/", ".hoodie/lock"]
    assert [keys(server, f"{version}-{case}-{lost_answers}", below) for below in left] == [[], [], [], []]
