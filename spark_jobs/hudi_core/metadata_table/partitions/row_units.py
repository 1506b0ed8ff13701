"""The units of a row-level index's exchange: each is the change of one data file group."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from hudi_core.errors import ConfigError
from hudi_core.filegroup.read.read_spec import ReaderSpec
from hudi_core.metadata_table.extract.slice_change import ChangeReader, SliceChange
from hudi_core.metadata_table.partitions.registry import registered
from hudi_core.metadata_table.partitions.row_level import IndexRows, RowLevelPartition
from hudi_core.storage.data_registry import open_data_storage

if TYPE_CHECKING:
    from hudi_core.engine.protocol import Json, TaskAttempt


def index_unit(uri: str, storage_options: Json, spec: str, rows: IndexRows, change: SliceChange) -> Json:
    """A unit of produce_index_rows; `spec` is ReaderSpec.to_text of a snapshot query, without columns or filters of its
    own.
    """
    return {
        "uri": uri,
        "storage_options": storage_options,
        "reader": spec,
        "index": rows.to_json(),
        "change": change.to_json(),
    }


def produce_index_rows(unit: Json, attempt: TaskAttempt) -> Iterator[pa.RecordBatch]:
    """engine.protocol.Produce of an index_unit.

    Raises ConfigError for JSON that this version did not write, and what reading files raises
    (filegroup.read.slice_reader).
    """
    try:
        storage, spec = open_data_storage(unit["uri"], unit["storage_options"]), _spec(unit["reader"])
        rows, change = rows_from_json(unit["index"]), SliceChange.from_json(unit["change"])
    except (KeyError, TypeError, ValueError) as error:
        raise ConfigError(f"a unit of an index is not what this version writes: {error!r}") from error
    yield from rows.of_change(ChangeReader(storage, spec, change.instant), change)


def rows_from_json(raw: Any) -> IndexRows:
    """Back from IndexRows.to_json. Raises ValueError for a partition that is no row-level index."""
    found = registered(str(raw["partition"]))
    if found is None or not issubclass(found, RowLevelPartition):
        raise ValueError(f"{raw['partition']!r} is no row-level index")
    return found.rows_from_json(raw)


@lru_cache(maxsize=8)
def _spec(text: str) -> ReaderSpec:
    return ReaderSpec.from_text(text)
