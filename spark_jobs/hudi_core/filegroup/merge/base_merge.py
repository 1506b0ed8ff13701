"""The second step of a merge: merges base rows, in their order, with the log records of their keys, then adds the
inserts.

It mirrors HoodieMergeHandle of Hudi 0.15 and its counts. A base row that a newer ordering value protects is neither
updated nor deleted. A delete of a key that the base file does not hold counts as a delete and as an insert. When the
base file holds a key twice, HoodieMergeHandle merges each of the rows; readers merge the first one and return the
others unchanged (Iterators.scala and HoodieFileSliceReader in 0.15, KeyBasedFileGroupRecordBuffer in 1.x). Log records
with positions are merged with the rows at these positions, and no key is looked up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hudi_core.codec.log.positions import BY_KEY
from hudi_core.errors import CorruptFileError
from hudi_core.filegroup.merge.log_merge import LogRecords
from hudi_core.filegroup.merge.ordering_values import Ordering, greater
from hudi_core.filegroup.merge.record_keys import as_mask, record_keys
from hudi_core.filegroup.merge.table_policy import MergePolicy
from hudi_core.filegroup.merge.winning_version import Kind, base_step, compares_with_base
from hudi_core.frozen import dataclass

OnChange = Callable[[pa.Array, pa.RecordBatch | None, pa.RecordBatch | None], None]
"""Gets the keys of rows that a merge changes, and these rows before and after: None before for new rows, None after for
deleted ones.
"""
GROUP_SHARE = 8
"""A group of base batches whose keys are looked up at once takes at most the memory budget divided by this."""


@dataclass(slots=True)
class MergeCounts:
    """Counts of rows: base + inserted - deleted = written. `missed_deletes` have keys that the base file lacks."""

    base: int = 0
    updated: int = 0
    kept: int = 0
    deleted: int = 0
    inserted: int = 0
    missed_deletes: int = 0

    @property
    def written(self) -> int:
        return self.base - self.deleted + self.inserted


class SliceMerge:
    """Merges the base rows of a slice with `records`, which its log files hold of each key."""

    def __init__(
        self,
        records: LogRecords,
        policy: MergePolicy,
        ordering: Ordering,
        *,
        path: str,
        budget: int,
        first_only: bool = False,
        visible: Callable[[pa.RecordBatch], pa.Array] | None = None,
        on_change: OnChange | None = None,
    ) -> None:
        """Base batches must have the schema of the records' rows. `path` is the base file, for errors. With
        `first_only`, only the first of the base rows with one key is merged, as in a reader. Rows that are not
        `visible` count as absent. `on_change` gets each row that is counted as updated, deleted or inserted.
        """
        self.counts = MergeCounts()
        self.records = records
        self._share = budget // GROUP_SHARE
        self._policy = policy
        self._ordering = ordering
        self._path = path
        self._matched = np.zeros(len(records), dtype=np.bool_)
        self._first_hit = np.zeros(len(records) if first_only else 0, dtype=np.int64)
        self._first_only = first_only and records.positions is None
        self._visible = visible
        self._on_change = on_change
        self._position = 0

    def rows(self, base: Iterable[pa.RecordBatch], *, batch_rows: int, group_rows: int = 1) -> Iterator[pa.RecordBatch]:
        """Yields the merged slice: base rows in order, then rows of the logs alone, `batch_rows` in a batch."""
        yield from self.merged(base, group_rows=group_rows)
        yield from self.inserts(batch_rows)

    def merged(self, base: Iterable[pa.RecordBatch], *, group_rows: int = 1) -> Iterator[pa.RecordBatch]:
        """Yields base rows, in the schema of the log records, merged with the log records of their keys. Keys are
        looked up for `group_rows` base rows per log record at once, as far as memory allows: every look-up hashes all
        keys of the logs.
        """
        for batches in grouped(base, rows=group_rows * len(self.records), max_bytes=self._share):
            places = self._lookup(batches)
            start = 0
            for batch in batches:
                here = places[start : start + batch.num_rows]
                start += batch.num_rows
                if self._visible is None:
                    yield self._merge(batch, here)
                else:
                    mask = self._visible(batch)
                    yield self._merge(batch.filter(mask), here[as_mask(mask)])

    def pass_over(self, rows: int) -> None:
        """Counts the next base rows, which are merged with no log record."""
        self.counts.base += rows
        self._position += rows

    def _merge(self, batch: pa.RecordBatch, places: NDArray[np.int32]) -> pa.RecordBatch:
        self.counts.base += batch.num_rows
        hits = np.flatnonzero(places >= 0)
        if self._first_only:
            hits = self._first(hits, places)
        if not len(hits):
            return batch
        records = places[hits].astype(np.int64)
        if self.records.positions is not None:
            self._check_keys(batch, hits, records)
        self._matched[records] = True
        kinds = self.records.kinds[records]
        step = base_step(self._policy, kinds, self._above(batch, hits, records), compared=self._ordering.same_class)
        merger = self.records.merger
        merged = np.zeros(len(records), dtype=np.bool_)
        if merger is not None:
            merged = merger.needed(step, self.records.rows[records])
        replaced = step.replace & ~merged & (kinds == Kind.RECORD)
        deleted = step.replace & (kinds != Kind.RECORD)
        rows = [self.records.take(records[replaced])]
        if merger is not None and merged.any():
            row, gone = merger.merge_base(
                batch.take(pa.array(hits[merged])), self.records.rows[records[merged]], step.replace[merged]
            )
            rows.append(row)
            deleted[np.flatnonzero(merged)[gone]] = True
        if self._on_change is not None:
            keys = self.records.keys.take(pa.array(records))
            for chosen, after in zip((replaced, merged), rows, strict=False):
                stays, old = pa.array(~deleted[chosen]), chosen & ~deleted
                if old.any():
                    self._on_change(keys.filter(pa.array(old)), batch.take(pa.array(hits[old])), after.filter(stays))
            if deleted.any():
                self._on_change(keys.filter(pa.array(deleted)), batch.take(pa.array(hits[deleted])), None)
        self.counts.updated += int((replaced | (merged & ~deleted)).sum())
        self.counts.deleted += int(deleted.sum())
        self.counts.kept += int((~step.replace & ~merged).sum())
        indices = np.arange(batch.num_rows)
        changed = np.r_[hits[replaced], hits[merged]]
        indices[changed] = batch.num_rows + np.arange(len(changed))
        if deleted.any():
            indices = np.delete(indices, hits[deleted])
        return _interleave(batch, rows, indices)

    def _first(self, hits: NDArray[np.int64], places: NDArray[np.int32]) -> NDArray[np.int64]:
        """Returns those of the rows at `hits` that are the first of their key, in this batch and before."""
        records = places[hits]
        self._first_hit[records[::-1]] = hits[::-1]
        first: NDArray[np.int64] = hits[(self._first_hit[records] == hits) & ~self._matched[records]]
        return first

    def _check_keys(self, batch: pa.RecordBatch, hits: NDArray[np.int64], records: NDArray[np.int64]) -> None:
        """Raises CorruptFileError when a log record's position has a row of another key. Hudi does not compare the
        keys, and replaces that row.
        """
        keys = record_keys(batch, self._policy.key_fields, path=self._path).take(pa.array(hits))
        named = self.records.keys.take(pa.array(records))
        others = as_mask(pc.not_equal(keys.cast(named.type), named))
        if others.any():
            first = int(np.flatnonzero(others)[0])
            assert self.records.positions is not None
            message = (
                f"row {self.records.positions[records[first]]} has the key {keys[first].as_py()!r}, a log record for "
                f"this row {named[first].as_py()!r}"
            )
            raise CorruptFileError(message, path=self._path, remedy=BY_KEY)

    def inserts(self, batch_rows: int) -> Iterator[pa.RecordBatch]:
        """Yields the records that no base row has, after the last base batch. A batch has fewer when they are wide."""
        batch_rows = max(1, min(batch_rows, self._share // max(1, self.records.store.row_bytes)))
        unmatched = np.flatnonzero(~self._matched)
        records = unmatched[self.records.kinds[unmatched] == Kind.RECORD]
        self.counts.missed_deletes += len(unmatched) - len(records)
        self.counts.inserted += len(records)
        for start in range(0, len(records), batch_rows):
            chosen = records[start : start + batch_rows]
            rows = self.records.take(chosen)
            if self._on_change is not None:
                self._on_change(self.records.keys.take(pa.array(chosen)), None, rows)
            yield rows

    def _lookup(self, batches: Sequence[pa.RecordBatch]) -> NDArray[np.int32]:
        """Returns the place of each row's key (or position) among the records; -1 when the logs do not name it."""
        count = sum(batch.num_rows for batch in batches)
        positions = self.records.positions
        if not len(self.records) or positions is not None:
            none = np.full(count, -1, dtype=np.int32)
            if positions is not None:
                low, high = np.searchsorted(positions, (self._position, self._position + count))
                none[positions[low:high] - self._position] = np.arange(low, high)
            self._position += count
            return none
        keys = pa.chunked_array(
            [record_keys(batch, self._policy.key_fields, path=self._path) for batch in batches], pa.string()
        )
        if keys.type != self.records.keys.type:
            keys = keys.cast(self.records.keys.type)
        places: NDArray[np.int32] = pc.index_in(keys, value_set=self.records.keys).fill_null(-1).to_numpy()
        return places

    def _above(self, batch: pa.RecordBatch, hits: NDArray[np.int64], chosen: NDArray[np.int64]) -> NDArray[np.bool_]:
        if not self._ordering.columns or not compares_with_base(self._policy):
            return np.zeros(len(hits), dtype=np.bool_)
        records = self.records
        compared = records.ordering if records.against_base is None else records.against_base
        return greater(self._ordering.base_values(batch).take(pa.array(hits)), compared.take(pa.array(chosen)))


def _interleave(base: pa.RecordBatch, logs: Sequence[pa.RecordBatch], indices: NDArray[np.int64]) -> pa.RecordBatch:
    """Returns the rows of `base` and `logs` that `indices` picks; faster than replace_with_mask and filter."""
    picks = pa.array(indices)
    added = [log for log in logs if log.num_rows]
    columns = []
    for index, old in enumerate(base.columns):
        news = [log.column(index) for log in added]
        columns.append((pa.concat_arrays([old, *news]) if news else old).take(picks))
    return pa.RecordBatch.from_arrays(columns, schema=base.schema)


def grouped(
    batches: Iterable[pa.RecordBatch], *, rows: int | None = None, max_bytes: int
) -> Iterator[list[pa.RecordBatch]]:
    """Yields batches in groups of about `rows` rows (None: any number), at most `max_bytes` and one batch."""
    group: list[pa.RecordBatch] = []
    held_rows = held_bytes = 0
    for batch in batches:
        group.append(batch)
        held_rows += batch.num_rows
        held_bytes += batch.nbytes
        if held_bytes >= max_bytes or (rows is not None and held_rows >= rows):
            yield group
            group, held_rows, held_bytes = [], 0, 0
    if group:
        yield group
