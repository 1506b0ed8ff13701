from __future__ import annotations

import itertools
import math
import struct
import tracemalloc
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hudi_core.codec.avro import encode
from hudi_core.codec.avro.arrow import arrow_schema, decode_records
from hudi_core.codec.avro.datum import DatumCodec
from hudi_core.codec.avro.encode import encode_records, encode_rows
from hudi_core.codec.avro.resolve import AvroType, resolve
from hudi_core.codec.avro.schema import add_meta_fields, parse_schema
from hudi_core.codec.log.blocks import BlockType, LogBlock, walk
from hudi_core.codec.log.content import avro_block_records, encode_avro_records
from hudi_core.errors import FormatError, UnsupportedError
from tests.support.avro_columns import ODD, tables
from tests.support.golden_data import GoldenCase

Row = dict[str, Any]
MANY = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
ENUM = {"type": "enum", "name": "colour", "symbols": ["red", "green", "blue"]}
MONEY = {"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": 2}


def record(*fields: tuple[str, Any], name: str = "row") -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": [{"name": column, "type": avro} for column, avro in fields]}


def fixed(size: int, **more: Any) -> dict[str, Any]:
    return {"type": "fixed", "name": f"fixed_{size}", "size": size, **more}


def logical(base: str, name: str) -> dict[str, Any]:
    return {"type": base, "logicalType": name}


