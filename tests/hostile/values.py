"""Values that a hostile or damaged file may hold where another stands, and one such change in a document.

A document is JSON, or the value of an Avro record: what the schema has as text stays text there, a number a number.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

TEXTS = (
    *("", " ", "..", "/", "../../outside", "a/../../outside", "/etc/passwd", "file:///etc/passwd", "s3://other/x"),
    *("\x1b[31mred\x1b[0m", "line\nresult: {}", "\x00", "\u202egpj", "x" * 300, "x" * 70_000, "a/" * 3000),
    *("0", "-1", "00000000000000", "20991231235959999", "99999999999999999", "2026112022", "NaN", "true", "null"),
)
NUMBERS = (-1, 0, 1, 7, (1 << 31) - 1, -(1 << 31), 1 << 31, (1 << 62), (1 << 63) - 1, -(1 << 63))
OTHERS: tuple[Any, ...] = (
    None,
    True,
    -1,
    1 << 70,
    1e308,
    "",
    "x",
    [],
    {},
    [None],
    [[]],
    {"": None},
    {"type": "record"},
)
"""Of other types; in JSON alone."""


def odd_text(text: str, random: Random, others: Sequence[str]) -> str:
    """Another text: odd by itself, one of `others`, or the same with a character changed, doubled or lost."""
    step = random.randrange(5)
    if step <= 1 or not text:
        return random.choice(TEXTS)
    if step == 2 and others:
        return random.choice(others)
    at = random.randrange(len(text))
    if step == 3:
        return text[:at] + random.choice("0129afz/._-") + text[at + 1 :]
    return random.choice((text[:at], text + text, text[:at] + text[at + 1 :], f"../{text}", f"{text}\n"))


def odd_number(number: float, random: Random) -> float:
    """Another number: at an edge, negative, huge, or off by one."""
    if isinstance(number, float):
        return random.choice((0.0, -number, number * 2, 1e308, float("nan"), float("inf")))
    return random.choice((number + 1, number - 1, -number, number * 2, *NUMBERS))


def odd_list(items: Sequence[Any], random: Random) -> list[Any]:
    """The list emptied, shuffled, with an item doubled or lost."""
    changed = list(items)
    step = random.randrange(4)
    if step == 0 or not changed:
        return []
    if step == 1:
        random.shuffle(changed)
    elif step == 2:
        changed.insert(random.randrange(len(changed) + 1), random.choice(changed))
    else:
        changed.pop(random.randrange(len(changed)))
    return changed


def change_document(document: Any, random: Random, *, typed: bool) -> str:
    """Changes one value in place, or the members of one object, and says where (`a.b.3`) and how.

    `typed`: only as the schema of an Avro record may bear. Raises ValueError for a document with nothing to change.
    """
    places = list(_places(document, ""))
    if not places:
        raise ValueError("there is nothing to change")
    parent, key, path = random.choice(places)
    value = parent[key]
    if not typed and random.randrange(4) == 0:
        parent[key] = random.choice(OTHERS)
        return f"{path}: another type"
    if isinstance(value, str):
        texts = [other[name] for other, name, _ in places if isinstance(other[name], str)]
        parent[key] = odd_text(value, random, texts)
        return f"{path}: text"
    if isinstance(value, bool):
        parent[key] = not value
        return f"{path}: negated"
    if isinstance(value, int | float):
        parent[key] = odd_number(value, random)
        return f"{path}: number"
    if isinstance(value, list):
        parent[key] = odd_list(value, random)
        return f"{path}: list"
    if isinstance(value, dict) and value:
        return _change_members(value, path, random)
    if isinstance(value, bytes):
        parent[key] = random.choice((b"", value[: len(value) // 2], value + value, bytes(len(value))))
        return f"{path}: bytes"
    parent[key] = random.choice((None, "x", 0)) if not typed else None
    return f"{path}: null"


def _change_members(value: dict[str, Any], path: str, random: Random) -> str:
    name = random.choice(list(value))
    if random.randrange(3):
        del value[name]
        return f"{path}.{name}: removed"
    value[odd_text(name, random, list(value))] = value.pop(name)
    return f"{path}.{name}: renamed"


def _places(value: Any, path: str) -> list[tuple[Any, Any, str]]:
    found = []
    queue = [(value, path)]
    while queue:
        parent, at = queue.pop()
        members = parent.items() if isinstance(parent, dict) else enumerate(parent) if isinstance(parent, list) else ()
        for key, item in members:
            name = f"{at}.{key}" if at else str(key)
            found.append((parent, key, name))
            if isinstance(item, dict | list):
                queue.append((item, name))
    return found
