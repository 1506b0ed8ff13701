"""The archive of layout 2 over what crashes of other archivers left: leftovers of a snapshot, doubled instants."""

from __future__ import annotations

import io

import pyarrow.parquet as pq
import pytest

from hudi_core.config.services.retention_config import ArchiveConfig
from hudi_core.errors import ConflictError, CorruptFileError, LockError
from hudi_core.history.archived_instant import ArchivedInstant, StateFile
from hudi_core.history.lsm import LsmHistory
from hudi_core.history.lsm_writer import LsmWriter
from hudi_core.history.manifest import read_snapshot
from hudi_core.timeline.instant import Action, Instant, State
from tests.support.archived_instants import LSM, archived, times
from tests.support.memory_storage import MemoryStorage


class TestLayout2:
    def writer(self, storage: MemoryStorage, batch: int = 2, file_bytes: int = 1 << 30) -> LsmWriter:
        return LsmWriter(
            storage,
            LSM,
            lambda: None,
            ArchiveConfig(history_batch=batch, history_file_bytes=file_bytes, manifests_retained=1),
        )

    def add(self, storage: MemoryStorage, *numbers: int) -> None:
        self.writer(storage).write([archived(number) for number in numbers])

    def test_sorted_whatever_the_order(self) -> None:
        storage = MemoryStorage()
        self.add(storage, 3, 1, 2)
        (file,) = read_snapshot(storage, LSM)
        assert file.name == "001_003_0.parquet"
        assert pq.read_table(io.BytesIO(storage.read(file.path)))["instantTime"].to_pylist() == ["001", "002", "003"]

    @pytest.mark.parametrize("leftover", [b"", b"PAR1 cut"])
    def test_what_a_crash_left_of_a_file_and_a_snapshot_is_replaced(self, leftover: bytes) -> None:
        storage = MemoryStorage()
        self.add(storage, 1)
        storage.write(f"{LSM}/002_003_0.parquet", leftover)
        storage.write(f"{LSM}/manifest_2", leftover)
        assert times(LsmHistory(storage, LSM)) == ["001"]
        self.add(storage, 2, 3)
        assert times(LsmHistory(storage, LSM)) == ["001", "002", "003"]
        assert storage.read(f"{LSM}/_version_") == b"3", "a number is not used twice"

    @pytest.mark.parametrize("version", [None, b"", b"x"])
    def test_a_version_file_that_is_gone_or_damaged(self, version: bytes | None) -> None:
        """Readers take the largest manifest then, and so does the next writer."""
        storage = MemoryStorage()
        for number in (1, 2):
            self.add(storage, number)
        storage.delete(f"{LSM}/_version_")
        if version is not None:
            storage.write(f"{LSM}/_version_", version)
        self.add(storage, 3)
        assert times(LsmHistory(storage, LSM)) == ["001", "002", "003"]
        assert storage.read(f"{LSM}/_version_") == b"3"

    def test_a_file_of_the_snapshot_is_never_replaced(self) -> None:
        storage = MemoryStorage()
        self.add(storage, 1, 3)
        with pytest.raises(CorruptFileError, match="does not hold the instants in its name"):
            self.add(storage, 1, 2, 3)

    def test_held(self) -> None:
        storage = MemoryStorage()
        self.add(storage, 1, 2)
        instants = [archived(number).instant for number in (2, 3)]
        assert self.writer(storage).held(instants) == {("002", "commit")}
        assert self.writer(storage).held([]) == frozenset()
        assert self.writer(storage).held([Instant("002", "clean", State.COMPLETED, "600")]) == frozenset()

    @pytest.mark.parametrize("instants", [(2, 2), (2, 3), (1, 3)])
    @pytest.mark.parametrize("calls", range(3))
    def test_an_archiver_that_was_stopped_for_too_long_changes_nothing_of_the_next_one(
        self, calls: int, instants: tuple[int, int]
    ) -> None:
        """It stops right behind a check of the lock, which another one takes, archives under and releases."""
        theirs, ours = instants
        storage = MemoryStorage()
        self.add(storage, 0)
        checks, left = list[dict[str, bytes]](), {f"{LSM}/000_000_0.parquet", f"{LSM}/manifest_1"}

        def guard() -> None:
            checks.append({})
            if len(checks) == calls + 1:
                self.add(storage, theirs)
                new = {info.path for info in storage.list_files(LSM)} - left
                checks[-1].update({path: storage.read(path) for path in new})

        config = ArchiveConfig(history_batch=9, history_file_bytes=1 << 30, manifests_retained=1)
        writer = LsmWriter(storage, LSM, guard, config)
        expected = [f"{number:03d}" for number in (0, theirs)]
        if calls == 0 and theirs != ours:
            writer.write([archived(ours)])
            expected.append(f"{ours:03d}")
        else:
            with pytest.raises(ConflictError, match="archiving at the same time"):
                writer.write([archived(ours)])
            assert all(storage.read(path) == data for path, data in checks[calls].items())
        assert times(LsmHistory(storage, LSM)) == expected
        self.add(storage, 5)
        writer.finish()
        assert times(LsmHistory(storage, LSM)) == [*expected, "005"]

    @pytest.mark.parametrize("calls", range(6))
    def test_a_lock_that_is_lost_on_the_way_stops_everything(self, calls: int) -> None:
        """What another archiver does from then on is not touched."""
        storage = MemoryStorage()
        self.add(storage, 1)
        self.add(storage, 2)
        left = [calls]

        def guard() -> None:
            left[0] -= 1
            if left[0] < 0:
                raise LockError("lost")

        writer = LsmWriter(
            storage, LSM, guard, ArchiveConfig(history_batch=3, history_file_bytes=1 << 30, manifests_retained=1)
        )

        def work() -> None:
            writer.write([archived(3)])
            writer.finish()

        with pytest.raises(LockError):
            work()
        assert times(LsmHistory(storage, LSM)) in (["001", "002"], ["001", "002", "003"])
        assert times(LsmHistory(storage, LSM))[-1] == ("003" if calls >= 3 else "002")


