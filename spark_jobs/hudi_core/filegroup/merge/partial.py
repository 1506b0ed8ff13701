"""Two versions of a row merged field by field: partial-update blocks, and payload classes that fill fields.

Hudi's code: SparkRecordMergingUtils.mergePartialRecords, PartialUpdateHandler,
OverwriteNonDefaultsWithLatestAvroPayload, PartialUpdateAvroPayload, PostgresDebeziumAvroPayload.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hudi_core.codec.avro.schema import AvroSchema
from hudi_core.filegroup.merge.payloads import Fill, Payload
from hudi_core.filegroup.merge.record_keys import as_mask
from hudi_core.filegroup.merge.table_policy import MergePolicy, Rules
from hudi_core.model.names import META_FIELDS

Mask = NDArray[np.bool_]
Patterns = NDArray[np.int32]

FULL = 0
"""The pattern of rows that have all columns."""
_ONE_OBJECT = range(-128, 128)
"""Whole numbers for which Integer.valueOf and Long.valueOf give one object each."""
_KINDS = frozenset({"boolean", "int", "long", "float", "double", "string"})


@dataclass(frozen=True, slots=True)
class Default:
    """An Avro default other than null. `kind` is the column's Avro type; `nullable` when it is a union with null."""

    value: bool | int | float | str
    kind: str
    nullable: bool


def field_defaults(schema: AvroSchema) -> dict[str, Default]:
    """The top-level fields whose default is a plain value.

    A null default, none, and one of a complex type are omitted: no value that is not null equals those in Java.
    """
    found = {}
    for field in schema["fields"]:
        value, kind = field.get("default"), field["type"]
        branches = [branch for branch in kind if branch != "null"] if isinstance(kind, list) else [kind]
        name = branches[0] if len(branches) == 1 else None
        if isinstance(name, dict) and "logicalType" not in name:
            name = name.get("type")
        if isinstance(value, (bool, int, float, str)) and isinstance(name, str) and name in _KINDS:
            found[field["name"]] = Default(value, name, isinstance(kind, list))
    return found


class ColumnPatterns:
    """Which columns rows of partial-update blocks have: a number per set of columns, 0 for all."""

    def __init__(self, names: list[str]) -> None:
        """`names`: the columns of the rows' schema, in its order."""
        self._names = names
        self._numbers: dict[bytes, int] = {np.ones(len(names), dtype=np.bool_).tobytes(): FULL}
        self._present = np.ones((1, len(names)), dtype=np.bool_)

    def number(self, columns: frozenset[str] | None) -> int:
        """The pattern of rows that have these columns; None: all."""
        if columns is None:
            return FULL
        return self._number(np.array([name in columns for name in self._names], dtype=np.bool_))

    def union(self, one: Patterns, other: Patterns) -> Patterns:
        """The patterns of rows that have the columns of both."""
        width = len(self._present)
        pairs, back = np.unique(one.astype(np.int64) * width + other, return_inverse=True)
        found = [self._number(self._present[pair // width] | self._present[pair % width]) for pair in pairs.tolist()]
        numbers: Patterns = np.array(found, dtype=np.int32)[back.reshape(-1)]
        return numbers

    def absent(self, patterns: Patterns, column: int) -> Mask:
        """Which rows lack the column at this position of the schema."""
        lacking: Mask = ~self._present[:, column][patterns]
        return lacking

    def _number(self, present: Mask) -> int:
        key = present.tobytes()
        if key not in self._numbers:
            self._numbers[key] = len(self._present)
            self._present = np.vstack([self._present, present])
        return self._numbers[key]


class FieldMerger:
    """Completes the rows that win with fields of those that they win over."""

    def __init__(
        self, schema: pa.Schema, policy: MergePolicy, defaults: Mapping[str, Default], patterns: ColumnPatterns
    ) -> None:
        """`schema` is that of all rows, `defaults` Ordering.defaults."""
        self._schema = schema
        self._fill = policy.fill
        self._marker = policy.fill_marker
        self._defaults = defaults
        self._patterns = patterns
        # PartialUpdateAvroPayload.mergeDisorderRecordsWithMetadata: the meta columns are the later writer's, for either
        # winner.
        late = policy.payload is Payload.PARTIAL_UPDATE and policy.rules not in (Rules.EVENT_TIME, Rules.COMMIT_TIME)
        self._late = frozenset(META_FIELDS) if late else frozenset()

    def merge(
        self, old: pa.RecordBatch, new: pa.RecordBatch, newer_wins: Mask, old_patterns: Patterns, new_patterns: Patterns
    ) -> tuple[pa.RecordBatch, Patterns]:
        """Row by row of two batches of equal length: the merged rows, and which columns they have."""
        count = old.num_rows
        position = np.arange(count)
        columns = []
        for index, (column, older, newer) in enumerate(zip(self._schema, old.columns, new.columns, strict=True)):
            both = pa.concat_arrays([older, newer])
            wins = np.ones(count, dtype=np.bool_) if column.name in self._late else newer_wins
            first = np.where(wins, position + count, position)
            second = np.where(wins, position, position + count)
            gaps = self._gaps(column, both)
            absent = np.r_[self._patterns.absent(old_patterns, index), self._patterns.absent(new_patterns, index)]
            gaps = absent if gaps is None else gaps | absent
            columns.append(both.take(pa.array(np.where(gaps[first], second, first))))
        return pa.RecordBatch.from_arrays(columns, schema=self._schema), self._patterns.union(
            old_patterns, new_patterns
        )

    def _gaps(self, column: pa.Field, values: pa.Array) -> Mask | None:
        """Which values give way; None when none does."""
        if self._fill is Fill.NOTHING:
            return None
        if self._fill is Fill.MARKER:
            return self._equal(values, self._marker) if _is_text(column.type) else None
        default = self._defaults.get(column.name) if self._fill is not Fill.NULL else None
        if default is None:
            return as_mask(pc.is_null(values)) if values.null_count else None
        if self._fill is Fill.REFERENCE_DEFAULT:
            small = default.kind in ("int", "long") and default.value in _ONE_OBJECT
            return self._equal(values, default.value) if small or default.kind == "boolean" else None
        # Avro reads text of a nullable field as Utf8, which never equals the String that a default is.
        return None if default.kind == "string" and default.nullable else self._equal(values, default.value)

    def _equal(self, values: pa.Array, requested: object) -> Mask | None:
        if requested is None:
            return None
        return as_mask(pc.equal(values, pa.scalar(requested, values.type)).fill_null(False))


def _is_text(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_string(kind)
        or pa.types.is_large_string(kind)
        or pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
    )
