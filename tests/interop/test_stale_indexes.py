"""Real Hudi loses rows by the indexes that it left incomplete, and finds them when `metadata update`, or our
compaction, has mended these (docs/decisions/0018).
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hudi_core.config.metadata_config import REBUILD_ROW_INDEXES
from tests.interop.real_hudi import RealHudi
from tests.support.golden_compactions import compact
from tests.support.stale_indexes import BULK, StaleTable
from tests.support.tiers import tiered

pytestmark = [pytest.mark.hudi, pytest.mark.slow]

Stale = Callable[[str], StaleTable]
AMOUNTS = ["amount = 3.0", "amount = 500.0", "amount = 1000.0"]
NAMES = [BULK, "name = 'told name 1'", "name = 'name 20'"]


def found(hudi: RealHudi, table: StaleTable, predicates: list[str]) -> list[bool]:
    """Whether real Hudi's query of each predicate gives the rows that it gives without the metadata table."""
    answers = hudi.ask("skipping", base=str(table.path), predicates=predicates)
    assert all(answer["rows"] for answer in answers), answers
    return [answer["same"] for answer in answers]


@pytest.mark.conformance
@pytest.mark.parametrize("name", ["narrow_v8", "overtaken_v8"])
def test_narrow_ranges(stale: Stale, hudi_1_0: RealHudi, name: str) -> None:
    table = stale(name)
    assert found(hudi_1_0, table, AMOUNTS) == [False, False, True]
    table.update()
    assert found(hudi_1_0, table, AMOUNTS) == [True, True, True]


@pytest.mark.conformance
def test_narrow_ranges_behind_our_compaction(stale: Stale, hudi_1_0: RealHudi) -> None:
    table = stale("narrow_v8")
    compact(table.path)
    assert found(hudi_1_0, table, AMOUNTS) == [True, True, True]


@pytest.mark.parametrize("name", tiered(["bulk_v8", "bulk_v9", "clustered_v9"], ["bulk_v9"]))
def test_secondary_indexes_without_rows(stale: Stale, hudi_1_2: RealHudi, name: str) -> None:
    table = stale(name)
    assert found(hudi_1_2, table, NAMES) == [False, True, True]
    table.update({REBUILD_ROW_INDEXES.name: "true"})
    assert found(hudi_1_2, table, NAMES) == [True, True, True]
