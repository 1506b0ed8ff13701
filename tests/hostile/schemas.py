"""Avro schemas that no writer of Hudi makes, and changes of one that it did make."""

from __future__ import annotations

import json
from collections.abc import Callable
from copy import deepcopy
from random import Random
from typing import Any

from tests.hostile.values import odd_text

Schema = dict[str, Any]


def record(name: str, *fields: tuple[str, Any]) -> Schema:
    """A record with fields of these names and types."""
    return {"type": "record", "name": name, "fields": [{"name": field, "type": kind} for field, kind in fields]}


def recursive(around: str = "union") -> Schema:
    """A record that contains itself: as a nullable field, in a list, in a map, or through another record."""
    inner: Any = {
        "union": ["null", "R"],
        "array": {"type": "array", "items": "R"},
        "map": {"type": "map", "values": "R"},
        "record": record("S", ("again", ["null", "R"])),
    }[around]
    return record("R", ("next", inner))


def expanding(levels: int = 24) -> Schema:
    """Records that double at each level, so that 4 kB name 2 ** levels types."""
    inner: Any = "int"
    for level in range(levels):
        name = f"L{level}"
        inner = record(name, ("a", inner), ("b", inner if isinstance(inner, str) else inner["name"]))
    assert isinstance(inner, dict)
    return inner


def deep(levels: int = 2000) -> Schema:
    """Lists in lists."""
    inner: Any = "int"
    for _ in range(levels):
        inner = {"type": "array", "items": inner}
    return record("deep", ("a", inner))


def weightless(fields: int = 5000) -> Schema:
    """A list of records that take no byte each."""
    nothing = record("nothing", *((f"f{number}", "null") for number in range(fields)))
    return record("many", ("items", {"type": "array", "items": nothing}))


def wrapped(levels: int = 16) -> Schema:
    """A list whose items are records in each other, and one number."""
    inner: Any = "int"
    for level in range(levels):
        inner = record(f"W{level}", ("in", inner))
    return record("wrapping", ("items", {"type": "array", "items": inner}))


HOSTILE: dict[str, Callable[[], str]] = {
    **{
        f"recursive through a {around}": lambda around=around: json.dumps(recursive(around))  # type: ignore[misc]
        for around in ("union", "array", "map", "record")
    },
    "expanding": lambda: json.dumps(expanding()),
    "nested too deep for a decoder": lambda: json.dumps(deep(400)),
    "nested too deep for a parser": lambda: '{"type":"array","items":' * 100_000,
    "weightless items": lambda: json.dumps(weightless()),
    "items within many records": lambda: json.dumps(wrapped()),
    "a fixed of a terabyte": lambda: json.dumps(record("f", ("a", {"type": "fixed", "name": "big", "size": 1 << 40}))),
    "a fixed of less than nothing": lambda: json.dumps(record("f", ("a", {"type": "fixed", "name": "n", "size": -1}))),
    "a decimal of a million digits": lambda: json.dumps(
        record("d", ("a", {"type": "bytes", "logicalType": "decimal", "precision": 10**6, "scale": -3}))
    ),
    "no JSON": lambda: "{",
    "no schema": lambda: "[]",
    "an unknown type": lambda: json.dumps(record("u", ("a", "nowhere.Known"))),
    "a primitive": lambda: '"string"',
    "empty": lambda: "",
    "a hundred thousand fields": lambda: json.dumps(record("w", *((f"f{number}", "int") for number in range(100_000)))),
}
"""What is never what a writer wrote, by name, as the text of the schema."""


def hostile_schema(random: Random) -> tuple[str, str]:
    """A name and the text of one of them."""
    name = random.choice(sorted(HOSTILE))
    return name, HOSTILE[name]()


def changed_schema(schema: Any, random: Random) -> Any:
    """The schema with a field lost, doubled, renamed, moved, or of another type."""
    changed = deepcopy(schema)
    records = _records(changed)
    if not records:
        return "bytes"
    fields = random.choice(records)["fields"]
    if not fields:
        return changed
    at = random.randrange(len(fields))
    step = random.randrange(5)
    if step == 0:
        del fields[at]
    elif step == 1:
        fields.insert(at, deepcopy(fields[at]))
    elif step == 2 and isinstance(fields[at], dict):
        fields[at]["name"] = odd_text(str(fields[at].get("name")), random, ())
    elif step == 3:
        random.shuffle(fields)
    elif isinstance(fields[at], dict):
        fields[at]["type"] = random.choice(("int", "string", "bytes", "double", ["null", "long"], "null"))
    return changed


def _records(schema: Any) -> list[Schema]:
    found, queue = [], [schema]
    while queue:
        item = queue.pop()
        if isinstance(item, dict):
            if isinstance(item.get("fields"), list):
                found.append(item)
            queue += item.values()
        elif isinstance(item, list):
            queue += item
    return found
