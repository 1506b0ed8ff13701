"""Rows of one key in several file groups under a global record index: they are clustered, and the index names one."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from hudi_core.metadata_table.record import FileEntry
from hudi_core.table import HudiTable
from tests.support.damaged_tables import DamagedTable
from tests.support.hudictl_runner import hudictl


def rows(table: Path) -> list[tuple[str, str, str]]:
    batches = HudiTable.open(str(table)).read().batches
    return sorted((row["id"], row["part"], row["v"]) for batch in batches for row in batch.to_pylist())


def test_they_are_clustered(reported: Callable[[str], Path]) -> None:
    """A second file group has the rows of another; each is clustered into a new one."""
    table = reported("key_twice_under_global_index")
    (file,) = table.glob("p1/5fe7ae6d*.parquet")
    second = file.name.replace("5fe7ae6d", "ffffffff")
    shutil.copy2(file, file.with_name(second))
    DamagedTable(table).list_files("p1", {second: FileEntry(file.stat().st_size)})
    before = rows(table)
    assert [key for key, _, _ in before].count("q0") == 2
    apart = "hoodie.clustering.plan.strategy.max.bytes.per.group=500000"
    done = hudictl("run", "clustering", table, "--schedule", "--engine", "local", "--option", apart)
    assert done.code == 0, done.err
    assert rows(table) == before
    assert hudictl("metadata", "validate", table).code == 0
