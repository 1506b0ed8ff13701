"""Tables whose older files label milliseconds `timestamp-micros` (data/reported.md): read, filtered, rewritten and
validated by the table's schema. Real Hudi's answers: tests/interop/test_time_labels.py.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_core.codec.avro.arrow import arrow_schema
from hudi_core.engine.local import LocalEngine
from hudi_core.table import HudiTable
from hudi_core.verbs.run import RunRequest
from tests.support.overwrites import overwrite, own_rows, put_source
from tests.support.rows import assert_same_rows
from tests.support.table_invariants import assert_metadata_true, read_rows
from tests.support.tiers import tiered

Reported = Callable[[str], Path]
COW = "millis_as_micros_cow"
MOR = [f"millis_as_micros_mor_v{version}" for version in (6, 8, 9)]
FIRST = 1718000000123
OPTIONS = {
    "hoodie.compact.inline.max.delta.commits": "1",
    "hoodie.log.compaction.blocks.threshold": "1",
    "hoodie.log.compaction.enable": "true",
    "hoodie.clustering.plan.strategy.small.file.limit": str(1 << 30),
    "hoodie.write.concurrency.mode": "single_writer",
    "hoodie.metadata.index.column.stats.enable": "true",
}
IGNORED = ("_hoodie_file_name", "_hoodie_commit_seqno", "_hoodie_commit_time")


def moment(milliseconds: int, zone: dt.tzinfo | None = dt.timezone.utc) -> dt.datetime:
    start = dt.datetime(1970, 1, 1, tzinfo=zone)
    return start + dt.timedelta(milliseconds=FIRST + milliseconds)


LATER = {"k0": 1000, "k1": 5000, "k2": 2, "k3": 3, "q0": 100, "q1": 101}
"""By key: the milliseconds behind FIRST that the merged rows have."""


def assert_right(rows: pa.Table, later: dict[str, int]) -> None:
    """Every timestamp of every row, in whichever column, list, map or struct."""
    found = {row["id"]: row for row in rows.to_pylist()}
    assert found.keys() == later.keys()
    for key, milliseconds in later.items():
        row, at = found[key], moment(milliseconds)
        assert row["e"] == at
        if "l" in row:
            assert (row["l"], row["n"]["e"]) == (moment(milliseconds, None), at)
            assert row["m"] == [("k", at)]
        if "a" in row:
            assert row["a"] == [at, None]


def where(table: Path, text: str, **more: Any) -> set[str]:
    result = HudiTable.open(str(table), options={"airflow_hudi.read.footer_skipping": "true"}).read(where=text, **more)
    return {key for batch in result.batches for key in batch.column("id").to_pylist()}


def served(table: Path, service: str) -> None:
    """Plans the service over everything, and runs it."""
    request = RunRequest(str(table), service=service, schedule=True, owner="test", options=OPTIONS)
    result = HudiTable.open(str(table)).run(request, LocalEngine(1))
    assert [item.state for item in result.instants] == ["completed"], result.reason


def test_copy_on_write(reported: Reported) -> None:
    table = reported(COW)
    later = {"k0": 1000, "k1": 1, "k2": 2}
    assert_right(read_rows(table), later)
    assert_right(read_rows(table, "off"), later)
    assert where(table, "e > '2024-01-01'") == where(table, "e >= '2024-06-10 06:13:20.124'") == {"k0", "k1", "k2"}
    assert where(table, "e < '2000-01-01'") == set()
    assert_metadata_true(table)
    rows = read_rows(table)
    served(table, "clustering")
    assert_same_rows(read_rows(table), rows, ignore=IGNORED)
    assert where(table, "e > '2024-01-01'") == {"k0", "k1", "k2"}
    assert_metadata_true(table)


def test_before_the_label_was_right_it_reads_as_it_did(reported: Reported) -> None:
    """So does real Hudi: the schema is that of the time."""
    table = reported(COW)
    (first, _) = [item.requested_time for item in HudiTable.open(str(table)).timeline().commits()]
    result = HudiTable.open(str(table)).read(as_of=first)
    assert {value.as_py().year for batch in result.batches for value in batch.column("e")} == {1970}


@pytest.mark.parametrize("name", MOR)
def test_merge_on_read(reported: Reported, name: str) -> None:
    table = reported(name)
    rows = read_rows(table)
    assert_right(rows, LATER)
    optimized = HudiTable.open(str(table)).read("read_optimized")
    base = {"k0": 0, "k1": 1, "k2": 2, "k3": 3, "q0": 100, "q1": 101}
    assert_right(pa.Table.from_batches(list(optimized.batches), optimized.schema), base)
    assert where(table, "e > '2024-01-01'") == where(table, "n.e > '2024-01-01'") == set(LATER)
    assert where(table, "l > '2024-01-01'") == set(LATER)
    assert where(table, "e > '2024-01-01'", query="incremental", begin="000") == set(LATER)
    assert where(table, "e < '2000-01-01'") == where(table, "n.e < '2000-01-01'") == set()
    assert_metadata_true(table)


@pytest.mark.parametrize("service", ["compaction", "log_compaction", "clustering"])
@pytest.mark.parametrize("name", tiered(MOR, ["millis_as_micros_mor_v9"]))
def test_services(reported: Reported, name: str, service: str) -> None:
    table = reported(name)
    rows = read_rows(table)
    served(table, service)
    assert_right(read_rows(table), LATER)
    assert_same_rows(read_rows(table), rows, ignore=IGNORED)
    assert_same_rows(read_rows(table, "off"), rows, ignore=IGNORED)
    assert where(table, "e > '2024-01-01'") == set(LATER)
    assert_metadata_true(table)
    newest = max(table.glob("p/*.parquet"), key=lambda path: path.name.rsplit("_", 1)[-1])
    if service != "log_compaction":
        assert pq.read_schema(newest).field("e").type == pa.timestamp("ms", "UTC")


@pytest.mark.parametrize("name", [COW, *MOR])
def test_overwrite(reported: Reported, name: str, tmp_path: Path) -> None:
    table = reported(name)
    rows = read_rows(table)
    columns = arrow_schema(HudiTable.open(str(table)).schema())
    overwrite(table, put_source(own_rows(table, rows).cast(columns), tmp_path))
    assert_same_rows(read_rows(table), rows, ignore=(*IGNORED, "_hoodie_record_key"))
    assert_metadata_true(table)
