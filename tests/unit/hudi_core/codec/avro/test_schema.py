from __future__ import annotations

import json
import re
from typing import Any

import pytest

from hudi_core.codec.avro import schema as avro
from hudi_core.errors import CorruptFileError
from hudi_core.model.meta_fields import META_FIELDS, OPERATION


def record(**fields: Any) -> dict[str, Any]:
    return {"type": "record", "name": "r", "fields": [{"name": name, "type": kind} for name, kind in fields.items()]}


def test_meta_fields_are_put_in_front_once_and_taken_away() -> None:
    plain = record(id="long", ts="long")
    full = avro.add_meta_fields(plain)
    assert avro.field_names(full) == [*META_FIELDS, "id", "ts"]
    assert avro.add_meta_fields(full) == full
    assert avro.without_meta_fields(full) == plain
    assert avro.field_names(avro.add_meta_fields(plain, operation=True))[5] == OPERATION
    assert avro.field(full, "ts") == {"name": "ts", "type": "long"}
    assert avro.field(full, "no") is None


@pytest.mark.parametrize(
    "text",
    [
        *("", "{", "[]", '"string"', "3", "[" * 100_000, " " * (avro.MAX_SCHEMA_BYTES + 1)),
        *('{"type":"string"}', '{"type":"record","name":"r","fields":{}}', '{"type":"record","name":"r","fields":[3]}'),
        '{"type":"record","name":"r","fields":[{"nase":"v","type":"int"}]}',
    ],
)
def test_text_that_is_no_schema_is_corrupt(text: str) -> None:
    with pytest.raises(CorruptFileError, match="log"):
        avro.parse_schema(text, path="log")


def test_parse_schema_gives_the_json() -> None:
    assert avro.parse_schema(json.dumps(record(a="int")), path="log") == record(a="int")


TIME = {"type": "long", "logicalType": "timestamp-micros"}
PRICE = {"type": "bytes", "logicalType": "decimal", "precision": 6, "scale": 2}


@pytest.mark.parametrize(
    ("writer", "reader"),
    [
        (record(a="int"), record(a="int", b=["null", "string"])),
        (record(a="int", gone="string"), record(a="long")),
        (record(a="int"), record(a=["null", "double"])),
        (record(a="string"), record(a="bytes")),
        (record(a=PRICE), record(a={**PRICE, "precision": 9})),
        (record(a={"type": "array", "items": "int"}), record(a={"type": "array", "items": "long"})),
        (record(a="null"), record(a=["null", "int"])),
        (record(a={"type": "string", "logicalType": "uuid"}), record(a="string")),
    ],
)
def test_readable_schemas(writer: dict[str, Any], reader: dict[str, Any]) -> None:
    assert avro.incompatibilities(writer, reader, path="log") == []


@pytest.mark.parametrize(
    ("writer", "reader", "said"),
    [
        (record(a="int"), record(a="int", b="string"), "b is not in the data"),
        (record(a="long"), record(a="int"), "a is long in the data and int"),
        (record(a=["null", "int"]), record(a="int"), "a may be null"),
        (record(a=PRICE), record(a={**PRICE, "scale": 3}), r"decimal\(6,2\)"),
        (record(a="long"), record(a=TIME), "timestamp-micros"),
        (
            record(a={"type": "map", "values": "string"}),
            record(a={"type": "map", "values": "int"}),
            "a.value is string",
        ),
        (record(a={"type": "array", "items": "string"}), record(a="string"), "array"),
        (
            record(a={"type": "enum", "name": "e", "symbols": ["A", "B"]}),
            record(a={"type": "enum", "name": "e", "symbols": ["A"]}),
            "enum",
        ),
    ],
)
def test_unreadable_schemas_say_why(writer: dict[str, Any], reader: dict[str, Any], said: str) -> None:
    (found,) = avro.incompatibilities(writer, reader, path="log")
    assert re.search(said, found)


def test_a_default_stands_for_an_absent_field() -> None:
    reader = record(a="int")
    reader["fields"].append({"name": "b", "type": "string", "default": "x"})
    assert avro.incompatibilities(record(a="int"), reader, path="log") == []
