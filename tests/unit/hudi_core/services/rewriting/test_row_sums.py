"""The full proof: a row that is lost, doubled or changed on the way stops a rewrite before it is published."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from hudi_core.engine.protocol import TaskAttempt
from hudi_core.errors import ExecutionError
from hudi_core.filegroup.write.base_file_writer import BaseFileHandle
from hudi_core.services.rewriting.row_sums import RowSum, SumUnit, row_hashes, sum_rows
from tests.support.golden_clusterings import SORT_COLUMNS, cluster, plan_of_all
from tests.support.golden_compactions import compact, planned
from tests.support.golden_data import GoldenCase
from tests.support.table_invariants import assert_metadata_true, pending_instants
from tests.support.tiers import tiered

Golden = Callable[[str, str], GoldenCase]
FULL = {"airflow_hudi.verify": "full"}


def test_hashes_tell_rows_apart_and_do_not_depend_on_the_batch() -> None:
    values = ["", "a", "b", "ab", "ba", None, "null", '"', "é", "x" * 5000]
    rows = pa.record_batch({"s": values, "n": [1, 1, 1, 1, 1, 1, 1, 1, 1, None]})
    hashes = row_hashes(rows)
    assert len(set(hashes.tolist())) == len(values)
    assert (np.concatenate([row_hashes(rows.slice(0, 3)), row_hashes(rows.slice(3))]) == hashes).all()
    assert len(row_hashes(rows.slice(0, 0))) == 0
    nested = pa.record_batch(
        {"l": [[1, 2], [12], None], "m": pa.array([[("k", 1)], [], None], pa.map_(pa.string(), pa.int32()))}
    )
    assert len(set(row_hashes(nested).tolist())) == 3


def test_sums_wrap() -> None:
    assert RowSum(1, 2**64 - 1).plus(RowSum(2, 3)) == RowSum(3, 2)


@pytest.mark.parametrize("version", tiered(["6", "8", "9"], ["9"]))
@pytest.mark.parametrize("preserves", [True, False])
def test_a_clustering_is_proved(golden: Golden, version: str, preserves: bool) -> None:
    table = golden(version, "mdt_all_mor").table
    instant = plan_of_all(table, {SORT_COLUMNS: "name"}, 2, preserves=preserves)
    assert cluster(table, instant, FULL).state == "completed"
    assert_metadata_true(table)


@pytest.mark.parametrize("case", ["mor_compaction_requested", "payload_partial_update"])
@pytest.mark.parametrize("version", tiered(["6", "8", "9"], ["6", "9"]))
def test_a_compaction_is_proved(golden: Golden, version: str, case: str) -> None:
    table = golden(version, case).table
    assert compact(table, FULL).state == "completed"


@pytest.mark.parametrize("service", ["clustering", "compaction"])
@pytest.mark.parametrize("version", tiered(["6", "8", "9"], ["9"]))
def test_a_row_that_is_changed_stops_it(
    golden: Golden, version: str, service: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As many rows come out as went in, so that the counts agree."""
    if service == "clustering":
        table = golden(version, "clustered_cow").table
        instant, run = str(plan_of_all(table, {SORT_COLUMNS: "name"})), cluster
    else:
        table = golden(version, "mor_compaction_requested").table
        instant, run = planned(table), compact
    pending = pending_instants(table)
    write = BaseFileHandle.write

    def changed(self: BaseFileHandle, batch: pa.RecordBatch, *, known_keys: bool = False) -> None:
        """The first row for the second."""
        write(self, batch.take(pa.array([0, 0, *range(2, batch.num_rows)])), known_keys=known_keys)

    monkeypatch.setattr(BaseFileHandle, "write", changed)
    options = {**FULL, "airflow_hudi.compaction.copy_row_groups": "false"}
    with pytest.raises(ExecutionError, match="are not the same") as caught:
        run(table, options=options, instant=instant)
    assert "nothing was published" in str(caught.value.remedy)
    assert pending_instants(table) == pending
    monkeypatch.undo()
    assert run(table, options=options, instant=instant).state == "completed"


def test_a_unit_of_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ExecutionError, match="names neither"):
        sum_rows(SumUnit(str(tmp_path), {}, "", "1", ()), TaskAttempt(0, 0, 0))
