"""doctor finds base files that lost bytes, with a metadata table and without."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from hudi_core.metadata_table.write.lifetime import drop_metadata_table
from hudi_core.storage.local import LocalStorage
from hudi_health.doctor.examine import examine
from hudi_health.doctor.findings import Finding
from tests.support.golden_cleans import context_of
from tests.support.golden_data import GoldenCase
from tests.support.tiers import tiered
from tests.unit.hudi_core.view.test_listing_committed_sizes import cut, newest


def found(table: Path) -> list[Finding]:
    return [item for item in examine(context_of(table)).findings if item.rule == "base_file_cut"]


@pytest.mark.parametrize("version", tiered(["6", "8", "9"], ["6", "9"]))
@pytest.mark.parametrize("left", [0, 100])
def test_a_cut_file_is_found(golden: Callable[[str, str], GoldenCase], version: str, left: int) -> None:
    table = golden(version, "cow_basic").table
    assert found(table) == []
    file = newest(table, "*.parquet")
    cut(file, left)
    (listed,) = found(table)
    assert (listed.severity, listed.path) == ("error", str(file.relative_to(table)))
    assert f"but it has {left}: " in listed.what
    drop_metadata_table(LocalStorage(table))
    assert found(table) == [listed]
