"""A planned query: splits that may be read anywhere, and how a split is read.

An incremental query reports replaced rows on request (docs/decisions/0006); RFC-18 leaves this point open. Besides the
rows that the commits of the range wrote, such a query returns every row of the file groups that overwrites and dropped
partitions of the range replaced. The row is as the replacecommit found it, with the replacecommit's instant as
`_hoodie_commit_time` and true in `_hoodie_is_deleted`. A consumer applies the deletes of an instant before its writes:
a key that was overwritten is in both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import field, replace
from functools import lru_cache
from typing import Final

import pyarrow as pa

from hudi_core.codec.log.blocks import CorruptBlock
from hudi_core.engine.protocol import Json
from hudi_core.engine.serializer import from_text, to_text
from hudi_core.errors import ConfigError
from hudi_core.expr.tree import Expr
from hudi_core.filegroup.read.base_file import RowChoice
from hudi_core.filegroup.read.read_spec import ReaderSpec, of_predicate
from hudi_core.filegroup.read.slice_reader import SliceReader, warn_of_corrupt
from hudi_core.frozen import dataclass
from hudi_core.index.page_skipping import row_choice
from hudi_core.model.names import COMMIT_TIME, IS_DELETED
from hudi_core.query.cdc_read import CDC_SCHEMA, Change, ChangeReader
from hudi_core.storage.arrow_store import open_data_storage
from hudi_core.storage.base import Storage
from hudi_core.view.file_group import FileSlice, check_slice

REPLACED_BY: Final = "replaced_by"
"""In a split: the instant that replaced its rows, or None. In the common part: whether splits have it."""
OnCorrupt = Callable[[CorruptBlock], None]
_QUERIES: Final = 8
"""How many prepared queries a process caches, some hundred KB each. One takes 0.7 ms; with 300 columns, 14 ms."""


@dataclass(frozen=True, slots=True)
class ReadPlan:
    """A query ready to run: `read_split(common, split)` gives the rows of one split, and the result is all splits'
    rows. `common` and each split are JSON. A split has `bytes`, the size of the files it reads. `files_read` counts
    base and log files, `files_pruned` those that the predicate excluded; `report` names the indexes.
    """

    schema: pa.Schema
    common: Json
    splits: tuple[Json, ...]
    files_read: int
    files_pruned: int = 0
    report: Json = field(default_factory=dict)

    def batches(
        self, storage: Storage | None = None, on_corrupt: OnCorrupt = warn_of_corrupt
    ) -> Iterator[pa.RecordBatch]:
        for split in self.splits:
            yield from read_split(self.common, split, storage, on_corrupt)


def split_of(part: FileSlice | Change) -> Json:
    files = part.data_files if isinstance(part, FileSlice) else part.files()
    return {"bytes": sum(file.size for file in files), "part": to_text(part)}


def read_split(
    common: Json, split: Json, storage: Storage | None = None, on_corrupt: OnCorrupt = warn_of_corrupt
) -> Iterator[pa.RecordBatch]:
    """Yields the rows of one split in the plan's schema. `storage` is the table's data path when it is open already.
    Raises ConfigError for JSON of another version, StorageNotFoundError and FormatError for files.
    """
    try:
        uri, options, changes = common["uri"], common["storage_options"], common.get("changes")
        part, replaced_by = split["part"], split.get(REPLACED_BY)
        spec, choice = _prepared(common["reader"], of_any_commit=replaced_by is not None)
    except (KeyError, TypeError) as error:
        raise ConfigError(
            f"a read's splits are not what this version writes: {error!r}", remedy="plan the read again by this version"
        ) from error
    data = open_data_storage(uri, options) if storage is None else storage
    if changes is not None:
        reader, change = ChangeReader(data, spec, on_corrupt), from_text(Change, part).check()
        yield from _changes(reader, from_text(ChangeQuery, changes), change)
        return
    file_slice = check_slice(from_text(FileSlice, part))
    rows = SliceReader(data, spec, on_corrupt=on_corrupt).read(file_slice, choice=choice)
    yield from _flagged(rows, replaced_by) if REPLACED_BY in common else rows


@lru_cache(maxsize=_QUERIES)
def _prepared(text: str, *, of_any_commit: bool) -> tuple[ReaderSpec, RowChoice | None]:
    """Returns what a query works out before its first slice: columns, filters and the choice of rows."""
    spec = from_text(ReaderSpec, text)
    if of_any_commit:
        spec = replace(spec, commit_times=None)
    return spec, None if spec.bound is None else row_choice(spec.bound, spec)


@dataclass(frozen=True, slots=True)
class ChangeQuery:
    """What a change-data query returns of CDC_SCHEMA: the columns, and the rows of a predicate (None: all)."""

    columns: tuple[str, ...]
    predicate: Expr | None


def _changes(reader: ChangeReader, query: ChangeQuery, change: Change) -> Iterator[pa.RecordBatch]:
    row_filter = None if query.predicate is None else of_predicate(query.predicate, CDC_SCHEMA)
    for batch in reader.read(change):
        kept = batch if row_filter is None else row_filter.apply(batch)
        if kept.num_rows:
            yield kept.select(query.columns)


def _flagged(batches: Iterator[pa.RecordBatch], replaced_by: str | None) -> Iterator[pa.RecordBatch]:
    """Yields the rows with `_hoodie_is_deleted` last: the table's own flag, or true where the rows were replaced."""
    for batch in batches:
        columns = dict(zip(batch.schema.names, batch.columns, strict=True))
        flags = columns.pop(IS_DELETED, None)
        if replaced_by is not None and COMMIT_TIME in columns:
            columns[COMMIT_TIME] = pa.repeat(pa.scalar(replaced_by), batch.num_rows)
        if replaced_by is None and flags is not None and pa.types.is_boolean(flags.type):
            flags = flags.fill_null(False)
        else:
            flags = pa.repeat(pa.scalar(replaced_by is not None), batch.num_rows)
        yield pa.RecordBatch.from_arrays([*columns.values(), flags], names=[*columns, IS_DELETED])
