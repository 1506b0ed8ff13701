"""Seeded mutations of bytes: what damaged storage, cut writes and hostile writers may leave. The same seed gives the
same bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

NUMBERS = (
    0,
    1,
    -1,
    2,
    16,
    127,
    128,
    255,
    256,
    0x7FFF,
    0x8000,
    0xFFFF,
    1 << 20,
    (1 << 31) - 1,
    1 << 31,
    (1 << 32) - 1,
    (1 << 63) - 1,
    -(1 << 63),
)
"""Lengths, counts and offsets at their edges."""
TEXTS = (
    *(
        b"../",
        b"/etc/passwd",
        b"\x00",
        b"\\u12",
        b"\\ud800",
        b"\\",
        b"\n",
        b"\r",
        b"=",
        b":",
        b"{",
        b"}",
        b'"',
        b"%2F",
        b"log",
        b".parquet",
    ),
    *(b"[" * 3000, b'{"a":' * 1500, b"null", b"true", b"NaN", b"1e999", b"-0", b"9" * 25, b"9" * 5000, b"_" * 40),
    *(b"\xff\xfe", b"\xed\xa0\x80", "\u0661\u0662".encode()),
)
"""What texts choke on: paths out of the table, escapes, deep nesting, numbers beyond any type, digits that are not
ASCII.
"""


def mutated(seeds: Sequence[bytes], random: Random) -> bytes:
    """One of the seeds after one to four mutations; one in eight is cut only."""
    data = bytearray(random.choice(seeds))
    if random.randrange(8) == 0:
        return bytes(data[: random.randrange(len(data) + 1)])
    for _ in range(1 + min(random.randrange(1, 9).bit_length() - 1, 3)):
        random.choice(_MUTATIONS)(data, random, seeds)
    return bytes(data)


def _place(data: bytearray, random: Random) -> int:
    """Anywhere, but one in three within the first 64 or the last 128 bytes: that is where headers and trailers are."""
    if not data:
        return 0
    region = random.randrange(6)
    if region == 0:
        return random.randrange(min(len(data), 64))
    if region == 1:
        return len(data) - 1 - random.randrange(min(len(data), 128))
    return random.randrange(len(data))


def _flip_bit(data: bytearray, random: Random, _: Sequence[bytes]) -> None:
    if data:
        data[_place(data, random)] ^= 1 << random.randrange(8)


def _set_byte(data: bytearray, random: Random, _: Sequence[bytes]) -> None:
    if data:
        data[_place(data, random)] = random.choice((0, 1, 2, 0x7F, 0x80, 0xFF, random.randrange(256)))


def _set_number(data: bytearray, random: Random, _: Sequence[bytes]) -> None:
    width = random.choice((2, 4, 4, 8, 8))
    value = random.choice(NUMBERS) if random.randrange(4) else len(data) + random.randrange(-16, 17)
    at = _place(data, random)
    data[at : at + width] = (value & ((1 << (8 * width)) - 1)).to_bytes(width, random.choice(("big", "big", "little")))


def _set_varint(data: bytearray, random: Random, _: Sequence[bytes]) -> None:
    value = random.choice(NUMBERS) & ((1 << 64) - 1)
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    at = _place(data, random)
    data[at : at + (len(out) if random.randrange(2) else 1)] = out


def _cut(data: bytearray, random: Random, _: Sequence[bytes]) -> None:
    del data[_place(data, random) :]


def _remove(data: bytearray, random: Random, _: Sequence[bytes]) -> None:
    at = _place(data, random)
    del data[at : at + random.choice((1, 4, 8, random.randrange(1, 257)))]


def _repeat(data: bytearray, random: Random, _: Sequence[bytes]) -> None:
    at = _place(data, random)
    part = data[at : at + random.choice((1, 8, random.randrange(1, 1025)))]
    data[at:at] = part * random.choice((1, 1, 2, 16))


def _splice(data: bytearray, random: Random, seeds: Sequence[bytes]) -> None:
    other = random.choice(seeds)
    if other:
        start = random.randrange(len(other))
        at = _place(data, random)
        length = random.choice((8, 64, random.randrange(1, 2049)))
        data[at : at + (length if random.randrange(2) else 0)] = other[start : start + length]


def _zero(data: bytearray, random: Random, _: Sequence[bytes]) -> None:
    at = _place(data, random)
    length = min(random.choice((4, 16, 512, 4096)), len(data) - at)
    data[at : at + length] = bytes(length)


def _insert_text(data: bytearray, random: Random, _: Sequence[bytes]) -> None:
    at = _place(data, random)
    text = random.choice(TEXTS)
    data[at : at + (len(text) if random.randrange(2) else 0)] = text


_MUTATIONS = (
    _flip_bit,
    _flip_bit,
    _set_byte,
    _set_byte,
    _set_number,
    _set_number,
    _set_varint,
    _cut,
    _remove,
    _repeat,
    _splice,
    _zero,
    _insert_text,
)
