"""Reads change-data queries: one commit's changes of one file group as rows with their images (CDCFileGroupIterator),
and the logs that hold them (HoodieCDCLogRecordIterator). cdc_plan.py chooses the slices before and after the commit.
filegroup/read/read_spec.py has the columns of other queries.

Memory: entries of the change-data logs where these keep keys only. A comparison needs the rows that the commit wrote,
and the keys and sequence numbers of the slice. Rows of images that are all new or all deleted are streamed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hudi_core.codec.avro.arrow import arrow_schema, spark_schema
from hudi_core.codec.avro.schema import parse_schema
from hudi_core.codec.log.blocks import BlockType, CorruptBlock
from hudi_core.errors import CorruptFileError, FormatError, UnsupportedError
from hudi_core.filegroup.read.log_records import block_batches
from hudi_core.filegroup.read.log_scan import log_blocks
from hudi_core.filegroup.read.read_spec import ReaderSpec, of_commit_times
from hudi_core.filegroup.read.slice_reader import SliceReader, warn_of_corrupt
from hudi_core.frozen import dataclass
from hudi_core.model.names import COMMIT_SEQNO, COMMIT_TIME, RECORD_KEY, parse_log_file
from hudi_core.model.partition import check_file_name, check_partition
from hudi_core.query.json_text import AVRO, COMPACT, json_rows
from hudi_core.storage.base import Storage
from hudi_core.view.file_group import DataFile, FileSlice, check_slice

CDC_SCHEMA: Final = pa.schema([(name, pa.string()) for name in ("op", "ts_ms", "before", "after")])
"""The columns of a change-data query: i, u or d; the commit's instant; the row before and after as JSON text."""
INSERT, UPDATE, DELETE = "i", "u", "d"
_NULL_RECORD = "null"
"""The text of an image that a change-data log leaves empty. Avro prints it so, and Hudi returns it so."""
_SOURCE = "split of a change-data read"


@dataclass(frozen=True, slots=True)
class Image:
    """A slice before or after a commit. `up_to` is its newest commit (where `inclusive`), None the query's."""

    file_slice: FileSlice
    up_to: str | None = None
    inclusive: bool = True


@dataclass(frozen=True, slots=True)
class Change:
    """One commit's change of one file group. With `logs`, change-data logs hold the changes, and the images hold what
    the logs lack. Without them, the changes are the difference of the images. Where there is no `before`, the rows of
    `after` were inserted; where there is no `after`, the rows of `before` were deleted.
    """

    instant: str
    partition: str
    logs: tuple[DataFile, ...] = ()
    before: Image | None = None
    after: Image | None = None

    def files(self) -> list[DataFile]:
        images = [image.file_slice for image in (self.before, self.after) if image is not None]
        return [*self.logs, *(file for item in images for file in item.data_files)]

    def check(self) -> Change:
        """Returns the change as it is. Raises FormatError for names that leave the table, or its partition."""
        check_partition(self.partition, source=_SOURCE)
        for file in self.logs:
            parse_log_file(check_file_name(file.name, source=_SOURCE))
            if file.partition != self.partition:
                raise FormatError(f"{file.path!r} is not in the partition {self.partition!r}", path=_SOURCE)
        for image in (self.before, self.after):
            if image is not None:
                check_slice(image.file_slice)
        return self


