"""Ranges that our services record where real Hudi would merge or compare them wrongly: it reads and writes on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudi_core.engine.local import LocalEngine
from hudi_core.table import HudiTable
from hudi_core.verbs.run import RunRequest
from tests.interop.changes import write_parquet
from tests.interop.real_hudi import RealHudi
from tests.support.table_invariants import assert_metadata_true

pytestmark = [pytest.mark.hudi, pytest.mark.slow, pytest.mark.conformance]

OPTIONS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.table.type": "COPY_ON_WRITE",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "p",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.index.column.stats.enable": "true",
    "hoodie.metadata.index.partition.stats.enable": "true",
    "hoodie.embed.timeline.server": "false",
    "hoodie.upsert.shuffle.parallelism": "1",
    "hoodie.insert.shuffle.parallelism": "1",
    "hoodie.parquet.small.file.limit": "0",
}
COMPACTED = {"hoodie.metadata.compact.max.delta.commits": "1"}


def _write(hudi: RealHudi, base: Path, rows: pa.Table, operation: str = "insert", **more: str) -> None:
    data = write_parquet(rows, base.parent, "rows")
    if base.exists():
        hudi.ask("write", base=str(base), operation=operation, parquet=data, options={**OPTIONS, **more})
    else:
        hudi.ask(
            "create", base=str(base), parquet=data, options={**OPTIONS, "hoodie.datasource.write.operation": "insert"}
        )


def _cluster(base: Path) -> None:
    options = {"hoodie.clustering.inline.max.commits": "1"}
    request = RunRequest(str(base), service="clustering", schedule=True, owner="test", options=options)
    outcome = HudiTable.open(str(base)).run(request, LocalEngine(1))
    assert outcome.exit_code == 0


def _all_found(hudi: RealHudi, base: Path, predicates: list[str]) -> list[int]:
    found: list[dict[str, Any]] = hudi.ask("skipping", base=str(base), predicates=predicates)
    assert [item["where"] for item in found if not item["same"]] == []
    return [item["rows"] for item in found]


def _numbers(keys: list[str], partition: str, values: list[int], wide: bool = True) -> pa.Table:
    return pa.table(
        {
            "id": keys,
            "p": [partition] * len(keys),
            "ts": pa.array([1] * len(keys), pa.int64()),
            "v": pa.array(values, pa.int64() if wide else pa.int32()),
            "d": pa.array(values, pa.float64() if wide else pa.float32()),
        }
    )


def test_a_range_of_a_column_that_was_widened(hudi_1_2: RealHudi, tmp_path: Path) -> None:
    """Hudi merges no ranges of two types: its filtered reads failed, and then all its writes."""
    base = tmp_path / "t"
    narrow = [_numbers(["a1", "a2"], "A", [1, 2], wide=False), _numbers(["b1", "b2"], "B", [10, 20], wide=False)]
    _write(hudi_1_2, base, pa.concat_tables(narrow))
    _write(hudi_1_2, base, _numbers(["b3"], "B", [15], wide=False))
    _write(hudi_1_2, base, _numbers(["c1"], "C", [2**40]))
    _cluster(base)
    assert _all_found(hudi_1_2, base, ["v > 12", "v > 100", "v = 10", "d > 12"]) == [3, 1, 1, 3]
    _write(hudi_1_2, base, _numbers(["b2"], "B", [21]), "upsert")
    _write(hudi_1_2, base, _numbers(["a9"], "A", [21]), **COMPACTED)
    _write(hudi_1_2, base, _numbers(["e9"], "D", [21]), **COMPACTED)
    assert _all_found(hudi_1_2, base, ["v > 12", "v > 100", "v = 10", "d > 12"]) == [5, 1, 1, 5]
    assert_metadata_true(base)


@pytest.mark.parametrize("writer", ["hudi_0_15", "hudi_1_2"])
def test_the_maximum_of_values_with_nan(writer: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    """By a maximum of NaN, Hudi skips files with rows that match; so it does by its own record of such values."""
    hudi: RealHudi = request.getfixturevalue(writer)
    base = tmp_path / "t"
    rows = pa.table(
        {
            "id": ["a", "b", "c"],
            "p": ["A"] * 3,
            "ts": pa.array([1] * 3, pa.int64()),
            "f": pa.array([-1.0, 0.5, float("nan")], pa.float32()),
            "g": pa.array([-1.0, 0.5, float("nan")], pa.float64()),
        }
    )
    _write(hudi, base, rows)
    _write(hudi, base, rows.slice(0, 1).set_column(0, "id", pa.array(["z"])))
    _cluster(base)
    assert _all_found(hudi, base, ["f > 2", "g > 2", "f >= 0.25", "g >= 0.5", "g < 0"]) == [1, 1, 2, 2, 2]
