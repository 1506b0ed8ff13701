"""Lookups in a partition of the metadata table: by key, by prefix, whole; which file groups and how much of them are
read.
"""

from __future__ import annotations

import pytest

from hudi_core.codec.hashing import file_group_index
from hudi_core.codec.hfile.writer import write_hfile
from hudi_core.codec.log.blocks import BlockType, HeaderKey, encode_block
from hudi_core.codec.log.content import DeleteRecord
from hudi_core.errors import CorruptFileError
from hudi_core.metadata_table.read import partition
from hudi_core.metadata_table.read.file_group import MergedSlice
from hudi_core.metadata_table.read.group_reader import GroupReader
from hudi_core.metadata_table.read.partition import MetadataPartition
from tests.support.delete_records import encode_delete_block
from tests.support.memory_storage import MemoryStorage
from tests.support.metadata_groups import (
    ALL,
    CODEC,
    SCHEMA_TEXT,
    Groups,
    Numbers,
    Rows,
    data,
)


def test_a_key_is_looked_up_in_the_file_group_of_its_hash_only() -> None:
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


def test_prefixes_that_hold_the_hashed_part_read_its_group_only() -> None:
    parts = {"a$": file_group_index("a$", 3), "b$": file_group_index("b$", 3)}
    rows: list[Rows] = [
        {f"{part}{number}": number for part, at in parts.items() if at == index for number in range(3)}
        for index in range(3)
    ]
    groups = Groups(*((part, []) for part in rows))
    assert dict(groups.partition.with_prefixes(["a$"], ["a$"])) == {"a$0": 0, "a$1": 1, "a$2": 2}
    assert list(groups.storage.bytes_read) == [f"x/g-{parts['a$']:04d}-0_0-0-0_0.hfile"]


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
