"""Version 6 tables whose partition columns Hudi 0.15 reads from the path and 1.2.0 from the rows:
docs/reference/differences.md, section Partition columns.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_core.table import HudiTable
from tests.support.golden_data import GoldenCase
from tests.support.rows import assert_same_rows

Golden = Callable[[str, str], GoldenCase]


def read(base: Path) -> pa.Table:
    result = HudiTable.open(str(base)).read()
    return pa.Table.from_batches(result.batches, result.schema)


@pytest.mark.parametrize("name", ["custom_keygen", "timestamp_keygen_epochmillis", "timestamp_keygen_string"])
def test_a_table_that_hudi_1_keeps_gives_the_stored_values(golden: Golden, name: str) -> None:
    case = golden("6", name)
    own, other = (
        pq.read_table(case.expected / "snapshot.parquet"),
        pq.read_table(case.expected / "snapshot.by-1.2.0.parquet"),
    )
    assert_same_rows(read(case.table), own, ignore=())
    with (case.table / ".hoodie" / "hoodie.properties").open("a") as properties:
        properties.write("\nhoodie.record.merge.mode=EVENT_TIME_ORDERING\n")
    found = read(case.table)
    assert found.column_names == other.column_names
    assert found.schema.types == other.schema.types
    assert_same_rows(found, other, ignore=())


def test_the_path_s_text_where_hudi_0_15_fails(golden: Golden) -> None:
    table = read(golden("6", "timestamp_keygen_hive").table)
    assert table.num_rows == 60
    assert set(table["event_time"].to_pylist()) == {
        text.removeprefix("event_time=") for text in table["_hoodie_partition_path"].to_pylist()
    }
