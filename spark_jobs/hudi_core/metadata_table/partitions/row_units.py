"""The units of a row-level index's exchange: each is the change of one data file group."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import pyarrow as pa

from hudi_core.engine.serializer import from_text, to_text
from hudi_core.filegroup.read.read_spec import ReaderSpec
from hudi_core.metadata_table.extract.slice_change import ChangeReader, SliceChange
from hudi_core.metadata_table.partitions.registry import row_level_class
from hudi_core.metadata_table.partitions.row_level import IndexRows
from hudi_core.storage.data_registry import open_data_storage
from hudi_core.view.slice_json import check_slice

if TYPE_CHECKING:
    from hudi_core.engine.protocol import TaskAttempt


@dataclass(frozen=True, slots=True)
class RowsOfIndex:
    """An index's row_level.IndexRows as text, which a unit holds; the registry knows its class by the partition."""

    partition: str
    text: str

    @staticmethod
    def of(rows: IndexRows) -> RowsOfIndex:
        """Raises TypeError for a class that cannot cross an engine."""
        return RowsOfIndex(rows.partition, to_text(rows))

    @property
    def rows(self) -> IndexRows:
        """The inverse of `of`. Raises UnsupportedError for a partition that is no row-level index."""
        return _rows(self.partition, self.text)


@lru_cache(maxsize=8)
def _rows(partition: str, text: str) -> IndexRows:
    return from_text(row_level_class(partition).rows_class(), text)


@dataclass(frozen=True, slots=True)
class IndexUnit:
    """The change of one data file group. `reader` is ReaderSpec.to_text of a snapshot query, without columns or filters
    of its own.
    """

    uri: str
    storage_options: Mapping[str, str]
    reader: str
    index: RowsOfIndex
    change: SliceChange


def produce_index_rows(unit: IndexUnit, attempt: TaskAttempt) -> Iterator[pa.RecordBatch]:
    """engine.protocol.Produce of a unit. Raises FormatError for names that leave the table, and what reading files
    raises (filegroup.read.slice_reader).
    """
    storage, spec, change = open_data_storage(unit.uri, unit.storage_options), _spec(unit.reader), unit.change
    for item in (change.before, change.after):
        if item is not None:
            check_slice(item)
    yield from unit.index.rows.of_change(ChangeReader(storage, spec, change.instant), change)


@lru_cache(maxsize=8)
def _spec(text: str) -> ReaderSpec:
    return ReaderSpec.from_text(text)
