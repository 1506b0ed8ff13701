"""Indexes of rows: record keys and pairs are read from data files on executors and brought to the index's file groups
by an exchange.

The unit of an exchange is the change of one data file group.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

from hudi_core.errors import HudiError
from hudi_core.filegroup.read.read_spec import ReaderSpec
from hudi_core.metadata_table.extract.slice_change import ChangeReader, SliceChange
from hudi_core.metadata_table.partitions.record_index import RecordIndexRows
from hudi_core.metadata_table.partitions.secondary_index import SecondaryIndexRows
from hudi_core.storage.data_registry import open_data_storage
from hudi_core.view.slice_json import check_slice

if TYPE_CHECKING:
    from hudi_core.engine.protocol import TaskAttempt


class IndexRows(Protocol):
    """What makes the rows of one such index: RecordIndexRows, SecondaryIndexRows."""

    @property
    def partition(self) -> str:
        """The metadata partition."""
        ...

    @property
    def shards(self) -> int:
        """The index's file groups: the shards of its exchange, in the order of their ids."""
        ...

    def of_change(self, reader: ChangeReader, change: SliceChange) -> Iterator[pa.RecordBatch]:
        """The exchange's rows of one file group's change."""
        ...

    def conflict(self, key: bytes) -> HudiError:
        """The error where a key comes with two different records."""
        ...


AnyIndexRows = RecordIndexRows | SecondaryIndexRows


@dataclass(frozen=True, slots=True)
class IndexUnit:
    """The change of one data file group. `reader` is ReaderSpec.to_text of a snapshot query, without columns or filters
    of its own.
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
    return ReaderSpec.from_text(text)