def batch_of(schema: dict[str, Any], rows: list[Row]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(rows, schema=arrow_schema(schema))


def column(avro: Any, array: pa.Array) -> tuple[pa.RecordBatch, dict[str, Any]]:
    schema = record(("v", avro))
    return pa.RecordBatch.from_arrays([array], schema=arrow_schema(schema)), schema


def data_of(batch: pa.RecordBatch, schema: dict[str, Any]) -> list[bytes]:
    """The data of the rows. Both functions give the same."""
    octets, ends = encode_rows(batch, schema, path="the rows")
    assert (octets.dtype, ends.dtype, len(ends)) == (np.uint8, np.int64, batch.num_rows + 1)
    assert (ends[0], ends[-1]) == (0, len(octets))
    data = [octets[start:end].tobytes() for start, end in itertools.pairwise(ends)]
    assert encode_records(batch, schema, path="the rows") == encode_avro_records(data)
    return data


def by_fastavro(schema: dict[str, Any], rows: list[Row]) -> list[bytes]:
    codec = DatumCodec(schema)
    return [codec.encode(row) for row in rows]


def fewest_bytes(number: int) -> bytes:
    """What BigInteger.toByteArray gives."""
    magnitude = number if number >= 0 else ~number
    return number.to_bytes(magnitude.bit_length() // 8 + 1, "big", signed=True)


def as_java(value: Any, avro: AvroType) -> Any:
    """The raw value with decimals of bytes as Java writes them: other writers may use more bytes."""
    if value is None:
        return None
    if avro.kind == "record":
        return {child.name: as_java(value[child.name], child.type) for child in avro.fields}
    if avro.kind == "array" and avro.item is not None:
        return [as_java(item, avro.item) for item in value]
    if avro.kind == "map" and avro.item is not None:
        return {key: as_java(item, avro.item) for key, item in value.items()}
    if avro.kind == "bytes" and avro.logical == "decimal":
        return fewest_bytes(int.from_bytes(value, "big", signed=True))
    return value


@pytest.mark.slow
@MANY
@given(tables(ODD), st.data())
def test_random_rows_have_the_bytes_of_fastavro_and_are_read_back(
    case: tuple[dict[str, Any], list[Row], list[Row]], draws: st.DataObject
) -> None:
    schema, raw, values = case
    batch = batch_of(schema, values)
    tree = resolve(schema, path="x")
    data = by_fastavro(schema, [as_java(row, tree) for row in raw])
    assert data_of(batch, schema) == data
    start = draws.draw(st.integers(0, len(values)))
    length = draws.draw(st.integers(0, len(values) - start))
    assert data_of(batch.slice(start, length), schema) == data[start : start + length]
    records = encode_records(batch, schema, path="x")
    assert decode_records(records, len(values), schema, batch.schema, path="x").to_pylist() == values


EDGES = sorted({sign * (1 << bits) + more for bits in range(63) for sign in (1, -1) for more in (-1, 0, 1)})


@pytest.mark.parametrize(
    ("avro", "values"),
    [
        ("long", [*EDGES, (1 << 63) - 1, -(1 << 63)]),
        ("int", [value for value in EDGES if -(1 << 31) <= value < 1 << 31]),
        (logical("int", "date"), [-1, 0, 19_000]),
        (logical("int", "time-millis"), [0, 86_399_999]),
        (logical("long", "time-micros"), [0, 86_399_999_999]),
        *[(logical("long", f"{zone}timestamp-millis"), [-1, 0, 1 << 50]) for zone in ("", "local-")],
        *[(logical("long", f"{zone}timestamp-micros"), [-1, 0, 1 << 60]) for zone in ("", "local-")],
        (logical("long", "unheard-of"), [-1, 0, 1 << 60]),
    ],
)
def test_numbers_of_every_width(avro: Any, values: list[int]) -> None:
    width = pa.int32() if (avro if isinstance(avro, str) else avro["type"]) == "int" else pa.int64()
    batch, schema = column(avro, pa.array(values, width).view(arrow_schema(record(("v", avro))).field("v").type))
    assert data_of(batch, schema) == by_fastavro(schema, [{"v": value} for value in values])


@pytest.mark.parametrize(
    ("avro", "values"),
    [
        ("boolean", [True, False]),
        ("string", ["", "a", "ü" * 31, "x" * 63, "x" * 64, "x" * 8192, "\0\U0001f600"]),
        (logical("string", "uuid"), ["7b5e8d1c-9a55-4d3b-8f3e-2f1a0f5f0a11"]),
        ("bytes", [b"", b"\xff\x00", b"x" * 300]),
        (ENUM, ["blue", "red", "green"]),
        (fixed(3), [b"abc", b"\0\0\0"]),
        (fixed(300), [b"a" * 300, bytes(300)]),
        ({"type": "array", "items": "long"}, [[], [1], list(range(200))]),
        ({"type": "array", "items": ["null", "string"]}, [[None], [], ["a", None, ""]]),
        ({"type": "array", "items": {"type": "array", "items": "int"}}, [[], [[]], [[1], [], [2, 3]]]),
        ({"type": "map", "values": ["int", "null"]}, [{}, {"a": 1, "": None}, {"ü": 3}]),
        ({"type": "map", "values": {"type": "array", "items": "string"}}, [{"a": []}, {}, {"b": ["c", "d"]}]),
        (record(("a", "int"), ("b", ["null", "string"]), name="inner"), [{"a": 1, "b": "x"}, {"a": 2, "b": None}]),
        (record(name="nothing"), [{}, {}]),
    ],
)
@pytest.mark.parametrize("union", ["none", "null first", "null second", "alone"])
def test_every_type_in_every_union(avro: Any, values: list[Any], union: str) -> None:
    schema = record(
        ("before", "int"),
        ("v", {"none": avro, "null first": ["null", avro], "null second": [avro, "null"], "alone": [avro]}[union]),
        ("after", "string"),
    )
    if union.startswith("null"):
        values = [None, *values, None]
    rows = [{"before": number, "v": value, "after": str(number)} for number, value in enumerate(values)]
    batch = batch_of(schema, rows)
    data = by_fastavro(schema, rows)
    assert data_of(batch, schema) == data
    for start in range(len(rows)):
        assert data_of(batch.slice(start, 2), schema) == data[start : start + 2]


def test_the_branch_of_null_is_its_place_in_the_union() -> None:
    for avro, expected in ((["null", "int"], [b"\x00", b"\x02\x06"]), (["int", "null"], [b"\x02", b"\x00\x06"])):
        batch, schema = column(avro, pa.array([None, 3], pa.int32()))
        assert data_of(batch, schema) == expected


@pytest.mark.parametrize("kind", ["float", "double"])
def test_floating_numbers_keep_their_bits(kind: str) -> None:
    code, type_ = ("<f", pa.float32()) if kind == "float" else ("<d", pa.float64())
    values = [0.0, -0.0, 1.5, math.inf, -math.inf, math.nan]
    batch, schema = column(kind, pa.array(values, type_))
    assert data_of(batch, schema) == [struct.pack(code, value) for value in values]
    assert data_of(batch, schema) == by_fastavro(schema, [{"v": value} for value in values])
    # Not the NaN of Python: Java's encoder keeps the bits, too (Float.floatToRawIntBits).
    odd = pa.array([-1], pa.int32() if kind == "float" else pa.int64()).view(type_)
    assert data_of(*column(kind, odd)) == [b"\xff" * (4 if kind == "float" else 8)]


DECIMALS = [sign * (1 << bits) + more for bits in range(126) for sign in (1, -1) for more in (-1, 0, 1)]
DECIMALS = [number for number in DECIMALS if abs(number) < 10**38] + [10**38 - 1, 1 - 10**38]


def decimals(numbers: list[int | None], precision: int = 38, scale: int = 2) -> pa.Array:
    values = [
        None if number is None else Decimal((int(number < 0), tuple(map(int, str(abs(number)))), -scale))
        for number in numbers
    ]
    return pa.array(values, pa.decimal128(precision, scale))


@pytest.mark.parametrize("union", [False, True])
def test_a_decimal_of_bytes_has_the_fewest_that_hold_it(union: bool) -> None:
    numbers = [*DECIMALS, None] if union else DECIMALS
    batch, schema = column(["null", MONEY] if union else MONEY, decimals(numbers))
    raw = [None if number is None else fewest_bytes(number) for number in numbers]
    assert data_of(batch, schema) == by_fastavro(schema, [{"v": value} for value in raw])
    assert data_of(batch.slice(200, 3), schema) == by_fastavro(schema, [{"v": value} for value in raw[200:203]])


@pytest.mark.parametrize("size", [1, 7, 8, 9, 15, 16, 17, 40])
@pytest.mark.parametrize("union", [False, True])
def test_a_decimal_of_a_fixed_fills_it(size: int, union: bool) -> None:
    numbers: list[int | None] = [number for number in DECIMALS if len(fewest_bytes(number)) <= size]
    kind = fixed(size, logicalType="decimal", precision=38, scale=2)
    raw: list[Any] = [number.to_bytes(size, "big", signed=True) for number in numbers if number is not None]
    if union:
        numbers, raw = [None, *numbers], [None, *raw]
    batch, schema = column([kind, "null"] if union else kind, decimals(numbers))
    assert data_of(batch, schema) == by_fastavro(schema, [{"v": value} for value in raw])


def test_meta_fields_are_ordinary_columns() -> None:
    schema = add_meta_fields(record(("id", "long")), operation=True)
    row = dict.fromkeys(arrow_schema(schema).names[:6], "m") | {"id": 5}
    assert data_of(batch_of(schema, [row]), schema) == [b"\x02\x02m" * 6 + b"\x0a"]


def test_no_rows_have_no_bytes() -> None:
    schema = record(("a", "string"), ("b", ["null", {"type": "array", "items": MONEY}]), ("c", ["null", ENUM]))
    batch = batch_of(schema, [{"a": "x", "b": [Decimal("1.00")], "c": None}])
    for empty in (batch_of(schema, []), batch.slice(1), batch.slice(0, 0)):
        assert data_of(empty, schema) == []


def test_rows_without_columns_are_empty_data() -> None:
    batch = pa.RecordBatch.from_struct_array(pa.array([{}, {}], pa.struct([])))
    assert data_of(batch, record()) == [b"", b""]
    nulls, schema = column("null", pa.nulls(3))
    assert data_of(nulls, schema) == [b""] * 3


def test_a_type_may_be_used_again_by_its_name() -> None:
    schema = record(("a", fixed(2)), ("b", ["null", "fixed_2"]), ("c", {"type": "array", "items": "fixed_2"}))
    rows = [{"a": b"ab", "b": b"cd", "c": [b"ef"]}, {"a": b"xy", "b": None, "c": []}]
    assert data_of(batch_of(schema, rows), schema) == by_fastavro(schema, rows)


def test_three_hundred_columns() -> None:
    kinds: list[tuple[Any, Any]] = [("long", 7), (["null", "string"], "text"), (["double", "null"], 0.5), (ENUM, "red")]
    chosen = [kinds[number % 3 if number else 3] for number in range(300)]
    schema = record(*((f"c{number}", kind) for number, (kind, _) in enumerate(chosen)))
    rows = [
        {
            f"c{number}": None if isinstance(kind, list) and (number + row) % 5 == 0 else value
            for number, (kind, value) in enumerate(chosen)
        }
        for row in range(20)
    ]
    assert data_of(batch_of(schema, rows), schema) == by_fastavro(schema, rows)


def test_deep_nesting() -> None:
    avro: Any = ["null", "string"]
    values: list[Any] = ["a", None, "", "b"]
    for level in range(15):
        inner = record(("x", avro), ("y", "int"), name=f"level{level}")
        avro = ["null", {"type": ("array", "map")[level % 2], ("items", "values")[level % 2]: inner}]
        lists = [[{"x": value, "y": level}] * (level % 2 or 1 + number % 2) for number, value in enumerate(values)]
        values = [None, *([{f"k{number}": rows[0]} for number, rows in enumerate(lists)] if level % 2 else lists)][:5]
    schema = record(("v", avro))
    rows = [{"v": value} for value in values]
    assert data_of(batch_of(schema, rows), schema) == by_fastavro(schema, rows)


HIDDEN = {
    "t": ("string", [b"ok", b"\xff\xfe", b"yes"]),
    "e": (ENUM, ["red", "no colour", "blue"]),
    "d": (fixed(2, logicalType="decimal", precision=3), [5, 10**30, 7]),
    "l": ({"type": "array", "items": "long"}, [[1], [None, 1 << 40], []]),
    "n": (["null", "int"], [None, 8, 9]),
    "r": (record(("must", "string"), name="inner"), [{"must": "a"}, {"must": None}, {"must": "c"}]),
}


def hidden(name: str, kind: pa.DataType) -> pa.Array:
    values = HIDDEN[name][1]
    if name == "t":
        return pa.array(values, pa.binary()).view(kind)
    if name == "d":
        data = b"".join(value.to_bytes(16, "little") for value in values)
        return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(data)])
    return pa.array(values, kind)


