from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from hudi_core.config.rows_config import Payload
from hudi_core.filegroup.merge.payload_store import PayloadStore
from hudi_core.filegroup.merge.row_merge import FULL, ColumnPatterns, Default, RowMerger, field_defaults
from hudi_core.filegroup.merge.table_policy import Fill, MergePolicy, Rules

FIELDS: list[tuple[str, Any, Any]] = [
    ("none", ["null", "long"], None),
    ("small", "int", 5),
    ("large", "long", 500),
    ("maybe", ["long", "null"], 5),
    ("flag", "boolean", False),
    ("share", "double", 0.5),
    ("plain", "string", "x"),
    ("text", ["string", "null"], "x"),
    ("day", {"type": "int", "logicalType": "date"}, 5),
    ("list", {"type": "array", "items": "int"}, []),
    ("typed", {"type": "string", "avro.java.string": "String"}, "x"),
]
SCHEMA = {
    "type": "record",
    "name": "r",
    "fields": [{"name": name, "type": kind, "default": value} for name, kind, value in FIELDS],
}


def test_defaults_are_the_plain_values_other_than_null() -> None:
    assert field_defaults({"type": "record", "name": "r", "fields": [{"name": "a", "type": "int"}]}) == {}
    found = field_defaults(SCHEMA)
    assert set(found) == {"small", "large", "maybe", "flag", "share", "plain", "text", "typed"}
    assert found["maybe"] == Default(5, "long", nullable=True)
    assert found["typed"] == Default("x", "string", nullable=False)


def test_patterns_are_numbered_once() -> None:
    patterns = ColumnPatterns(["a", "b", "c"])
    assert patterns.number(None) == patterns.number(frozenset("abc")) == FULL
    one, two = patterns.number(frozenset("a")), patterns.number(frozenset("b"))
    assert patterns.number(frozenset("a")) == one != two
    both = patterns.union(np.array([one, one, FULL], dtype=np.int32), np.array([two, one, two], dtype=np.int32))
    assert both.tolist() == [patterns.number(frozenset("ab")), one, FULL]
    assert patterns.absent(both, 2).tolist() == [True, True, False]


def merge(
    fill: Fill, column: str, kind: pa.DataType, high: list[Any], low: list[Any], *, marker: str | None = None
) -> list[Any]:
    """The column's values when the newer rows win."""
    schema = pa.schema([(column, kind)])
    policy = MergePolicy(("key",), (), Rules.COMMIT_TIME, Payload.LATEST, fill, marker)
    store = PayloadStore(schema, budget=1 << 20)
    merger = RowMerger(schema, policy, field_defaults(SCHEMA), store)
    old, new = (pa.RecordBatch.from_arrays([pa.array(values, kind)], schema=schema) for values in (low, high))
    rows = store.append(new) + np.arange(len(high))
    merger.note(len(high), None)
    merged, deleted = merger.merge_base(old, rows, np.ones(len(high), dtype=np.bool_))
    assert not deleted.any()
    assert merger.patterns_of(rows).tolist() == [FULL] * len(high)
    values: list[Any] = merged.column(0).to_pylist()
    return values


@pytest.mark.parametrize(
    ("column", "kind", "high", "by_value", "by_reference"),
    [
        ("none", pa.int64(), [None, 5], [0, 5], [0, 5]),
        ("small", pa.int32(), [5, 6], [0, 6], [0, 6]),
        ("large", pa.int64(), [500, 6], [0, 6], [500, 6]),
        ("maybe", pa.int64(), [5, None], [0, None], [0, None]),
        ("flag", pa.bool_(), [False, True], [True, True], [True, True]),
        ("share", pa.float64(), [0.5, 2.0], [0.0, 2.0], [0.5, 2.0]),
        ("plain", pa.string(), ["x", "y"], ["low", "y"], ["x", "y"]),
        ("text", pa.string(), ["x", None], ["x", None], ["x", None]),
    ],
)
def test_what_equals_a_default(
    column: str, kind: pa.DataType, high: list[Any], by_value: list[Any], by_reference: list[Any]
) -> None:
    low = ["low", "low"] if kind == pa.string() else [True, True] if kind == pa.bool_() else [0, 0]
    assert merge(Fill.DEFAULT, column, kind, high, low) == by_value
    assert merge(Fill.REFERENCE_DEFAULT, column, kind, high, low) == by_reference


def test_nulls_give_way_whatever_the_default() -> None:
    assert merge(Fill.NULL, "small", pa.int32(), [5, None], [1, 2]) == [5, 2]
    assert merge(Fill.NULL, "list", pa.list_(pa.int32()), [[], None], [[1], [2]]) == [[], [2]]


def test_the_marker_of_unavailable_values_is_looked_for_in_text_and_bytes() -> None:
    assert merge(Fill.MARKER, "text", pa.string(), ["?", None, "?x"], ["a", "b", "c"], marker="?") == ["a", None, "?x"]
    assert merge(Fill.MARKER, "raw", pa.binary(), [b"?", b"y"], [b"a", b"b"], marker="?") == [b"a", b"y"]
    assert merge(Fill.MARKER, "large", pa.int64(), [None, 1], [2, 3], marker="?") == [None, 1]
    assert merge(Fill.MARKER, "text", pa.string(), ["?"], ["a"]) == ["?"]
