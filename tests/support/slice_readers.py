"""Golden tables opened down to the slice reader, for tests of reading."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from hudi_core.codec.avro.schema import AvroSchema
from hudi_core.codec.parquet.splice import RowGroupSource
from hudi_core.config.table_config import TableConfig
from hudi_core.filegroup.read.log_scan import CommittedInstants, latest_read_instant
from hudi_core.filegroup.read.read_spec import ReaderSpec
from hudi_core.filegroup.read.slice_reader import SliceReader
from hudi_core.storage.local import LocalStorage
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.timeline.schemas import schema_of
from hudi_core.timeline.timeline import Timeline
from hudi_core.view.file_group import FileSlice
from hudi_core.view.listing import StorageListing
from tests.support.views import view_of


def spec_of(
    config: TableConfig, schema: AvroSchema, timeline: Timeline, *, merge_logs: bool = True, **more: Any
) -> ReaderSpec:
    """A query as of the last completed commit; `more` goes to ReaderSpec."""
    return ReaderSpec(config, schema, CommittedInstants.of(timeline), latest_read_instant(timeline), merge_logs, **more)


def made_up_spec(config: TableConfig, *, merged: bool = True, renamed: Collection[str] = (), **more: Any) -> ReaderSpec:
    """A query of a table without columns or commits, of which older files have the columns `renamed` otherwise."""
    history = [[0, [[name, f"old_{name}", []] for name in renamed]]]
    schema = {"type": "record", "name": "r", "fields": []}
    committed = CommittedInstants(frozenset(), frozenset(), None)
    return ReaderSpec(config, schema, committed, None, merged, history=history, **more)


def opened(table: Path, *, snapshot: bool = True, **more: Any) -> tuple[SliceReader, list[FileSlice]]:
    """A reader of the table and the slices of a snapshot; `more` goes to ReaderSpec."""
    storage = LocalStorage(str(table))
    config = TableConfig.load(storage)
    active = ActiveTimeline(storage, config)
    timeline = active.load()
    view = view_of(active, StorageListing(storage), timeline)
    spec = spec_of(config, schema_of(timeline, active.read_details), timeline, merge_logs=snapshot, **more)
    return SliceReader(storage, spec), [
        item for partition in view.partitions() for item in view.latest_merged_slices(partition)
    ]


def rows(reader: SliceReader, slices: list[FileSlice], columns: list[str] | None = None, **more: Any) -> pa.Table:
    """All rows of the slices; `more` goes to SliceReader.read."""
    return pa.Table.from_batches(
        [batch for item in slices for batch in reader.read(item, columns, **more)], reader.output_schema(columns)
    )


@dataclass
class RowGroups:
    """A choice of row groups alone."""

    numbers: list[int] | None
    requested: list[int] = field(default_factory=list)

    def row_groups(self, metadata: pq.FileMetaData) -> list[int] | None:
        self.requested.append(metadata.num_row_groups)
        return self.numbers

    def rows(self, source: RowGroupSource, number: int) -> None:
        return None