def test_values_below_a_null_do_not_count() -> None:
    """Arrow may hold anything there, also what is an error elsewhere."""
    outer = record(*((name, avro) for name, (avro, _) in HIDDEN.items()), name="outer")
    schema = record(("v", ["null", outer]))
    kind = arrow_schema(schema).field("v").type
    arrays = [hidden(field.name, field.type) for field in kind]
    structs = pa.StructArray.from_arrays(arrays, fields=list(kind), mask=pa.array([False, True, False]))
    rows = [
        {"v": {"t": "ok", "e": "red", "d": b"\0\5", "l": [1], "n": None, "r": {"must": "a"}}},
        {"v": None},
        {"v": {"t": "yes", "e": "blue", "d": b"\0\7", "l": [], "n": 9, "r": {"must": "c"}}},
    ]
    batch = pa.RecordBatch.from_arrays([structs], schema=arrow_schema(schema))
    assert data_of(batch, schema) == by_fastavro(schema, rows)
    assert data_of(batch.slice(1), schema) == by_fastavro(schema, rows[1:])


@pytest.mark.parametrize("kind", ["array", "map"])
def test_items_below_a_null_do_not_count(kind: str) -> None:
    avro = {"type": kind, "items" if kind == "array" else "values": "string"}
    keys, values = pa.array(["a", "b", "c", "d"]), pa.array([b"1", b"\xff", None, b"4"]).view(pa.string())
    type_ = arrow_schema(record(("v", avro))).field("v").type
    child = values if kind == "array" else pa.StructArray.from_arrays([keys, values], fields=list(type_.field(0).type))
    buffers = [pa.py_buffer(b"\x05"), pa.py_buffer(np.array([0, 1, 3, 4], dtype=np.int32))]
    batch, schema = column([avro, "null"], pa.Array.from_buffers(type_, 3, buffers, children=[child]))
    rows = [
        {"v": ["1"] if kind == "array" else {"a": "1"}},
        {"v": None},
        {"v": ["4"] if kind == "array" else {"d": "4"}},
    ]
    assert data_of(batch, schema) == by_fastavro(schema, rows)
    assert data_of(batch.slice(1, 2), schema) == by_fastavro(schema, rows[1:])


