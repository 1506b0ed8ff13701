"""Nothing is found on any table that real Hudi wrote, but for what real Hudi did wrong."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from hudi_core.errors import MetadataUnavailableError
from tests.support.damaged_tables import DamagedTable
from tests.support.golden_data import GoldenCase, golden_cases
from tests.support.hudi_rs_data import HudiRsTable, hudi_rs_tables
from tests.support.tiers import tiered

Golden = Callable[[str, str], GoldenCase]
FOLDERS = ("6", "6-by-1.2.0", "8", "8-by-1.2.0", "9")
ALL = [(folder, name) for folder in FOLDERS for name in golden_cases(folder)]
NAMES = sorted({name for _, name in ALL})


def _is_quick(folder: str, name: str) -> bool:
    """`make test` looks at each case as one version wrote it, in turn."""
    wrote = [item for item in FOLDERS if (item, name) in ALL]
    return folder == wrote[NAMES.index(name) % len(wrote)]


AFTER = [
    ("6", "compaction_inflight"),
    ("6", "failed_after_metadata_cow"),
    ("8", "failed_after_metadata_mor"),
    ("8", "indexing_requested"),
    ("8", "savepoint_clean_requested"),
    ("9", "failed_after_metadata_mor"),
    ("9", "mor_compaction_requested"),
]
EVERY_TYPE = {
    "6": {"files", "column_stats", "bloom_filters", "record_index"},
    "8": {
        "files",
        "column_stats",
        "bloom_filters",
        "record_index",
        "partition_stats",
        "secondary_index_idx_name",
        "expr_index_idx_day",
    },
}


@pytest.mark.parametrize(
    ("folder", "name"), [pytest.param(*item, marks=() if _is_quick(*item) else pytest.mark.conformance) for item in ALL]
)
def test_nothing_is_found_on_an_original(golden: Golden, folder: str, name: str) -> None:
    table = DamagedTable(golden(folder, name).table)
    if not table.context.has_metadata_table:
        with pytest.raises(MetadataUnavailableError, match="no metadata table"):
            table.report()
        return
    report = table.report()
    assert report.differences == ()
    assert report.counts == {}
    assert set(report.partition_types) == table.context.config.metadata_partitions
    assert report.partitions == len(table.metadata.partitions())


@pytest.mark.parametrize("version", tiered(["6", "8", "9"], ["6", "9"]))
@pytest.mark.parametrize("name", tiered(["mdt_all_cow", "mdt_all_mor_compacted"], ["mdt_all_mor_compacted"]))
def test_what_is_looked_at(golden: Golden, version: str, name: str) -> None:
    case = golden(version, name)
    report = DamagedTable(case.table).report()
    assert set(report.partition_types) >= EVERY_TYPE["6" if version == "6" else "8"]
    assert (
        report.files
        == sum(1 for path in case.table.glob("*/*") if path.suffix == ".parquet" or ".log." in path.name)
        == 15
    )
    assert report.rows == case.info["snapshot"]["rows"] if "snapshot" in case.info else report.rows == 112
    whys = {(item.partition_type, item.why) for item in report.not_checked}
    assert whys == (
        set()
        if version == "6"
        else {("partition_stats", "columns whose values queries take from the partition's path")}
    )


@pytest.mark.parametrize(("folder", "name"), AFTER)
def test_nor_after_real_hudi_executed_a_plan(golden: Golden, folder: str, name: str) -> None:
    assert DamagedTable(golden(folder, name).after()).found() == []


def test_a_rollback_of_hudi_0_15_lists_files_that_are_none(golden: Golden) -> None:
    """It rolled back by listing, and took the table's name for a log file in each partition."""
    found = DamagedTable(golden("6", "failed_after_metadata_mor").after()).found()
    assert {(item.partition_type, item.file, item.what) for item in found} == {
        ("files", "failed_after_metadata_mor", "listed, but it is not there")
    }
    assert len(found) == 3


def test_an_indexer_of_hudi_0_15_leaves_the_index_empty(golden: Golden) -> None:
    table = DamagedTable(golden("6", "indexing_requested").after())
    found = table.found()
    assert sorted((item.partition, item.file) for item in found) == list(table.base_files())
    assert all(
        item.partition_type == "column_stats" and item.what.startswith("has no statistics of ") for item in found
    )


def test_an_indexer_of_hudi_1_2_lists_filters_that_it_did_not_build(golden: Golden) -> None:
    table = DamagedTable(golden("9", "indexing_requested").after())
    assert {(item.partition_type, item.what) for item in table.found()} == {
        ("bloom_filters", "has a filter in its footer, and none here")
    }
    assert sorted((item.partition, item.file) for item in table.found()) == list(table.base_files())


@pytest.mark.parametrize(
    "name", ["types_v6", "types_v8", "types_v9", "keys_v8", "keys_v9", "incomplete_v9", "partitioned_v9"]
)
def test_every_type_odd_keys_and_the_partitioned_record_index(written: Path, name: str) -> None:
    report = DamagedTable(written / name).report()
    assert report.differences == ()
    lacking = [item for item in report.not_checked if item.partition_type == "secondary_index_word"]
    assert bool(lacking) is name.startswith(("keys", "incomplete"))


RS_TABLES = [table for table in hudi_rs_tables() if not table.is_lance]


@pytest.mark.parametrize(
    "name",
    tiered(
        [table.name for table in RS_TABLES],
        [
            f"sample_table/{name}"
            for name in (
                "cow/v8_simplekeygen_nonhivestyle",
                "cow/v9_timebasedkeygen_epochmillis",
                "cow/v9_txns_complex_meta",
                "cow/v9_txns_simple_overwrite",
                "mor/avro/v9_nonpartitioned_rollback",
                "mor/avro/v9_txns_simple_meta",
                "mor/parquet/v6_nonpartitioned",
            )
        ],
    ),
)
def test_nothing_is_found_on_the_tables_of_hudi_rs(name: str) -> None:
    """Real Hudi made them with clusterings, overwrites, key generators of times, and file groups whose last row was
    deleted.
    """
    table = DamagedTable(HudiRsTable(name).path)
    if not table.context.has_metadata_table:
        with pytest.raises(MetadataUnavailableError):
            table.report()
        return
    assert table.report().differences == ()


def test_enough_of_them_have_a_metadata_table() -> None:
    assert sum(DamagedTable(table.path).context.has_metadata_table for table in RS_TABLES) >= 12
