from __future__ import annotations

import contextlib
import math
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hudi_core.codec.avro import arrow_routes
from hudi_core.codec.avro.arrow import arrow_schema, decode_records, spark_schema, with_defaults
from hudi_core.codec.avro.arrow_routes import fast_route_allowed, read_fast
from hudi_core.codec.avro.datum import DatumCodec
from hudi_core.codec.avro.resolve import resolve
from hudi_core.codec.avro.schema import parse_schema
from hudi_core.codec.log.blocks import BlockType, LogBlock, walk
from hudi_core.codec.log.content import avro_block_records, encode_avro_block
from hudi_core.errors import CorruptFileError, FormatError, UnsupportedError
from tests.support.avro_columns import ODD, tables
from tests.support.golden_data import GoldenCase

ROUTES: tuple[arrow_routes.Route, ...] = ("polars", "fastavro")
SLOW = settings(
    max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)


def block_of(schema: dict[str, Any], rows: list[dict[str, Any]]) -> tuple[int, memoryview]:
    codec = DatumCodec(schema)
    return avro_block_records(encode_avro_block([codec.encode(row) for row in rows]), path="log")


def record(*fields: tuple[str, Any]) -> dict[str, Any]:
    return {"type": "record", "name": "row", "fields": [{"name": name, "type": avro} for name, avro in fields]}


@pytest.mark.slow
@SLOW
@given(tables())
def test_both_routes_give_the_values_that_were_written(
    case: tuple[dict[str, Any], list[dict[str, Any]], list[dict[str, Any]]],
) -> None:
    schema, rows, expected = case
    count, body = block_of(schema, rows)
    reader = arrow_schema(schema)
    found = [decode_records(body, count, schema, reader, path="log", route=route) for route in ROUTES]
    for table in found:
        table.validate(full=True)
        assert table.schema.equals(reader)
        assert table.to_pylist() == expected
    assert found[0].equals(found[1])


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(tables())
def test_the_fast_route_takes_every_type_it_claims(
    case: tuple[dict[str, Any], list[dict[str, Any]], list[dict[str, Any]]],
) -> None:
    schema, rows, _ = case
    count, body = block_of(schema, rows)
    tree = resolve(schema, path="log")
    if fast_route_allowed(tree) and count:
        assert read_fast(body, count, tree, list(range(len(tree.fields))), prefix=True) is not None


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(tables(ODD))
def test_types_that_polars_cannot_do_are_decoded_all_the_same(
    case: tuple[dict[str, Any], list[dict[str, Any]], list[dict[str, Any]]],
) -> None:
    schema, rows, expected = case
    count, body = block_of(schema, rows)
    assert decode_records(body, count, schema, arrow_schema(schema), path="log", route="polars").to_pylist() == expected


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(tables(), st.data())
def test_columns_that_are_not_requested_are_skipped(
    case: tuple[dict[str, Any], list[dict[str, Any]], list[dict[str, Any]]], data: st.DataObject
) -> None:
    schema, rows, expected = case
    count, body = block_of(schema, rows)
    full = arrow_schema(schema)
    names = data.draw(st.lists(st.sampled_from(full.names), unique=True))
    reader = pa.schema([*(full.field(name) for name in names), pa.field("added", pa.string())])
    for route in ROUTES:
        table = decode_records(body, count, schema, reader, path="log", route=route)
        assert table.to_pylist() == [{**{name: row[name] for name in names}, "added": None} for row in expected]


@pytest.mark.parametrize("route", ROUTES)
def test_not_a_number_and_infinities_survive(route: arrow_routes.Route) -> None:
    schema = record(("f", "float"), ("d", ["null", "double"]))
    values = [math.nan, math.inf, -math.inf, -0.0]
    count, body = block_of(schema, [{"f": value, "d": value} for value in values])
    table = decode_records(body, count, schema, arrow_schema(schema), path="log", route=route)
    for name in ("f", "d"):
        assert [repr(value) for value in table.column(name).to_pylist()] == [repr(value) for value in values]


