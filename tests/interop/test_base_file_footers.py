"""Real Hudi goes by the footers of base files that our compactions wrote: the range of their keys, whatever characters
these have, and the calendar of their dates. What it wrote in the hybrid calendar is refused.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_core.errors import UnsupportedError
from hudi_core.table import HudiTable
from tests.interop.changes import write_parquet
from tests.interop.real_hudi import RealHudi
from tests.interop.test_compaction_v6 import compact
from tests.support.golden_clusterings import cluster, plan_of_all
from tests.support.overwrites import overwrite, put_source
from tests.support.table_invariants import read_rows

pytestmark = [pytest.mark.hudi, pytest.mark.conformance]

OPTIONS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.partitionpath.field": "",
    "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.NonpartitionedKeyGenerator",
    "hoodie.index.type": "BLOOM",
    "hoodie.parquet.small.file.limit": "0",
    "hoodie.compact.inline": "false",
    "hoodie.clean.automatic": "false",
    "hoodie.metadata.enable": "false",
    "hoodie.embed.timeline.server": "false",
    "hoodie.bulkinsert.shuffle.parallelism": "1",
}
MODES = ("datetimeRebaseModeInRead", "datetimeRebaseModeInWrite")
OLD = dt.date(1500, 3, 1)


@pytest.fixture(params=["hudi_0_15", "hudi_1_2"])
def hudi(request: pytest.FixtureRequest) -> Iterator[RealHudi]:
    found: RealHudi = request.getfixturevalue(request.param)
    yield found
    for mode in MODES:
        found.ask("sql", statement=f"RESET spark.sql.parquet.{mode}")


def rows(keys: list[str], ts: int, day: dt.date = OLD) -> pa.Table:
    return pa.table({"id": keys, "ts": pa.array([ts] * len(keys), pa.int64()), "day": [day] * len(keys)})


def created(hudi: RealHudi, folder: Path, table: pa.Table, operation: str, mode: str) -> Path:
    """A table whose dates Spark's Parquet writer has in the calendar of `mode`."""
    base = folder / "table"
    for name, value in zip(MODES, ("CORRECTED", mode), strict=True):
        hudi.ask("sql", statement=f"SET spark.sql.parquet.{name}={value}")
    parquet = write_parquet(table, folder, "created")
    hudi.ask(
        "create", base=str(base), parquet=parquet, options={**OPTIONS, "hoodie.datasource.write.operation": operation}
    )
    return base


def upsert(hudi: RealHudi, base: Path, table: pa.Table) -> None:
    parquet = write_parquet(table, base.parent, "upsert")
    hudi.ask("write", base=str(base), operation="upsert", parquet=parquet, options=OPTIONS)


def newest_footer(base: Path) -> dict[str, str]:
    path = max(base.glob("*.parquet"), key=lambda found: found.stem.rsplit("_", 1)[1])
    return {key.decode(): value.decode() for key, value in pq.read_metadata(path).metadata.items()}


def test_an_upsert_finds_keys_of_every_character(hudi: RealHudi, tmp_path: Path) -> None:
    """By Java's order U+FF21 is behind U+1F600."""
    keys = ["a", "\uff21", "\U0001f600"]
    base = created(hudi, tmp_path, rows(keys, 1, dt.date(2024, 1, 1)), "insert", "CORRECTED")
    upsert(hudi, base, rows(["a"], 2, dt.date(2024, 1, 1)))
    assert hudi.ask("schedule_compaction", base=str(base), options=OPTIONS)
    compact(base)
    footer = newest_footer(base)
    assert (footer["hoodie_min_record_key"], footer["hoodie_max_record_key"]) == ("a", "\uff21")
    upsert(hudi, base, rows(keys, 3, dt.date(2024, 1, 1)))
    found = hudi.snapshot(base, metadata=False)
    assert sorted(found["id"].to_pylist()) == sorted(keys)
    assert found["ts"].to_pylist() == [3, 3, 3]


def test_old_dates_are_read_behind_a_compaction(hudi: RealHudi, tmp_path: Path) -> None:
    """Also by a session that reads no file whose calendar is not known."""
    base = created(hudi, tmp_path, rows(["a", "b"], 1), "bulk_insert", "CORRECTED")
    upsert(hudi, base, rows(["a"], 2))
    assert hudi.ask("schedule_compaction", base=str(base), options=OPTIONS)
    hudi.ask("sql", statement="RESET spark.sql.parquet.datetimeRebaseModeInRead")
    before = hudi.snapshot(base, metadata=False)
    assert before["day"].to_pylist() == [OLD, OLD]
    compact(base)
    assert newest_footer(base)["org.apache.spark.version"].startswith("3.5")
    after = hudi.snapshot(base, metadata=False)
    assert sorted(zip(*(after[name].to_pylist() for name in ("id", "ts", "day")), strict=True)) == [
        ("a", 2, OLD),
        ("b", 1, OLD),
    ]
    assert read_rows(base)["day"].to_pylist() == [OLD, OLD]


@pytest.mark.parametrize("sort_columns", ["", "id"])
def test_old_dates_are_read_behind_a_clustering(hudi: RealHudi, tmp_path: Path, sort_columns: str) -> None:
    base = created(hudi, tmp_path, rows(["a", "b"], 1), "bulk_insert", "CORRECTED")
    hudi.ask("sql", statement="RESET spark.sql.parquet.datetimeRebaseModeInRead")
    params = {"hoodie.clustering.plan.strategy.sort.columns": sort_columns} if sort_columns else {}
    instant = plan_of_all(base, params)
    assert instant is not None
    cluster(base, instant)
    assert newest_footer(base)["org.apache.spark.version"].startswith("3.5")
    assert hudi.snapshot(base, metadata=False)["day"].to_pylist() == [OLD, OLD]


def test_old_dates_are_read_behind_an_overwrite(hudi: RealHudi, tmp_path: Path) -> None:
    """The source is pyarrow's, which is proleptic."""
    base = created(hudi, tmp_path, rows(["a", "b"], 1), "bulk_insert", "CORRECTED")
    hudi.ask("sql", statement="RESET spark.sql.parquet.datetimeRebaseModeInRead")
    given = put_source(rows(["c"], 2), tmp_path / "given")
    assert overwrite(base, given, whole_table=True).records == 1
    found = hudi.snapshot(base, metadata=False)
    assert (found["id"].to_pylist(), found["day"].to_pylist()) == (["c"], [OLD])


def test_old_dates_in_the_hybrid_calendar_are_refused(hudi: RealHudi, tmp_path: Path) -> None:
    base = created(hudi, tmp_path, rows(["a", "b"], 1), "bulk_insert", "LEGACY")
    upsert(hudi, base, rows(["a"], 2))
    assert hudi.ask("schedule_compaction", base=str(base), options=OPTIONS)
    before = hudi.snapshot(base, metadata=False)
    assert before["day"].to_pylist() == [OLD, OLD]
    of_the_day = HudiTable.open(str(base)).read(where="day = DATE '1500-03-01'")
    for refused in (lambda: compact(base), lambda: read_rows(base), lambda: list(of_the_day.batches)):
        with pytest.raises(UnsupportedError, match=r"'day'.*hybrid calendar"):
            refused()
    table = HudiTable.open(str(base)).read(columns=["id"])
    assert sum(batch.num_rows for batch in table.batches) == 2
    assert hudi.snapshot(base, metadata=False).equals(before)