def test_actions_whose_plans_layout_2_keeps() -> None:
    storage = MemoryStorage()

    def item(time: int, pending: str, action: str, requested: bytes, inflight: bytes = b"") -> ArchivedInstant:
        files = [
            StateFile(pending, state, data, "f", "1")
            for state, data in ((State.REQUESTED, requested), (State.INFLIGHT, inflight))
            if data
        ]
        completed = StateFile(action, State.COMPLETED, b"Obj\x01done", "f", "1")
        return ArchivedInstant(
            Instant(f"{time:03d}", action, State.COMPLETED, f"{time + 1:03d}", pending), (*files, completed)
        )

    cases = [
        (Action.COMPACTION, Action.COMMIT, b"r", b"", b"r"),
        (Action.LOG_COMPACTION, Action.DELTA_COMMIT, b"r", b"", b"r"),
        (Action.CLEAN, Action.CLEAN, b"r", b"i", b"r"),
        (Action.CLEAN, Action.CLEAN, b"", b"i", b"i"),
        (Action.REPLACE_COMMIT, Action.REPLACE_COMMIT, b"r", b"i", b"i"),
        (Action.CLUSTERING, Action.REPLACE_COMMIT, b"r", b"", b"r"),
        (Action.COMMIT, Action.COMMIT, b"", b"i", None),
        (Action.ROLLBACK, Action.ROLLBACK, b"r", b"", None),
    ]
    instants = [
        item(number, pending, action, requested, inflight)
        for number, (pending, action, requested, inflight, _) in enumerate(cases)
    ]
    LsmWriter(
        storage, LSM, lambda: None, ArchiveConfig(history_batch=2, history_file_bytes=1, manifests_retained=1)
    ).write(instants)
    (file,) = read_snapshot(storage, LSM)
    assert pq.read_table(io.BytesIO(storage.read(file.path)))["plan"].to_pylist() == [
        expected for *_, expected in cases
    ]
