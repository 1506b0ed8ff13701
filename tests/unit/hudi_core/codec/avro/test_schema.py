from __future__ import annotations

import json
from typing import Any

import pytest

from hudi_core.codec.avro import schema as avro
from hudi_core.errors import CorruptFileError
from hudi_core.model.names import META_FIELDS, OPERATION


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
