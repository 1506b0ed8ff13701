"""Lookups in a partition of the metadata table: by key, by prefix, whole; which file groups and how much of them are
read.
"""

from __future__ import annotations

from typing import Any

import pytest

from hudi_core.codec.avro.datum import DatumCodec
from hudi_core.codec.hashing import file_group_index
from hudi_core.codec.hfile.writer import write_hfile
from hudi_core.codec.log.blocks import BlockType, HeaderKey
from hudi_core.codec.log.content import DeleteRecord
from hudi_core.codec.log.frames import encode_block
from hudi_core.errors import CorruptFileError
from hudi_core.metadata_table.read import partition
from hudi_core.metadata_table.read.group_reader import GroupReader
from hudi_core.metadata_table.read.log_blocks import BlockFilter
from hudi_core.metadata_table.read.partition import MetadataPartition
from hudi_core.metadata_table.read.slices import MergedSlice
from hudi_core.storage.base import ByteRange
from hudi_core.testing.memory import MemoryStorage
from tests.support.delete_records import encode_delete_block

SCHEMA_TEXT = '{"type":"record","name":"r","fields":[{"name":"n","type":"int"}]}'
CODEC = DatumCodec({"type": "record", "name": "r", "fields": [{"name": "n", "type": "int"}]})
ALL = BlockFilter(committed=lambda instant: True, valid=frozenset({"1", "2", "3"}), latest="3")
Rows = dict[str, int]


class Numbers:
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


def test_base_and_log_records_merge_in_order_and_deletes_drop_older_ones() -> None:
    groups = Groups(
        ({"a": 1, "b": 1, "c": 1}, [data("1", {"a": 10, "d": 10}), deletes("2", "b", "d"), data("3", {"b": 100})])
    )
    expected = {"a": 11, "b": 100, "c": 1}
    assert dict(groups.partition.all()) == expected
    assert groups.partition.lookup(["d", "c", "b", "a", "a", "x"]) == expected
    assert dict(groups.partition.with_prefixes(["b", "a"])) == {"a": 11, "b": 100}
    assert (groups.partition.get("c"), groups.partition.get("d")) == (1, None)


def test_a_key_is_asked_of_the_file_group_of_its_hash_only() -> None:
    keys = [f"key-{number}" for number in range(60)]
    rows: list[Rows] = [{key: 1 for key in keys if file_group_index(key, 3) == index} for index in range(3)]
    groups = Groups(*((part, []) for part in rows))
    assert groups.partition.lookup(keys) == dict.fromkeys(keys, 1)
    groups = Groups(*((part, []) for part in rows))
    key = keys[17]
    assert groups.partition.get(key) == 1
    assert list(groups.storage.bytes_read) == [f"x/g-{file_group_index(key, 3):04d}-0_0-0-0_0.hfile"]
    assert dict(groups.partition.with_prefixes(["key-1"])) == {key: 1 for key in keys if key.startswith("key-1")}
    assert len(groups.storage.bytes_read) == 3, "a prefix may be in any of them"


def test_prefixes_that_hold_the_hashed_part_ask_its_group_only() -> None:
    parts = {"a$": file_group_index("a$", 3), "b$": file_group_index("b$", 3)}
    rows: list[Rows] = [
        {f"{part}{number}": number for part, at in parts.items() if at == index for number in range(3)}
        for index in range(3)
    ]
    groups = Groups(*((part, []) for part in rows))
    assert dict(groups.partition.with_prefixes(["a$"], ["a$"])) == {"a$0": 0, "a$1": 1, "a$2": 2}
    assert list(groups.storage.bytes_read) == [f"x/g-{parts['a$']:04d}-0_0-0-0_0.hfile"]


def test_a_lookup_reads_few_blocks_of_a_large_file() -> None:
    groups = Groups(({f"key-{number:05d}": number for number in range(5000)}, []))
    size = groups.storage.stat("x/g-0000-0_0-0-0_0.hfile").size
    assert groups.partition.lookup(["key-00001", "key-04990"]) == {"key-00001": 1, "key-04990": 4990}
    assert sum(groups.storage.bytes_read.values()) < size // 5


def test_equal_data_of_a_kind_without_keys_are_decoded_once() -> None:
    rows = {f"k{number}": number % 3 for number in range(90)}
    keyless, each = Groups((rows, []), rules=Numbers(keyless=True)), Groups((rows, []))
    assert dict(keyless.partition.all()) == dict(each.partition.all()) == rows
    assert (keyless.rules.decoded, each.rules.decoded) == (3, 90)


def test_large_partitions_are_not_kept_open(monkeypatch: pytest.MonkeyPatch) -> None:
    def read_twice() -> int:
        groups = Groups(({"a": 1}, [data("1", {"a": 1})]))
        assert (
            dict(groups.partition.all())
            == groups.partition.lookup(["a"])
            == dict(groups.partition.with_prefixes(["a"]))
            == {"a": 2}
        )
        return sum(groups.storage.bytes_read.values())

    kept = read_twice()
    monkeypatch.setattr(partition, "_KEPT", 100)
    assert read_twice() == 3 * kept


def test_empty_groups_and_no_groups() -> None:
    groups = Groups((None, []), ({"a": 1}, []))
    assert dict(groups.partition.all()) == {"a": 1}
    assert groups.partition.lookup([]) == {}
    assert list(groups.partition.with_prefixes([])) == []
    with pytest.raises(CorruptFileError, match="holds no file group") as caught:
        MetadataPartition("x", "folder", [])
    assert caught.value.path == "folder"


def test_keys_that_are_no_text_and_deletes_without_a_key_are_corrupt() -> None:
    storage = MemoryStorage()
    storage.write("b.hfile", write_hfile([(b"\xff", CODEC.encode({"n": 1}))], schema=SCHEMA_TEXT))
    reader = GroupReader(storage, MergedSlice("g", storage.stat("b.hfile"), ()), ALL, Numbers())
    with pytest.raises(CorruptFileError, match="UTF-8"):
        dict(MetadataPartition("x", "folder", [reader]).all())
    storage.write(
        ".l",
        encode_block(
            BlockType.DELETE, {HeaderKey.INSTANT_TIME: "1"}, encode_delete_block([DeleteRecord(None, "x", None)])
        ),
    )
    reader = GroupReader(storage, MergedSlice("g", None, (storage.stat(".l"),)), ALL, Numbers())
    with pytest.raises(CorruptFileError, match="without a key"):
        reader.all()
