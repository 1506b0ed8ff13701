"""Whole metadata partitions of real tables, made from nothing but the data files: what real Hudi's metadata table
holds, cell by cell.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import groupby

import pytest

from hudi_core.metadata_table.records.file_statistics import DataFileRef
from hudi_core.model.names import parse_data_file
from tests.support.golden_data import GoldenCase
from tests.support.golden_metadata_cells import Cells, GoldenCells, differences
from tests.support.tiers import tiered

Golden = Callable[[str, str], GoldenCase]
EVERY_KIND = [
    (version, case)
    for version in ("6", "8", "9")
    for case in ("mdt_all_cow", "mdt_all_cow_compacted", "mdt_all_mor", "mdt_all_mor_compacted")
]
PARTITIONS = [
    *((version, case) for version, case in EVERY_KIND if version != "6"),
    ("8", "cow_basic"),
    ("8", "mor_basic"),
    ("9", "cow_basic"),
    ("9", "mor_basic"),
    ("9", "mdt_record_index_lookup"),
]
WRITER = {"spark.sql.session.timeZone": "UTC"}


@pytest.mark.parametrize(
    ("version", "case"),
    tiered(
        [*EVERY_KIND, ("8", "mor_basic"), ("9", "mor_basic"), ("6-by-1.2.0", "mor_basic")],
        [("6", "mdt_all_cow"), ("6-by-1.2.0", "mor_basic"), ("8", "mdt_all_mor_compacted"), ("9", "mdt_all_mor")],
    ),
)
def test_column_statistics_of_all_files_are_those_that_hudi_holds(golden: Golden, version: str, case: str) -> None:
    table = GoldenCells(golden(version, case).table)
    assert differences(table.merged("column_stats"), table.initial("column_stats", "0", table.files())) == []


@pytest.mark.parametrize(
    ("version", "case"), tiered(EVERY_KIND, [("6", "mdt_all_mor"), ("9", "mdt_all_cow_compacted")])
)
def test_filters_of_all_base_files_are_those_that_hudi_holds(golden: Golden, version: str, case: str) -> None:
    table = GoldenCells(golden(version, case).table)
    ours: Cells = {}
    for instant, files in groupby(sorted(table.files(), key=_written_at), _written_at):
        ours.update(table.initial("bloom_filters", instant, files))
    assert differences(table.merged("bloom_filters"), ours) == []


@pytest.mark.parametrize(
    ("version", "case"), tiered(PARTITIONS, [("8", "mdt_all_cow"), ("9", "mdt_all_mor_compacted")])
)
def test_statistics_of_partitions_from_the_latest_slices_are_those_that_hudi_holds(
    golden: Golden, version: str, case: str
) -> None:
    table = GoldenCells(golden(version, case).table)
    last = table.commits()[-1][0]
    assert differences(table.merged("partition_stats"), table.initial("partition_stats", "0", table.slices(last))) == []


@pytest.mark.parametrize(("version", "case"), [(version, case) for version, case in EVERY_KIND if version != "6"])
def test_an_expression_index_begins_as_hudi_began_it(golden: Golden, version: str, case: str) -> None:
    table = GoldenCells(golden(version, case).table, WRITER)
    for partition in table.listed():
        if not partition.startswith("expr_index_"):
            continue
        built = table.built(partition)
        earlier = [instant for instant, _ in table.commits() if instant.requested_time < built]
        theirs = table.theirs(partition, built)
        assert theirs
        assert differences(theirs, table.initial(partition, built, table.slices(earlier[-1]))) == []


@pytest.mark.parametrize("version", ["8", "9"])
def test_an_index_that_was_built_by_an_indexing_action_begins_as_hudi_began_it(golden: Golden, version: str) -> None:
    table = GoldenCells(golden(version, "indexing_requested").after())
    theirs = table.theirs("column_stats", table.built("column_stats"))
    assert theirs
    assert differences(theirs, table.initial("column_stats", "0", table.files())) == []


@pytest.mark.parametrize(("version", "case"), EVERY_KIND)
def test_the_listing_of_all_files_is_what_hudi_lists(golden: Golden, version: str, case: str) -> None:
    table = GoldenCells(golden(version, case).table)
    ours = table.initial("files", "0", table.files())
    theirs: dict[str, dict[str, object]] = {}
    for instant, _ in table.commits():
        for key, cell in table.theirs("files", instant.requested_time).items():
            theirs.setdefault(key, {}).update(cell["filesystemMetadata"])
    assert {key: cell["filesystemMetadata"] for key, cell in ours.items()} == theirs


def _written_at(file: DataFileRef) -> str:
    name = parse_data_file(file.name)
    return "" if name is None else name.instant
