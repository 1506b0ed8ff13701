"""The files of a new partition's groups: which records go where, and what makes a group stop counting."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pytest

from hudi_core.codec.hashing import file_group_index
from hudi_core.config.versions import V9
from hudi_core.engine.protocol import TaskAttempt
from hudi_core.errors import BuildRolledBackError, FormatError
from hudi_core.metadata_table.initialize.target import NewBaseFile, NewPartition, WrittenShard, first_log
from hudi_core.metadata_table.partitions.protocol import numbered_file_ids
from hudi_core.metadata_table.read.file_group import ROOT
from hudi_core.metadata_table.record import RecordEncoder, stored_schema
from hudi_core.model.names import WriteToken
from hudi_core.storage.base import Storage
from tests.support.memory_storage import MemoryStorage

INSTANT = "00000000000000010"
DATUM = {"type": 4, "BloomFilterMetadata": {"type": "", "timestamp": "0", "bloomFilter": b"", "isDeleted": True}}


def target(groups: int = 3, name: str = "bloom_filters") -> NewPartition:
    file_ids = tuple(numbered_file_ids("bloom-filters-", groups))
    return NewPartition(name, INSTANT, file_ids, WriteToken(0, 7, 0), stored_schema(V9), 100)


def sizes(storage: Storage) -> dict[str, int]:
    return {info.name: info.size for info in storage.list_files(f"{ROOT}/bloom_filters")}


def cells(*keys: str) -> pa.RecordBatch:
    encoded = RecordEncoder(stored_schema(V9)).cells((key, DATUM) for key in keys)
    return pa.RecordBatch.from_arrays([pa.array(part, pa.binary()) for part in zip(*encoded, strict=True)], ["k", "v"])


def written(storage: Storage, new: NewPartition, shard: int, batches: Sequence[pa.RecordBatch]) -> WrittenShard:
    return new.write_shard(storage, shard, iter(batches), TaskAttempt(5, 3, 2))


def test_a_new_partition_lists_every_group_and_holds_nothing() -> None:
    storage = MemoryStorage()
    storage.write(f"{ROOT}/bloom_filters/stale", b"x")
    target().begin(storage)
    logs = {str(first_log(file_id, INSTANT)): 80 for file_id in target().file_ids}
    assert {name: size for name, size in sizes(storage).items() if name != ".hoodie_partition_metadata"} == logs


def test_a_partition_that_was_initialized_before_its_instant_says_so() -> None:
    storage = MemoryStorage()
    target().begin(storage, "20240101000000000")
    assert b"commitTime=20240101000000000\n" in storage.read(f"{ROOT}/bloom_filters/.hoodie_partition_metadata")


def test_records_go_to_the_group_of_their_key() -> None:
    storage, new = MemoryStorage(), target()
    new.begin(storage)
    keys = [f"key{number}" for number in range(20)]
    files = new.write(storage, [*((key, DATUM) for key in keys), ("none", None)])
    expected = [sum(file_group_index(key, 3) == group for key in keys) for group in range(3)]
    assert [(item.file_id, item.records) for item in files] == list(zip(new.file_ids, expected, strict=True))
    assert [item.name for item in files] == [
        f"{file_id}_{group}-7-0_{INSTANT}.hfile" for group, file_id in enumerate(new.file_ids)
    ]
    assert {item.name: item.size for item in files}.items() <= sizes(storage).items()


def test_two_records_of_one_key_are_refused() -> None:
    storage, new = MemoryStorage(), target(1)
    new.begin(storage)
    with pytest.raises(ValueError, match="key0"):
        new.write(storage, [("key0", DATUM), ("key0", DATUM)])
    assert not any(name.endswith(".hfile") for name in sizes(storage))


def test_a_shard_is_named_after_the_attempt() -> None:
    storage, new = MemoryStorage(), target()
    new.begin(storage)
    empty = cells("a").slice(0, 0)
    done = written(storage, new, 1, [empty, cells("a", "b"), empty, cells("c")])
    assert done.file == NewBaseFile(
        new.file_ids[1], f"{new.file_ids[1]}_5-3-2_{INSTANT}.hfile", 3, done.file.size if done.file else 0
    )
    assert sizes(storage)[done.file.name] == done.file.size
    assert written(storage, new, 2, [empty]) == WrittenShard()


def test_a_group_that_another_process_removed_gets_no_base_file() -> None:
    """Before the file is opened, and while it is written: in version 6 it would count as soon as it is there."""
    storage, new = MemoryStorage(), target()
    with pytest.raises(BuildRolledBackError, match="run the indexing again"):
        written(storage, new, 0, [cells("a")])
    new.begin(storage)

    def removed() -> list[pa.RecordBatch]:
        storage.delete_folder(new.folder)
        return [cells("b")]

    with pytest.raises(BuildRolledBackError):
        new.write_shard(
            storage, 0, (batch for make in (lambda: [cells("a")], removed) for batch in make()), TaskAttempt(0, 0, 0)
        )
    assert sizes(storage) == {}


@pytest.mark.parametrize("name", ["../files", "a/b", ""])
def test_names_that_leave_the_metadata_table_are_refused(name: str) -> None:
    with pytest.raises(FormatError):
        target(name=name)
    with pytest.raises(FormatError):
        NewPartition("files", INSTANT, (name,), WriteToken(0, 7, 0), "", 1)
