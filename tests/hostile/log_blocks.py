"""Mutations of log files by their blocks: data, deletes, commands, and the HFiles and Parquet files within them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from random import Random

from hudi_core.codec.log.blocks import MAGIC, BlockType, HeaderKey, LogBlock, encode_block, walk
from hudi_core.errors import HudiError
from tests.hostile.change import Changed, Nature, NotApplicableError, damage, edit
from tests.hostile.hfile_cells import change_hfile
from tests.hostile.parquet_footers import change_parquet
from tests.hostile.schemas import changed_schema, hostile_schema
from tests.hostile.values import odd_number, odd_text


def blocks_of(data: bytes) -> list[LogBlock]:
    """The whole blocks; none of a file that is no log."""
    try:
        found = walk(lambda at, length: data[at : at + length], len(data), "seed")
        return [block for block in found if isinstance(block, LogBlock)]
    except HudiError:
        return []


def change_log(data: bytes, random: Random, others: Sequence[bytes]) -> Changed:
    """One block changed, doubled, lost or moved."""
    blocks = blocks_of(data)
    if not blocks:
        raise NotApplicableError
    block = random.choice(blocks)
    step = random.randrange(12)
    if step <= 2 or (step <= 6 and block.type not in _INNER):
        return _changed_header(data, block, random)
    if step <= 6:
        return _changed_content(data, block, random, others)
    if step <= 8:
        return _changed_length(data, block, random)
    return _changed_order(data, blocks, random)


def _around(data: bytes, block: LogBlock, new: bytes) -> bytes:
    return data[: block.offset] + new + data[block.offset + block.length :]


def _content(data: bytes, block: LogBlock) -> bytes:
    return data[block.content_offset : block.content_offset + block.content_length]


def _changed_header(data: bytes, block: LogBlock, random: Random) -> Changed:
    headers, content, nature = dict(block.headers), _content(data, block), Nature.EDIT
    kind = block.type
    step = random.randrange(6)
    if step <= 2 and block.schema is not None:
        if random.randrange(2):
            what, headers[HeaderKey.SCHEMA] = hostile_schema(random)
            what, nature = f"schema: {what}", Nature.DAMAGE
        else:
            headers[HeaderKey.SCHEMA] = json.dumps(changed_schema(json.loads(block.schema), random))
            what = "schema: a field changed"
    elif step == 3 and headers:
        key = random.choice(sorted(headers))
        headers[key] = odd_text(headers[key], random, sorted(headers.values()))
        what = f"header {key.name}"
    elif step == 4 and headers:
        key = random.choice(sorted(headers))
        del headers[key]
        what = f"header {key.name} removed"
    else:
        kind = random.choice([item for item in BlockType if item not in (BlockType.CORRUPT, block.type)])
        what = f"type {kind.name}"
    return Changed(_around(data, block, encode_block(kind, headers, content, hudi_1_headers=True)), nature, what)


_INNER = (BlockType.HFILE_DATA, BlockType.PARQUET_DATA, BlockType.AVRO_DATA, BlockType.DELETE, BlockType.CDC_DATA)


def _changed_content(data: bytes, block: LogBlock, random: Random, others: Sequence[bytes]) -> Changed:
    content = _content(data, block)
    if block.type is BlockType.HFILE_DATA:
        inner = change_hfile(content, random, others, schema=block.schema)
    elif block.type is BlockType.PARQUET_DATA:
        inner = change_parquet(content, random, others)
    else:
        inner = _changed_numbers(content, random, deletes=block.type is BlockType.DELETE)
    new = encode_block(block.type, block.headers, inner.data, hudi_1_headers=True)
    return Changed(_around(data, block, new), inner.nature, f"{block.type.name}: {inner.what}")


def _changed_numbers(content: bytes, random: Random, *, deletes: bool) -> Changed:
    """Avro data blocks hold a version, a count, and records behind their sizes; delete blocks a version, a size and a
    list of keys, where four bytes may be other keys. All of these numbers have four bytes.
    """
    if len(content) < 12:
        raise NotApplicableError
    at = random.choice((0, 4, 4, 8, 8))
    before = int.from_bytes(content[at : at + 4], "big", signed=True)
    number = int(odd_number(before, random))
    word = (number & 0xFFFFFFFF).to_bytes(4, "big")
    nature = Nature.EDIT if deletes and at == 8 else Nature.DAMAGE
    return Changed(content[:at] + word + content[at + 4 :], nature, f"number {number} at byte {at} of the content")


def _changed_length(data: bytes, block: LogBlock, random: Random) -> Changed:
    whole = bytearray(data)
    at, width, what = random.choice(
        (
            (block.offset + len(MAGIC), 8, "size"),
            (block.offset + len(MAGIC) + 8, 4, "version"),
            (block.offset + len(MAGIC) + 12, 4, "type"),
            (block.offset + len(MAGIC) + 16, 4, "count of headers"),
            (block.content_offset - 8, 8, "length of the content"),
            (block.offset + block.length - 8, 8, "reverse pointer"),
            (block.offset, 6, "magic"),
        )
    )
    number = int(odd_number(int.from_bytes(whole[at : at + width], "big"), random))
    whole[at : at + width] = (number & ((1 << (8 * width)) - 1)).to_bytes(width, "big")
    return damage(bytes(whole), f"{what} {number}")


def _changed_order(data: bytes, blocks: list[LogBlock], random: Random) -> Changed:
    pieces = [data[block.offset : block.offset + block.length] for block in blocks]
    at = random.randrange(len(pieces))
    step = random.randrange(3)
    if step == 0:
        pieces.insert(at, pieces[at])
        return damage(b"".join(pieces), f"block {at} twice")
    if step == 1 and len(pieces) > 1:
        random.shuffle(pieces)
        return edit(b"".join(pieces), "blocks shuffled")
    del pieces[at]
    return edit(b"".join(pieces), f"block {at} lost")
