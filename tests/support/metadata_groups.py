"""File groups of a metadata partition whose records are numbers, made of rows."""

from __future__ import annotations

from typing import Any

from hudi_core.codec.avro.datum import DatumCodec
from hudi_core.codec.hfile.writer import write_hfile
from hudi_core.codec.log.blocks import BlockType, HeaderKey, encode_block
from hudi_core.codec.log.content import DeleteRecord
from hudi_core.metadata_table.read.file_group import BlockFilter, MergedSlice
from hudi_core.metadata_table.read.group_reader import GroupReader
from hudi_core.metadata_table.read.partition import MetadataPartition
from hudi_core.metadata_table.record import RecordRules
from hudi_core.storage.base import ByteRange
from tests.support.delete_records import encode_delete_block
from tests.support.memory_storage import MemoryStorage

SCHEMA_TEXT = '{"type":"record","name":"r","fields":[{"name":"n","type":"int"}]}'


CODEC = DatumCodec({"type": "record", "name": "r", "fields": [{"name": "n", "type": "int"}]})


ALL = BlockFilter(frozenset({"1", "2", "3"}), latest="3")


Rows = dict[str, int]


class Numbers(RecordRules[int]):
    """Records are numbers; two of one key add up."""

    def __init__(self, keyless: bool = False) -> None:
        self.keyless = keyless
        self.decoded = 0

    def decode(self, key: str, datum: dict[str, Any], *, path: str) -> int:
        self.decoded += 1
        return int(datum["n"])

    def merge(self, older: int, newer: int, *, path: str) -> int:
        return older + newer


class CountingStorage(MemoryStorage):
    """Notes what is read."""

    def __init__(self) -> None:
        super().__init__()
        self.bytes_read: dict[str, int] = {}

    def read_range(self, path: str, span: ByteRange) -> bytes:
        data = super().read_range(path, span)
        self.bytes_read[path] = self.bytes_read.get(path, 0) + len(data)
        return data


def hfile(rows: Rows) -> bytes:
    items = sorted((key.encode(), CODEC.encode({"n": number})) for key, number in rows.items())
    return write_hfile(items, schema=SCHEMA_TEXT, block_size=200)


def data(instant: str, rows: Rows) -> bytes:
    return encode_block(
        BlockType.HFILE_DATA, {HeaderKey.INSTANT_TIME: instant, HeaderKey.SCHEMA: SCHEMA_TEXT}, hfile(rows)
    )


def deletes(instant: str, *keys: str) -> bytes:
    return encode_block(
        BlockType.DELETE,
        {HeaderKey.INSTANT_TIME: instant},
        encode_delete_block([DeleteRecord(key, "x", None) for key in keys]),
    )


class Groups:
    """File groups by what their base file and their log blocks hold."""

    def __init__(self, *groups: tuple[Rows | None, list[bytes]], rules: Numbers | None = None) -> None:
        self.storage = CountingStorage()
        self.rules = rules or Numbers()
        readers = []
        for number, (base, logs) in enumerate(groups):
            if base is not None:
                self.storage.write(f"x/g-{number:04d}-0_0-0-0_0.hfile", hfile(base))
            if logs:
                self.storage.write(f"x/.g-{number:04d}-0_0.log.1_0-0-0", b"".join(logs))
            files = [info for info in self.storage.list_files("x") if f"g-{number:04d}" in info.path]
            merged = MergedSlice(
                f"g-{number:04d}-0",
                next((info for info in files if info.path.endswith(".hfile")), None),
                tuple(info for info in files if ".log." in info.path),
            )
            readers.append(GroupReader(self.storage, merged, ALL, self.rules))
        self.partition = MetadataPartition("x", "x", readers)