@pytest.mark.parametrize("route", ROUTES)
def test_a_namespaced_type_may_be_used_again_by_name(route: arrow_routes.Route) -> None:
    price = {
        "type": "fixed",
        "name": "price",
        "namespace": "shop.types",
        "size": 3,
        "logicalType": "decimal",
        "precision": 5,
        "scale": 2,
    }
    schema = {
        **record(
            ("a", price), ("b", ["null", "shop.types.price"]), ("c", {"type": "array", "items": "shop.types.price"})
        ),
        "namespace": "shop",
    }
    count, body = block_of(schema, [{"a": b"\0\0\1", "b": None, "c": [b"\xff\xff\xff"]}])
    (row,) = decode_records(body, count, schema, arrow_schema(schema), path="log", route=route).to_pylist()
    assert [str(row["a"]), row["b"], [str(value) for value in row["c"]]] == ["0.01", None, ["-0.01"]]


def test_arrow_schema_names_every_type() -> None:
    fields = (
        ("ms", {"type": "long", "logicalType": "timestamp-millis"}),
        ("us", ["null", {"type": "long", "logicalType": "timestamp-micros"}]),
        ("day", {"type": "int", "logicalType": "date"}),
        ("raw", {"type": "fixed", "name": "f8", "size": 8}),
        ("tags", {"type": "array", "items": ["null", "string"]}),
        ("props", {"type": "map", "values": "long"}),
    )
    schema = arrow_schema(record(*fields))
    assert schema == pa.schema(
        [
            pa.field("ms", pa.timestamp("ms", tz="UTC"), nullable=False),
            pa.field("us", pa.timestamp("us", tz="UTC")),
            pa.field("day", pa.date32(), nullable=False),
            pa.field("raw", pa.binary(8), nullable=False),
            pa.field("tags", pa.list_(pa.field("element", pa.string())), nullable=False),
            pa.field("props", pa.map_(pa.string(), pa.field("value", pa.int64(), nullable=False)), nullable=False),
        ]
    )
    spark = spark_schema(schema)
    assert spark.field("ms") == pa.field("ms", pa.timestamp("us", tz="UTC"))
    assert spark.field("raw") == pa.field("raw", pa.binary())


def test_a_union_of_several_types_is_refused_by_column_types() -> None:
    schema = record(("a", ["null", "int", "string"]))
    with pytest.raises(UnsupportedError, match=r"int, string"):
        arrow_schema(schema, path="table")
    count, body = block_of(schema, [{"a": 1}])
    with pytest.raises(UnsupportedError, match=r"log\.1"):
        decode_records(body, count, schema, pa.schema([("a", pa.int32())]), path="log.1")


@pytest.mark.parametrize("route", ROUTES)
def test_a_union_of_several_types_may_stand_in_a_column_that_is_not_read(route: arrow_routes.Route) -> None:
    schema = record(("a", ["null", "int", "string"]), ("b", "long"))
    count, body = block_of(schema, [{"a": "x", "b": 7}, {"a": None, "b": 8}])
    assert decode_records(body, count, schema, pa.schema([("b", pa.int64())]), path="log", route=route).to_pylist() == [
        {"b": 7},
        {"b": 8},
    ]


@pytest.mark.parametrize("route", ROUTES)
def test_promotions_of_a_newer_schema(route: arrow_routes.Route) -> None:
    fields = (
        ("i", "int"),
        ("j", "int"),
        ("k", "int"),
        ("l", "long"),
        ("m", "float"),
        ("s", "string"),
        ("b", ["null", "bytes"]),
        ("gone", "long"),
    )
    schema = record(*fields)
    row = {"i": -1, "j": 2, "k": 3, "l": 1 << 40, "m": 0.5, "s": "zü", "b": "é".encode(), "gone": 9}
    count, body = block_of(schema, [row])
    kinds = {
        "i": pa.int64(),
        "j": pa.float32(),
        "k": pa.float64(),
        "l": pa.float64(),
        "m": pa.float64(),
        "s": pa.binary(),
        "b": pa.string(),
    }
    reader = pa.schema([*kinds.items(), ("new", pa.list_(pa.int32()))])
    assert decode_records(body, count, schema, reader, path="log", route=route).to_pylist() == [
        {"i": -1, "j": 2.0, "k": 3.0, "l": float(1 << 40), "m": 0.5, "s": "zü".encode(), "b": "é", "new": None}
    ]


