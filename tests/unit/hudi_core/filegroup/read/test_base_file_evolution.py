"""Older files under the query's column names."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_core.codec.avro.arrow import arrow_schema, decode_records
from hudi_core.codec.avro.arrow_conform import conform_batch
from hudi_core.codec.avro.schema import AvroSchema
from hudi_core.codec.log.content import encode_avro_records
from hudi_core.filegroup.read.base_file import apply_sources, rename_fields, stored_names
from hudi_core.timeline.schemas import ColumnSource
from tests.support.avro_data import encode_datum

X = (ColumnSource("x2", "x"), ColumnSource("y", None))
SOURCES = (
    ColumnSource("id", "id"),
    ColumnSource("b", "a"),
    ColumnSource("a", None),
    ColumnSource("s", "s", X),
    ColumnSource("l", "l", (ColumnSource("element", "element", X),)),
    ColumnSource("m", "m", (ColumnSource("key", "key"), ColumnSource("value", "value", X))),
)
STRUCT = pa.struct([("x", pa.int32()), ("y", pa.string())])
ROWS = [
    {
        "id": "1",
        "a": 7,
        "s": {"x": 1, "y": "p"},
        "l": [{"x": 2, "y": "q"}, None],
        "m": {"k": {"x": 3, "y": "r"}},
        "op": "I",
    },
    {"id": "2", "a": None, "s": None, "l": None, "m": None, "op": None},
    {"id": "3", "a": 9, "s": {"x": None, "y": None}, "l": [], "m": {}, "op": "U"},
    {
        "id": "4",
        "a": 10,
        "s": {"x": 5, "y": "t"},
        "l": [{"x": 6, "y": "u"}],
        "m": {"a": None, "b": {"x": 8, "y": "v"}},
        "op": "U",
    },
]
SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("a", pa.int32()),
        ("s", STRUCT),
        ("l", pa.list_(STRUCT)),
        ("m", pa.map_(pa.string(), STRUCT)),
        ("op", pa.string()),
    ]
)
X2 = pa.struct([("x2", pa.int32())])
REQUESTED = pa.schema(
    [
        ("id", pa.string()),
        ("b", pa.int32()),
        ("s", X2),
        ("l", pa.list_(X2)),
        ("m", pa.map_(pa.string(), X2)),
        ("op", pa.string()),
    ]
)


def _new(value: dict[str, object] | None) -> dict[str, object] | None:
    return None if value is None else {"x2": value["x"]}


def _expected(row: dict[str, object]) -> dict[str, object]:
    items, entries = row["l"], row["m"]
    return {
        "id": row["id"],
        "b": row["a"],
        "s": _new(row["s"]),  # type: ignore[arg-type]
        "l": None if items is None else [_new(item) for item in items],  # type: ignore[attr-defined]
        "m": None if entries is None else [(key, _new(value)) for key, value in entries.items()],  # type: ignore[attr-defined]
        "op": row["op"],
    }


def _batch() -> pa.RecordBatch:
    rows = [{**row, "m": None if row["m"] is None else list(row["m"].items())} for row in ROWS]  # type: ignore[attr-defined]
    return pa.RecordBatch.from_pylist(rows, schema=SCHEMA)


@pytest.mark.parametrize("start", [0, 1, 3])
def test_columns_take_the_querys_names_and_keep_their_values(start: int) -> None:
    batch = apply_sources(_batch().slice(start), SOURCES)
    batch.validate(full=True)
    assert batch.schema.names == ["id", "b", "s", "l", "m", "op"]
    assert conform_batch(batch, REQUESTED, path="f").to_pylist() == [_expected(row) for row in ROWS[start:]]


def test_no_sources_change_nothing() -> None:
    batch = _batch()
    assert apply_sources(batch, ()) is batch
    assert stored_names(["a", "z"], (), ["z", "a"], path="f") == ["a", "z"]


def test_which_columns_of_the_file_are_needed() -> None:
    assert stored_names(["b", "a", "op"], SOURCES, SCHEMA.names, path="f") == ["a", "op"]
    assert stored_names(["b", "OP", "x"], SOURCES, ["Id", "A", "op"], path="f") == ["A", "op"]
    only = apply_sources(pa.record_batch([pa.array([1, 2])], names=["a"]), (ColumnSource("a", None),))
    assert (only.num_rows, "a" in only.schema.names) == (2, False)


def test_sources_are_found_in_any_case() -> None:
    """And a column that was dropped does not come back by a new one's name in another case."""
    batch = pa.RecordBatch.from_pydict({"X": [1], "c": [2], "other": [3]})
    sources = (ColumnSource("x2", "x"), ColumnSource("C", None))
    assert apply_sources(batch, sources).schema.names == ["x2", "_dropped_1_c", "other"]
    schema = _avro("r", {"name": "X", "type": "int"}, {"name": "c", "type": "int"}, {"name": "other", "type": "int"})
    assert [field["name"] for field in rename_fields(schema, sources)["fields"]] == ["x2", "_dropped_1_c", "other"]


