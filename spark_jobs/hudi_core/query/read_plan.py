"""A planned query: splits that may be read anywhere, and how a split is read.

Replaced rows in incremental queries, an open point of RFC-18, are reported on request (docs/decisions/0006): besides
the rows that the commits of the range wrote, such a query returns every row of the file groups that overwrites and
dropped partitions of the range replaced, as the replacecommit found it, with the replacecommit's instant as
`_hoodie_commit_time` and true in `_hoodie_is_deleted`. A consumer applies the deletes of an instant before its writes:
a key that was overwritten is in both.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from hudi_core.errors import ConfigError
from hudi_core.expr.bind import bind
from hudi_core.expr.json_form import from_json
from hudi_core.filegroup.read.read_spec import ReaderSpec, of_predicate
from hudi_core.filegroup.read.slice_reader import SliceReader
from hudi_core.index.footers import RowGroups, row_group_chooser
from hudi_core.model.names import COMMIT_TIME, IS_DELETED
from hudi_core.query.cdc_change import CDC_SCHEMA, Change
from hudi_core.query.cdc_read import ChangeReader
from hudi_core.storage.arrow_store import open_data_storage
from hudi_core.timeline.schema_history import renamed_columns
from hudi_core.view.file_group import slice_from_json

if TYPE_CHECKING:
    from hudi_core.engine.protocol import Json
    from hudi_core.storage.base import Storage

REPLACED_BY: Final = "replaced_by"
"""In a split: the instant that replaced its rows, None for rows that the range wrote.

In what splits share: whether the two are distinguished.
"""
_QUERIES: Final = 8
"""How many prepared queries a process caches, each some hundred kilobytes.

Preparing takes 0.7 ms, for a table of 300 columns 14 ms.
"""


@dataclass(frozen=True, slots=True)
class ReadPlan:
    """A query ready to run: `read_split(common, split)` gives the rows of one split; the result is all splits' rows.

    `common` and each split are JSON. A split has `bytes`, the size of the files it reads. `files_read` counts base and
    log files, `files_pruned` those that the predicate excluded; `report` says by which index.
    """

    schema: pa.Schema
    common: Json
    splits: tuple[Json, ...]
    files_read: int
    files_pruned: int = 0
    report: Json = field(default_factory=dict)

    def batches(self, storage: Storage | None = None) -> Iterator[pa.RecordBatch]:
        """All rows, split by split, read in this process.

        `storage` is the table's data path when it is open already.
        """
        for split in self.splits:
            yield from read_split(self.common, split, storage)


def read_split(common: Json, split: Json, storage: Storage | None = None) -> Iterator[pa.RecordBatch]:
    """The rows of one split in the plan's schema. `storage` is the table's data path when it is open already.

    Raises ConfigError for JSON that this version did not write, StorageNotFoundError for a missing file, FormatError
    for one that is broken or not supported.
    """
    try:
        uri, options, prepared = common["uri"], common["storage_options"], _prepared(common["reader"])
        changes = common.get("changes")
    except (KeyError, TypeError) as error:
        raise ConfigError(f"a read's splits are not what this version writes: {error!r}") from error
    data = open_data_storage(uri, options) if storage is None else storage
    if changes is not None:
        yield from _changes(ChangeReader(data, prepared.spec), changes, split)
    elif REPLACED_BY in common:
        schema = SliceReader(data, prepared.spec).output_schema()
        kept = prepared if split.get(REPLACED_BY) is None else prepared.of_any_commit
        yield from flagged(kept.rows(data, split), split, schema)
    else:
        yield from prepared.rows(data, split)


@dataclass(frozen=True)
class _Prepared:
    """A query's reader, and what it works out before the first slice: columns, filters and the choice of row groups."""

    spec: ReaderSpec

    def rows(self, storage: Storage, split: Json) -> Iterator[pa.RecordBatch]:
        return SliceReader(storage, self.spec).read(slice_from_json(split), row_groups=self._row_groups)

    @cached_property
    def of_any_commit(self) -> _Prepared:
        """The same query without its range of commits."""
        return _Prepared(replace(self.spec, commit_times=None))

    @cached_property
    def _row_groups(self) -> RowGroups | None:
        """What rules out row groups of base files that are read alone."""
        spec = self.spec
        if spec.predicate is None:
            return None
        incremental, renamed = spec.commit_times is not None, renamed_columns(spec.history)
        bound = bind(from_json(spec.predicate), spec.output.all, zone=spec.zone)
        return row_group_chooser(
            bound, spec.config, merged=spec.merge_logs, incremental=incremental, by_other_name=renamed
        )


@lru_cache(maxsize=_QUERIES)
def _prepared(text: str) -> _Prepared:
    return _Prepared(ReaderSpec.from_text(text))


def _changes(reader: ChangeReader, requested: Json, split: Json) -> Iterator[pa.RecordBatch]:
    """The rows of a change-data query, filtered and projected."""
    try:
        columns, predicate = [str(name) for name in requested["columns"]], requested["predicate"]
    except (KeyError, TypeError) as error:
        raise ConfigError(f"a change-data read is not what this version writes: {error!r}") from error
    row_filter = None if predicate is None else of_predicate(predicate, CDC_SCHEMA)
    for batch in reader.read(Change.from_json(split)):
        kept = batch if row_filter is None else row_filter.apply(batch)
        if kept.num_rows:
            yield kept.select(columns)


def flagged(batches: Iterator[pa.RecordBatch], split: Json, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The rows of a split, marked; `schema` is that of the batches without the flag."""
    instant = split.get(REPLACED_BY)
    for batch in batches:
        columns = [batch.column(field.name).cast(field.type) for field in schema if field.name != IS_DELETED]
        names = [name for name in schema.names if name != IS_DELETED]
        count = batch.num_rows
        if instant is not None and COMMIT_TIME in names:
            columns[names.index(COMMIT_TIME)] = pa.array([instant] * count, pa.string())
        if (
            instant is None
            and IS_DELETED in batch.schema.names
            and pa.types.is_boolean(batch.schema.field(IS_DELETED).type)
        ):
            flags = batch.column(IS_DELETED).fill_null(False)
        else:
            flags = pa.repeat(pa.scalar(instant is not None), count)
        yield pa.RecordBatch.from_arrays([*columns, flags], names=[*names, IS_DELETED])