@dataclass(frozen=True)
class ChangeReader:
    """Reads changes. Batches have op, ts_ms, before and after. `spec` has all columns and no conditions."""

    storage: Storage
    spec: ReaderSpec
    on_corrupt: Callable[[CorruptBlock], None] = warn_of_corrupt

    def read(self, change: Change) -> Iterator[pa.RecordBatch]:
        """Yields the rows of a change. Raises as SliceReader.read; CorruptFileError for a log of other slices."""
        if change.logs:
            yield from self._logged(change)
        elif change.after is None and change.before is not None:
            for batch in self._rows(change.before):
                yield _changes(DELETE, change, before=json_rows(batch, COMPACT))
        elif change.before is None and change.after is not None:
            for batch in self._rows(change.after):
                yield _changes(INSERT, change, after=json_rows(batch, COMPACT))
        elif change.before is not None and change.after is not None:
            yield from self._compared(change, change.before, change.after)

    def _reader(self, image: Image) -> SliceReader:
        if image.up_to is None:
            return SliceReader(self.storage, self.spec, on_corrupt=self.on_corrupt)
        # Not by the spec's latest instant: Hudi 0.15 ends a scan at the first newer block, and the command block of a
        # rollback may be newer than the commit whose blocks follow it.
        committed = self.spec.committed.up_to(image.up_to, inclusive=image.inclusive)
        return SliceReader(self.storage, self.spec, committed=committed, on_corrupt=self.on_corrupt)

    def _rows(self, image: Image) -> Iterator[pa.RecordBatch]:
        return self._reader(image).read(image.file_slice)

    def _logged(self, change: Change) -> Iterator[pa.RecordBatch]:
        for file in change.logs:
            for batch in cdc_batches(self.storage, file):
                ops, images = batch.column("op"), []
                for name, image, without in (("before", change.before, INSERT), ("after", change.after, DELETE)):
                    if name in batch.schema.names:
                        images.append(json_rows(batch.column(name), AVRO).fill_null(_NULL_RECORD))
                    else:
                        keys = batch.column("record_key").cast(pa.string())
                        images.append(self._looked_up(image, keys, pc.not_equal(ops, without), file.path))
                yield _changes(ops, change, *images)

    def _looked_up(
        self, image: Image | None, keys: pa.StringArray, requested: pa.BooleanArray, path: str
    ) -> pa.StringArray:
        """Returns the rows of `keys` in an image as JSON; null where not `requested`."""
        places = np.full(len(keys), -1, dtype=np.int64)
        texts: list[pa.StringArray] = []
        count = 0
        sought = keys.filter(requested)
        if image is not None and len(sought):
            for batch in self._rows(image):
                matches = batch.filter(pc.is_in(batch.column(RECORD_KEY), value_set=sought))
                at = pc.index_in(keys, value_set=matches.column(RECORD_KEY)).fill_null(-1).to_numpy()
                places = np.where(at >= 0, at + count, places)
                texts.append(json_rows(matches, COMPACT))
                count += matches.num_rows
        needed = requested.to_numpy(zero_copy_only=False)
        if (places[needed] < 0).any():
            message = f"{int((places[needed] < 0).sum())} keys of the change-data log are not in the file group's rows"
            raise CorruptFileError(message, path=path)
        found_texts = pa.concat_arrays(texts) if texts else pa.array([], pa.string())
        return found_texts.take(pa.array(places, mask=~needed))

    def _compared(self, change: Change, before: Image, after: Image) -> Iterator[pa.RecordBatch]:
        """Yields the difference of two images. Rows that the commit wrote are new or changed. Rows that are there no
        more were changed or deleted. A slice may hold a key several times: then sequence numbers tell its rows apart,
        and the first row that changed became the first of its key that the commit wrote.
        """
        reader = self._reader(after)
        written = list(reader.read(after.file_slice, row_filter=of_commit_times(frozenset({change.instant}))))
        new = pa.Table.from_batches(written, reader.output_schema()).combine_chunks()
        versions = _Versions(new.column(RECORD_KEY).combine_chunks())
        columns, instants = [RECORD_KEY, COMMIT_SEQNO, COMMIT_TIME], pa.array([change.instant])
        others = [
            _names(batch.filter(pc.invert(pc.is_in(batch.column(COMMIT_TIME), value_set=instants))))
            for batch in reader.read(after.file_slice, columns)
        ]
        kept = pa.concat_arrays(others) if others else pa.array([], pa.string())
        for batch in self._rows(before):
            changed = batch.filter(pc.invert(pc.is_in(_names(batch), value_set=kept)))
            places = versions.next_of(changed.column(RECORD_KEY))
            updated = pa.array(places >= 0)
            if updated.true_count:
                rows = _batch(new.take(pa.array(places[places >= 0])))
                images = (json_rows(changed.filter(updated), COMPACT), json_rows(rows, COMPACT))
                yield _changes(UPDATE, change, *images)
            if updated.false_count:
                yield _changes(DELETE, change, before=json_rows(changed.filter(pc.invert(updated)), COMPACT))
        inserted = _batch(new.take(pa.array(versions.left())))
        if inserted.num_rows:
            yield _changes(INSERT, change, after=json_rows(inserted, COMPACT))