def _avro(name: str, *fields: dict[str, object]) -> AvroSchema:
    return {"type": "record", "name": name, "fields": list(fields)}


def test_log_records_take_the_querys_names_by_their_schema() -> None:
    x: AvroSchema = {"name": "x", "type": ["null", "int"], "default": None}
    y: AvroSchema = {"name": "y", "type": ["null", "string"], "default": None}
    writer = _avro(
        "r",
        {"name": "id", "type": "string"},
        {"name": "a", "type": ["null", "int"]},
        {"name": "s", "type": ["null", _avro("s", x, y)]},
        {"name": "l", "type": ["null", {"type": "array", "items": ["null", _avro("e", x, y)]}]},
        {"name": "m", "type": ["null", {"type": "map", "values": ["null", _avro("v", x, y)]}]},
        {"name": "op", "type": ["null", "string"]},
    )
    renamed = rename_fields(writer, SOURCES)
    assert rename_fields(writer, ()) is writer
    data = encode_avro_records([encode_datum(writer, row) for row in ROWS])
    reader = pa.schema([field for field in arrow_schema(renamed) if not field.name.startswith("_dropped_")])
    assert reader.names == ["id", "b", "s", "l", "m", "op"]
    table = decode_records(data, len(ROWS), renamed, REQUESTED, path="x")
    assert table.to_pylist() == [_expected(row) for row in ROWS]
    swapped = rename_fields(writer, (ColumnSource("op", "a"), ColumnSource("a", "op"), ColumnSource("id", None)))
    assert [field["name"] for field in swapped["fields"]] == ["_dropped_0_id", "op", "s", "l", "m", "a"]


@pytest.mark.parametrize(
    "sources",
    [
        (ColumnSource("key", "id"), ColumnSource("a", "a")),
        (ColumnSource("key", "id"), ColumnSource("x", "a", (ColumnSource("y", "b"),))),
    ],
)
def test_a_required_struct_in_one_that_is_null(sources: tuple[ColumnSource, ...]) -> None:
    """Arrow reads it from Parquet as null."""
    inner = pa.struct([pa.field("tags", pa.list_(pa.field("element", pa.string())))])
    outer = pa.struct([pa.field("b", inner, nullable=False)])
    written = pa.table({"id": [1, 2], "a": pa.array([{"b": {"tags": ["x"]}}, None], outer)})
    file = pa.BufferOutputStream()
    pq.write_table(written, file)
    (batch,) = pq.read_table(pa.BufferReader(file.getvalue())).to_batches()
    name, field = sources[1].name, "y" if sources[1].children else "b"
    assert apply_sources(batch, sources).to_pylist() == [
        {"key": 1, name: {field: {"tags": ["x"]}}},
        {"key": 2, name: None},
    ]
