"""Merges two versions of a row into one, by their fields or by a function of the user, in the logs and with base rows.

The sources, for partial-update blocks and payload classes that fill fields, are
SparkRecordMergingUtils.mergePartialRecords, PartialUpdateHandler, OverwriteNonDefaultsWithLatestAvroPayload,
PartialUpdateAvroPayload, PostgresDebeziumAvroPayload.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hudi_core.codec.avro.schema import AvroSchema
from hudi_core.codec.columns import is_text
from hudi_core.config.rows_config import Payload
from hudi_core.filegroup.merge.payload_store import PayloadStore
from hudi_core.filegroup.merge.record_keys import as_mask, delete_flags
from hudi_core.filegroup.merge.table_policy import Fill, MergePolicy, Rules
from hudi_core.filegroup.merge.user_mergers import apply_merger
from hudi_core.filegroup.merge.winning_version import Kind, Step
from hudi_core.frozen import dataclass
from hudi_core.model.names import META_FIELDS

Mask = NDArray[np.bool_]
Patterns = NDArray[np.int32]

FULL = 0
_ONE_OBJECT = range(-128, 128)
"""Whole numbers for which Integer.valueOf and Long.valueOf return one object each."""
_KINDS = frozenset({"boolean", "int", "long", "float", "double", "string"})


@dataclass(frozen=True, slots=True)
class Default:
    """An Avro default other than null. `kind` is the column's Avro type; `nullable`: it is a union with null."""

    value: bool | int | float | str
    kind: str
    nullable: bool


def field_defaults(schema: AvroSchema) -> dict[str, Default]:
    """Returns the top-level fields whose default is a plain value. In Java only null equals any other default."""
    defaults = {}
    for field in schema["fields"]:
        value, kind = field.get("default"), field["type"]
        branches = [branch for branch in kind if branch != "null"] if isinstance(kind, list) else [kind]
        name = branches[0] if len(branches) == 1 else None
        if isinstance(name, dict) and "logicalType" not in name:
            name = name.get("type")
        if isinstance(value, (bool, int, float, str)) and isinstance(name, str) and name in _KINDS:
            defaults[field["name"]] = Default(value, name, isinstance(kind, list))
    return defaults


