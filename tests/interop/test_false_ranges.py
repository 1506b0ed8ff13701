"""What real Hudi records of Parquet files whose footers have no range: our queries do not believe it."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_core.metadata_table.read.metadata_table import MetadataTable
from hudi_core.table import HudiTable
from tests.interop.changes import write_parquet
from tests.interop.judged import JUDGES
from tests.interop.real_hudi import RealHudi
from tests.support.golden_cleans import context_of
from tests.support.rows import assert_same_rows
from tests.support.tiers import tiered

pytestmark = [pytest.mark.hudi, pytest.mark.slow]

OPTIONS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.table.type": "COPY_ON_WRITE",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.partitionpath.field": "p",
    "hoodie.datasource.write.operation": "insert",
    "hoodie.parquet.small.file.limit": "0",
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.index.column.stats.enable": "true",
    "hoodie.embed.timeline.server": "false",
    "hoodie.insert.shuffle.parallelism": "1",
}
LONG = "a" * 5000
FILES = [
    {"d": [0.0, 5.0], "t": ["m", "n"], "all_null": [None, None]},
    {"d": [250.0, math.nan], "t": [LONG, None], "all_null": [None, None]},
    {"d": [1.0, 2.0], "t": ["x", None], "all_null": [None, None]},
]
PREDICATES = [
    "d > 100",
    "d = 250",
    "d = CAST('NaN' AS DOUBLE)",
    "t IS NOT NULL",
    "t LIKE 'aa%'",
    "t < 'b'",
    "d > 100 AND p = 'one'",
]


@pytest.fixture(scope="module", params=tiered(JUDGES, ["9"]))
def table(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One partition of three files: with zeros, with NaN and a long text, with neither."""
    version: str = request.param
    hudi: RealHudi = request.getfixturevalue(JUDGES[version])
    pinned = {} if version == "6" else {"hoodie.write.table.version": version, "hoodie.write.auto.upgrade": "false"}
    folder = tmp_path_factory.mktemp("false_ranges")
    base = folder / "table"
    for number, columns in enumerate(FILES):
        rows = pa.table(
            {
                "id": [f"k{number}{row}" for row in range(2)],
                "ts": pa.array([1, 1], pa.int64()),
                "p": ["one", "one"],
                "d": pa.array(columns["d"], pa.float64()),
                "t": pa.array(columns["t"], pa.string()),
                "all_null": pa.array(columns["all_null"], pa.float64()),
            }
        )
        parquet = write_parquet(rows, folder, f"rows{number}")
        if number:
            hudi.ask("write", base=str(base), operation="insert", parquet=parquet, options={**OPTIONS, **pinned})
        else:
            hudi.ask("create", base=str(base), parquet=parquet, options={**OPTIONS, **pinned})
    return base


def answer(base: Path, where: str, skipping: str) -> Any:
    return HudiTable.open(str(base), options={"hoodie.enable.data.skipping": skipping}).read(where=where)


@pytest.mark.parametrize("where", PREDICATES)
def test_no_row_is_lost(table: Path, where: str) -> None:
    found, due = (pa.Table.from_batches(answer(table, where, on).batches) for on in ("true", "false"))
    assert due.num_rows
    assert_same_rows(found, due)


def test_true_ranges_still_rule_files_out(table: Path) -> None:
    for where, pruned in (("d > 100", 2), ("d < -1", 2), ("t = 'z'", 2), ("all_null IS NOT NULL", 3)):
        assert answer(table, where, "true").files_pruned == pruned, where


def test_what_hudi_records(table: Path) -> None:
    """Of zeros a minimum of -0.0, of NaN 0.0 to 0.0, of a long text as many nulls as values."""
    context = context_of(table)
    found = MetadataTable(context.storage, context.config, context.active.load()).column_stats(["d", "t"])
    bounds = {str((row["min"], row["max"])) for row in found["d"].to_pylist()}
    assert bounds == {"(-0.0, 5.0)", "(0.0, 0.0)", "(1.0, 2.0)"}
    (hidden,) = [row for row in found["t"].to_pylist() if row["min"] is None]
    assert (hidden["max"], hidden["null_count"], hidden["value_count"]) == (None, 2, 2)
    assert hidden["uncompressed_size"] > 2048


@pytest.mark.conformance
def test_a_row_group_with_nan_does_not_hide_in_those_beside_it(hudi_1_2: RealHudi, tmp_path: Path) -> None:
    """Hudi records the range of the others: it holds zero."""
    count = 4000
    rows = pa.table(
        {
            "id": [f"k{number:05d}" for number in range(count)],
            "ts": pa.array([1] * count, pa.int64()),
            "p": ["one"] * count,
            "d": pa.array([250.0, math.nan] + [1.0] * (count // 2 - 2) + [-1.0, 5.0] * (count // 4)),
        }
    )
    options = {**OPTIONS, "hoodie.write.table.version": "9", "hoodie.parquet.block.size": "20000"}
    base = tmp_path / "table"
    hudi_1_2.ask("create", base=str(base), parquet=write_parquet(rows, tmp_path, "rows"), options=options)
    (file,) = base.glob("one/*.parquet")
    assert pq.read_metadata(file).num_row_groups > 2
    context = context_of(base)
    (row,) = MetadataTable(context.storage, context.config, context.active.load()).column_stats(["d"])["d"].to_pylist()
    assert (row["min"], row["max"]) == (-1.0, 5.0)
    assert pa.Table.from_batches(answer(base, "d > 100", "true").batches).num_rows == 2
