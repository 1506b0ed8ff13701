from __future__ import annotations

import json
from typing import Any

import pytest

from hudi_core.errors import CorruptFileError
from hudi_core.timeline.schemas import ColumnSource, column_sources, parse_schema_history


def field(number: int, name: str, kind: Any = "INT") -> dict[str, Any]:
    return {"id": number, "name": name, "optional": True, "type": kind}


def schema(*fields: dict[str, Any], version: int = 0) -> dict[str, Any]:
    return {"version_id": version, "type": "record", "fields": list(fields)}


def parsed(raw: dict[str, Any]) -> Any:
    (found,) = parse_schema_history(json.dumps({"schemas": [raw]}), path="x")
    return found


def test_every_part_of_a_nested_type_has_an_id() -> None:
    array = {"type": "array", "element": "int", "element_id": 3, "element_optional": True}
    mapped = {"type": "map", "key": "string", "key_id": 4, "value": array, "value_id": 5, "value_optional": False}
    found = parsed(schema(field(1, "m", mapped)))
    assert sorted((item.id, item.name, item.type) for item in found.walk()) == [
        (1, "m", "map"),
        (3, "element", "int"),
        (4, "key", "string"),
        (5, "value", "array"),
    ]


def test_columns_are_found_by_their_ids() -> None:
    file = parsed(schema(field(1, "a"), field(2, "b")))
    query = parsed(schema(field(1, "a2"), field(3, "b")))
    assert column_sources(file, query) == (ColumnSource("a2", "a"), ColumnSource("b", None))
    assert column_sources(file, file) == ()
    added = parsed(schema(field(1, "a"), field(2, "b"), field(3, "c")))
    assert column_sources(file, added) == (), "by name it is not there either"


def test_sources_cross_as_json() -> None:
    source = ColumnSource("s", "old", (ColumnSource("x", None),))
    assert ColumnSource.from_json(json.loads(json.dumps(source.to_json()))) == source


def test_a_history_goes_by_version() -> None:
    text = json.dumps({"schemas": [schema(version=20), schema(field(1, "a"), version=3)]})
    assert [item.version for item in parse_schema_history(text, path="x")] == [3, 20]


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (schema(field(1, "a"), field(1, "b")), "two columns one id"),
        (schema({"id": 1, "type": "int"}), "has no name"),
        (schema({"name": "a", "type": "int"}), "has no id"),
        (schema(field(1, "a", {"type": "union"})), "unknown type"),
        (schema(field(1, "a", 5)), "where a type is due"),
    ],
)
def test_what_is_no_schema(raw: dict[str, Any], message: str) -> None:
    with pytest.raises(CorruptFileError, match=message):
        parsed(raw)
    with pytest.raises(CorruptFileError):
        parse_schema_history("{}", path="x")
