"""Each operation of a compaction has the file that its result names, and no other; rows are counted."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hudi_core.errors import ExecutionError
from hudi_core.filegroup.merge.base_merge import MergeCounts
from hudi_core.metadata_table.records.file_statistics import DataFileRef, FileStatistics
from hudi_core.services.compaction.job import check_counts
from hudi_core.services.compaction.merge_slice import CompactedSlice
from hudi_core.services.rewriting.proof import prove_operations
from hudi_core.timeline.actions.compaction import CompactionOperation
from hudi_core.timeline.actions.write_stats import WriteStat

INSTANT, GROUP = "20260103000000000", "a-0"
NAME = f"{GROUP}_0-7-1_{INSTANT}.parquet"
UPDATE = CompactionOperation("p", GROUP, "20260101000000000", f"{GROUP}_0-0-0_20260101000000000.parquet", (".log",))
INSERT = replace(UPDATE, base_file=None)
STAT = WriteStat(
    file_id=GROUP,
    path=f"p/{NAME}",
    partition_path="p",
    prev_commit="20260101000000000",
    num_writes=11,
    num_deletes=1,
    num_update_writes=3,
    num_inserts=2,
    file_size_in_bytes=500,
    total_write_bytes=500,
    total_updated_records_compacted=6,
)
RESULT = CompactedSlice(STAT, None, 0, MergeCounts(base=10, updated=3, deleted=1, inserted=2), 11)
NOTHING = CompactedSlice(None, None, 0, MergeCounts(), 0)


def proven(operation: CompactionOperation, result: CompactedSlice, *, with_statistics: bool = False) -> Any:
    return prove_operations([operation], [result], INSTANT, check_counts, is_base=True, with_statistics=with_statistics)


def test_the_new_files_are_those_of_the_stats() -> None:
    found = proven(UPDATE, RESULT)
    assert (found.stats, found.statistics) == ([STAT], [])
    assert list(found.files) == [DataFileRef("p", NAME, 500, is_base=True)]


def test_a_slice_without_a_base_file_whose_blocks_do_not_count_has_no_file() -> None:
    found = proven(INSERT, NOTHING)
    assert (found.files, found.stats, found.statistics) == ([], [], [])


def test_an_operation_with_a_base_file_has_a_result_file() -> None:
    with pytest.raises(ExecutionError, match="has a base file, but the engine wrote none"):
        proven(UPDATE, NOTHING)


@pytest.mark.parametrize("results", [[], [RESULT, RESULT]])
def test_each_operation_has_one_result(results: list[CompactedSlice]) -> None:
    with pytest.raises(ExecutionError, match=f"has 1 operations, the engine returned {len(results)} results"):
        prove_operations([UPDATE], results, INSTANT, check_counts, is_base=True, with_statistics=False)


@pytest.mark.parametrize(
    "changes",
    [
        {"path": f"q/{NAME}"},
        {"path": "p/notes.txt"},
        {"path": f"p/{GROUP}_0-7-1_20260104000000000.parquet"},
        {"path": f"p/b-0_0-7-1_{INSTANT}.parquet"},
        {"partition_path": "q"},
        {"file_id": "b-0"},
        {"file_size_in_bytes": 0},
    ],
)
def test_a_file_of_another_identity_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(ExecutionError, match="the engine returned") as caught:
        proven(UPDATE, replace(RESULT, stat=replace(STAT, **changes)))
    assert caught.value.path == f"result of p/{GROUP}"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"written": 10}, "do not make the 11 rows written"),
        ({"records": MergeCounts(base=9, updated=3, deleted=1, inserted=2)}, "do not make the 11 rows written"),
        ({"records": MergeCounts(base=10, updated=2, deleted=1, inserted=2)}, "hold 6 keys, of which 5 were merged"),
        ({"records": MergeCounts(base=10, updated=-1, deleted=1, inserted=2)}, "are not counts"),
        ({"stat": replace(STAT, num_writes=12)}, "do not make the 12 rows written"),
    ],
)
def test_rows_that_are_lost_or_doubled_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ExecutionError, match=message):
        proven(UPDATE, replace(RESULT, **changes))


def test_an_operation_without_a_base_file_reads_no_base_rows() -> None:
    with pytest.raises(ExecutionError, match="10 base rows, 2 inserted and 1 deleted"):
        proven(INSERT, RESULT)


def test_a_key_that_the_base_holds_twice_is_merged_twice() -> None:
    counts = MergeCounts(base=10, updated=5, deleted=1, inserted=2)
    assert proven(UPDATE, replace(RESULT, records=counts)).stats == [STAT]


def test_the_statistics_are_those_of_the_new_file() -> None:
    statistics = FileStatistics(DataFileRef("p", NAME, 500, is_base=True))
    assert proven(UPDATE, replace(RESULT, statistics=statistics), with_statistics=True).statistics == [statistics]
    with pytest.raises(ExecutionError, match="has no statistics of the file"):
        proven(UPDATE, RESULT, with_statistics=True)
    other = replace(statistics, file=DataFileRef("p", NAME, 501, is_base=True))
    with pytest.raises(ExecutionError, match="the engine wrote"):
        proven(UPDATE, replace(RESULT, statistics=other), with_statistics=True)
