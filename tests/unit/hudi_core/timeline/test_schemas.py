"""Schemas with column ids: what schema-on-read leaves in a table, and where a query's columns are in an older file."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hudi_core.errors import CorruptFileError, FormatError
from hudi_core.timeline.naming import timeline_of
from hudi_core.timeline.schemas import (
    ColumnSource,
    InternalField,
    InternalSchema,
    SchemaHistory,
    column_sources,
    internal_schema_history,
    parse_schema_history,
    sources_at,
)
from tests.support.memory_storage import MemoryStorage

FOLDER = ".hoodie/.schema"


def _field(number: int, name: str, kind: Any = "int") -> dict[str, Any]:
    return {"id": number, "name": name, "optional": True, "type": kind}


def _record(*fields: dict[str, Any]) -> dict[str, Any]:
    return {"type": "record", "fields": list(fields)}


def _schema(version: int, *fields: dict[str, Any]) -> dict[str, Any]:
    return {"max_column_id": 20, "version_id": version, **_record(*fields)}


ID = _field(0, "id", "string")
OLD_STRUCT = _field(3, "s", _record(_field(4, "x"), _field(5, "y")))
STRUCT = _field(3, "s", _record(_field(4, "x1"), _field(5, "y")))
FIRST = _schema(0, ID, _field(1, "a"), _field(2, "b", "decimal(10, 2)"), OLD_STRUCT)
RENAMED = _schema(20, ID, _field(1, "a2", "long"), _field(2, "b", "string"), STRUCT)
DROPPED = _schema(30, ID, _field(1, "a2", "long"), _field(7, "b"), STRUCT)


def _parsed(raw: dict[str, Any]) -> InternalSchema:
    return parse_schema_history(json.dumps({"schemas": [raw]}), path="x")[0]


def test_nested_types_have_ids_of_their_own() -> None:
    array = {"type": "array", "element_id": 4, "element": _record(_field(6, "e")), "element_optional": True}
    mapping = {"type": "map", "key_id": 2, "key": "string", "value_id": 3, "value": array, "value_optional": False}
    schema = _parsed(_schema(9, _field(1, "m", mapping), {"id": 5, "name": "d", "type": "Decimal(3, 1)"}))
    (m, d) = schema.fields
    assert d == InternalField(5, "d", True, "decimal(3, 1)")
    key, value = m.children
    assert (m.type, key.id, key.name, key.type, value.name, value.type, value.optional) == (
        "map",
        2,
        "key",
        "string",
        "value",
        "array",
        False,
    )
    (element,) = value.children
    assert (element.id, element.name, element.optional, element.children[0].name) == (4, "element", True, "e")
    assert sorted(field.id for field in schema.walk()) == [1, 2, 3, 4, 5, 6]


def test_where_columns_are_in_an_older_file() -> None:
    first, renamed, dropped = _parsed(FIRST), _parsed(RENAMED), _parsed(DROPPED)
    assert column_sources(first, first) == ()
    s = ColumnSource("s", "s", (ColumnSource("x1", "x"), ColumnSource("y", "y")))
    assert column_sources(first, renamed) == (
        ColumnSource("id", "id"),
        ColumnSource("a2", "a"),
        ColumnSource("b", "b"),
        s,
    )
    assert column_sources(first, dropped) == (
        ColumnSource("id", "id"),
        ColumnSource("a2", "a"),
        ColumnSource("b", None),
        s,
    )
    assert column_sources(renamed, dropped)[2] == ColumnSource("b", None)
    # A column that was only added, retyped or moved is found by its name.
    added = _parsed(_schema(40, _field(9, "new"), *DROPPED["fields"][::-1]))
    assert column_sources(dropped, added) == ()


def test_the_version_of_a_file_is_the_latest_at_its_instant() -> None:
    history = SchemaHistory((_parsed(FIRST), _parsed(RENAMED), _parsed(DROPPED)))
    assert [history.up_to(time).latest.version for time in ("5", "20", "29", "30", "99999999999999999")] == [
        0,
        20,
        20,
        30,
        30,
    ]
    assert [history.up_to(time).latest.version for time in ("", "x", "٣٣", "9" * 5000)] == [0, 0, 0, 0]
    assert history.latest.version == 30
    assert history.up_to("25").latest.version == 20
    assert SchemaHistory((_parsed(RENAMED),)).up_to("5").latest.version == 20
    travelled = json.loads(json.dumps(history.to_json()))
    for time in ("5", "20", "29", "30", "31"):
        assert sources_at(travelled, time) == column_sources(history.up_to(time).latest, history.latest)
    assert sources_at(travelled, "31") == ()


def _store(storage: MemoryStorage, name: str, *schemas: dict[str, Any]) -> None:
    storage.write(f"{FOLDER}/{name}", json.dumps({"schemas": list(schemas)}).encode())


@pytest.mark.parametrize(("layout", "suffix"), [(1, ""), (2, "_35")])
def test_the_latest_committed_history_counts(layout: int, suffix: str) -> None:
    storage = MemoryStorage()
    done = [f"{time}{'_99' if layout == 2 else ''}.commit" for time in ("10", "20", "30")]
    timeline = timeline_of([*done, "40.commit.requested"], layout)
    assert internal_schema_history(storage, timeline) is None
    for time in ("20", "40"):
        storage.write(f"{FOLDER}/{time}.schemacommit.requested", b"")
        storage.write(f"{FOLDER}/{time}.schemacommit.inflight", b"")
    assert internal_schema_history(storage, timeline) is None
    _store(storage, f"20{suffix}.schemacommit", RENAMED, FIRST)
    _store(storage, f"30{suffix}.schemacommit", DROPPED, RENAMED, FIRST)
    _store(storage, f"40{suffix}.schemacommit", _schema(40, _field(1, "uncommitted")), DROPPED)
    history = internal_schema_history(storage, timeline)
    assert history is not None
    assert [schema.version for schema in history.schemas] == [0, 20, 30]
    # Its commit was archived.
    older = internal_schema_history(storage, timeline.after("30").filter(lambda _: False))
    assert older is None
    archived = internal_schema_history(storage, timeline_of(["35_36.commit" if layout == 2 else "35.commit"], layout))
    assert archived is not None
    assert archived.latest.version == 30


@pytest.mark.parametrize("data", [b"", b"{}", b'{"schemas": []}', b'{"schemas": [1]}', b"\xff\xfe", b'{"schemas": {}}'])
def test_a_damaged_history_names_its_file(data: bytes) -> None:
    storage = MemoryStorage()
    storage.write(f"{FOLDER}/20.schemacommit", data)
    with pytest.raises(CorruptFileError) as caught:
        internal_schema_history(storage, timeline_of(["20.commit"]))
    assert caught.value.path == f"{FOLDER}/20.schemacommit"


def _deep(levels: int) -> Any:
    kind: Any = "int"
    for level in range(levels):
        kind = {"type": "array", "element_id": level, "element": kind, "element_optional": True}
    return kind


@pytest.mark.parametrize(
    "raw",
    [
        _schema(1, _field(1, "a"), _field(1, "b")),
        _schema(1, {"name": "a", "type": "int"}),
        _schema(1, {"id": 1, "type": "int"}),
        _schema(1, {"id": 1, "name": "a"}),
        _schema(1, _field(1, "a", {"type": "set"})),
        _schema(1, _field(1, "a", {"type": "array", "element": "int"})),
        _schema(1, _field(999, "a", _deep(100))),
        {"version_id": "x", **_record()},
        {"fields": []},
        {"type": "record", "fields": [7]},
    ],
)
def test_what_is_no_schema(raw: dict[str, Any]) -> None:
    with pytest.raises(FormatError, match=r"^x"):
        parse_schema_history(json.dumps({"schemas": [raw]}), path="x")
