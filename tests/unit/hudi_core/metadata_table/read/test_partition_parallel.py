"""File groups of a remote metadata table are read in parallel, with the results of one after the other."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from hudi_core.codec.hashing import file_group_index
from hudi_core.errors import CorruptFileError, StorageError
from hudi_core.metadata_table.read import partition
from hudi_core.metadata_table.read.file_group import BlockFilter, MergedSlice
from hudi_core.metadata_table.read.group_reader import GroupReader
from hudi_core.metadata_table.read.partition import MetadataPartition
from hudi_core.storage.base import ByteRange
from tests.support.memory_storage import MemoryStorage
from tests.support.metadata_groups import Numbers, Rows, hfile

GROUPS = 6
KEYS = [f"key-{number}" for number in range(120)]


class Meeting(MemoryStorage):
    """Readers wait for each other: the first read of each of `parties` files happens only when all have started."""

    def __init__(self, parties: int) -> None:
        super().__init__()
        self.barrier = threading.Barrier(parties, timeout=10)
        self.met: set[str] = set()
        self.broken: str | None = None

    def read_range(self, path: str, span: ByteRange) -> bytes:
        if path == self.broken:
            raise StorageError("the disk said no", path=path)
        if path not in self.met:
            self.met.add(path)
            self.barrier.wait()
        return super().read_range(path, span)


def metadata_snapshot(storage: Meeting, *, is_remote: bool) -> MetadataPartition[int]:
    readers = []
    blocks = BlockFilter(frozenset(), latest="")
    for number in range(GROUPS):
        rows: Rows = {key: index for index, key in enumerate(KEYS) if file_group_index(key, GROUPS) == number}
        path = f"x/g-{number}-0_0-0-0_0.hfile"
        storage.write(path, hfile(rows))
        readers.append(GroupReader(storage, MergedSlice(f"g-{number}-0", storage.stat(path), ()), blocks, Numbers()))
    return MetadataPartition("x", "x", readers, is_remote=is_remote)


def query(name: str, part: MetadataPartition[int]) -> dict[str, int]:
    return part.lookup([*KEYS, "absent"]) if name == "lookup" else dict(part.with_prefixes(["key-1", "key-2"]))


@pytest.mark.parametrize("name", ["lookup", "prefixes"])
@pytest.mark.parametrize("kept", [1 << 20, 0])
def test_remote_file_groups_are_read_in_parallel(monkeypatch: pytest.MonkeyPatch, name: str, kept: int) -> None:
    monkeypatch.setattr(partition, "_KEPT", kept)
    remote = query(name, metadata_snapshot(Meeting(GROUPS), is_remote=True))
    local = query(name, metadata_snapshot(Meeting(1), is_remote=False))
    assert list(remote.items()) == list(local.items())
    assert len(remote) > 20
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("metadata-group")]


def test_no_more_are_read_at_once_than_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partition, "_AT_ONCE", 2)
    assert query("lookup", metadata_snapshot(Meeting(2), is_remote=True)) == query(
        "lookup", metadata_snapshot(Meeting(1), is_remote=False)
    )
    too_many = Meeting(3)
    too_many.barrier = threading.Barrier(3, timeout=0.2)
    part = metadata_snapshot(too_many, is_remote=True)
    with pytest.raises(threading.BrokenBarrierError):
        query("lookup", part)


@pytest.mark.parametrize("name", ["lookup", "prefixes"])
def test_an_error_of_one_group_is_the_lookups(name: str) -> None:
    storage = Meeting(1)
    part = metadata_snapshot(storage, is_remote=True)
    storage.broken = "x/g-3-0_0-0-0_0.hfile"
    with pytest.raises(StorageError, match="the disk said no"):
        query(name, part)
    storage.broken = None
    storage.write("x/g-2-0_0-0-0_0.hfile", b"?" * 5000)
    with pytest.raises(CorruptFileError):
        query(name, released(part))


def released(part: MetadataPartition[Any]) -> MetadataPartition[Any]:
    for group in part.groups:
        group.release()
    return part
