"""One table, several Hudis: what decides whose rules a table is merged by, proven with what each of them reads from the
same files.

Hudi 1.2.0 read the tables of 0.15 and 1.0.2, too (`snapshot.by-1.2.0.parquet`). With the properties that 1.2.0 would
keep them by, we give its answer; with their own, that of the version that wrote them (tests/golden/test_reads.py).
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_core.filegroup.merge.user_mergers import register_merger
from hudi_core.table import HudiTable
from tests.support.golden_data import GoldenCase
from tests.support.rows import assert_same_rows
from tests.support.tiers import tiered

Golden = Callable[[str, str], GoldenCase]

BY_1_2 = (
    ("6", "payload_default"),
    ("6", "payload_event_time"),
    ("6", "payload_overwrite_latest"),
    ("6", "payload_overwrite_nondefaults"),
    ("6", "payload_partial_update"),
    ("8", "payload_event_time"),
    ("8", "payload_overwrite_nondefaults"),
    ("8", "payload_partial_update"),
)


def read(base: Path, options: dict[str, str] | None = None) -> pa.Table:
    result = HudiTable.open(str(base), options=options).read()
    return pa.Table.from_batches(result.batches, result.schema)


@pytest.mark.parametrize(
    ("version", "name"),
    tiered(
        BY_1_2,
        [
            ("6", "payload_default"),
            ("6", "payload_partial_update"),
            ("8", "payload_event_time"),
            ("8", "payload_overwrite_nondefaults"),
        ],
    ),
    ids=lambda value: value,
)
def test_a_table_that_hudi_1_2_keeps_is_merged_by_its_rules(golden: Golden, version: str, name: str) -> None:
    case = golden(version, name)
    own, other = (
        pq.read_table(case.expected / "snapshot.parquet"),
        pq.read_table(case.expected / "snapshot.by-1.2.0.parquet"),
    )
    assert_same_rows(read(case.table), own, ignore=())
    with (case.table / ".hoodie" / "hoodie.properties").open("a") as properties:
        properties.write("\nhoodie.table.ordering.fields=ts\n")
    found = read(case.table)
    assert_same_rows(found, other, ignore=())
    assert own.num_rows != other.num_rows


def test_a_function_of_the_user_merges(golden: Golden) -> None:
    """The oldest version of each row wins, which no mode of Hudi's gives: the base file's rows, but for what was
    deleted.
    """

    def oldest(older: pa.RecordBatch, newer: pa.RecordBatch) -> tuple[pa.RecordBatch, None]:
        assert older.schema.equals(newer.schema)
        return older, None

    register_merger("tests.oldest", oldest)
    case = golden("8", "merge_mode_commit_time")
    found = read(case.table, {"airflow_hudi.merge.function": "tests.oldest"})
    result = HudiTable.open(str(case.table)).read(query="read_optimized")
    base = {row["_hoodie_record_key"]: row for row in pa.Table.from_batches(result.batches, result.schema).to_pylist()}
    rows = {row["_hoodie_record_key"]: row for row in found.to_pylist()}
    snapshot = {row["_hoodie_record_key"] for row in pq.read_table(case.expected / "snapshot.parquet").to_pylist()}
    assert set(rows) == snapshot, "deletes delete whatever the function"
    kept = set(rows) & set(base)
    assert kept
    assert all(rows[key] == base[key] for key in kept)
    assert any(
        rows[key] != row for key, row in ((row["_hoodie_record_key"], row) for row in read(case.table).to_pylist())
    )