def test_rows_are_the_same_in_runs_of_any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    schema = record(
        ("key", "string"),
        ("list", {"type": "array", "items": record(("m", {"type": "map", "values": "boolean"}), name="item")}),
        ("text", ["null", "string"]),
    )
    rows: list[Row] = [
        {"key": str(n), "list": [{"m": {"k": True}}] * (n % 4), "text": None if n % 3 else "x" * (n * n)}
        for n in range(50)
    ]
    batch, data = batch_of(schema, rows), by_fastavro(schema, rows)
    for run_bytes in (0, 100, 3000, 1 << 30):
        monkeypatch.setattr(encode, "RUN_BYTES", run_bytes)
        assert data_of(batch, schema) == data
        assert data_of(batch.slice(7, 30), schema) == data[7:37]


@pytest.mark.parametrize("avro", ["boolean", {"type": "array", "items": "boolean"}])
def test_memory_is_that_of_the_data_and_of_some_runs(avro: Any) -> None:
    """Booleans have the most bytes in Avro for one in Arrow."""
    values = pa.array(np.zeros(4_000_000, dtype=np.bool_))
    if avro != "boolean":
        offsets = pa.py_buffer(np.arange(0, 4_000_001, 50, dtype=np.int32))
        kind = arrow_schema(record(("v", avro))).field("v").type
        values = pa.Array.from_buffers(kind, 80_000, [None, offsets], children=[values])
    batch, schema = column(avro, values)
    tracemalloc.start()
    records = encode_records(batch, schema, path="x")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < len(records) + 4 * encode.RUN_BYTES


