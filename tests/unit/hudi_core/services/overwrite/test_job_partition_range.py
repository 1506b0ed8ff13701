"""A write that began before an overwrite and ends after it: the range that it records of its partition must not be
hidden by that of the overwrite.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hudi_core.services.write import verb
from hudi_core.timeline.instant import Action
from tests.support.golden_data import GoldenCase
from tests.support.metadata_records import Table
from tests.support.overwrites import delete, overwrite, own_rows, put_source, within
from tests.support.table_invariants import read_rows
from tests.support.tiers import tiered
from tests.unit.hudi_core.services.compaction.test_job_partition_range import PARTITION, QTY, record

Golden = Callable[[str, str], GoldenCase]
CONCURRENT = {"hoodie.write.concurrency.mode": "optimistic_concurrency_control"}


def pending_write(table: Table) -> str:
    instant = table.new_instant()
    table.data.create_requested(instant, Action.DELTA_COMMIT, b"")
    table.data.to_inflight(instant, Action.DELTA_COMMIT)
    return instant


@pytest.mark.parametrize("version", tiered(["8", "9"], ["9"]))
def test_an_overwrite_widens_the_range_behind_an_older_write(golden: Golden, tmp_path: Path, version: str) -> None:
    table = Table(golden(version, "mdt_all_mor").table)
    early = pending_write(table)
    rows = own_rows(table.path, within(read_rows(table.path), PARTITION))
    result = overwrite(table.path, put_source(rows.slice(0, 1), tmp_path), CONCURRENT)
    assert early < str(result.instant)
    record(table, early, 10**6)
    after: Any = table.live()["partition_stats"][QTY]
    assert after.range.greatest.value >= 10**6, "the partition is pruned, and the write's rows are hidden"
    (own,) = rows.slice(0, 1).column("qty").to_pylist()
    assert after.range.least.value <= own <= after.range.greatest.value


@pytest.mark.parametrize("version", tiered(["8", "9"], ["9"]))
def test_nor_does_an_emptied_partition_lose_its_range(
    golden: Golden, monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    table = Table(golden(version, "mdt_all_mor").table)
    early = pending_write(table)
    monkeypatch.setattr(verb, "live_writer", lambda *_: None)
    result = delete(table.path, PARTITION)
    assert early < str(result.instant)
    record(table, early, 10**6)
    after: Any = table.live()["partition_stats"].get(QTY)
    assert after is not None, "Hudi takes a partition without a range for one without rows"
    assert after.range.greatest.value >= 10**6


@pytest.mark.parametrize("version", tiered(["8", "9"], ["9"]))
def test_without_one_the_range_is_replaced(golden: Golden, tmp_path: Path, version: str) -> None:
    table = Table(golden(version, "mdt_all_mor").table)
    rows = own_rows(table.path, within(read_rows(table.path), PARTITION)).slice(0, 1)
    overwrite(table.path, put_source(rows, tmp_path))
    after: Any = table.live()["partition_stats"][QTY]
    assert [after.range.least.value] == [after.range.greatest.value] == rows.column("qty").to_pylist()
    delete(table.path, PARTITION)
    assert QTY not in table.live()["partition_stats"]