class ColumnPatterns:
    """Numbers the sets of columns that rows of partial-update blocks have. The set of all columns is 0."""

    def __init__(self, names: list[str]) -> None:
        self._names = names
        self._numbers: dict[bytes, int] = {np.ones(len(names), dtype=np.bool_).tobytes(): FULL}
        self._present = np.ones((1, len(names)), dtype=np.bool_)

    def number(self, columns: frozenset[str] | None) -> int:
        if columns is None:
            return FULL
        return self._number(np.array([name in columns for name in self._names], dtype=np.bool_))

    def union(self, one: Patterns, other: Patterns) -> Patterns:
        width = len(self._present)
        pairs, back = np.unique(one.astype(np.int64) * width + other, return_inverse=True)
        unions = [self._number(self._present[pair // width] | self._present[pair % width]) for pair in pairs.tolist()]
        numbers: Patterns = np.array(unions, dtype=np.int32)[back.reshape(-1)]
        return numbers

    def absent(self, patterns: Patterns, column: int) -> Mask:
        lacking: Mask = ~self._present[:, column][patterns]
        return lacking

    def _number(self, present: Mask) -> int:
        key = present.tobytes()
        if key not in self._numbers:
            self._numbers[key] = len(self._present)
            self._present = np.vstack([self._present, present])
        return self._numbers[key]


_ROWS = 64 << 10
"""Rows that are merged at once. It bounds the memory outside the store's budget."""


class RowMerger:
    """Merges rows of a store with each other and with base rows, and knows which columns each row of the store has."""

    def __init__(
        self, schema: pa.Schema, policy: MergePolicy, defaults: Mapping[str, Default], store: PayloadStore
    ) -> None:
        self._policy = policy
        self._store = store
        self._defaults = defaults
        self._columns = ColumnPatterns(schema.names)
        self._patterns: list[Patterns] = []
        self._full_rows = 0

    @property
    def always(self) -> bool:
        return self._policy.fill is not Fill.NOTHING or self._policy.rules is Rules.FUNCTION

    def note(self, rows: int, partial: frozenset[str] | None) -> None:
        """Records which columns rows of the store have, in four bytes a row from the first partial block on."""
        if partial is not None or self._patterns:
            self._append(np.full(rows, self._columns.number(partial), dtype=np.int32))
        else:
            self._full_rows += rows

    def patterns_of(self, rows: NDArray[np.int64]) -> Patterns:
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
        self, old: NDArray[np.int64], new: NDArray[np.int64], newer_wins: Mask
    ) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
        """Merges rows of the store pairwise, appends the results, and returns their rows and kinds. When only partial
        rows are merged, a winner that has all columns is kept as it is.
        """
        if self.always:
            return self._merge_all(old, new, newer_wins)
        rows = np.where(newer_wins, new, old)
        lacking = np.flatnonzero(self.patterns_of(rows) != FULL)
        if len(lacking):
            rows[lacking], _ = self._merge_all(old[lacking], new[lacking], newer_wins[lacking])
        return rows, np.full(len(rows), Kind.RECORD, dtype=np.uint8)

    def _merge_all(
        self, old: NDArray[np.int64], new: NDArray[np.int64], newer_wins: Mask
    ) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
        rows, kinds = [], []
        for start in range(0, len(old), _ROWS):
            ends = slice(start, start + _ROWS)
            older, newer = self._store.take(old[ends]), self._store.take(new[ends])
            merged, merged_kinds, patterns = self._merge(
                older, newer, newer_wins[ends], self.patterns_of(old[ends]), self.patterns_of(new[ends])
            )
            first = self._store.append(merged)
            if self._patterns:
                self._append(patterns)
            else:
                self._full_rows += merged.num_rows
            rows.append(first + np.arange(merged.num_rows))
            kinds.append(merged_kinds)
        return np.concatenate(rows), np.concatenate(kinds)

    def needed(self, step: Step, rows: NDArray[np.int64]) -> Mask:
        """Whether each step merges a base row and a row of the store. A partial row is merged unless the winner has all
        columns.
        """
        if self.always:
            return step.merge
        needed = step.merge & step.replace
        needed[needed] = self.patterns_of(rows[needed]) != FULL
        return needed

    def merge_base(
        self, base: pa.RecordBatch, rows: NDArray[np.int64], newer_wins: Mask
    ) -> tuple[pa.RecordBatch, Mask]:
        """Returns base rows merged with rows of the store, and which of the results are deleted."""
        full = np.full(base.num_rows, FULL, dtype=np.int32)
        merged, kinds, _ = self._merge(base, self._store.take(rows), newer_wins, full, self.patterns_of(rows))
        return merged, kinds != Kind.RECORD

    def _merge(
        self,
        old: pa.RecordBatch,
        new: pa.RecordBatch,
        newer_wins: Mask,
        old_patterns: Patterns,
        new_patterns: Patterns,
    ) -> tuple[pa.RecordBatch, NDArray[np.uint8], Patterns]:
        kinds = np.full(old.num_rows, Kind.RECORD, dtype=np.uint8)
        if self._policy.function is not None:
            merged, deleted = apply_merger(self._policy.function, old, new)
            kinds[deleted] = Kind.FLAGGED
            return merged, kinds, new_patterns
        merged, patterns = self._completed(old, new, newer_wins, old_patterns, new_patterns)
        if self._policy.rules is Rules.PAYLOAD_0_15 and self._policy.payload is Payload.PARTIAL_UPDATE:
            # The merged payload evaluates its own delete flag again (BaseAvroPayload's constructor); in 1.x a merge
            # never makes a delete.
            kinds[delete_flags(merged, self._policy)] = Kind.FLAGGED
        return merged, kinds, patterns

    def _completed(
        self, old: pa.RecordBatch, new: pa.RecordBatch, newer_wins: Mask, old_patterns: Patterns, new_patterns: Patterns
    ) -> tuple[pa.RecordBatch, Patterns]:
        """Returns the winning rows, with fields of the rows that they win over, and which columns they have."""
        policy, schema, count = self._policy, self._store.schema, old.num_rows
        # PartialUpdateAvroPayload.mergeDisorderRecordsWithMetadata: the meta columns are the later writer's, for either
        # winner.
        is_late = policy.payload is Payload.PARTIAL_UPDATE and policy.rules not in (Rules.EVENT_TIME, Rules.COMMIT_TIME)
        position = np.arange(count)
        columns = []
        for index, (column, older, newer) in enumerate(zip(schema, old.columns, new.columns, strict=True)):
            both = pa.concat_arrays([older, newer])
            wins = np.ones(count, dtype=np.bool_) if is_late and column.name in META_FIELDS else newer_wins
            first = np.where(wins, position + count, position)
            second = np.where(wins, position, position + count)
            absent = np.r_[self._columns.absent(old_patterns, index), self._columns.absent(new_patterns, index)]
            gaps = self._gaps(column, both)
            gaps = absent if gaps is None else gaps | absent
            columns.append(both.take(pa.array(np.where(gaps[first], second, first))))
        return pa.RecordBatch.from_arrays(columns, schema=schema), self._columns.union(old_patterns, new_patterns)

    def _gaps(self, column: pa.Field, values: pa.Array) -> Mask | None:
        fill = self._policy.fill
        if fill is Fill.NOTHING:
            return None
        if fill is Fill.MARKER:
            return _equal(values, self._policy.fill_marker) if is_text(column.type) else None
        default = self._defaults.get(column.name) if fill is not Fill.NULL else None
        if default is None:
            return as_mask(pc.is_null(values)) if values.null_count else None
        if fill is Fill.REFERENCE_DEFAULT:
            small = default.kind in ("int", "long") and default.value in _ONE_OBJECT
            return _equal(values, default.value) if small or default.kind == "boolean" else None
        # Avro reads text of a nullable field as Utf8, which never equals a default: that is a String.
        return None if default.kind == "string" and default.nullable else _equal(values, default.value)


def _equal(values: pa.Array, requested: object) -> Mask | None:
    return None if requested is None else as_mask(pc.equal(values, pa.scalar(requested, values.type)).fill_null(False))