def broken_text() -> pa.Array:
    return pa.array([b"ok", b"\xc3"]).view(pa.string())


def wide_decimal() -> pa.Array:
    return pa.Array.from_buffers(pa.decimal128(3, 0), 1, [None, pa.py_buffer((1000).to_bytes(16, "little"))])


@pytest.mark.parametrize(
    ("avro", "array", "message"),
    [
        ("int", pa.array([1, None], pa.int32()), "'v' has a null"),
        (["int"], pa.array([1, None], pa.int32()), "'v' has a null"),
        ({"type": "array", "items": "int"}, pa.array([[1], None], pa.list_(pa.int32())), "'v' has a null"),
        ({"type": "array", "items": "int"}, pa.array([[1, None]], pa.list_(pa.int32())), "'v.element' has a null"),
        (
            {"type": "map", "values": "int"},
            pa.array([[("a", None)]], pa.map_("string", "int32")),
            "'v.value' has a null",
        ),
        (
            ["null", record(("x", "int"), name="r")],
            pa.array([{"x": None}], pa.struct({"x": "int32"})),
            "'v.x' has a null",
        ),
        ("string", broken_text(), "'v' has a text that is not UTF-8"),
        (["null", logical("string", "uuid")], broken_text(), "'v' has a text that is not UTF-8"),
        (ENUM, pa.array(["red", "pink"]), "'v' has 'pink', no symbol"),
        (["null", ENUM], pa.array(["red", None, b"\xff"], pa.binary()).view(pa.string()), r"has '\\\\xff', no symbol"),
        (fixed(1, logicalType="decimal", precision=3), decimals([127, 128], 3, 0), "'v' has a .* not fit its 1 bytes"),
        (
            fixed(9, logicalType="decimal", precision=3),
            wide_decimal(),
            r"'v' has a value that does not fit decimal\(3,0",
        ),
        (
            {"type": "bytes", "logicalType": "decimal", "precision": 3},
            wide_decimal(),
            "'v' has a value that does not fit",
        ),
        ("int", pa.array([1]), "'v' is of the type int64"),
        ("string", pa.array(["a"], pa.large_string()), "'v' is of the type large_string"),
        (logical("long", "timestamp-micros"), pa.array([1], pa.timestamp("us")), r"is of the type timestamp\[us\]"),
        (fixed(3), pa.array([b"ab"], pa.binary(2)), r"is of the type fixed_size_binary\[2\]"),
        ({"type": "array", "items": "int"}, pa.array([1], pa.int32()), "'v' is of the type int32"),
        (
            {"type": "array", "items": "int"},
            pa.array([[1]], pa.list_(pa.int32(), 1)),
            "'v' is of the type fixed_size_l",
        ),
        ({"type": "map", "values": "int"}, pa.array([[1]], pa.list_(pa.int32())), "'v' is of the type list"),
        (record(("x", "int"), name="r"), pa.array([{"y": 1}], pa.struct({"y": "int32"})), "'v' is of the type struct"),
        (record(("x", "int"), name="r"), pa.array([1], pa.int32()), "'v' is of the type int32"),
    ],
)
def test_a_value_that_the_schema_does_not_allow_is_refused(avro: Any, array: pa.Array, message: str) -> None:
    batch = pa.RecordBatch.from_arrays([array], names=["v"])
    for function in (encode_rows, encode_records):
        with pytest.raises(FormatError, match=message) as caught:
            function(batch, record(("v", avro)), path="the rows")
        assert caught.value.path == "the rows"


