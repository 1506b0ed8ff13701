from __future__ import annotations

import contextlib
import decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hudi_core.codec.log import delete_columns as module
from hudi_core.codec.log.content import (
    DECIMAL_SCALE,
    ORDERING_KINDS,
    DeleteRecord,
    OrderingValue,
    delete_block,
    delete_block_data,
)
from hudi_core.codec.log.delete_columns import delete_columns, encode_deletes, encode_natural_deletes
from hudi_core.errors import CorruptFileError, FormatError, UnsupportedError
from tests.support.delete_records import ANY, SCALAR, VALUES, encode_delete_block, of_kind, records


def expected(entries: list[DeleteRecord]) -> list[dict[str, Any]]:
    kinds = sorted({entry.ordering.kind for entry in entries if entry.ordering}, key=ORDERING_KINDS.index)
    rows = []
    for entry in entries:
        row: dict[str, Any] = {"key": entry.key, "partition": entry.partition, "branch": 0, **dict.fromkeys(kinds)}
        if entry.ordering:
            row["branch"] = ORDERING_KINDS.index(entry.ordering.kind)
            row[entry.ordering.kind] = raw(entry.ordering)
        rows.append(row)
    return rows


def raw(ordering: OrderingValue) -> Any:
    if ordering.kind != "decimal":
        return ordering.value
    number = int.from_bytes(ordering.value, "big", signed=True)
    return decimal.Decimal((int(number < 0), tuple(map(int, str(abs(number)))), -DECIMAL_SCALE))


@settings(max_examples=30, deadline=None)
@given(records(st.none() | SCALAR))
def test_columns_hold_what_the_entries_do(entries: list[DeleteRecord]) -> None:
    table = delete_columns(encode_delete_block(entries), path="log")
    table.validate(full=True)
    assert table.to_pylist() == expected(entries)


@settings(max_examples=30, deadline=None)
@given(st.sampled_from([None, *sorted(VALUES)]).flatmap(lambda kind: records(of_kind(kind) if kind else st.none())))
def test_blocks_of_one_kind_take_the_fast_route(entries: list[DeleteRecord]) -> None:
    content = encode_delete_block(entries)
    fast = module._uniform(delete_block_data(content, path="log"), "log")
    slow = module._by_entry(content, "log")
    assert slow.to_pylist() == expected(entries)
    if entries:
        assert fast is not None
        assert fast.equals(slow)


