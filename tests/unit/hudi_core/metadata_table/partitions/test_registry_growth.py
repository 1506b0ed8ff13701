"""A partition type is one module and one line of the registry: initialized, written by a commit, rolled back, cleaned,
compacted and read back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest

from hudi_core.engine.serializer import from_text, to_text
from hudi_core.errors import HudiError, UnsupportedError
from hudi_core.metadata_table.partitions import registry
from hudi_core.metadata_table.partitions.registry import initialization_order, merge_data, registered
from hudi_core.metadata_table.partitions.row_exchange import RowsOfIndex
from hudi_core.metadata_table.partitions.row_level import ChangeReader, Counts, RowLevelPartition, SliceChange
from hudi_core.metadata_table.read.snapshot import MetadataTableSnapshot
from hudi_core.metadata_table.records.file_statistics import FileChanges
from hudi_core.metadata_table.services.compaction import MetadataCompaction
from hudi_core.services.metadata.maintain import create_metadata
from hudi_core.timeline.instant import Action
from hudi_core.timeline.timeline import Timeline
from tests.support.golden_cleans import context_of
from tests.support.golden_compactions import compact
from tests.support.golden_data import GoldenCase
from tests.support.metadata_records import (
    TOKEN,
    Table,
    complete_clean,
    complete_rollback,
    crash_before_completion,
)
from tests.support.tiers import tiered
from tests.support.toy_partition_type import TYPE, FileSizesPartition, FileSizesRules
from tests.unit.hudi_core.services.compaction.test_job_metadata import plan_all
from tests.unit.hudi_core.services.metadata.test_catch_up import ENGINE, OWNER

Golden = Callable[[str, str], GoldenCase]
NAME = FileSizesPartition.name


@pytest.fixture(autouse=True)
def _one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "PARTITION_TYPES", (*registry.PARTITION_TYPES, FileSizesPartition))


def initialized(golden: Golden, version: str) -> Table:
    path = golden(version, "mdt_all_mor").table
    create_metadata(context_of(path), [NAME], ENGINE, OWNER)
    return Table(path)


def sizes(table: Table, timeline: Timeline | None = None) -> dict[str, int]:
    snapshot = MetadataTableSnapshot(table.storage, table.config, timeline or table.data.load())
    found = snapshot.partition(NAME, FileSizesRules()).all()
    return {key: size for key, size in found if size is not None}


def data_files(path: Path) -> set[str]:
    found = (file for end in ("*.parquet", ".*.log.*") for file in path.glob(f"*/{end}"))
    return {f"{file.parent.name}/{file.name}" for file in found if not file.name.endswith(".crc")}


@pytest.mark.parametrize("version", tiered(["6", "8", "9"], ["6", "9"]))
def test_a_partition_type_takes_one_module_and_one_line(golden: Golden, version: str) -> None:
    table = initialized(golden, version)
    before = sizes(table)
    assert before.keys() == data_files(table.path)
    assert min(before.values()) > 0

    instant = plan_all(table.path)
    compact(table.path)
    after = sizes(table)
    new = after.keys() - before.keys()
    assert new
    assert all(instant in key for key in new)
    assert before.items() <= after.items()

    crash_before_completion(table, instant)
    rollback = table.new_instant()
    table.publisher().roll_back(instant, rollback)
    complete_rollback(table, instant, rollback)
    assert sizes(table) == before


@pytest.mark.parametrize("version", tiered(["6", "8", "9"], ["6", "9"]))
def test_its_files_are_cleaned_and_its_records_compacted(golden: Golden, version: str) -> None:
    table = initialized(golden, version)
    before = sizes(table)
    gone = min(before)
    partition, _, name = gone.partition("/")
    cleaned = table.new_instant()
    table.publisher().check()
    table.data.create_requested(cleaned, Action.CLEAN, b"plan")
    table.publisher().publish_deletes(cleaned, FileChanges(deleted={partition: frozenset({name})}))
    complete_clean(table, cleaned)
    left = {key: size for key, size in before.items() if key != gone}
    assert sizes(table) == left
    done = MetadataCompaction(table.storage, table.config, TOKEN).run(1)
    assert done.instants, done.reason
    assert sizes(table) == left


def test_its_records_merge_by_their_type() -> None:
    older, newer = ({"type": TYPE, "BloomFilterMetadata": {"type": name}} for name in ("a", "b"))
    assert merge_data("k", older, newer, path="p")["BloomFilterMetadata"] == {"type": "a+b"}


def test_names_belong_to_one_partition_type() -> None:
    names = ["files", "column_stats", "bloom_filters", "record_index", "partition_stats", "expr_index_x", NAME]
    assert [found.name for found in map(registered, [*names, "secondary_index_x"]) if found is not None] == [
        *names[:5],
        "expr_index_",
        NAME,
        "secondary_index_",
    ]
    assert sorted([*reversed(names), "secondary_index_a"], key=initialization_order) == [
        *names[:6],
        "secondary_index_a",
        NAME,
    ]
    assert [name for name in ("", "expr_index_", "text_index_x", "column_stats_x") if registered(name)] == []


def test_without_its_line_it_is_refused(golden: Golden, monkeypatch: pytest.MonkeyPatch) -> None:
    table = initialized(golden, "8")
    monkeypatch.setattr(registry, "PARTITION_TYPES", registry.PARTITION_TYPES[:-1])
    with pytest.raises(UnsupportedError, match=NAME):
        table.publisher().check()


@dataclass(frozen=True)
class ToyRows:
    """Rows of a row-level index that no product module names."""

    groups: int
    partition = "toy_rows"

    def of_change(self, reader: ChangeReader, change: SliceChange) -> Iterator[pa.RecordBatch]:
        yield from ()

    def conflict(self, key: bytes) -> HudiError:
        return HudiError(key.hex())


class ToyRowsPartition(RowLevelPartition):
    name = "toy_rows"
    rows_class = ToyRows

    def rows(self, counts: Counts, schema: str, zone: str) -> ToyRows:
        return ToyRows(counts[None])


def test_the_rows_of_a_row_level_index_cross_an_engine_by_its_line(monkeypatch: pytest.MonkeyPatch) -> None:
    crossing = RowsOfIndex.of(ToyRows(3))
    with pytest.raises(UnsupportedError, match="toy_rows"):
        _ = crossing.rows
    with pytest.raises(UnsupportedError, match="column_stats"):
        _ = RowsOfIndex("column_stats", crossing.text).rows
    monkeypatch.setattr(registry, "PARTITION_TYPES", (*registry.PARTITION_TYPES, ToyRowsPartition))
    assert from_text(RowsOfIndex, to_text(crossing)).rows == ToyRows(3)
