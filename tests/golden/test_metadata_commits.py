"""For each commit of real tables: what the kinds say of it is what real Hudi's writer wrote into its metadata table,
cell by cell.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.support.golden_data import GoldenCase
from tests.support.golden_metadata_cells import GoldenCells, differences
from tests.support.tiers import tiered

Golden = Callable[[str, str], GoldenCase]
EVERY_KIND = [
    (version, case)
    for version in ("6", "8", "9")
    for case in ("mdt_all_cow", "mdt_all_cow_compacted", "mdt_all_mor", "mdt_all_mor_compacted")
]
STATISTICS = [
    ("8", "cow_basic"),
    ("8", "mor_basic"),
    ("9", "cow_basic"),
    ("9", "mor_basic"),
    ("8", "mdt_record_index_lookup"),
    ("9", "mdt_record_index_lookup"),
    ("6-by-1.2.0", "cow_basic"),
    ("6-by-1.2.0", "mor_basic"),
    ("8-by-1.2.0", "cow_basic"),
    ("8-by-1.2.0", "mor_basic"),
]
LISTED = [
    ("6", "mor_compacted"),
    ("6", "insert_overwrite_partition_cow"),
    ("6", "non_partitioned_cow"),
    ("6", "clustered_cow"),
    ("8", "clustered_cow"),
    ("8", "empty_commit"),
    ("9", "delete_partition_cow"),
    ("9", "insert_overwrite_table"),
    ("9", "multilevel_encoded"),
]
WRITER = {"spark.sql.session.timeZone": "UTC"}
# With the version 9 table's writes real Hudi takes the data table's setting for filters of expressions, before that its
# default.
WRITER_OF_9 = {**WRITER, "hoodie.index.bloom.num_entries": "1000"}


@pytest.mark.parametrize(
    ("version", "case"),
    tiered(
        [*EVERY_KIND, *STATISTICS, *LISTED],
        [
            ("6", "mdt_all_mor_compacted"),
            ("8", "mdt_all_cow"),
            ("9", "mdt_all_mor"),
            *LISTED,
        ],
    ),
)
def test_the_records_of_each_commit_are_those_that_hudi_wrote(golden: Golden, version: str, case: str) -> None:
    _compare(GoldenCells(golden(version, case).table, WRITER_OF_9 if version == "9" else WRITER))


def test_a_compaction_that_later_commits_overtook_says_what_hudi_said(golden: Golden) -> None:
    _compare(GoldenCells(golden("9", "mor_compaction_requested").after(), WRITER))


def _compare(table: GoldenCells) -> None:
    compared = 0
    for partition in table.listed():
        for instant, metadata in table.commits():
            if instant.requested_time < table.built(partition):
                continue
            theirs = table.theirs(partition, instant.requested_time)
            assert differences(theirs, table.ours(partition, instant, metadata)) == [], (partition, instant)
            compared += len(theirs)
    assert compared > 0
