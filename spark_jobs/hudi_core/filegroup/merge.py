"""Log records and deletes of a file group folded to one winner per key (HoodieMergedLogRecordScanner; facts 6.1).

In memory stay, for every log record and delete entry, the key, the ordering value and 9 bytes, and the rows of records as far as the
budget reaches; beyond it rows lie in memory-mapped files (PayloadStore).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hudi_core.errors import CorruptFileError, UnsupportedError
from hudi_core.filegroup.fold import Kind, winners
from hudi_core.filegroup.ordering import Ordering, ranks
from hudi_core.filegroup.payload_store import PayloadStore
from hudi_core.model.meta_fields import IS_DELETED

if TYPE_CHECKING:
    from hudi_core.filegroup.policy import MergePolicy

_LARGE = 1 << 30
"""Bytes of keys from which 64-bit offsets are used."""


@dataclass(frozen=True, slots=True)
class LogRecords:
    """One winner per key, keys in the order in which they first occur in the logs.

    `keys`: string array; `kinds`: Kind of each winner; `rows`: its row in `store`, -1 for deletes; `ordering`: its ordering value as
    `Ordering.type`, null for natural deletes. `record_count` and `delete_count` are what was merged.
    """

    keys: pa.Array
    kinds: NDArray[np.uint8]
    rows: NDArray[np.int64]
    ordering: pa.Array
    store: PayloadStore
    record_count: int
    delete_count: int

    def __len__(self) -> int:
        return len(self.keys)

    def take(self, indices: NDArray[np.int64]) -> pa.RecordBatch:
        """The rows of these winners, in this order; none of them may be a delete."""
        return self.store.take(self.rows[indices])


class LogMerger:
    """Collects records and deletes in merge order, then folds them."""

    def __init__(self, schema: pa.Schema, policy: MergePolicy, ordering: Ordering, *, budget: int, spill_folder: str | None = None) -> None:
        """`schema` is that of the records; it holds the policy's key field and the ordering field. `budget` is bytes of rows in memory."""
        self._policy = policy
        self._ordering = ordering
        self._store = PayloadStore(schema, budget=budget, folder=spill_folder)
        self._keys: list[pa.Array] = []
        self._kinds: list[NDArray[np.uint8]] = []
        self._rows: list[NDArray[np.int64]] = []
        self._values: list[pa.Array] = []
        self._records = 0
        self._deletes = 0

    @property
    def store(self) -> PayloadStore:
        """Where the rows are; close it when the merge is over."""
        return self._store

    def add_records(self, batch: pa.RecordBatch, *, path: str) -> None:
        """Adds log records; `path` is their file, for errors. Raises CorruptFileError for a null key."""
        keys = key_texts(batch.column(batch.schema.get_field_index(self._policy.key_field)), path=path)
        first = self._store.append(batch)
        kinds = np.where(delete_flags(batch, self._policy), np.uint8(Kind.FLAGGED), np.uint8(Kind.RECORD))
        self._records += batch.num_rows
        self._add(keys, kinds, first + np.arange(batch.num_rows), self._ordering.values(batch, path=path))

    def add_deletes(self, keys: pa.Array, natural: NDArray[np.bool_], values: pa.Array, *, path: str) -> None:
        """Adds delete entries: `natural` where the entry always wins, else `values` (as Ordering.type) compares with records."""
        kinds = np.where(natural, np.uint8(Kind.NATURAL_DELETE), np.uint8(Kind.TYPED_DELETE))
        self._deletes += len(keys)
        self._add(key_texts(keys, path=path), kinds, np.full(len(keys), -1, dtype=np.int64), values)

    def _add(self, keys: pa.Array, kinds: NDArray[np.uint8], rows: NDArray[np.int64], values: pa.Array) -> None:
        self._keys.append(keys)
        self._kinds.append(kinds)
        self._rows.append(rows)
        self._values.append(values)

    def finish(self) -> LogRecords:
        """Folds all events; the merger is spent afterwards. Raises UnsupportedError where Hudi 1.x, which keeps the table, folds otherwise."""
        if not self._keys:
            empty = np.empty(0, dtype=np.int64)
            return LogRecords(pa.array([], pa.string()), empty.astype(np.uint8), empty, pa.array([], self._ordering.type), self._store, 0, 0)
        large = sum(keys.nbytes for keys in self._keys) > _LARGE
        encoded = pa.concat_arrays([keys.cast(pa.large_string()) for keys in self._keys] if large else self._keys).dictionary_encode()
        self._keys.clear()
        kinds, rows = np.concatenate(self._kinds), np.concatenate(self._rows)
        values = pa.concat_arrays(self._values)
        codes = encoded.indices.to_numpy()
        chosen = winners(codes, kinds, ranks(values) if len(encoded.dictionary) < len(codes) else rows, len(encoded.dictionary))
        if self._policy.kept_by_hudi_1:
            self._refuse_disputed(codes, kinds, chosen)
        return LogRecords(encoded.dictionary, kinds[chosen], rows[chosen], values.take(pa.array(chosen)), self._store, self._records, self._deletes)

    def _refuse_disputed(self, codes: NDArray[np.int32], kinds: NDArray[np.uint8], chosen: NDArray[np.int64]) -> None:
        """Hudi 1.x remembers a delete with an ordering value where 0.15 forgets it (event-time ordering), and takes the last event of a
        key where 0.15 takes the greatest (commit-time ordering, for OverwriteWithLatestAvroPayload): facts 6.1 and 6.2.
        """
        last = np.empty(len(chosen), dtype=np.int64)
        last[codes] = np.arange(len(codes))
        disputed = (kinds == Kind.TYPED_DELETE).any() if self._policy.compare_with_base else (chosen != last).any()
        if disputed:
            what = "deletes with ordering values" if self._policy.compare_with_base else "records out of order"
            raise UnsupportedError(
                f"the table is kept by Hudi 1.x and its logs hold {what}, which Hudi 1.x merges otherwise than Hudi 0.15",
                remedy="use Hudi's own compaction, and read the table with Hudi 1.x",
            )


