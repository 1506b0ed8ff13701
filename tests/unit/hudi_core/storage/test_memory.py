from __future__ import annotations

import gc

import pytest

from hudi_core.errors import StorageExistsError
from hudi_core.storage.memory import MemoryStorage


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
