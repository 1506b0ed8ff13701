"""The archive of layout 1 over what crashes of other archivers left."""

from __future__ import annotations

import pytest

from hudi_core.errors import StorageExistsError
from hudi_core.history.archived_instant import ArchivedInstant
from hudi_core.history.archiving import LogArchiveWriter
from hudi_core.history.log_archive import LogArchive, archive_files
from tests.support.archived_instants import LOGS, archived, times
from tests.support.memory_storage import MemoryStorage


class TestLayout1:
    def writer(self, storage: MemoryStorage) -> LogArchiveWriter:
        return LogArchiveWriter(storage, LOGS, 10)

    def add(self, storage: MemoryStorage, *numbers: int) -> None:
        self.writer(storage).write([archived(number, layout=1) for number in numbers])

    def test_every_write_is_a_file_of_the_next_number(self) -> None:
        storage = MemoryStorage()
        for number in (1, 2):
            self.add(storage, number)
        storage.write(f"{LOGS}/.commits_.archive.41_1-0-1", storage.read(f"{LOGS}/.commits_.archive.2_1-0-1"))
        self.add(storage, 3)
        assert [number for number, _ in archive_files(storage, LOGS)] == [1, 2, 41, 42]
        assert times(LogArchive(storage, LOGS)) == ["001", "002", "003"]

    def test_never_behind_a_file_that_a_crash_cut(self) -> None:
        """What is appended behind a cut block is lost to readers."""
        storage = MemoryStorage()
        self.add(storage, 1, 2)
        path = f"{LOGS}/.commits_.archive.1_1-0-1"
        whole = storage.read(path)
        storage.write(path, whole[: len(whole) // 2])
        self.add(storage, 1, 2, 3)
        assert storage.read(path) == whole[: len(whole) // 2]
        assert times(LogArchive(storage, LOGS)) == ["001", "002", "003"]

    def test_held_are_the_completed_instants_of_the_newest_file(self) -> None:
        storage = MemoryStorage()
        instants = [archived(number).instant for number in (1, 2, 3)]
        assert self.writer(storage).held(instants) == frozenset()
        self.add(storage, 1)
        self.add(storage, 2)
        assert self.writer(storage).held(instants) == {("002", "commit")}
        pending = archived(3, layout=1)
        self.writer(storage).write([ArchivedInstant(pending.instant, pending.files[:1])])
        assert self.writer(storage).held(instants) == frozenset()

    def test_a_number_that_is_taken_meanwhile(self) -> None:
        class Racing(MemoryStorage):
            lost = 0

            def create_exclusive(self, path: str, data: bytes) -> None:
                if self.lost:
                    self.lost -= 1
                    super().create_exclusive(path, b"")
                super().create_exclusive(path, data)

        storage = Racing()
        storage.lost = 2
        self.add(storage, 7)
        assert times(LogArchive(storage, LOGS)) == ["007"]
        storage.lost = 10**6
        with pytest.raises(StorageExistsError, match="other archivers"):
            self.add(storage, 8)
