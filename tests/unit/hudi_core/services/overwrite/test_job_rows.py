"""How rows become files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.golden_data import GoldenCase
from tests.support.overwrites import commit_of, overwrite, own_rows, places, put_source
from tests.support.rows import assert_same_rows
from tests.support.table_invariants import read_rows
from tests.support.tiers import tiered

Golden = Callable[[str, str], GoldenCase]


@pytest.mark.parametrize("version", tiered(["6", "9"], ["9"]))
def test_a_partition_becomes_files_of_the_size_that_is_asked_for(golden: Golden, tmp_path: Path, version: str) -> None:
    table = golden(version, "cow_basic").table
    before = read_rows(table)
    given = put_source(own_rows(table, before), tmp_path, files=2)
    size = sum(path.stat().st_size for path in given.iterdir())
    options = {"hoodie.parquet.max.file.size": str(size // 12)}
    result = overwrite(table, given, options, whole_table=True)
    assert result.files_written >= 6
    after = read_rows(table)
    assert places(after) == places(before)
    own = [name for name in before.schema.names if not name.startswith("_hoodie_")]
    assert_same_rows(after.select(own), before.select(own), ignore=())
    stats = list(commit_of(table, result.instant).write_stats())
    assert len({stat.file_id for stat in stats}) == len(stats)
    for stat in stats:
        assert pq.read_metadata(table / stat.path).num_rows == stat.num_writes > 0


def test_rows_that_are_a_little_larger_than_expected_leave_no_small_file(
    golden: Golden, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = golden("9", "cow_basic").table
    rows = own_rows(table, read_rows(table))
    at = rows.schema.get_field_index("dt")
    rows = rows.set_column(at, rows.schema.field(at), [["2024-01-01"] * rows.num_rows])
    given = put_source(rows, tmp_path)
    options = {"airflow_hudi.parquet.row_group.rows": "5", "airflow_hudi.batch.rows": "5"}
    (whole,) = commit_of(table, overwrite(table, given, options, whole_table=True).instant).write_stats()
    footer = pq.read_metadata(table / whole.path)
    groups = [footer.row_group(number) for number in range(footer.num_row_groups)]
    size = sum(group.column(at).total_compressed_size for group in groups for at in range(group.num_columns))
    monkeypatch.setattr("hudi_core.services.source.count.bytes_per_row", lambda *_: 0.9 * size / rows.num_rows)
    result = overwrite(table, given, {**options, "hoodie.parquet.max.file.size": str(int(0.95 * size))})
    assert result.files_written == 1


def test_equal_keys_are_all_written(golden: Golden, tmp_path: Path) -> None:
    table = golden("9", "cow_basic").table
    rows = own_rows(table, read_rows(table)).slice(0, 3)
    assert overwrite(table, put_source(pa.concat_tables([rows, rows]), tmp_path), whole_table=True).records == 6
    assert read_rows(table).num_rows == 6
