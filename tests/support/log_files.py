"""Log files made of whole blocks, for tests of the scan."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from hudi_core.codec.avro.datum import DatumCodec
from hudi_core.codec.avro.schema import add_meta_fields
from hudi_core.codec.log.blocks import BlockType, HeaderKey, encode_block
from hudi_core.codec.log.content import DeleteRecord, OrderingValue, encode_avro_block
from hudi_core.storage.base import Storage
from hudi_core.view.file_group import DataFile
from tests.support.delete_records import encode_delete_block

SCHEMA: dict[str, Any] = {
    "type": "record",
    "name": "t_record",
    "fields": [
        {"name": "id", "type": ["null", "string"], "default": None},
        {"name": "ts", "type": ["null", "long"], "default": None},
        {"name": "text", "type": ["null", "string"], "default": None},
    ],
}
FULL = add_meta_fields(SCHEMA)


def log_name(version: int, file_id: str = "f-0", base: str = "001") -> str:
    """The name of a log file."""
    return f".{file_id}_{base}.log.{version}_0-1-{version}"


def put(storage: Storage, version: int, *blocks: bytes) -> DataFile:
    """Writes a log file of blocks into partition p."""
    name = log_name(version)
    data = b"".join(blocks)
    storage.write(f"p/{name}", data)
    return DataFile("p", name, len(data))


def data(instant: str, rows: Iterable[tuple[str, int, str]], extra: dict[HeaderKey, str] | None = None) -> bytes:
    """An Avro block of rows (key, ts, text)."""
    codec = DatumCodec(FULL)
    made = [
        codec.encode(
            {
                "_hoodie_commit_time": instant,
                "_hoodie_commit_seqno": f"{instant}_0_{index}",
                "_hoodie_record_key": key,
                "_hoodie_partition_path": "p",
                "_hoodie_file_name": "f-0",
                "id": key,
                "ts": ts,
                "text": text,
            }
        )
        for index, (key, ts, text) in enumerate(rows)
    ]
    headers = {HeaderKey.INSTANT_TIME: instant, HeaderKey.SCHEMA: json.dumps(FULL), **(extra or {})}
    return encode_block(BlockType.AVRO_DATA, headers, encode_avro_block(made), hudi_1_headers=True)


def deletes(
    instant: str, keys: Iterable[tuple[str, OrderingValue | None]], extra: dict[HeaderKey, str] | None = None
) -> bytes:
    """A delete block."""
    content = encode_delete_block([DeleteRecord(key, "p", ordering) for key, ordering in keys])
    headers = {HeaderKey.INSTANT_TIME: instant, HeaderKey.SCHEMA: json.dumps(FULL), **(extra or {})}
    return encode_block(BlockType.DELETE, headers, content, hudi_1_headers=True)


def rollback(instant: str, target: str) -> bytes:
    """A rollback command block."""
    headers = {
        HeaderKey.INSTANT_TIME: instant,
        HeaderKey.TARGET_INSTANT_TIME: target,
        HeaderKey.COMMAND_BLOCK_TYPE: "0",
    }
    return encode_block(BlockType.COMMAND, headers)
