from __future__ import annotations

import gc

import pytest

from hudi_core.errors import StorageConflictError, StorageExistsError
from tests.support.memory_storage import MemoryStorage


def test_modification_times_come_from_the_clock() -> None:
    time = [100.0]
    storage = MemoryStorage(clock=lambda: time[0])
    storage.write("x", b"")
    time[0] = 200.0
    assert storage.stat("x").modified == 100.0
    storage.write("x", b"")
    assert storage.list_files("")[0].modified == 200.0


def test_an_object_appears_when_its_output_is_closed_and_not_otherwise() -> None:
    storage = MemoryStorage()
    file = storage.open_output("x")
    file.write(b"1")
    assert not storage.exists("x")
    file.close()
    file.close()
    assert storage.read("x") == b"1"
    with pytest.raises(StorageExistsError):
        storage.open_output("x")
    lost = storage.open_output("y")
    lost.write(b"1")
    del lost
    gc.collect()
    assert not storage.exists("y")


def test_a_conditional_write_needs_the_version_that_is_there() -> None:
    storage = MemoryStorage()
    version = storage.write_if("x", b"one", version=None)
    with pytest.raises(StorageExistsError):
        storage.write_if("x", b"two", version=None)
    for path, named in (("x", "0"), ("y", version)):
        with pytest.raises(StorageConflictError):
            storage.write_if(path, b"two", version=named)
    assert storage.read_versioned("x") == (b"one", version)
    assert storage.read_versioned("x")[1] != storage.write_if("x", b"two", version=version)
