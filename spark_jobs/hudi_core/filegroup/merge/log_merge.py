"""Folds log records and deletes of a file group to one version per key, or per position in the base file, by the
table's merge policy.

Memory holds the key, the ordering value and 9 bytes (17 with positions) of every record and delete entry, and rows up
to the budget, merged ones included. Rows beyond the budget are in memory-mapped files (PayloadStore).
"""

from __future__ import annotations

from functools import partial

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hudi_core.codec.columns import top_columns
from hudi_core.config.rows_config import Payload
from hudi_core.errors import UnsupportedError
from hudi_core.filegroup.merge.ordering_values import Ordering, nulls
from hudi_core.filegroup.merge.payload_store import PayloadStore
from hudi_core.filegroup.merge.record_keys import delete_flags, key_texts, record_keys
from hudi_core.filegroup.merge.row_merge import RowMerger
from hudi_core.filegroup.merge.table_policy import Fill, MergePolicy, Rules
from hudi_core.filegroup.merge.winning_version import (
    Events,
    Folded,
    Kind,
    event_time_winners,
    fold_in_rounds,
    last_events,
    log_step,
    winners,
)
from hudi_core.frozen import dataclass

_LARGE = 1 << 30
"""With more bytes of keys, 64-bit offsets are used."""


@dataclass(frozen=True, slots=True)
class LogRecords:
    """One version per key, in the order in which keys first occur in the logs. With `positions`, one version for each
    of these rows of the base file, in their order.

    Each version has its Kind in `kinds`; in `rows` its row in `store`, -1 for delete entries; in `ordering` its
    ordering value as Ordering.type, null for natural deletes. `against_base` has the values that base rows are compared
    with, if these are others (Ordering.by_arrival). `merger` makes one row of a version and a base row; None when no
    two rows are ever merged. `record_count` and `delete_count` count what was merged.
    """

    keys: pa.Array
    kinds: NDArray[np.uint8]
    rows: NDArray[np.int64]
    ordering: pa.Array
    store: PayloadStore
    merger: RowMerger | None
    record_count: int
    delete_count: int
    against_base: pa.Array | None = None
    positions: NDArray[np.int64] | None = None

    def __len__(self) -> int:
        return len(self.keys)

    def take(self, indices: NDArray[np.int64]) -> pa.RecordBatch:
        return self.store.take(self.rows[indices])