def test_a_fault_in_rows_outside_the_slice_is_none() -> None:
    batch, schema = column("string", broken_text())
    assert data_of(batch.slice(0, 1), schema) == [b"\x04ok"]


@pytest.mark.parametrize("names", [["b", "a"], ["a"], ["a", "b", "c"], ["A", "b"]])
def test_other_columns_than_those_of_the_schema_are_refused(names: list[str]) -> None:
    batch = pa.RecordBatch.from_arrays([pa.array([1], pa.int32())] * len(names), names=names)
    with pytest.raises(FormatError, match=r"the rows have the column .* where the schema has") as caught:
        encode_rows(batch, record(("a", "int"), ("b", "int")), path="the rows")
    assert caught.value.path == "the rows"


def test_schemas_without_a_form_in_arrow_are_refused() -> None:
    batch = pa.RecordBatch.from_arrays([pa.array([1], pa.int32())], names=["v"])
    with pytest.raises(UnsupportedError, match="union"):
        encode_rows(batch, record(("v", ["null", "int", "string"])), path="the rows")
    for schema in ({"type": "map", "values": "int"}, {"type": [record(("v", "int"))]}):
        with pytest.raises(FormatError, match=r"the schema's type is .*, not a record"):
            encode_rows(batch, schema, path="the rows")


def test_a_row_that_no_length_can_count_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    batch, schema = column("string", pa.array(["x" * 98]))
    monkeypatch.setattr(encode, "_MAX_BYTES", 100)
    assert data_of(batch.slice(0, 0), schema) == []
    assert len(encode_rows(batch, schema, path="x")[0]) == 100
    with pytest.raises(UnsupportedError, match="rows of 104 bytes in Avro; a record can have 100 at most"):
        encode_records(batch, schema, path="x")


@pytest.mark.parametrize("name", ["types_mor", "types_3level_lists_mor", "mor_basic", "cdc_mor"])
def test_the_blocks_of_real_hudi_are_encoded_to_the_same_bytes(golden: Any, name: str) -> None:
    case: GoldenCase = golden("6", name)
    blocks = 0
    for path in sorted(case.table.rglob(".*.log.*")):
        if path.suffix == ".crc" or ".hoodie" in path.parts:
            continue
        data = path.read_bytes()
        for block in walk(lambda offset, length, data=data: data[offset : offset + length], len(data), path.name):
            if isinstance(block, LogBlock) and block.type in (BlockType.AVRO_DATA, BlockType.CDC_DATA):
                content = data[block.content_offset : block.content_offset + block.content_length]
                count, records = avro_block_records(content, path=path.name)
                schema = parse_schema(block.schema or "", path=path.name)
                table = decode_records(records, count, schema, arrow_schema(schema), path=path.name)
                (batch,) = table.combine_chunks().to_batches()
                assert encode_records(batch, schema, path=path.name) == bytes(records)
                blocks += 1
    assert blocks
