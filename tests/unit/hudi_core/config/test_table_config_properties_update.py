"""Changing hoodie.properties: a reader finds a whole file whatever happens."""

from __future__ import annotations

import contextlib
import re

import pytest

from hudi_core.config.properties import parse_properties, render_properties
from hudi_core.config.table_config import BACKUP, PROPERTIES, TableConfig, table_checksum, update_properties
from hudi_core.errors import ConfigError, ConflictError, CorruptFileError
from tests.support.fault_storage import MUTATIONS, FaultPlan, FaultStorage, InjectedCrash
from tests.support.memory_storage import MemoryStorage

RAW = {
    "hoodie.table.name": "trips",
    "hoodie.database.name": "db",
    "hoodie.table.type": "COPY_ON_WRITE",
    "hoodie.table.version": "6",
    "hoodie.timeline.layout.version": "1",
    "hoodie.table.checksum": str(table_checksum("db", "trips")),
    "hoodie.table.metadata.partitions": "column_stats,files",
    "some.key": "a = b: c",
}
CHANGES = {"hoodie.table.metadata.partitions": "files", "new": "é"}


def table(raw: dict[str, str] = RAW) -> MemoryStorage:
    storage = MemoryStorage()
    storage.write(PROPERTIES, render_properties(raw))
    return storage


def stored(storage: MemoryStorage) -> dict[str, str]:
    return parse_properties(storage.read(PROPERTIES), path=PROPERTIES)


def test_changes() -> None:
    storage = table()
    config = update_properties(storage, CHANGES)
    assert stored(storage) == RAW | CHANGES == config.raw
    assert TableConfig.load(storage).metadata_partitions == {"files"} == config.metadata_partitions
    assert not storage.exists(BACKUP)
    assert re.match(
        rb"#Updated at \d{4}-\d\d-\d\dT[\d:.]+Z\n#\w{3} \w{3} \d\d [\d:]{8} UTC \d{4}\n", storage.read(PROPERTIES)
    )


def test_nothing_is_written_where_nothing_changes() -> None:
    storage = table()
    before = storage.read(PROPERTIES)
    update_properties(storage, {"hoodie.table.name": "trips"})
    assert storage.read(PROPERTIES) == before


def test_a_missing_checksum_is_added() -> None:
    storage = table({key: value for key, value in RAW.items() if key != "hoodie.table.checksum"})
    assert update_properties(storage, {}).raw["hoodie.table.checksum"] == RAW["hoodie.table.checksum"]


def test_a_change_that_no_reader_would_take_is_refused() -> None:
    storage = table()
    before = storage.read(PROPERTIES)
    with pytest.raises(CorruptFileError, match="checksum"):
        update_properties(storage, {"hoodie.table.name": "other"})
    assert storage.read(PROPERTIES) == before
    assert not storage.exists(BACKUP)


def test_killed_anywhere_a_reader_finds_the_old_or_the_new() -> None:
    number = 0
    while True:
        storage = table()
        plan = FaultPlan(kill_at=number, counts=MUTATIONS)
        with contextlib.suppress(InjectedCrash):
            update_properties(FaultStorage(storage, plan), CHANGES)
        assert TableConfig.load(storage).raw in (RAW, RAW | CHANGES)
        update_properties(storage, CHANGES)
        assert stored(storage) == RAW | CHANGES
        assert not storage.exists(BACKUP)
        if not plan.crashed:
            break
        number += 1
    assert number == 4, "a stale backup goes, the backup, the file, the backup goes"


@pytest.mark.parametrize("main", [None, b"", b"hoodie.table.name=trips\n"], ids=["missing", "empty", "torn"])
def test_what_a_dead_writer_left_is_put_in_order(main: bytes | None) -> None:
    """Hudi deletes the file before it writes it again; its backup is whole meanwhile."""
    storage = table()
    storage.write(BACKUP, storage.read(PROPERTIES))
    if main is None:
        storage.delete(PROPERTIES)
    else:
        storage.write(PROPERTIES, main)
    update_properties(storage, CHANGES)
    assert stored(storage) == RAW | CHANGES
    assert not storage.exists(BACKUP)


def test_no_table_and_no_whole_file() -> None:
    with pytest.raises(ConfigError, match="not a Hudi table"):
        update_properties(MemoryStorage(), CHANGES)
    storage = MemoryStorage()
    storage.write(PROPERTIES, b"")
    with pytest.raises(CorruptFileError, match="empty"):
        update_properties(storage, CHANGES)


def test_another_writer_is_noticed() -> None:
    class Racing(MemoryStorage):
        def create_exclusive(self, path: str, data: bytes) -> None:
            self.write(path, data)
            super().create_exclusive(path, data)

    storage = Racing()
    storage.write(PROPERTIES, render_properties(RAW))
    with pytest.raises(ConflictError, match="another writer"):
        update_properties(storage, CHANGES)
    assert stored(storage) == RAW


def test_a_lost_write_is_noticed() -> None:
    class Deaf(MemoryStorage):
        def write(self, path: str, data: bytes) -> None:
            if not self.exists(path):
                super().write(path, data)

    storage = Deaf()
    storage.write(PROPERTIES, render_properties(RAW))
    with pytest.raises(ConflictError, match="just written"):
        update_properties(storage, CHANGES)
    assert storage.exists(BACKUP)
