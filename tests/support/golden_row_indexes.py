"""The rows of a golden table, commit by commit, through the code that keeps its record index and its secondary
indexes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from hudi_core.config.table_config import TableConfig
from hudi_core.engine.local import LocalEngine
from hudi_core.engine.protocol import TaskAttempt
from hudi_core.engine.serializer import to_text
from hudi_core.metadata_table.partitions.row_exchange import (
    IndexUnit,
    RowsOfIndex,
    distinct_rows,
    produce_index_rows,
)
from hudi_core.metadata_table.partitions.row_indexes import RecordIndexRows, SecondaryIndexRows
from hudi_core.metadata_table.partitions.row_level import SliceChange
from hudi_core.metadata_table.read.file_group import ROOT
from hudi_core.metadata_table.record import MetadataCodec, block_schema, stored_schema
from hudi_core.metadata_table.timeline import latest_schema
from hudi_core.storage.local import LocalStorage
from hudi_core.table import HudiTable
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.view.file_group import FileSlice
from tests.support.slice_readers import spec_of


def group_count(rows: RecordIndexRows | SecondaryIndexRows) -> int:
    return sum(rows.groups.counts.values()) if isinstance(rows, RecordIndexRows) else rows.groups


@dataclass(frozen=True)
class GoldenRows:
    """A golden table; `schema` is that of the records in its metadata table."""

    path: Path
    table: HudiTable
    storage: LocalStorage
    schema: str

    @classmethod
    def open(cls, path: Path) -> GoldenRows:
        table = HudiTable.open(str(path))
        storage = LocalStorage(path)
        if not (path / ".hoodie/metadata").is_dir():
            return cls(path, table, storage, stored_schema(table.config.features))
        metadata_timeline = ActiveTimeline(storage, TableConfig.load(storage, base=ROOT), ROOT)
        return cls(path, table, storage, block_schema(latest_schema(metadata_timeline, metadata_timeline.load())))

    def groups(self, index: str, pattern: str) -> int:
        """How many file groups an index has: each begins with a log file."""
        return len(list((self.path / ".hoodie/metadata" / index).glob(f".{pattern}*.log.1_0-0-0")))

    def spec(self, instant: str | None = None) -> str:
        spec = spec_of(self.table.config, self.table.schema(), self.table.timeline())
        return to_text(spec if instant is None else spec.up_to(instant))

    def slices(self, as_of: str | None) -> dict[Any, FileSlice]:
        if as_of == "":
            return {}
        view = self.table.view()
        return {
            item.file_group: item
            for partition in view.partitions()
            for item in view.latest_merged_slices(partition, as_of)
        }

    def begin(self, rows: RecordIndexRows | SecondaryIndexRows) -> list[dict[bytes, bytes]]:
        """What the index begins with, by file group."""
        return self.exchange(rows, self.spec(), [SliceChange(None, item) for item in self.slices(None).values()])

    def replay(self, rows: RecordIndexRows | SecondaryIndexRows) -> Iterator[tuple[str, list[dict[bytes, bytes]]]]:
        """What each commit wrote to the index, by file group."""
        last = ""
        for instant in self.table.timeline().commits():
            time = instant.requested_time
            before, after = self.slices(last), self.slices(time)
            changes = [SliceChange(before.get(group), after.get(group), time) for group in sorted({*before, *after})]
            yield time, self.exchange(rows, self.spec(time), changes)
            last = time

    def exchange(
        self, rows: RecordIndexRows | SecondaryIndexRows, spec: str, changes: list[SliceChange]
    ) -> list[dict[bytes, bytes]]:
        units = [IndexUnit(str(self.path), {}, spec, RowsOfIndex.of(rows), change) for change in changes]
        found = LocalEngine(2).exchange(
            produce_index_rows, units, partial(_collect, rows), shards=group_count(rows), run_epoch=1
        )
        return [{bytes.fromhex(key): bytes.fromhex(value) for key, value in shard.rows} for shard in found]

    def codec(self) -> MetadataCodec:
        return MetadataCodec(self.schema, path="ours")


@dataclass(frozen=True, slots=True)
class Cells:
    """Keys and values of a shard, in hexadecimal digits."""

    rows: tuple[tuple[str, str], ...]


def _collect(
    rows: RecordIndexRows | SecondaryIndexRows, shard: int, batches: Iterator[pa.RecordBatch], attempt: TaskAttempt
) -> Cells:
    cells = [
        (key.hex(), value.hex())
        for batch in distinct_rows(batches, conflict=rows.conflict)
        for key, value in zip(*(column.to_pylist() for column in batch.columns), strict=True)
    ]
    return Cells(tuple(cells))