class _Versions:
    """The rows that a commit wrote, handed out by their keys; rows of one key in their order."""

    def __init__(self, keys: pa.StringArray) -> None:
        encoded = keys.dictionary_encode()
        self._keys = encoded.dictionary
        codes = encoded.indices.to_numpy()
        self._order = np.argsort(codes, kind="stable")
        self._sizes = np.bincount(codes, minlength=len(self._keys))
        self._starts = np.cumsum(self._sizes) - self._sizes
        self._used = np.zeros_like(self._sizes)

    def next_of(self, keys: pa.StringArray) -> NDArray[np.int64]:
        """Returns the next row of each key; -1 where the key has none, or none any more."""
        codes = pc.index_in(keys, value_set=self._keys).fill_null(-1).to_numpy().astype(np.int64)
        rows = np.full(len(codes), -1, dtype=np.int64)
        hits = np.flatnonzero(codes >= 0)
        hits = hits[np.argsort(codes[hits], kind="stable")]
        at = codes[hits]
        firsts = np.flatnonzero(np.r_[True, at[1:] != at[:-1]]) if len(at) else at
        earlier = np.arange(len(at)) - np.repeat(firsts, np.diff(np.r_[firsts, len(at)]))
        number = self._used[at] + earlier
        there = number < self._sizes[at]
        rows[hits[there]] = self._order[(self._starts[at] + number)[there]]
        self._used += np.bincount(at, minlength=len(self._used))
        return rows

    def left(self) -> NDArray[np.int64]:
        """Returns the rows that were not handed out, in their order."""
        number = np.arange(len(self._order)) - np.repeat(self._starts, self._sizes)
        rows: NDArray[np.int64] = np.sort(self._order[number >= np.repeat(self._used, self._sizes)])
        return rows


def _names(batch: pa.RecordBatch) -> pa.StringArray:
    return pc.binary_join_element_wise(
        batch.column(RECORD_KEY), batch.column(COMMIT_SEQNO).fill_null(""), "\0", null_handling="emit_null"
    )


def cdc_batches(storage: Storage, file: DataFile) -> Iterator[pa.RecordBatch]:
    """Yields the entries of one change-data log in order, with the columns of its supplemental mode, in Spark's types.
    `op` is `i`, `u` or `d`. OP_KEY_ONLY: op, record_key; DATA_BEFORE: op, record_key, before; DATA_BEFORE_AFTER: op,
    ts_ms, before, after. `before` and `after` are structs of the table's columns; `ts_ms` is the instant as text.

    Nothing is filtered: the file counts because a commit names it. Raises CorruptFileError for a broken block, which
    would hide changes, and UnsupportedError for a block of another type.
    """
    for block in log_blocks(storage, [file]):
        if isinstance(block, CorruptBlock):
            raise CorruptFileError(
                f"corrupt block of {block.length} bytes at byte {block.offset}: {block.reason}", path=file.path
            )
        if block.type is not BlockType.CDC_DATA:
            raise UnsupportedError(
                f"log block of type {block.type.name} at byte {block.offset} of a change-data log", path=file.path
            )
        writer = parse_schema(block.schema or "", path=file.path)
        yield from block_batches(storage, block, spark_schema(arrow_schema(writer, path=file.path)))


def _batch(table: pa.Table) -> pa.RecordBatch:
    batches = table.combine_chunks().to_batches()
    return batches[0] if batches else pa.RecordBatch.from_pylist([], schema=table.schema)


def _changes(
    op: str | pa.StringArray, change: Change, before: pa.StringArray | None = None, after: pa.StringArray | None = None
) -> pa.RecordBatch:
    count = next(len(item) for item in (before, after) if item is not None)
    ops = pa.array([op] * count, pa.string()) if isinstance(op, str) else op.cast(pa.string())
    images = [pa.nulls(count, pa.string()) if item is None else item for item in (before, after)]
    return pa.RecordBatch.from_arrays(
        [ops, pa.array([change.instant] * count, pa.string()), *images], schema=CDC_SCHEMA
    )
