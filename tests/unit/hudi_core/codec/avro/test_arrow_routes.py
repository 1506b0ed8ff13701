from __future__ import annotations

import io

import fastavro
import pytest

from hudi_core.codec.avro.arrow_routes import (
    Deferral,
    fast_route_allowed,
    fast_route_available,
    fits_memory,
    physical_schema,
    read_fast,
    read_reference,
)
from hudi_core.codec.avro.resolve import AvroType, resolve
from hudi_core.errors import CorruptFileError

SCHEMA = {
    "type": "record",
    "name": "row",
    "fields": [{"name": "key", "type": "string"}, {"name": "n", "type": ["null", "long"]}],
}
ROWS = [{"key": "a", "n": 1}, {"key": "b", "n": None}, {"key": "c", "n": -3}]
AVRO = resolve(SCHEMA, path="x")


def encoded(*, prefix: bool = True) -> bytes:
    parts = []
    for row in ROWS:
        out = io.BytesIO()
        fastavro.schemaless_writer(out, SCHEMA, row)
        parts.append((len(out.getvalue()).to_bytes(4, "big") if prefix else b"") + out.getvalue())
    return b"".join(parts)


@pytest.mark.parametrize("prefix", [False, True])
def test_both_routes_give_the_same_columns(prefix: bool) -> None:
    assert fast_route_available()
    body = memoryview(encoded(prefix=prefix))
    fast = read_fast(body, 3, AVRO, [1, 0], prefix=prefix)
    slow = read_reference(memoryview(encoded()), 3, AVRO, [1, 0], path="x")
    assert fast is not None
    assert [column.to_pylist() for column in fast] == [column.to_pylist() for column in slow]
    assert slow[0].to_pylist() == [1, None, -3]


def test_what_the_fast_route_cannot_read_is_left_to_the_other() -> None:
    body = memoryview(encoded())
    assert read_fast(body, 2, AVRO, [0], prefix=True) is None
    assert read_fast(body[:-1], 3, AVRO, [0], prefix=True) is None


@pytest.mark.parametrize(
    ("cut", "count", "message"),
    [(1, 3, "record 2 at byte .* claims"), (0, 2, "2 records end after"), (0, 4, "record 3 at byte .* claims")],
)
def test_the_fault_is_named(cut: int, count: int, message: str) -> None:
    body = memoryview(encoded())
    with pytest.raises(CorruptFileError, match=message):
        read_reference(body[: len(body) - cut], count, AVRO, [0], path="x")


def typed(field: object) -> AvroType:
    return resolve({"type": "record", "name": "row", "fields": [{"name": "v", "type": field}]}, path="x")


@pytest.mark.parametrize(
    ("field", "allowed"),
    [
        ("int", True),
        (["null", "string"], True),
        ({"type": "array", "items": "double"}, True),
        (["string"], False),
        (["null", "int", "string"], False),
        ("null", False),
        ({"type": "fixed", "name": "wide", "size": 65}, False),
    ],
)
def test_schemas_of_the_fast_route(field: object, allowed: bool) -> None:
    assert fast_route_allowed(typed(field)) is allowed


def test_names_are_positions_and_a_length_may_stand_in_front() -> None:
    names = [field["name"] for field in physical_schema(AVRO, prefix=True)["fields"]]
    assert names == ["length", "f0", "f1"]


def test_a_claim_of_too_many_records_does_not_fit() -> None:
    assert fits_memory(AVRO, 1000, 10)
    assert not fits_memory(AVRO, 1 << 40, 10)


def test_polars_is_imported_when_it_pays() -> None:
    deferral = Deferral(10)
    deferral.pays(6)
    assert deferral.pays(6)