def key_texts(column: pa.Array, *, path: str) -> pa.Array:
    """Record keys as a string array; raises CorruptFileError for a null key and UnsupportedError for a type that makes no key."""
    if column.null_count:
        raise CorruptFileError(f"{column.null_count} records have no record key", path=path)
    if pa.types.is_string(column.type):
        return column
    if pa.types.is_integer(column.type) or pa.types.is_large_string(column.type):
        return column.cast(pa.string())
    raise UnsupportedError(f"record keys of type {column.type}", path=path, remedy="keys without _hoodie_ columns are text or whole numbers")


def delete_flags(batch: pa.RecordBatch, policy: MergePolicy) -> NDArray[np.bool_]:
    """Which rows say of themselves that they are deleted (BaseAvroPayload and DefaultHoodieRecordPayload.isDeleteRecord)."""
    name = policy.delete_field or IS_DELETED
    index = batch.schema.get_field_index(name)
    if index < 0:
        return np.zeros(batch.num_rows, dtype=np.bool_)
    column = batch.column(index)
    if policy.delete_field is not None:
        if not (pa.types.is_string(column.type) or pa.types.is_integer(column.type) or pa.types.is_boolean(column.type)):
            raise UnsupportedError(f"delete field {name!r} of type {column.type}", remedy="text, whole numbers and booleans are supported")
        column = pc.equal(column.cast(pa.string()), pa.scalar(policy.delete_marker))
    elif not pa.types.is_boolean(column.type):
        return np.zeros(batch.num_rows, dtype=np.bool_)
    flags: NDArray[np.bool_] = column.fill_null(False).to_numpy(zero_copy_only=False)
    return flags


def merge_columns(policy: MergePolicy, ordering: Ordering) -> frozenset[str]:
    """The columns that a merge looks at, so that a projection keeps them."""
    return frozenset({policy.key_field, policy.delete_field or IS_DELETED} | ({ordering.field} if ordering.field else set()))
