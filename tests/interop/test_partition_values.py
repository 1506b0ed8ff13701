"""Partition values of every character in tables of real Hudi: both read the same, before and after our services."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from hudi_core.table import HudiTable
from tests.interop.changes import write_parquet
from tests.interop.real_hudi import RealHudi
from tests.interop.test_compaction_v6 import compact
from tests.support.golden_clusterings import cluster, plan_of_all
from tests.support.overwrites import delete, overwrite, put_source
from tests.support.rows import assert_same_rows
from tests.support.table_invariants import read_rows

pytestmark = [pytest.mark.hudi, pytest.mark.slow, pytest.mark.conformance]

OPTIONS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.partitionpath.field": "p",
    "hoodie.datasource.write.partitionpath.urlencode": "false",
    "hoodie.datasource.write.operation": "upsert",
    "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.SimpleKeyGenerator",
    "hoodie.metadata.enable": "true",
    "hoodie.embed.timeline.server": "false",
    "hoodie.compact.inline": "false",
    "hoodie.clean.automatic": "false",
}
VALUES = ["plain", "a\\b", "a\tb", "a\nb", "a\x7fb", "ü"]
UNESCAPED = {"50%AB": "50«", "%C3%A9": "Ã©"}
"""What a path is read as, where the writer did not escape."""


@pytest.fixture(params=["hudi_0_15", "hudi_1_2"])
def hudi(request: pytest.FixtureRequest) -> RealHudi:
    found: RealHudi = request.getfixturevalue(request.param)
    return found


def upsert(hudi: RealHudi, base: Path, partitions: list[str], ts: int) -> None:
    """A row of each partition."""
    rows = pa.table({"id": [f"k{text}" for text in partitions], "ts": [ts] * len(partitions), "p": partitions})
    parquet = write_parquet(rows, base.parent, f"rows-{ts}")
    if base.exists():
        hudi.ask("write", base=str(base), operation="upsert", parquet=parquet, options=OPTIONS)
    else:
        hudi.ask("create", base=str(base), parquet=parquet, options=OPTIONS)


def read_by_both(hudi: RealHudi, base: Path) -> pa.Table:
    """The rows, which are the same by both engines, with the metadata table and without it."""
    for metadata in (True, False):
        rows = hudi.snapshot(base, metadata=metadata)
        assert_same_rows(read_rows(base, "on" if metadata else "off"), rows)
    return rows


def rows_of(base: Path, where: str | None = None) -> pa.Table:
    """Of base files alone, where both versions take the value from the path."""
    result = HudiTable.open(str(base)).read("read_optimized", where=where)
    return pa.Table.from_batches(list(result.batches), result.schema)


def test_both_engines_read_the_same_rows(hudi: RealHudi, tmp_path: Path) -> None:
    base, values = tmp_path / "table", {**dict(zip(VALUES, VALUES, strict=True)), **UNESCAPED}
    upsert(hudi, base, list(values), 1)
    upsert(hudi, base, list(values), 2)
    read_by_both(hudi, base)
    assert hudi.ask("schedule_compaction", base=str(base), options=OPTIONS)
    compact(base)
    read_by_both(hudi, base)
    for path, value in values.items():
        text = value.replace("\\", "\\\\")
        assert rows_of(base, f"p = '{text}'")["_hoodie_partition_path"].to_pylist() == [path]
    found = hudi.snapshot(base, metadata=False, query="read_optimized")
    assert_same_rows(rows_of(base), found)
    assert dict(zip(found["_hoodie_partition_path"].to_pylist(), found["p"].to_pylist(), strict=True)) == values


def test_real_hudi_goes_on_behind_our_services(hudi: RealHudi, tmp_path: Path) -> None:
    base = tmp_path / "table"
    upsert(hudi, base, VALUES, 1)
    assert plan_of_all(base, {}) is not None
    cluster(base)
    assert read_by_both(hudi, base).num_rows == len(VALUES)
    overwrite(base, put_source(pa.table({"id": ["new"], "ts": [3], "p": ["a\\b"]}), tmp_path))
    delete(base, "a\nb")
    assert read_by_both(hudi, base).num_rows == len(VALUES) - 1
    upsert(hudi, base, VALUES, 4)
    assert read_by_both(hudi, base).num_rows == len(VALUES) + 1
