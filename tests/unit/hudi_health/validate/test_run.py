"""Every damage is found, and nothing else: wrong records of every partition type, in every version that has it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hudi_core.storage.arrow_store import open_data_storage
from hudi_health.validate.run import validate
from tests.support.damaged_tables import DamagedTable, changed
from tests.support.golden_cleans import context_of
from tests.support.golden_data import GoldenCase

Golden = Callable[[str, str], GoldenCase]
VERSIONS = ["6", pytest.param("8", marks=pytest.mark.conformance), "9"]
LATER = ["8", pytest.param("9", marks=pytest.mark.conformance)]
"""Every damage of the list on every version: test_every_table_damaged."""
STATS, BLOOM = "ColumnStatsMetadata", "BloomFilterMetadata"
DAY, LOW, NAMES = "expr_index_idx_day", "expr_index_idx_low", "secondary_index_idx_name"


def metadata_snapshot(golden: Golden, version: str, name: str = "mdt_all_cow") -> DamagedTable:
    return DamagedTable(golden(version, name).table)


def test_the_zone_of_an_expression_has_to_be_given(golden: Golden) -> None:
    """Counts and files are compared without it."""
    table = metadata_snapshot(golden, "9")
    key, datum = next(
        (key, item) for key, item in table.raw(DAY).items() if item[STATS]["fileName"].endswith(".parquet")
    )
    wrapper = datum[STATS]["minValue"][0]
    table.rewrite(DAY, {key: changed(datum, STATS, minValue=(wrapper, {"value": "9999"}), valueCount=1)})
    report = validate(context_of(table.path), open_data_storage(str(table.path)))
    (found,) = report.differences
    assert found.what.startswith("stored are 0 nulls of 1 values, but there are 0 of ")
    assert "airflow_hudi.read.zone" in next(item.why for item in report.not_checked if item.partition_type == DAY)
