"""Mutations that keep the outer form whole: JSON stays JSON, and a payload is put back into a frame whose lengths and
checksums are right.

Changed bytes alone are mostly found out by the outermost check, so what is behind it would hardly be reached.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from copy import deepcopy
from functools import cache
from random import Random
from typing import Any

from hudi_core.codec.avro.container import MAGIC as AVRO_MAGIC
from hudi_core.codec.binary import Reader, encode_zigzag
from hudi_core.codec.hfile.block import Codec, IndexEntry, Magic, cell_key, encode_block, encode_cell, encode_root_index
from hudi_core.codec.hfile.reader import HFileReader
from hudi_core.codec.hfile.trailer import Trailer, encode_file_info, encode_trailer
from hudi_core.codec.log.blocks import LogBlock, walk
from hudi_core.codec.log.blocks import encode_block as encode_log_block
from tests.fuzz import seeds
from tests.fuzz.mutate import mutated

ODD: tuple[Any, ...] = (
    *(
        None,
        True,
        False,
        0,
        -1,
        1 << 31,
        1 << 63,
        1 << 70,
        -(1 << 63),
        1.5,
        1e308,
        float("nan"),
        "",
        " ",
        "..",
        "../../etc/passwd",
        "/",
        "a/b",
    ),
    *(
        "\x00",
        "\ud800",
        "9" * 400,
        "null",
        "record",
        "int",
        "string",
        "20991231235959999",
        "x" * 70000,
        [],
        {},
        [None],
        [[]],
        {"": None},
    ),
    *(
        {"type": "record", "name": "r", "fields": []},
        {"type": "fixed", "name": "f", "size": 1 << 40},
        {"type": "fixed", "name": "f", "size": -1},
    ),
    *(
        {"type": "bytes", "logicalType": "decimal", "precision": 10**6, "scale": -3},
        {"type": "array", "items": "r"},
        ["null", "int", "string"],
    ),
    *(
        {"type": "enum", "name": "e", "symbols": ["A", "A", 3]},
        {"type": "map", "values": {"type": "map", "values": "long"}},
    ),
)
"""What may stand where something else is expected: wrong types, edges of numbers, paths, types of Avro schemas."""


def mutated_json(texts: Sequence[bytes], random: Random) -> bytes:
    """One of the documents with one to three values replaced, removed, doubled or moved; one in eight mutated as
    bytes.
    """
    if random.randrange(8) == 0:
        return mutated(texts, random)
    document: Any = [json.loads(random.choice(texts))]
    for _ in range(random.randrange(1, 4)):
        places = _places(document)
        parent, key = random.choice(places)
        step = random.randrange(6)
        if step <= 2:
            parent[key] = deepcopy(random.choice(ODD))
        elif step == 3 and parent is not document:
            del parent[key]
        elif step == 4:
            other, name = random.choice(places)
            parent[key] = deepcopy(other[name])
        elif isinstance(parent, dict):
            parent[random.choice(("name", "type", "fields", "path", "fileId", "size", ""))] = deepcopy(parent[key])
        else:
            parent.append(deepcopy(parent[key]))
    return json.dumps(document[0]).encode("utf-8", "surrogatepass")


def _places(document: Any) -> list[tuple[Any, Any]]:
    """Every value of the document, as the list or object that holds it and its index or name."""
    found, queue = [], [document]
    while queue:
        parent = queue.pop()
        for key, value in list(parent.items()) if isinstance(parent, dict) else list(enumerate(parent)):
            found.append((parent, key))
            if isinstance(value, (dict, list)):
                queue.append(value)
    return found


@cache
def containers() -> tuple[tuple[bytes, int, bytes, bytes], ...]:
    """Head with sync marker, record count, payload and sync marker of Avro containers of one block."""
    found = []
    for data in seeds.timeline_files(
        ".requested", ".clean", ".rollback", ".savepoint", ".restore", "commit", ".inflight"
    ):
        if data.startswith(AVRO_MAGIC):
            reader = Reader(data, "seed")
            reader.skip(len(AVRO_MAGIC))
            while count := reader.zigzag():
                for _ in range(2 * count):
                    reader.skip(reader.zigzag())
            sync = reader.bytes(16)
            head = data[: reader.position]
            if not reader.at_end():
                count = reader.zigzag()
                found.append((head, count, reader.bytes(reader.zigzag()), sync))
    return tuple(found)


def payload_seeds() -> list[bytes]:
    """The payloads of the containers, each behind two bytes that say which container it is of."""
    return [index.to_bytes(2, "big") + payload for index, (_, _, payload, _) in enumerate(containers())]


def contained(data: bytes) -> bytes:
    """A container around the payload of an input."""
    head, count, _, sync = containers()[int.from_bytes(data[:2], "big") % len(containers())]
    return head + encode_zigzag(count) + encode_zigzag(len(data[2:])) + data[2:] + sync


@cache
def log_blocks() -> tuple[tuple[LogBlock, bytes], ...]:
    """The blocks of the log files, with their contents."""
    found = []
    for data in seeds.log_files():
        if data.startswith(b"#HUDI#"):
            blocks = walk(lambda at, length, data=data: data[at : at + length], len(data), "seed")  # type: ignore[misc]
            found += [
                (block, data[block.content_offset :][: block.content_length])
                for block in blocks
                if isinstance(block, LogBlock)
            ]
    return tuple(found)


def block_seeds() -> list[bytes]:
    """The contents of the blocks, each behind two bytes that say which block it is of."""
    return [index.to_bytes(2, "big") + content for index, (_, content) in enumerate(log_blocks())]


def framed(data: bytes) -> bytes:
    """A log file of one block with the content of an input."""
    block, _ = log_blocks()[int.from_bytes(data[:2], "big") % len(log_blocks())]
    return encode_log_block(block.type, block.headers, data[2:], hudi_1_headers=True)


@cache
def _cells() -> tuple[bytes, ...]:
    """Decompressed data blocks."""
    found = []
    for data in seeds.hfiles()[:12]:
        reader = HFileReader.of_bytes(data, "seed")
        found.append(b"".join(encode_cell(key, value) for key, value in list(reader.items())[:60]))
    return tuple({cells for cells in found if cells})


def cell_seeds() -> list[bytes]:
    """The cells of data blocks."""
    return sorted(_cells(), key=len)


def as_hfile(data: bytes) -> bytes:
    """An HFile of one block with the cells of an input; its trailer counts as many cells as any file may hold."""
    first = data[10 : 10 + int.from_bytes(data[8:10], "big")][:100]
    block = encode_block(Magic.DATA, data, Codec.NONE, -1)
    index = encode_root_index([IndexEntry(cell_key(first), 0, len(block))])
    section = encode_block(Magic.ROOT_INDEX, index, Codec.NONE, -1) + encode_block(
        Magic.ROOT_INDEX, b"", Codec.NONE, -1
    )
    info = encode_block(
        Magic.FILE_INFO, encode_file_info({"KEY_VALUE_VERSION": (1).to_bytes(4, "big")}), Codec.NONE, -1
    )
    trailer = Trailer(
        file_info_offset=len(block) + len(section),
        load_on_open_offset=len(block),
        data_index_size=len(index),
        uncompressed_bytes=len(data),
        data_index_count=1,
        meta_index_count=0,
        entry_count=data.count(b"\x04"),
        data_index_levels=1,
        first_data_block_offset=0,
        last_data_block_offset=0,
        codec=Codec.NONE,
    )
    return block + section + info + encode_trailer(trailer)
