from __future__ import annotations

from typing import Any

import pytest

from hudi_core.codec.avro.resolve import MAX_DEPTH, resolve
from hudi_core.errors import CorruptFileError, FormatError, UnsupportedError


def record(*fields: Any, name: str = "r") -> dict[str, Any]:
    return {
        "type": "record",
        "name": name,
        "fields": [{"name": f"f{index}", "type": field} for index, field in enumerate(fields)],
    }


def test_unions_with_null_become_a_flag() -> None:
    tree = resolve(record(["null", "int"], ["long", "null"], ["string"], ["null", "int", "string"], ["null"]), path="x")
    kinds = [(child.type.kind, child.type.null_at, child.type.lone_union, child.type.nullable) for child in tree.fields]
    assert kinds == [
        ("int", 0, False, True),
        ("long", 1, False, True),
        ("string", -1, True, False),
        ("union", -1, False, True),
        ("union", -1, False, True),
    ]


def test_names_are_found_through_namespaces() -> None:
    inner = {"type": "fixed", "name": "f", "size": 2}
    schema = {**record({**inner}, "f", "a.b.f", name="a.b.r")}
    assert [child.type.size for child in resolve(schema, path="x").fields] == [2, 2, 2]
    apart = record({**inner, "namespace": "other"}, "other.f", name="a.r")
    assert [child.type.size for child in resolve(apart, path="x").fields] == [2, 2]
    plain = record({**inner, "name": ".f"}, {**record("f", name="n.q")}, name="r")
    with pytest.raises(CorruptFileError, match="unknown type 'f'"):
        resolve(plain, path="x")


def test_logical_types_count_only_on_their_own_base() -> None:
    fields = [
        {"type": "int", "logicalType": "date"},
        {"type": "long", "logicalType": "date"},
        {"type": {"type": "long", "logicalType": "timestamp-micros"}},
        {"type": "bytes", "logicalType": "decimal", "precision": 5},
    ]
    tree = resolve(record(*fields), path="x")
    assert [child.type.logical for child in tree.fields] == ["date", "", "timestamp-micros", "decimal"]
    assert (tree.fields[3].type.precision, tree.fields[3].type.scale) == (5, 0)


@pytest.mark.parametrize(
    "schema",
    [
        "unknown",
        7,
        None,
        {},
        {"type": 3},
        [],
        ["null", ["int"]],
        {"type": "array"},
        {"type": "map", "values": "nothing"},
        {"type": "record", "name": "r"},
        {"type": "record", "fields": []},
        {"type": "record", "name": "r", "fields": [{"name": "a"}]},
        {"type": "record", "name": "r", "fields": [{"name": "a\n", "type": "int"}]},
        {"type": "record", "name": "r", "fields": [{"name": "a", "type": "int"}, {"name": "a", "type": "int"}]},
        {"type": "enum", "name": "e", "symbols": []},
        {"type": "fixed", "name": "f", "size": -1},
        {"type": "fixed", "name": "f", "size": True},
        {"type": "fixed", "name": "f", "size": 1 << 40},
        {"type": "bytes", "logicalType": "decimal", "precision": 0},
        {"type": "bytes", "logicalType": "decimal", "precision": 3, "scale": 4},
        {"type": "bytes", "logicalType": "decimal", "precision": "9"},
        record({"type": "fixed", "name": "r", "size": 1}),
    ],
)
def test_what_is_no_schema_is_corrupt(schema: Any) -> None:
    with pytest.raises(CorruptFileError, match="log"):
        resolve(schema, path="log")


def test_a_type_that_contains_itself_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="contains itself"):
        resolve(record(["null", "r"]), path="log")


def test_depth_and_precision_are_bounded() -> None:
    deep: Any = "int"
    for _ in range(MAX_DEPTH + 1):
        deep = {"type": "array", "items": deep}
    with pytest.raises(UnsupportedError, match="nests deeper"):
        resolve(record(deep), path="log")
    with pytest.raises(UnsupportedError, match="precision 39"):
        resolve({"type": "bytes", "logicalType": "decimal", "precision": 39}, path="log")


def test_errors_quote_only_a_little_of_the_schema() -> None:
    with pytest.raises(FormatError) as caught:
        resolve({"type": "record", "name": "x" * 5000, "fields": []}, path="log")
    assert len(str(caught.value)) < 200


def test_fields_that_differ_in_case_alone_are_refused() -> None:
    fields = [{"name": "b", "type": "int"}, {"name": "B", "type": "int"}]
    inner = {"type": "record", "name": "inner", "fields": fields}
    for schema in (inner, record(["null", inner])):
        with pytest.raises(UnsupportedError, match=r"f\.log: the columns 'b' and 'B' differ in upper and"):
            resolve(schema, path="f.log")
