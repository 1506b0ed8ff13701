"""Mutations of HFiles: cells of the metadata table's records, their order, the schema, the trailer, block headers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import fields, replace
from random import Random
from typing import Any

from hudi_core.codec.avro.datum import codec_of
from hudi_core.codec.hfile.reader import HFileReader
from hudi_core.codec.hfile.trailer import TRAILER_SIZE, decode_trailer, encode_trailer
from hudi_core.codec.hfile.writer import write_hfile
from hudi_core.errors import HudiError
from tests.hostile.change import Changed, Nature, NotApplicableError, damage, edit
from tests.hostile.schemas import changed_schema, hostile_schema
from tests.hostile.timeline_files import ATTEMPTS, json_like
from tests.hostile.values import change_document, odd_number, odd_text

_BLOCK_MAGICS = (b"DATABLK*", b"IDXROOT2", b"IDXLEAF2", b"METABLKc", b"FILEINF2")
_HEADER_NUMBERS = ((8, 4), (12, 4), (16, 8), (24, 1), (25, 4), (29, 4))
"""Offset and width in a block's header: sizes on disk and unpacked, the block before, the checksum's type and reach."""

Cells = list[tuple[bytes, bytes]]


def change_hfile(data: bytes, random: Random, others: Sequence[bytes] = (), *, schema: str | None = None) -> Changed:
    """One change. `schema` is that of the records where the file is the content of a log block."""
    try:
        reader = HFileReader.of_bytes(data, "seed")
        cells, text = list(reader.items()), reader.schema() or schema or "{}"
        trailer = decode_trailer(data[-TRAILER_SIZE:], len(data), "seed")
    except HudiError as error:
        raise NotApplicableError from error
    step = random.randrange(10)
    if step <= 3:
        return _changed_record(cells, text, schema or text, random)
    if step == 4:
        return _changed_cells(cells, text, random)
    if step == 5:
        what, hostile = hostile_schema(random)
        return damage(write_hfile(cells, schema=hostile), f"schema: {what}")
    if step == 6:
        changed = changed_schema(json.loads(text), random)
        return edit(write_hfile(cells, schema=json.dumps(changed)), "schema: a field changed")
    if step == 7:
        name = random.choice([field.name for field in fields(trailer) if field.name != "codec"])
        number = int(odd_number(getattr(trailer, name), random)) & ((1 << 63) - 1)
        whole = data[:-TRAILER_SIZE] + encode_trailer(replace(trailer, **{name: number}))
        return damage(whole, f"trailer: {name} {number}")
    return _changed_block_header(data, random)


def _changed_record(cells: Cells, text: str, schema: str, random: Random) -> Changed:
    """A value of a record that the metadata table may hold, of the schema that the records were written with."""
    filled = [number for number, (_, value) in enumerate(cells) if value]
    try:
        codec = codec_of(json.loads(schema))
    except (HudiError, ValueError) as error:
        raise NotApplicableError from error
    for _ in range(ATTEMPTS if filled else 0):
        at = random.choice(filled)
        try:
            record: Any = json_like(codec.decode(cells[at][1]))
            what = change_document(record, random, typed=True)
            changed = [*cells[:at], (cells[at][0], codec.encode(record)), *cells[at + 1 :]]
            return edit(write_hfile(changed, schema=text), f"{cells[at][0][:40]!r}: {what}")
        except (HudiError, ValueError, TypeError, KeyError, OverflowError, AttributeError):
            continue
    raise NotApplicableError


def _changed_cells(cells: Cells, text: str, random: Random) -> Changed:
    if not cells:
        raise NotApplicableError
    at = random.randrange(len(cells))
    key, value = cells[at]
    step = random.randrange(5)
    if step == 0:
        return edit(write_hfile(cells[:at] + cells[at + 1 :], schema=text), "a cell lost")
    if step == 1:
        return damage(write_hfile([*cells[: at + 1], *cells[at:]], schema=text), "a cell twice")
    if step == 2:
        new = random.choice((value[:-1], value[: len(value) // 2], bytes(len(value)), value + b"\0"))
        nature = Nature.DAMAGE if new else Nature.EDIT
        return Changed(write_hfile([*cells[:at], (key, new), *cells[at + 1 :]], schema=text), nature, "a record cut")
    if step == 3:
        renamed = odd_text(key.decode("utf-8", "replace"), random, ()).encode("utf-8", "replace")[:30000]
        changed = sorted([*cells[:at], (renamed, value), *cells[at + 1 :]])
        return edit(write_hfile(changed, schema=text), "another key")
    return damage(_unsorted(cells, text, at), "cells out of order")


def _unsorted(cells: Cells, text: str, at: int) -> bytes:
    """The writer sorts no cells and takes no unsorted ones, so that two keys of one length trade places afterwards."""
    same = [key for key, _ in cells if len(key) == len(cells[at][0]) and key != cells[at][0]]
    if not same:
        raise NotApplicableError
    from hudi_core.codec.hfile.block import Codec
    from tests.support.hfiles import hfile

    data = hfile(cells, codec=Codec.NONE, schema=text)
    one, other = cells[at][0], same[0]
    parked = bytes(len(one))
    return data.replace(one, parked).replace(other, one).replace(parked, other)


def _changed_block_header(data: bytes, random: Random) -> Changed:
    places = []
    for magic in _BLOCK_MAGICS:
        start = data.find(magic)
        while start >= 0:
            places.append(start)
            start = data.find(magic, start + 1)
    at = random.choice(places)
    offset, width = random.choice(_HEADER_NUMBERS)
    whole = bytearray(data)
    before = int.from_bytes(whole[at + offset : at + offset + width], "big")
    number = int(odd_number(before, random))
    whole[at + offset : at + offset + width] = (number & ((1 << (8 * width)) - 1)).to_bytes(width, "big")
    return damage(bytes(whole), f"block at {at}: {number} at {offset} of its header")