def test_a_type_that_cannot_widen_names_the_column() -> None:
    schema = record(("i", "double"))
    count, body = block_of(schema, [{"i": 1.0}])
    with pytest.raises(FormatError, match=r"log: column 'i' is double .* int32"):
        decode_records(body, count, schema, pa.schema([("i", pa.int32())]), path="log")


SCHEMA = record(("s", ["null", "string"]), ("n", "long"), ("e", {"type": "enum", "name": "e", "symbols": ["A"]}))
ROWS = [{"s": "abc", "n": 5, "e": "A"}, {"s": None, "n": 6, "e": "A"}]


@pytest.mark.parametrize("route", ROUTES)
def test_text_that_is_no_utf8_keeps_its_bytes(route: arrow_routes.Route) -> None:
    """As Hudi writes it for a cast of binary to text in Spark."""
    within = {"type": "record", "name": "inner", "fields": [{"name": "t", "type": "string"}]}
    kinds: list[tuple[str, Any]] = [
        ("s", ["null", "string"]),
        ("m", {"type": "map", "values": "string"}),
        ("l", {"type": "array", "items": "string"}),
        ("r", within),
    ]
    written = record(*kinds)
    rows = [
        {"s": "AAAA", "m": {"BBBB": "CCCC"}, "l": ["DDDD"], "r": {"t": "EEEE"}},
        {"s": None, "m": {}, "l": [], "r": {"t": ""}},
    ]
    count, body = block_of(written, rows)
    odd = bytes(body)
    for text in (b"AAAA", b"BBBB", b"CCCC", b"DDDD", b"EEEE"):
        odd = odd.replace(text, b"\xff\xfe" + text[2:])
    found = decode_records(odd, count, written, arrow_schema(written), path="log", route=route)
    binary = pa.binary()
    assert found["s"].cast(binary).to_pylist() == [b"\xff\xfeAA", None]
    entries = found["m"].combine_chunks()
    assert [entries.keys.cast(binary).to_pylist(), entries.items.cast(binary).to_pylist()] == [
        [b"\xff\xfeBB"],
        [b"\xff\xfeCC"],
    ]
    assert found["l"].combine_chunks().values.cast(binary).to_pylist() == [b"\xff\xfeDD"]
    assert found["r"].combine_chunks().field(0).cast(binary).to_pylist() == [b"\xff\xfeEE", b""]


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize(
    ("change", "count"),
    [
        (lambda body: body[:-1], 2),
        (lambda body: body[:-8], 2),
        (lambda body: body + b"\0", 2),
        (lambda body: body, 1),
        (lambda body: body, 3),
        (lambda body: body, 1 << 30),
        (lambda body: body, -1),
        (lambda body: b"\x7f" + body[1:], 2),
        (lambda body: b"\xff" + body[1:], 2),
        (lambda body: body[:3] + b"\x08" + body[4:], 2),
        (lambda body: body[:5] + b"\xfe\xff\xff\xff\x0f" + body[10:], 2),
        (lambda body: body[:-1] + b"\x02", 2),
    ],
    ids=[
        "cut",
        "cut-record",
        "longer",
        "fewer",
        "more",
        "absurd",
        "negative",
        "length",
        "length-negative",
        "length-other",
        "text",
        "symbol",
    ],
)
def test_broken_records_are_corrupt_by_both_routes(change: Any, count: int, route: arrow_routes.Route) -> None:
    _, body = block_of(SCHEMA, ROWS)
    with pytest.raises(CorruptFileError, match="log"):
        decode_records(change(bytes(body)), count, SCHEMA, arrow_schema(SCHEMA), path="log", route=route)


