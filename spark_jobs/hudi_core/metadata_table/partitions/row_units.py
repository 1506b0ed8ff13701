"""The units of a row-level index's exchange: each is the change of one data file group."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import pyarrow as pa

from hudi_core.engine.serializer import from_text
from hudi_core.filegroup.read.read_spec import ReaderSpec
from hudi_core.metadata_table.extract.slice_change import ChangeReader, SliceChange
from hudi_core.metadata_table.partitions.record_index import RecordIndexRows
from hudi_core.metadata_table.partitions.row_level import IndexRows
from hudi_core.metadata_table.partitions.secondary_index import SecondaryIndexRows
from hudi_core.storage.data_registry import open_data_storage
from hudi_core.view.file_group import check_slice

if TYPE_CHECKING:
    from hudi_core.engine.protocol import TaskAttempt


AnyIndexRows = RecordIndexRows | SecondaryIndexRows
"""The classes of row_level.IndexRows that cross an engine."""


def crossing(rows: IndexRows) -> AnyIndexRows:
    """`rows` as what a unit holds. Raises TypeError for a class that AnyIndexRows lacks, a defect of its module."""
    if not isinstance(rows, RecordIndexRows | SecondaryIndexRows):
        raise TypeError(f"{type(rows).__name__} is not one of AnyIndexRows")
    return rows


@dataclass(frozen=True, slots=True)
class IndexUnit:
    """The change of one data file group. `reader` is the ReaderSpec of a snapshot query as text, without columns or
    filters of its own.
    """

    uri: str
    storage_options: Mapping[str, str]
    reader: str
    index: AnyIndexRows
    change: SliceChange


def produce_index_rows(unit: IndexUnit, attempt: TaskAttempt) -> Iterator[pa.RecordBatch]:
    """engine.protocol.Produce of a unit. Raises FormatError for names that leave the table, and what reading files
    raises (filegroup.read.slice_reader).
    """
    storage, spec, change = open_data_storage(unit.uri, unit.storage_options), _spec(unit.reader), unit.change
    for item in (change.before, change.after):
        if item is not None:
            check_slice(item)
    yield from unit.index.of_change(ChangeReader(storage, spec, change.instant), change)


@lru_cache(maxsize=8)
def _spec(text: str) -> ReaderSpec:
    return from_text(ReaderSpec, text)
