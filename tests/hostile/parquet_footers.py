"""Mutations of Parquet files by what their footer and page headers say, with a reader and writer of Thrift's compact
protocol, which keeps every field.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from tests.hostile.change import Changed, NotApplicableError, damage, edit
from tests.hostile.schemas import hostile_schema
from tests.hostile.values import odd_number, odd_text

MAGIC = b"PAR1"
TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, SET, MAP, STRUCT = range(1, 13)
KEY_VALUES, ROW_GROUPS = 5, 4
"""Fields of FileMetaData."""


@dataclass
class Field:
    """A field of a struct: its number, its type, its value. A struct is a list of them; a list has its items' type."""

    number: int
    kind: int
    value: Any


@dataclass
class Items:
    """A list of Thrift."""

    kind: int
    values: list[Any]


class ThriftReader:
    """Reads structs from bytes, from `position` on. Raises IndexError for bytes that end too early."""

    def __init__(self, data: bytes, position: int = 0) -> None:
        self.data = data
        self.position = position

    def struct(self) -> list[Field]:
        """A struct up to its end."""
        found: list[Field] = []
        number = 0
        while head := self._byte():
            number = number + (head >> 4) if head >> 4 else self._zigzag()
            found.append(Field(number, head & 15, self._value(head & 15)))
        return found

    def _value(self, kind: int) -> Any:
        if kind in (TRUE, FALSE):
            return kind == TRUE
        if kind == BYTE:
            return self._byte()
        if kind in (I16, I32, I64):
            return self._zigzag()
        if kind == DOUBLE:
            return self._take(8)
        if kind == BINARY:
            return self._take(self._varint())
        if kind in (LIST, SET):
            head = self._byte()
            count = self._varint() if head >> 4 == 15 else head >> 4
            inner = head & 15
            items = [self._byte() if inner in (TRUE, FALSE) else self._value(inner) for _ in range(count)]
            return Items(inner, items)
        if kind == STRUCT:
            return self.struct()
        raise IndexError(f"type {kind}")

    def _byte(self) -> int:
        self.position += 1
        return self.data[self.position - 1]

    def _take(self, count: int) -> bytes:
        self.position += count
        return self.data[self.position - count : self.position]

    def _varint(self) -> int:
        shift = found = 0
        while (part := self._byte()) & 0x80:
            found |= (part & 0x7F) << shift
            shift += 7
        return found | part << shift

    def _zigzag(self) -> int:
        number = self._varint()
        return (number >> 1) ^ -(number & 1)


def encode_struct(fields: Sequence[Field]) -> bytes:
    """The bytes of a struct."""
    out, last = bytearray(), 0
    for field in fields:
        kind = (TRUE if field.value else FALSE) if field.kind in (TRUE, FALSE) else field.kind
        step = field.number - last
        out += bytes([step << 4 | kind]) if 0 < step < 16 else bytes([kind]) + _zigzag(field.number)
        last = field.number
        if kind not in (TRUE, FALSE):
            out += _encode(kind, field.value)
    return bytes(out) + b"\0"


def _encode(kind: int, value: Any) -> bytes:
    if kind in (TRUE, FALSE, BYTE):
        return bytes([int(value) & 0xFF])
    if kind in (I16, I32, I64):
        return _zigzag(value)
    if kind == DOUBLE:
        return bytes(value)
    if kind == BINARY:
        return _varint(len(value)) + value
    if kind in (LIST, SET):
        count = len(value.values)
        head = bytes([count << 4 | value.kind]) if count < 15 else bytes([0xF0 | value.kind]) + _varint(count)
        return head + b"".join(_encode(value.kind, item) for item in value.values)
    return encode_struct(value)


def _varint(number: int) -> bytes:
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def _zigzag(number: int) -> bytes:
    return _varint((number << 1) ^ (number >> 63) if -(1 << 63) <= number < 1 << 63 else number & ((1 << 64) - 1))


def footer_of(data: bytes) -> tuple[int, list[Field]]:
    """Where the footer starts, and its fields."""
    if data[:4] != MAGIC or data[-4:] != MAGIC:
        raise NotApplicableError
    start = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    return start, ThriftReader(data, start).struct()