def test_an_int_of_more_than_32_bits_is_corrupt() -> None:
    count, body = block_of(record(("n", "long")), [{"n": 1 << 40}])
    with pytest.raises(CorruptFileError, match="log: records 0 to 0 hold a value"):
        decode_records(body, count, record(("n", "int")), pa.schema([("n", pa.int32())]), path="log", route="fastavro")


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_mutated_records_raise_nothing_but_typed_errors(data: st.DataObject) -> None:
    nested = record(
        ("a", {"type": "array", "items": ["null", "string"]}), ("m", {"type": "map", "values": "double"}), ("n", "int")
    )
    rows = [{"a": ["x", None], "m": {"k": 1.5}, "n": index} for index in range(3)]
    _, body = block_of(nested, rows)
    # Text is left as it was written, UTF-8 or not.
    as_bytes = pa.schema([("a", pa.list_(pa.binary())), ("m", pa.map_(pa.binary(), pa.float64())), ("n", pa.int32())])
    broken = bytearray(body)
    for _ in range(data.draw(st.integers(1, 3))):
        broken[data.draw(st.integers(0, len(broken) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(broken)))
    for route in ROUTES:
        with contextlib.suppress(FormatError):
            decode_records(bytes(broken[:cut]), 3, nested, as_bytes, path="log", route=route).validate(full=True)


@pytest.mark.parametrize("avro", [{"type": "bytes"}, {"type": "fixed", "name": "f", "size": 20}])
def test_a_decimal_beyond_its_precision_is_corrupt(avro: dict[str, Any]) -> None:
    schema = record(("d", {**avro, "logicalType": "decimal", "precision": 4, "scale": 2}))
    size = avro.get("size", 2)
    for value in (12345, 1 << 100):
        raw = value.to_bytes(size if value < 1 << 100 or avro["type"] == "fixed" else 20, "big", signed=True)
        count, body = block_of(schema, [{"d": raw}])
        for route in ROUTES:
            with pytest.raises(CorruptFileError, match=r"decimal\(4,2\)"):
                decode_records(body, count, schema, arrow_schema(schema), path="log", route=route)


@pytest.mark.parametrize("size", [0, 65])
def test_a_decimal_of_no_or_too_many_bytes_is_corrupt(size: int) -> None:
    schema = record(("d", {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}))
    count, body = block_of(schema, [{"d": bytes(size)}])
    with pytest.raises(CorruptFileError, match="decimal of"):
        decode_records(body, count, schema, arrow_schema(schema), path="log")


def test_a_schema_that_would_reserve_too_much_goes_record_by_record() -> None:
    """A null struct of many columns takes a byte in the log and 8 bytes a column in buffers that polars reserves
    first.
    """
    wide = {
        "type": "record",
        "name": "wide",
        "fields": [{"name": f"w{index}", "type": "long"} for index in range(3000)],
    }
    schema = record(("a", ["null", wide]))
    count, body = block_of(schema, [{"a": None}] * 4000)
    assert not arrow_routes.fits_memory(resolve(schema, path="log"), count, len(body))
    assert decode_records(body[:50], 10, schema, arrow_schema(schema), path="log").column("a").null_count == 10


def test_the_first_import_of_polars_is_put_off_for_little_data(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(arrow_routes.sys.modules, "polars", raising=False)
    deferral = arrow_routes.Deferral(100)
    assert [deferral.pays(60), deferral.pays(40), deferral.pays(1)] == [False, False, True]
    assert arrow_routes.Deferral(1000).pays(1001)


def test_a_schema_that_is_no_record_is_refused() -> None:
    with pytest.raises(CorruptFileError, match="not a record"):
        arrow_schema({"type": "array", "items": "int"}, path="log")


GOLDEN = [
    "types_mor",
    "types_3level_lists_mor",
    "mor_basic",
    "schema_evolution_mor",
    "cdc_mor",
    "log_compaction_requested",
]


@pytest.mark.parametrize("name", GOLDEN)
def test_golden_blocks_decode_alike_by_both_routes_and_encode_to_the_same_bytes(golden: Any, name: str) -> None:
    case: GoldenCase = golden("6", name)
    blocks = 0
    for path in sorted(case.table.rglob(".*.log.*")):
        if path.suffix == ".crc" or ".hoodie" in path.parts:
            continue
        data = path.read_bytes()
        for block in walk(lambda offset, length, data=data: data[offset : offset + length], len(data), path.name):
            if isinstance(block, LogBlock) and block.type in (BlockType.AVRO_DATA, BlockType.CDC_DATA):
                content = data[block.content_offset : block.content_offset + block.content_length]
                check_block(content, block.schema or "", path.name)
                blocks += 1
    assert blocks


def check_block(content: bytes, text: str, path: str) -> None:
    count, body = avro_block_records(content, path=path)
    schema = parse_schema(text, path=path)
    found = [decode_records(body, count, schema, arrow_schema(schema), path=path, route=route) for route in ROUTES]
    assert found[0].equals(found[1])
    assert found[0].num_rows == count > 0
    codec, data, position = DatumCodec(schema), [], 0
    while position < len(body):
        length = int.from_bytes(body[position : position + 4], "big")
        data.append(codec.encode(codec.decode(body[position + 4 : position + 4 + length], path=path)))
        position += 4 + length
    assert encode_avro_block(data) == content


DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 6, "scale": 2}
INNER = {"type": "record", "name": "inner", "fields": [{"name": "a", "type": ["null", "int"], "default": None}]}


@pytest.mark.parametrize(
    ("avro", "default", "value"),
    [
        ("int", 7, 7),
        (["long", "null"], 2**40, 2**40),
        ("boolean", False, False),
        ("double", 1.5, 1.5),
        (["string", "null"], "", ""),
        ("bytes", "\u00ff\u0000", b"\xff\0"),
        ({"type": "fixed", "name": "f", "size": 2}, "ab", b"ab"),
        (DECIMAL, "\u0001\u0000", Decimal("2.56")),
        ({"type": "int", "logicalType": "date"}, -1, date(1969, 12, 31)),
        ({"type": "long", "logicalType": "local-timestamp-millis"}, 1, datetime(1970, 1, 1, 0, 0, 0, 1000)),
        ({"type": "enum", "name": "e", "symbols": ["A", "B"]}, "B", "B"),
        ({"type": "array", "items": "int"}, [1, 2], [1, 2]),
        ({"type": "map", "values": "long"}, {"k": 1}, [("k", 1)]),
        (INNER, {"a": None}, {"a": None}),
        (["null", "int"], None, None),
        (["null", "int"], 7, None),
        (["int", "null"], "no number", None),
        (["bytes", "null"], 5, None),
        (["bytes", "null"], "\u0100", None),
    ],
)
def test_what_a_record_lacks_has_the_default_of_its_field(avro: Any, default: Any, value: Any) -> None:
    """Of the first type of a union, as Avro has it; another default is none."""
    has = {"name": "a", "type": "int"}
    fields = [{"name": "x", "type": avro, "default": default}, has, {"name": "late", "type": "int", "default": 3}]
    table = {"type": "record", "name": "row", "fields": fields}
    nullable = pa.schema([field.with_nullable(True) for field in arrow_schema(table)])
    for schema in (nullable, spark_schema(nullable)):
        count, records = block_of(record(("a", "int"), ("late", "int")), [{"a": 1, "late": 4}, {"a": 2, "late": 5}])
        writer = record(("a", "int"), ("late", "int"))
        (batch,) = decode_records(records, count, writer, schema, path="log").to_batches()
        found = with_defaults(batch, {"a", "late"}, schema)
        assert found.schema.equals(schema)
        assert found.to_pydict() == {"x": [value, value], "a": [1, 2], "late": [4, 5]}
