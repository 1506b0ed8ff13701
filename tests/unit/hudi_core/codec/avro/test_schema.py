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


def test_what_follows_from_a_schema_is_made_once_and_errors_name_their_path() -> None:
    made: list[Any] = []

    @avro.kept_by_schema
    def names(schema: Any, path: str) -> tuple[str, ...]:
        made.append(schema)
        if not schema["fields"]:
            raise CorruptFileError("no fields", path=path)
        return tuple(avro.field_names(schema))

    for _ in range(3):
        assert names(record(id="long"), "a") == ("id",)
        assert names(record(id="long", ts="long"), "a") == ("id", "ts")
    assert len(made) == 2
    for path in ("b", "c"):
        with pytest.raises(CorruptFileError) as caught:
            names(record(), path)
        assert caught.value.path == path
    wide, deep = record(**dict.fromkeys((f"column_{at}" for at in range(4000)), "long")), record(id="long")
    for _ in range(5000):
        deep = {**deep, "nested": deep}
    made.clear()
    assert [len(names(wide, "a")), len(names(wide, "a")), names(deep, "a")] == [4000, 4000, ("id",)]
    assert len(made) == 3, "neither long nor deep schemas are kept"


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
