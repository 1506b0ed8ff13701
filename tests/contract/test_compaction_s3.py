"""The whole straight line on an object store: conditional creates for the timeline, Arrow's S3 for the data."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from hudi_core.request.model import RunRequest
from hudi_core.services.local_engine import LocalEngine
from hudi_core.table import HudiTable, MetadataMode
from tests.contract.s3_server import S3Server
from tests.golden_data import GoldenCase
from tests.rows import assert_same_rows, read_parquet

Golden = Callable[[str, str], GoldenCase]


@pytest.fixture(scope="module")
def server() -> Iterator[S3Server]:
    started = S3Server()
    started.client().create_bucket(Bucket="lake")
    yield started
    started.stop()


def upload(server: S3Server, table: Path, key: str) -> str:
    client = server.client()
    for path in table.rglob("*"):
        if path.is_file() and path.suffix != ".crc":
            client.upload_file(str(path), "lake", f"{key}/{path.relative_to(table).as_posix()}")
    return f"s3://lake/{key}"


def rows(table: HudiTable, metadata: MetadataMode) -> pa.Table:
    result = table.read(metadata=metadata)
    return pa.Table.from_batches(list(result.batches), result.schema)


@pytest.mark.parametrize("lost_answers", [0, 2])
@pytest.mark.parametrize("case", ["mor_compaction_requested", "compaction_inflight"])
def test_a_compaction_on_s3(server: S3Server, golden: Golden, case: str, lost_answers: int) -> None:
    """Also when the store does what a conditional PUT asks for and the answer is lost: the retry finds its own object."""
    found = golden("6", case)
    uri = upload(server, found.table, f"{case}-{lost_answers}")
    table = HudiTable.open(uri, server.options, {"hoodie.index.bloom.num_entries": "100"})
    before = server.conditional_puts
    server.lost_answers = lost_answers
    (done,) = table.run(RunRequest(table=uri), LocalEngine(2)).instants
    assert (done.state, done.files_written) == ("completed", 3)
    assert server.conditional_puts - before > 5
    for metadata in ("on", "off"):
        assert_same_rows(rows(table, metadata), read_parquet(found.expected / "after_snapshot.parquet"))
    assert table.run(RunRequest(table=uri, instant=done.instant), LocalEngine(2)).instants[0].files_written == 0
    listed = server.client().list_objects_v2(Bucket="lake", Prefix=f"{case}-{lost_answers}/.hoodie/").get("Contents", [])
    names = [item["Key"].split("/.hoodie/", 1)[1] for item in listed]
    assert [name for name in names if name.startswith((".temp/", ".airflow_hudi/", ".heartbeat/", "lock"))] == []