def with_footer(data: bytes, start: int, fields: Sequence[Field]) -> bytes:
    """The file with another footer."""
    footer = encode_struct(fields)
    return data[:start] + footer + len(footer).to_bytes(4, "little") + MAGIC


def change_parquet(data: bytes, random: Random, _: Sequence[bytes] = ()) -> Changed:
    """A number or a name in the footer, a key-value entry, a page header, or the footer's length changed."""
    try:
        start, fields = footer_of(data)
        step = random.randrange(8)
        if step <= 2:
            what = _change_numbers(fields, random)
            return edit(with_footer(data, start, fields), f"footer: {what}")
        if step <= 4:
            return _changed_key_values(data, start, fields, random)
        if step <= 6:
            return _changed_page(data, start, fields, random)
        length = int(odd_number(len(data) - start - 8, random)) & 0xFFFFFFFF
        return damage(data[:-8] + length.to_bytes(4, "little") + MAGIC, f"footer of {length} bytes")
    except IndexError as error:
        raise NotApplicableError from error


def _change_numbers(fields: list[Field], random: Random) -> str:
    places: list[tuple[str, Any]] = []
    queue: list[tuple[str, list[Field]]] = [("", fields)]
    while queue:
        path, struct = queue.pop()
        for field in struct:
            name = f"{path}.{field.number}"
            if field.kind == STRUCT:
                queue.append((name, field.value))
            elif isinstance(field.value, Items) and field.value.kind == STRUCT:
                queue += [(f"{name}[{at}]", item) for at, item in enumerate(field.value.values)]
            if field.kind in (I32, I64, BINARY, LIST) and not path.startswith(f".{KEY_VALUES}"):
                places.append((name, field))
    name, field = random.choice(places)
    if field.kind == BINARY:
        text = odd_text(field.value.decode("utf-8", "replace"), random, ())
        field.value = text.encode("utf-8", "surrogatepass")
        return f"{name}: text"
    if field.kind == LIST:
        items = field.value.values
        if items:
            items.append(items[0]) if random.randrange(2) else items.pop()
        return f"{name}: list of {len(items)}"
    field.value = max(-(1 << 63), min(int(odd_number(field.value, random)), (1 << 63) - 1))
    return f"{name}: {field.value}"


def _changed_key_values(data: bytes, start: int, fields: list[Field], random: Random) -> Changed:
    entries = next((field.value.values for field in fields if field.number == KEY_VALUES), [])
    if not entries:
        raise IndexError
    entry = random.choice(entries)
    key, value = entry[0].value.decode(), entry[-1].value.decode("utf-8", "replace")
    step = random.randrange(4)
    if step == 0:
        entries.remove(entry)
        what = "removed"
    elif "schema" in key.lower() or step == 1:
        what, text = hostile_schema(random)
        entry[-1].value = text.encode()
    else:
        text = odd_text(value, random, ())
        entry[-1].value = text.encode("utf-8", "surrogatepass")
        what = f"{len(text)} characters"
    return damage(with_footer(data, start, fields), f"key-value {json.dumps(key)}: {what}")


def _changed_page(data: bytes, start: int, fields: list[Field], random: Random) -> Changed:
    groups = next(field.value.values for field in fields if field.number == ROW_GROUPS)
    if not groups:
        raise IndexError
    columns = next(field.value.values for field in random.choice(groups) if field.number == 1)
    about = next(field.value for field in random.choice(columns) if field.number == 3)
    offsets = [field.value for field in about if field.number in (9, 11) and 4 <= field.value < start]
    if not offsets:
        raise IndexError
    at = random.choice(offsets)
    reader = ThriftReader(data, at)
    header = reader.struct()
    what = _change_numbers(header, random)
    new = encode_struct(header)
    # Sizes in the footer would be wrong by themselves if the file became longer; so the page gives its last bytes.
    room = reader.position - at
    return edit(
        data[:at] + (new + data[at + room :])[: start - at].ljust(start - at, b"\0") + data[start:], f"page: {what}"
    )
