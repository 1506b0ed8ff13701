"""Real Hudi 1.2 reads tables whose older files label milliseconds as microseconds as we do, before and after our
services; where it does not, docs/reference/differences.md says so.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from tests.golden.test_time_labels import COW, IGNORED, LATER, MOR, assert_right, served
from tests.interop.real_hudi import RealHudi
from tests.support.rows import assert_same_rows
from tests.support.table_invariants import read_rows

pytestmark = [pytest.mark.hudi, pytest.mark.slow, pytest.mark.conformance]
PREDICATES = ["e > '2024-01-01'", "e < '2000-01-01'"]


def test_real_hudi_reads_what_we_do(reported: Callable[[str], Path], hudi_1_2: RealHudi, tmp_path: Path) -> None:
    for name in (COW, *MOR):
        table = reported(name)
        ours = read_rows(table)
        # Of the elements of a list in a base file Spark's reader of 1.2 takes the label of the file.
        lists = ("a",) if name in MOR else ()
        for metadata in (True, False):
            real = hudi_1_2.snapshot(table, metadata=metadata)
            assert_same_rows(real, ours, ignore=(*IGNORED, *lists))
            if lists:
                years = {row["id"]: row["a"][0].year for row in real.to_pylist()}
                assert years == {key: 2024 if key in ("k0", "k1") else 1970 for key in LATER}
        compacted = shutil.copytree(table, tmp_path / f"compacted-{name}", copy_function=shutil.copy2)
        served(table, "clustering")
        assert_reads(hudi_1_2, table, ours)
        if name in MOR:
            served(compacted, "compaction")
            assert_right(hudi_1_2.snapshot(compacted, metadata=True).drop_columns(["a"]), LATER)
            assert_same_rows(hudi_1_2.snapshot(compacted, metadata=True), read_rows(compacted), ignore=(*IGNORED, "a"))
    found = hudi_1_2.ask("skipping", base=str(reported(COW)), predicates=PREDICATES)
    # By the column statistics of a file that labels milliseconds as microseconds, 1.2 loses its rows; we do not.
    assert [(item["rows"], item["same"]) for item in found] == [(3, False), (0, True)]


def assert_reads(hudi: RealHudi, table: Path, rows: pa.Table) -> None:
    for metadata in (True, False):
        assert_same_rows(hudi.snapshot(table, metadata=metadata), rows, ignore=IGNORED)
    found = hudi.ask("skipping", base=str(table), predicates=PREDICATES)
    assert [(item["rows"], item["same"]) for item in found] == [(rows.num_rows, True), (0, True)], table.name
