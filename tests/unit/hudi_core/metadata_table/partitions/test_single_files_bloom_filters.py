"""The partition type `bloom_filters`: filters of base files, and their deletion."""

from __future__ import annotations

import pytest

from hudi_core.metadata_table.keys import bloom_filter_key
from hudi_core.metadata_table.partitions import single_files
from hudi_core.metadata_table.partitions.single_files import BloomFiltersPartition, deleted_filters
from hudi_core.metadata_table.records.file_statistics import (
    BloomFilterRules,
    CommitUpdate,
    DataFileRef,
    FileChanges,
    FileStatistics,
    FilterText,
)
from tests.support.clean_updates import BASE, INDEXED, LOG, T, records
from tests.support.golden_metadata_cells import GoldenCells, plain_datum
from tests.support.golden_statistics import Golden, compared_commits

BLOOMS = BloomFiltersPartition("bloom_filters", INDEXED)
FILTER = FilterText("DYNAMIC_V0", "AAAA")


@pytest.mark.parametrize(("version", "case"), [("6", "mdt_all_mor"), ("8", "mdt_all_cow"), ("9", "mdt_all_mor")])
def test_the_records_of_commits_are_those_that_hudi_wrote(golden: Golden, version: str, case: str) -> None:
    count, found = compared_commits(GoldenCells(golden(version, case).table, FILTERS_OF_9), "bloom_filters")
    assert count > 0
    assert found == []


FILTERS_OF_9 = {"hoodie.index.bloom.num_entries": "1000"}


def test_a_base_file_with_a_filter_has_a_record_and_no_other_file() -> None:
    files = (
        FileStatistics(DataFileRef("p1", BASE, 9, is_base=True), bloom=FILTER),
        FileStatistics(DataFileRef("p2", BASE, 9, is_base=True)),
        FileStatistics(DataFileRef("p1", LOG, 9, is_base=False), bloom=FILTER),
    )
    update = CommitUpdate(T, "UPSERT", {}, files)
    ((key, datum),) = BLOOMS.of_commit(update)
    assert list(BLOOMS.initial(T, files)) == [(key, datum)]
    assert key == bloom_filter_key("p1", BASE)
    stored = BloomFilterRules().decode(key, plain_datum(datum), path="f")
    assert (stored.type_code, stored.text, stored.instant, stored.is_deleted) == ("DYNAMIC_V0", b"AAAA", T, False)


@pytest.mark.parametrize("name", ["bloom_filters", "expr_index_low"])
def test_filters_of_base_files_alone(name: str) -> None:
    ((key, datum),) = records({name})[name]
    assert key == bloom_filter_key("p1", BASE)
    assert datum["BloomFilterMetadata"] == {"type": "", "timestamp": T, "bloomFilter": b"", "isDeleted": True}


def test_deleted_files_lose_their_filters_up_to_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    changes = FileChanges(deleted={"p2": frozenset({BASE, LOG}), "p1": frozenset({BASE})})
    assert [key for key, _ in deleted_filters(T, changes)] == [bloom_filter_key(name, BASE) for name in ("p1", "p2")]
    assert list(BLOOMS.of_restore(T, changes)) == list(deleted_filters(T, changes))
    assert list(BLOOMS.of_rollback(changes)) == [], "version 6 rolls the blocks of the failed instant back"
    monkeypatch.setattr(single_files, "MAX_DELETIONS", 1)
    assert [key for key, _ in deleted_filters(T, changes)] == [bloom_filter_key("p1", BASE)]