class LogMerger:
    def __init__(self, schema: pa.Schema, policy: MergePolicy, ordering: Ordering, *, budget: int) -> None:
        """`schema` of the records has merge_columns(policy, ordering). `budget` is the bytes of rows in memory."""
        self._policy = policy
        self._ordering = ordering
        self._store = PayloadStore(schema, budget=budget)
        self._merger = RowMerger(schema, policy, ordering.defaults, self._store)
        self._partial = False
        self._keys: list[pa.Array] = []
        self._events: list[tuple[NDArray[np.uint8], NDArray[np.int64], pa.Array]] = []
        self._against_base: list[pa.Array] = []
        self._positions: list[NDArray[np.int64]] = []
        self._records = 0
        self._deletes = 0

    @property
    def store(self) -> PayloadStore:
        return self._store

    @property
    def events(self) -> int:
        return self._records + self._deletes

    def add_positions(self, positions: NDArray[np.int64]) -> None:
        """Adds base file positions of the records or deletes that were added last. Either all have them, or none."""
        self._positions.append(positions)

    def add_records(self, batch: pa.RecordBatch, *, path: str, partial: frozenset[str] | None = None) -> None:
        """Adds log records. `path` is their file. `partial` has the columns of a partial-update block (header
        IS_PARTIAL); the batch holds nulls in the others. Raises CorruptFileError for a row without a key,
        UnsupportedError for a partial-update block whose rows other rules would merge as well.
        """
        if partial is not None and (self._policy.fill is not Fill.NOTHING or self._policy.whole_rows):
            message = "a partial-update block in a table whose rows are merged field by field already"
            raise UnsupportedError(message, path=path, remedy="compact the table with Hudi")
        self._partial |= partial is not None
        keys = record_keys(batch, self._policy.key_fields, path=path)
        flagged = delete_flags(batch, self._policy)
        kinds = np.where(flagged, np.uint8(Kind.FLAGGED), np.uint8(Kind.RECORD))
        if self._ordering.hudi_1 and flagged.any():
            kinds[flagged & self._ordering.defaulted(batch)] = Kind.NATURAL_DELETE
        values = self._ordering.values(batch, path=path)
        if self._ordering.by_arrival:
            self._against_base.append(self._ordering.against_base(batch, self._policy.payload))
        first = self._store.append(batch)
        self._merger.note(batch.num_rows, partial)
        self._records += batch.num_rows
        self._keys.append(keys)
        self._events.append((kinds, first + np.arange(batch.num_rows), values))

    def add_deletes(self, keys: pa.Array, natural: NDArray[np.bool_], values: pa.Array, *, path: str) -> None:
        """Adds delete entries. A `natural` one always wins; for others, `values` (as Ordering.type) are compared."""
        kinds = np.where(natural, np.uint8(Kind.NATURAL_DELETE), np.uint8(Kind.TYPED_DELETE))
        self._deletes += len(keys)
        self._keys.append(key_texts(keys, path=path))
        self._events.append((kinds, np.full(len(keys), -1, dtype=np.int64), values))
        if self._ordering.by_arrival:
            # Hudi 0.15 never compares delete entries with base rows.
            self._against_base.append(pa.nulls(len(keys), self._ordering.base_type))

    def finish(self) -> LogRecords:
        merger = self._merger if self._partial or self._merger.always else None
        if not self._keys:
            empty = np.empty(0, dtype=np.int64)
            none = pa.array([], self._ordering.type)
            return LogRecords(pa.array([], pa.string()), empty.astype(np.uint8), empty, none, self._store, merger, 0, 0)
        large = sum(keys.nbytes for keys in self._keys) > _LARGE
        keys = pa.concat_arrays([keys.cast(pa.large_string()) for keys in self._keys] if large else self._keys)
        self._keys.clear()
        positions = None
        if self._positions:
            positions, places = np.unique(np.concatenate(self._positions), return_inverse=True)
            codes, key_count = places.astype(np.int32), len(positions)
        else:
            encoded = keys.dictionary_encode()
            codes, key_count, keys = encoded.indices.to_numpy(), len(encoded.dictionary), encoded.dictionary
        all_kinds, all_rows, all_values = zip(*self._events, strict=True)
        kinds, rows, values = np.concatenate(all_kinds), np.concatenate(all_rows), pa.concat_arrays(all_values)
        unordered = nulls(values) & (kinds <= Kind.FLAGGED)
        ranks = self._ordering.log_ranks(values) if key_count < len(codes) else rows
        folded = self._fold(Events(codes, kinds, ranks, rows, unordered, key_count), merger)
        ordered_by = pa.array(folded.ordered_by)
        keys = keys if positions is None else keys.take(ordered_by)
        values = values.take(ordered_by)
        counts = self._records, self._deletes
        against_base = pa.concat_arrays(self._against_base).take(ordered_by) if self._against_base else None
        return LogRecords(
            keys, folded.kinds, folded.rows, values, self._store, merger, *counts, against_base, positions
        )

    def _fold(self, events: Events, merger: RowMerger | None) -> Folded:
        """Folds the events; in rounds when two versions may merge into one row, or rules are not vectorised."""
        policy = self._policy
        deletes_win = policy.string_deletes_win and self._ordering.has_text
        if len(events.codes) == events.key_count or (policy.rules is Rules.COMMIT_TIME and merger is None):
            chosen = last_events(events)
        elif policy.rules is Rules.PAYLOAD_0_15 and policy.payload is not Payload.PARTIAL_UPDATE:
            chosen = winners(events, policy, self._merger.merge_stored)
        elif policy.rules is Rules.EVENT_TIME and merger is None and not events.unordered.any():
            chosen = event_time_winners(events, deletes_win=deletes_win)
        else:
            step = partial(log_step, policy, compared=self._ordering.same_class, deletes_win=deletes_win)
            return fold_in_rounds(events, step, self._merger.merge_stored)
        return Folded(events.kinds[chosen], events.rows[chosen], chosen)


def merge_columns(policy: MergePolicy, ordering: Ordering) -> frozenset[str]:
    """Returns the columns that a merge reads, so that a projection keeps them; all with `policy.whole_rows`."""
    marks, ordered = (mark.column for mark in policy.delete_marks), (column.name for column in ordering.columns)
    return top_columns((*policy.key_fields, *marks, *ordered))
