"""Every golden table: its metadata table is dropped and created again with the partitions that it had, and a validation
finds nothing.

Where real Hudi wrote none, `files` and `column_stats` are created. `make test` has two tables with every partition type
and some others; `make conformance` has all of them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hudi_core.engine.local import LocalEngine
from hudi_core.errors import ConflictError, UnsupportedError
from hudi_core.metadata_table.indexed_table import load_index_definitions, put_index_definitions
from hudi_core.metadata_table.read.file_group import ROOT
from hudi_core.services.metadata.index_drop import drop_metadata
from hudi_core.services.metadata.maintain import create_metadata
from hudi_core.table import HudiTable
from hudi_core.transaction.owner import Owner
from hudi_health.table import validate_metadata
from tests.support.golden_cleans import context_of
from tests.support.golden_data import golden_cases, open_case
from tests.support.metadata_records import Table
from tests.support.rows import assert_same_rows
from tests.support.table_invariants import read_rows
from tests.support.tiers import tiered

TABLES = [
    (folder, case)
    for folder in ("6", "6-by-1.2.0", "8", "8-by-1.2.0", "9")
    for case in golden_cases(folder)
    if case != "log_truncated"  # its log files lost bytes of a commit: they are not listed (view.listing)
]
QUICK = {
    ("6", "mdt_all_mor"),
    ("9", "mdt_all_mor_compacted"),
    ("8", "clustered_cow"),
    ("9", "non_partitioned_mor"),
    ("6", "types_cow"),
}
WIDE_DECIMALS = {
    *(
        ("6", name)
        for name in (
            "mor_parquet_log_types",
            "types_3level_lists_cow",
            "types_3level_lists_mor",
            "types_cow",
            "types_mor",
        )
    ),
    ("6-by-1.2.0", "types_mor"),
}
"""Values that are no decimal(30, 15), in a version whose readers take a column without statistics for one without
values.
"""
OPTIONS = {"spark.sql.session.timeZone": "UTC"}
READS = {"airflow_hudi.read.zone": "UTC"}
NEEDS_REST = "cannot begin while actions of the table are pending"


def findings(table: Table) -> list[Any]:
    return list(validate_metadata(HudiTable.open(str(table.path), options=READS)).differences)


@pytest.mark.parametrize(
    ("folder", "case"),
    tiered(TABLES, QUICK),
)
def test_a_validation_finds_nothing(folder: str, case: str, tmp_path: Path) -> None:
    table = Table(open_case(folder, case, tmp_path).table)
    listed = table.config.metadata_partitions or {"files", "column_stats"}
    owner, engine = Owner.current("test"), LocalEngine(2)
    rows = read_rows(table.path, "off")
    defined = load_index_definitions(table.storage, table.config)
    waits = table.config.features.metadata_needs_rest and any(
        item.action != "indexing" for item in table.data.load().pending()
    )
    drop_metadata(context_of(table.path), ["files"], owner)
    assert not (table.path / ROOT).exists()
    assert load_index_definitions(table.storage, table.config) == {}
    put_index_definitions(
        table.storage,
        table.config,
        [item for name, item in defined.items() if name.startswith(("secondary_", "expr_"))],
    )
    if waits:
        with pytest.raises(ConflictError, match=NEEDS_REST):
            create_metadata(context_of(table.path, OPTIONS), listed, engine, owner, 3)
        assert not (table.path / ROOT).exists()
        return
    if (folder, case) in WIDE_DECIMALS:
        with pytest.raises(UnsupportedError, match="cannot store the range of the column 'c_dec_38_10'"):
            create_metadata(context_of(table.path, OPTIONS), listed, engine, owner, 3)
        listed = {"files", "bloom_filters"}
    assert create_metadata(context_of(table.path, OPTIONS), listed, engine, owner, 3).metadata_partitions == listed
    assert findings(table) == []
    assert_same_rows(read_rows(table.path, "on"), rows)


@pytest.mark.parametrize("case", ["cdc_cow", "cdc_mor"])
def test_ranges_of_partitions_with_log_files_of_changes(case: str, tmp_path: Path) -> None:
    table = Table(open_case("8", case, tmp_path).table)
    assert list(table.path.rglob("*.cdc"))
    names = {"column_stats", "partition_stats"}
    assert create_metadata(
        context_of(table.path, OPTIONS), names, LocalEngine(2), Owner.current("test")
    ).metadata_partitions == names | {"files"}
    assert findings(table) == []


def test_the_choice_is_of_tables_that_there_are() -> None:
    assert set(TABLES) >= QUICK
