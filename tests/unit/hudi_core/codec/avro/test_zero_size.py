from __future__ import annotations

from typing import Any

import pytest

from hudi_core.codec.avro.zero_size import refuse_zero_size_items
from hudi_core.errors import FormatError


def record(name: str, *types: Any) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": [{"name": f"f{at}", "type": of} for at, of in enumerate(types)]}


def array(items: Any) -> dict[str, Any]:
    return {"type": "array", "items": items}


NOTHING = {"type": "fixed", "name": "nothing", "size": 0}


@pytest.mark.parametrize(
    "items",
    [
        "null",
        NOTHING,
        record("empty"),
        record("nulls", "null", NOTHING),
        {"type": "null"},
        record("outer", record("in")),
    ],
)
def test_items_without_bytes(items: Any) -> None:
    for schema in (array(items), record("row", array(items)), {"type": "map", "values": ["null", array(items)]}):
        with pytest.raises(FormatError, match="items that take no bytes") as caught:
            refuse_zero_size_items(schema, path="the log")
        assert caught.value.path == "the log"


def test_a_name_stands_for_its_type() -> None:
    with pytest.raises(FormatError):
        refuse_zero_size_items(record("row", NOTHING, array("nothing")))


@pytest.mark.parametrize(
    "items",
    ["int", ["null"], array("int"), {"type": "enum", "name": "e", "symbols": ["a"]}, record("node", ["null", "node"])],
)
def test_items_with_bytes(items: Any) -> None:
    refuse_zero_size_items(record("row", array(items)))