@settings(max_examples=30, deadline=None)
@given(records(st.none() | SCALAR), st.data())
def test_the_fast_route_never_gives_other_entries(entries: list[DeleteRecord], data: st.DataObject) -> None:
    broken = bytearray(encode_delete_block(entries))
    broken[data.draw(st.integers(8, len(broken) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(FormatError):
        fast = module._uniform(delete_block_data(bytes(broken), path="log"), "log")
        if fast is not None:
            slow = module._by_entry(bytes(broken), "log")
            assert (fast.schema, repr(fast.to_pylist())) == (slow.schema, repr(slow.to_pylist()))  # NaN is not NaN


def test_a_block_with_a_damaged_boolean_goes_by_entry() -> None:
    """Found by the test above: a byte that is neither 0 nor 1 was false by columns and true by entry."""
    entries = [DeleteRecord(key, "p", OrderingValue("boolean", value)) for key, value in (("a", False), ("b", True))]
    content = bytearray(encode_delete_block(entries))
    assert module._uniform(delete_block_data(bytes(content), path="log"), "log") is not None
    content[content.index(b"p\x02\x00") + 2] = 2
    assert module._uniform(delete_block_data(bytes(content), path="log"), "log") is None


def test_a_large_block_goes_by_columns() -> None:
    entries = [DeleteRecord(f"key-{index:08d}", "p", OrderingValue("long", index)) for index in range(60_000)]
    table = delete_columns(encode_delete_block(entries), path="log")
    assert table.num_rows == len(entries)
    assert table.column("long").to_pylist()[-1] == len(entries) - 1
    assert table.column("branch").unique().to_pylist() == [3]


def test_values_of_several_ordering_fields_have_a_column_each() -> None:
    values = (OrderingValue("int", 1), OrderingValue("string", "b"), None)
    entries = [
        DeleteRecord("k", "p", OrderingValue("array", values)),
        DeleteRecord("l", "p", OrderingValue("array", (OrderingValue("int", 2), OrderingValue("local_date", 3)))),
        DeleteRecord("m", "p", OrderingValue("int", 0)),
        DeleteRecord("n", "p", OrderingValue("array", None)),
        DeleteRecord("o", "p", None),
    ]
    table = delete_columns(encode_delete_block(entries), path="log")
    assert table.column_names == ["key", "partition", "branch", "int", "0.int", "1.string"]
    assert table.column("int").to_pylist() == [None, None, 0, None, None]
    assert table.column("0.int").to_pylist() == [1, 2, None, None, None]
    assert table.column("1.string").to_pylist() == ["b", None, None, None, None]


def test_too_many_ordering_values_are_refused() -> None:
    content = encode_delete_block([DeleteRecord("k", "p", OrderingValue("array", (OrderingValue("int", 1),) * 65))])
    with pytest.raises(CorruptFileError, match="65 ordering values"):
        delete_columns(content, path="log")


@settings(max_examples=30, deadline=None)
@given(records(ANY), st.data())
def test_broken_blocks_raise_nothing_but_typed_errors(entries: list[DeleteRecord], data: st.DataObject) -> None:
    content = encode_delete_block(entries)
    cut = data.draw(st.integers(0, len(content) - 1))
    with pytest.raises((CorruptFileError, UnsupportedError)):
        delete_columns(content[:cut], path="log")


@pytest.mark.parametrize("keys", [[], ["k"], ["a", "ä" * 40, "", "x" * 9000, "b"]])
def test_the_bytes_are_those_of_single_entries(keys: list[str]) -> None:
    entries = [DeleteRecord(key, "record_index", OrderingValue("int", 0)) for key in keys]
    array = pa.array([b"?", *(key.encode() for key in keys)], pa.binary()).slice(1)
    assert encode_natural_deletes(array, "record_index") == encode_delete_block(entries)


def test_the_bytes_are_those_of_real_hudi() -> None:
    """Of HoodieDeleteBlock in the metadata table, bytes that Hudi wrote."""
    found = encode_natural_deletes(pa.array([b"k0"]), "record_index")
    assert found.hex() == "000000030000001602020" + "46b300218" + b"record_index".hex() + "040000"


COLUMNS = {
    "boolean": pa.array([True, False]),
    "int": pa.array([0, -70000], pa.int32()),
    "long": pa.array([1 << 40, -1]),
    "float": pa.array([0.5, -1.0], pa.float32()),
    "double": pa.array([0.5, -1.0]),
    "string": pa.array(["", "ä" * 99]),
    "date": pa.array([0, 20000], pa.int32()).cast(pa.date32()),
    "decimal": pa.array([decimal.Decimal("0.01"), decimal.Decimal("-12345")], pa.decimal128(30, DECIMAL_SCALE)),
}


def stored(kind: str, value: Any, *, several: bool) -> OrderingValue:
    """A value as an entry has it."""
    if kind == "decimal":
        number = int(value.scaleb(DECIMAL_SCALE))
        return OrderingValue(
            kind, number.to_bytes((number if number >= 0 else ~number).bit_length() // 8 + 1, "big", signed=True)
        )
    return OrderingValue("local_date" if several and kind == "date" else kind, value)


@pytest.mark.parametrize("kinds", [*((kind,) for kind in COLUMNS), ("long", "string"), (*COLUMNS,)])
def test_typed_values_are_stored_as_hudis_records_are(kinds: tuple[str, ...]) -> None:
    """Of several ordering fields in an array, in which dates have a type of their own."""
    keys, values = pa.array(["a", "ö"]), [(kind, COLUMNS[kind]) for kind in kinds]
    entries = []
    for at, key in enumerate(keys.to_pylist()):
        plain = [(kind, array.cast(pa.int32()) if kind == "date" else array) for kind, array in values]
        orders = tuple(stored(kind, array[at].as_py(), several=len(kinds) > 1) for kind, array in plain)
        entries.append(DeleteRecord(key, "p", orders[0] if len(orders) == 1 else OrderingValue("array", orders)))
    content = delete_block(2, encode_deletes(keys, "p", values, path="log"))
    assert content == encode_delete_block(entries)
    natural = encode_deletes(keys, "p", [("int", pa.array([0, 0], pa.int32()))], path="log")
    assert delete_block(2, natural) == encode_natural_deletes(keys.cast(pa.binary()), "p")
