"""Schemas that make a decoder nest, build or allocate without bound are refused, and those that Hudi writes are not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hudi_core.codec.avro.datum import DatumCodec
from hudi_core.codec.avro.schema import (
    FREE_VALUES,
    MAX_DEPTH,
    MAX_TYPES,
    VALUES_PER_BYTE,
    VALUES_PER_BYTE_OF_A_CONTAINER,
    check_bounds,
    parse_schema,
)
from hudi_core.errors import FormatError, UnsupportedError


def record(name: str, *types: Any) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": [{"name": f"f{at}", "type": of} for at, of in enumerate(types)]}


def array(items: Any) -> dict[str, Any]:
    return {"type": "array", "items": items}


def maps(values: Any) -> dict[str, Any]:
    return {"type": "map", "values": values}


NO_BYTES = {"type": "fixed", "name": "nothing", "size": 0}
RECURSIVE = [
    record("r", "r"),
    record("r", ["null", "r"]),
    record("r", array("r")),
    record("r", maps("r")),
    record("r", record("inner", ["null", "r"])),
    {**record("r", ["null", "space.r"]), "namespace": "space"},
    {**record("r", ["null", "r"]), "namespace": "space"},
    record("top", "long", {"type": record("space.r", ["null", "r"])}),
    record("top", ["null", {"type": "error", "name": "e", "fields": [{"name": "f", "type": ["null", "e"]}]}]),
]


@pytest.mark.parametrize("schema", RECURSIVE)
def test_a_type_within_itself_is_refused_before_a_decoder_has_it(schema: Any) -> None:
    for take in (DatumCodec, lambda schema, path: parse_schema(json.dumps(schema), path=path)):
        with pytest.raises(UnsupportedError, match="contains itself") as caught:
            take(schema, path="the plan")  # type: ignore[operator]
        assert caught.value.path == "the plan"


def doubling(levels: int) -> dict[str, Any]:
    """Each record holds the one before it twice: two to the power of `levels` values from a few hundred bytes each."""
    above = (record(f"r{level}", f"r{level - 1}", ["null", f"r{level - 1}"]) for level in range(1, levels))
    return record("top", record("r0", "long", "long"), *above)


def test_a_schema_that_doubles_at_each_level_is_refused() -> None:
    check_bounds(doubling(10))
    schema = doubling(30)
    assert len(json.dumps(schema)) < 5_000
    with pytest.raises(UnsupportedError, match=f"more than {MAX_TYPES} types"):
        check_bounds(schema)


def test_named_types_count_for_the_levels_that_they_bring() -> None:
    chain = [record("r0", "long"), *(record(f"r{at}", "long", f"r{at - 1}") for at in range(1, MAX_DEPTH + 10))]
    check_bounds(record("top", *chain[: MAX_DEPTH - 5]))
    with pytest.raises(UnsupportedError, match="nests deeper"):
        check_bounds(record("top", *chain))


def test_nesting_as_it_is_written() -> None:
    schema: Any = "long"
    for _ in range(MAX_DEPTH + 1):
        schema = array(schema)
    with pytest.raises(UnsupportedError, match="nests deeper"):
        check_bounds(schema)
    schema = "long"
    for _ in range(400):
        schema = {"type": schema}
    with pytest.raises(UnsupportedError, match="nests deeper"):
        check_bounds(record("top", schema))


@pytest.mark.parametrize(
    "items",
    [
        "null",
        NO_BYTES,
        record("empty"),
        record("nulls", "null", NO_BYTES),
        {"type": "null"},
        record("outer", record("in")),
    ],
)
def test_items_without_bytes(items: Any) -> None:
    for schema in (array(items), record("row", array(items)), maps(["null", array(items)])):
        with pytest.raises(FormatError, match="items that take no bytes") as caught:
            check_bounds(schema, path="the log")
        assert caught.value.path == "the log"


def test_a_name_stands_for_its_type() -> None:
    with pytest.raises(FormatError, match="items that take no bytes"):
        check_bounds(record("row", NO_BYTES, array("nothing")))


@pytest.mark.parametrize("items", ["int", ["null"], array("int"), {"type": "enum", "name": "e", "symbols": ["a"]}])
def test_items_with_bytes(items: Any) -> None:
    check_bounds(record("row", array(items)))


def test_thousands_of_nulls_for_a_byte() -> None:
    wide = record("wide", "long", *["null"] * 5_000)
    for schema in (array(wide), maps(wide), array(["null", wide]), wide, record("top", wide)):
        with pytest.raises(FormatError, match="values without bytes"):
            check_bounds(schema)
    check_bounds(record("few", *["null"] * (FREE_VALUES - 1)))


def chain(levels: int) -> Any:
    """Records of one field each, one in the other: so many values for the byte of a number, and that number."""
    schema: Any = "int"
    for level in range(levels):
        schema = record(f"r{level}", schema)
    return schema


@pytest.mark.parametrize("rate", [VALUES_PER_BYTE, VALUES_PER_BYTE_OF_A_CONTAINER])
def test_an_item_has_no_free_values(rate: int) -> None:
    check_bounds(chain(rate + FREE_VALUES - 1), values_per_byte=rate)
    check_bounds(record("top", array(chain(rate - 1)), maps(chain(2 * rate - 2))), values_per_byte=rate)
    for schema in (array(chain(rate)), maps(chain(2 * rate - 1)), array(["null", chain(2 * rate)])):
        with pytest.raises(FormatError, match="items of so many values"):
            check_bounds(record("top", schema), values_per_byte=rate)


def test_the_number_of_a_branch_is_a_byte_and_no_value() -> None:
    nullable = ["null", record("item", ["null", record("in", ["null", "string"])])]
    check_bounds(record("top", array(nullable)), values_per_byte=VALUES_PER_BYTE_OF_A_CONTAINER)


def test_a_wide_table_passes() -> None:
    columns = [["null", {"type": "long", "logicalType": "timestamp-micros"}]] * 10_000
    check_bounds(record("table", *columns, array(["null", record("item", ["null", "string"])])))


@pytest.mark.parametrize("schema", [None, 5, {}, {"type": "array"}, record("r", None), {"type": "record", "fields": 7}])
def test_what_is_no_schema_is_refused_by_the_decoder(schema: Any) -> None:
    with pytest.raises(FormatError):
        DatumCodec(schema)


def test_every_schema_of_ours_passes() -> None:
    files = sorted((Path(__file__).parents[5] / "spark_jobs/hudi_core").rglob("*.avsc"))
    assert len(files) > 10
    for file in files:
        check_bounds(json.loads(file.read_text()), path=str(file), values_per_byte=VALUES_PER_BYTE_OF_A_CONTAINER)
