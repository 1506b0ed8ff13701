"""Rows of two versions made one: by their fields, or by a function of the user; in the logs and against the base."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hudi_core.filegroup.merge.ordering_values import Ordering
from hudi_core.filegroup.merge.partial import FULL, ColumnPatterns, FieldMerger, Patterns
from hudi_core.filegroup.merge.payload_store import PayloadStore
from hudi_core.filegroup.merge.payloads import Fill, Payload
from hudi_core.filegroup.merge.record_keys import delete_flags
from hudi_core.filegroup.merge.table_policy import MergePolicy, Rules
from hudi_core.filegroup.merge.user_mergers import apply_merger
from hudi_core.filegroup.merge.winning_version import Kind, Step

_ROWS = 64 << 10
"""Rows that are merged at once: a bound on memory outside the store's budget."""


class RowMerger:
    """Merges rows of a store with each other and with base rows, and knows which columns each row of the store has."""

    def __init__(self, schema: pa.Schema, policy: MergePolicy, ordering: Ordering, store: PayloadStore) -> None:
        """`schema` is that of the store's rows."""
        self._policy = policy
        self._store = store
        self._columns = ColumnPatterns(schema.names)
        self._fields = FieldMerger(schema, policy, ordering.defaults, self._columns)
        self._patterns: list[Patterns] = []
        self._full_rows = 0

    @property
    def always(self) -> bool:
        """Whether rows are merged although no log block is partial."""
        return self._policy.fill is not Fill.NOTHING or self._policy.rules is Rules.FUNCTION

    def note(self, rows: int, partial: frozenset[str] | None) -> None:
        """Records which columns the rows have that were appended to the store.

        Four bytes a row, from the first partial block on.
        """
        if partial is not None or self._patterns:
            self._append(np.full(rows, self._columns.number(partial), dtype=np.int32))
        else:
            self._full_rows += rows

    def patterns_of(self, rows: NDArray[np.int64]) -> Patterns:
        """The column patterns of rows of the store."""
        if not self._patterns:
            return np.full(len(rows), FULL, dtype=np.int32)
        if len(self._patterns) > 1:
            self._patterns = [np.concatenate(self._patterns)]
        return self._patterns[0][rows]

    def _append(self, patterns: Patterns) -> None:
        if not self._patterns:
            self._patterns.append(np.full(self._full_rows, FULL, dtype=np.int32))
        self._patterns.append(patterns)

    def merge_stored(
        self, old: NDArray[np.int64], new: NDArray[np.int64], newer_wins: NDArray[np.bool_]
    ) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
        """Merges rows of the store pairwise; the results are appended to it. Returns their rows and kinds.

        Where only partial rows are merged, a winner that has all columns is kept as it is.
        """
        if self.always:
            return self._merge_all(old, new, newer_wins)
        rows = np.where(newer_wins, new, old)
        lacking = np.flatnonzero(self.patterns_of(rows) != FULL)
        if len(lacking):
            rows[lacking], _ = self._merge_all(old[lacking], new[lacking], newer_wins[lacking])
        return rows, np.full(len(rows), Kind.RECORD, dtype=np.uint8)

    def _merge_all(
        self, old: NDArray[np.int64], new: NDArray[np.int64], newer_wins: NDArray[np.bool_]
    ) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
        rows, kinds = [], []
        for start in range(0, len(old), _ROWS):
            ends = slice(start, start + _ROWS)
            older, newer = self._store.take(old[ends]), self._store.take(new[ends])
            merged, found, patterns = self._merge(
                older, newer, newer_wins[ends], self.patterns_of(old[ends]), self.patterns_of(new[ends])
            )
            first = self._store.append(merged)
            if self._patterns:
                self._append(patterns)
            else:
                self._full_rows += merged.num_rows
            rows.append(first + np.arange(merged.num_rows))
            kinds.append(found)
        return np.concatenate(rows), np.concatenate(kinds)

    def needed(self, step: Step, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Where a base row and a row of the store are merged into one, of those that `step` names.

        Not where only partial rows are merged and the row that wins has all columns.
        """
        if self.always:
            return step.merge
        needed = step.merge & step.replace
        needed[needed] = self.patterns_of(rows[needed]) != FULL
        return needed

    def merge_base(
        self, base: pa.RecordBatch, rows: NDArray[np.int64], newer_wins: NDArray[np.bool_]
    ) -> tuple[pa.RecordBatch, NDArray[np.bool_]]:
        """Base rows merged with rows of the store, and which of the results are deleted."""
        full = np.full(base.num_rows, FULL, dtype=np.int32)
        merged, kinds, _ = self._merge(base, self._store.take(rows), newer_wins, full, self.patterns_of(rows))
        return merged, kinds != Kind.RECORD

    def _merge(
        self,
        old: pa.RecordBatch,
        new: pa.RecordBatch,
        newer_wins: NDArray[np.bool_],
        old_patterns: Patterns,
        new_patterns: Patterns,
    ) -> tuple[pa.RecordBatch, NDArray[np.uint8], Patterns]:
        kinds = np.full(old.num_rows, Kind.RECORD, dtype=np.uint8)
        if self._policy.function is not None:
            merged, deleted = apply_merger(self._policy.function, old, new)
            kinds[deleted] = Kind.FLAGGED
            return merged, kinds, new_patterns
        merged, patterns = self._fields.merge(old, new, newer_wins, old_patterns, new_patterns)
        if self._policy.rules is Rules.PAYLOAD_0_15 and self._policy.payload is Payload.PARTIAL_UPDATE:
            # The merged payload evaluates its own delete flag again (BaseAvroPayload's constructor); in 1.x a merge
            # never makes a delete.
            kinds[delete_flags(merged, self._policy)] = Kind.FLAGGED
        return merged, kinds, patterns
