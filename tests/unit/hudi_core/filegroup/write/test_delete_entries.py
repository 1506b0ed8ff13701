"""The entries of delete blocks: whose ordering values they hold, and which rows stay rows."""

from __future__ import annotations

import datetime
import decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from hudi_core.codec.log.content import DeleteRecord, OrderingValue, decode_delete_block
from hudi_core.errors import CorruptFileError
from hudi_core.filegroup.merge.table_policy import MergePolicy, Rules
from hudi_core.filegroup.write.delete_entries import DeleteEntries

DATE = {"type": "int", "logicalType": "date"}
MONEY = {"type": "bytes", "logicalType": "decimal", "precision": 20, "scale": 2}
HUGE = {"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": 2}
DAY = pa.array([datetime.date(1970, 1, 3), None])
AMOUNT = [decimal.Decimal("1.50"), None]


def entries(avro: Any, rules: Rules = Rules.EVENT_TIME, *, hudi_1_0: bool = False) -> DeleteEntries:
    """Of a table that is ordered by `ts` of this type."""
    schema = {"type": "record", "name": "t", "fields": [{"name": "ts", "type": ["null", avro]}]}
    policy = MergePolicy(("_hoodie_record_key",), ("ts",), rules, string_deletes_win=hudi_1_0)
    return DeleteEntries(policy, schema, "p", path="p/.f.log")


def rows(ts: pa.Array) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array(["a", "b"]), ts], names=["_hoodie_record_key", "ts"])


@pytest.mark.parametrize(
    ("avro", "ts", "rules", "hudi_1_0", "due"),
    [
        ("long", pa.array([7, None]), Rules.EVENT_TIME, False, OrderingValue("long", 7)),
        ("long", pa.array([7, None]), Rules.COMMIT_TIME, False, OrderingValue("long", 7)),
        (
            {"type": "long", "logicalType": "timestamp-millis"},
            pa.array([7, None], pa.timestamp("ms", "UTC")),
            Rules.PAYLOAD_0_15,
            False,
            OrderingValue("long", 7),
        ),
        (DATE, DAY, Rules.PAYLOAD_0_15, False, OrderingValue("date", 2)),
        (DATE, DAY, Rules.EVENT_TIME, False, None),
        (MONEY, pa.array(AMOUNT, pa.decimal128(20, 2)), Rules.EVENT_TIME, True, None),
        (HUGE, pa.array(AMOUNT, pa.decimal128(38, 2)), Rules.EVENT_TIME, False, None),
    ],
)
def test_rows_with_all_ordering_values_are_added(
    avro: Any, ts: pa.Array, rules: Rules, hudi_1_0: bool, due: OrderingValue | None
) -> None:
    """In raw values, also where no merge compares them; none where an entry does not hold them or Hudi fails on it."""
    made = entries(avro, rules, hudi_1_0=hudi_1_0)
    added = made.add_rows(rows(ts), np.array([4, 5]))
    assert added.tolist() == [due is not None, False]
    assert made.count == added.sum()
    if due is not None:
        assert made.positions.tolist() == [4]
        assert decode_delete_block(made.take(None), path="log") == [DeleteRecord("a", "p", due)]


def test_entries_come_in_the_order_of_their_positions() -> None:
    made = entries("long")
    made.add_rows(rows(pa.array([1, 2])), np.array([9, 3]))
    made.add_rows(rows(pa.array([3, 4])), np.array([1, 5]))
    found = decode_delete_block(made.take(np.argsort(made.positions)), path="log")
    assert [(entry.key, entry.ordering) for entry in found] == [
        (key, OrderingValue("long", value)) for key, value in (("a", 3), ("b", 2), ("b", 4), ("a", 1))
    ]


def test_keys_and_rows_may_be_in_one_block() -> None:
    """Rows that leave their partition, beside marked ones. A key deletes whatever the ordering values are."""
    made = entries("double")
    made.add_keys(pa.array(["k"]), np.array([-1]))
    made.add_rows(rows(pa.array([1.5, 2.5])), np.array([-1, -1]))
    found = decode_delete_block(made.take(None), path="log")
    assert [entry.ordering for entry in found] == [
        OrderingValue("int", 0),
        OrderingValue("double", 1.5),
        OrderingValue("double", 2.5),
    ]


def test_a_row_without_a_key_is_refused() -> None:
    with pytest.raises(CorruptFileError, match="1 records have no record key"):
        entries("long").add_rows(
            rows(pa.array([1, 2])).set_column(0, "_hoodie_record_key", pa.array(["a", None])), np.zeros(2, np.int64)
        )
