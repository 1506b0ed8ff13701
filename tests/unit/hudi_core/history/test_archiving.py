"""Both archive writers over what crashes of other archivers left: cut files, leftovers of a snapshot, doubled
instants.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_core.errors import CorruptFileError, FormatError, LockError, StorageExistsError
from hudi_core.history.archived_entry import archived_entry
from hudi_core.history.archiving import ArchivedInstant, StateFile
from hudi_core.history.log_archive import LogArchive, archive_files
from hudi_core.history.log_archive_writer import LogArchiveWriter
from hudi_core.history.lsm import LsmHistory
from hudi_core.history.lsm_compaction import candidates, compact_levels, remove_unused
from hudi_core.history.lsm_writer import LsmWriter
from hudi_core.history.manifest import HistoryFile, read_snapshot
from hudi_core.history.snapshots import publish_snapshot
from hudi_core.testing.memory import MemoryStorage
from hudi_core.timeline.actions.commit import CommitMetadata, encode_commit, encode_commit_avro
from hudi_core.timeline.instant import Action, Instant, State

LOGS = ".hoodie/archived"
LSM = ".hoodie/timeline/history"


def archived(time: int, action: str = "commit", *, layout: int = 2, data: bytes | None = None) -> ArchivedInstant:
    encode = encode_commit_avro if layout == 2 else encode_commit
    content = encode(CommitMetadata(operation_type="UPSERT")) if data is None else data
    text = f"{time:03d}"
    files = (
        StateFile(action, State.REQUESTED, b"", "requested", text),
        StateFile(action, State.COMPLETED, content, f"{text}.{action}", text),
    )
    return ArchivedInstant(
        Instant(text, action, State.COMPLETED, f"{time + 500:03d}" if layout == 2 else None, action), files
    )


def times(history: Any) -> list[str]:
    return [item.requested_time for item in history.instants()]


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


class TestEntry:
    def entry(self, action: str, state: State, data: bytes) -> dict[str, Any]:
        return archived_entry("001", StateFile(action, state, data, "file", "002"))

    def test_a_commit_of_a_compaction_says_so(self) -> None:
        data = encode_commit(
            CommitMetadata(operation_type="UNKNOWN", compacted=True, extra_metadata={"a": None, "b": "c"})
        )
        commit = self.entry("commit", State.COMPLETED, data)["hoodieCommitMetadata"]
        assert commit["operationType"] == "COMPACT"
        assert commit["extraMetadata"] == {"b": "c", "ROLLING_STAT": ""}

    @pytest.mark.parametrize(
        ("action", "state"), [("rollback", State.REQUESTED), ("compaction", State.INFLIGHT), ("clean", State.INFLIGHT)]
    )
    def test_states_without_content(self, action: str, state: State) -> None:
        entry = self.entry(action, state, b"")
        assert entry == {
            "commitTime": "001",
            "actionType": action,
            "actionState": state.name,
            "stateTransitionTime": "002",
            "version": None,
        }

    @pytest.mark.parametrize(
        "data",
        [b"{", b"[]", b'{"partitionToWriteStats": {"p": 1}}', b'{"partitionToWriteStats": {"p": [1]}}', b"Obj\x01"],
    )
    def test_a_damaged_file_is_named(self, data: bytes) -> None:
        with pytest.raises(CorruptFileError) as caught:
            self.entry("commit", State.COMPLETED, data)
        assert caught.value.path == "file"


class TestLayout2:
    def writer(self, storage: MemoryStorage, batch: int = 2, file_bytes: int = 1 << 30) -> LsmWriter:
        return LsmWriter(storage, LSM, lambda: None, batch=batch, file_bytes=file_bytes, retained=1)

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
        assert storage.read(f"{LSM}/_version_") == b"2"

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

    def test_a_merge_drops_doubles_and_keeps_savepoint_and_commit_of_one_time(self) -> None:
        storage = MemoryStorage()
        self.writer(storage).write([archived(1), archived(2), archived(2, "clean", data=b"")])
        self.writer(storage).write([archived(2), archived(3)])
        self.writer(storage).finish()
        (file,) = read_snapshot(storage, LSM)
        rows = pq.read_table(io.BytesIO(storage.read(file.path))).to_pylist()
        assert [(row["instantTime"], row["action"]) for row in rows] == [
            ("001", "commit"),
            ("002", "clean"),
            ("002", "commit"),
            ("003", "commit"),
        ]
        assert rows[1]["metadata"] is None
        # Two snapshots stay: the option's one and one for the merge, with the file that the older one names.
        assert [info.name for info in storage.list_files(LSM)] == [
            "001_002_0.parquet",
            "001_003_1.parquet",
            "002_003_0.parquet",
            "_version_",
            "manifest_2",
            "manifest_3",
        ]

    def test_a_leftover_of_a_merge_is_replaced(self) -> None:
        storage = MemoryStorage()
        for number in (1, 2):
            self.add(storage, number)
        storage.write(f"{LSM}/001_002_1.parquet", b"cut")
        assert compact_levels(storage, LSM, lambda: None, batch=2, most_bytes=1 << 30) == 1
        assert times(LsmHistory(storage, LSM)) == ["001", "002"]

    def test_a_source_that_is_gone_or_of_other_columns_is_refused(self) -> None:
        storage = MemoryStorage()
        for number in (1, 2):
            self.add(storage, number)
        out = io.BytesIO()
        pq.write_table(pa.table({"instantTime": ["001"]}), out)
        storage.write(f"{LSM}/001_001_0.parquet", out.getvalue())
        with pytest.raises(FormatError, match="columns of the archive"):
            compact_levels(storage, LSM, lambda: None, batch=2, most_bytes=1 << 30)
        storage.delete(f"{LSM}/001_001_0.parquet")
        with pytest.raises(CorruptFileError, match="which is not there"):
            compact_levels(storage, LSM, lambda: None, batch=2, most_bytes=1 << 30)
        assert len(read_snapshot(storage, LSM)) == 2

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

        writer = LsmWriter(storage, LSM, guard, batch=3, file_bytes=1 << 30, retained=1)

        def work() -> None:
            writer.write([archived(3)])
            writer.finish()

        with pytest.raises(LockError):
            work()
        assert times(LsmHistory(storage, LSM)) in (["001", "002"], ["001", "002", "003"])
        assert times(LsmHistory(storage, LSM))[-1] == ("003" if calls >= 3 else "002")

    def test_levels_end(self) -> None:
        """Hudi reads one digit of a level."""
        storage = MemoryStorage()
        for number in range(1, 1 << 5):
            self.add(storage, number)
            self.writer(storage).finish()
        assert [file.level for file in read_snapshot(storage, LSM)] == [4, 3, 2, 1, 0]
        assert len(times(LsmHistory(storage, LSM))) == 31


def test_which_files_are_merged() -> None:
    def files(*sizes: int) -> list[HistoryFile]:
        return [
            HistoryFile(f"f/{number}_{number}_0.parquet", str(number), str(number), 0, size)
            for number, size in enumerate(sizes)
        ]

    assert candidates(files(1, 1), 3, 10) == []
    assert candidates(files(1, 1, 1, 1), 3, 10) == files(1, 1, 1)
    assert candidates(list(reversed(files(1, 1, 1))), 3, 10) == files(1, 1, 1)
    assert candidates(files(6, 6, 6), 3, 10) == files(6, 6), "the one that goes over the limit is among them"
    assert candidates(files(11, 6, 3, 1), 4, 10) == files(11, 6, 3, 1)[1:], "one that is too large alone is passed over"
    assert candidates(files(11, 12, 13), 3, 10) == []


def _only(file: HistoryFile, files: Sequence[HistoryFile]) -> Sequence[HistoryFile]:
    return [file]


def test_snapshots_that_nobody_needs() -> None:
    storage = MemoryStorage()
    names = [f"00{number}_00{number}_0.parquet" for number in range(1, 6)]
    for number, name in enumerate(names, 1):
        storage.write(f"{LSM}/{name}", b"x")
        file = HistoryFile(f"{LSM}/{name}", f"00{number}", f"00{number}", 0, 1)
        publish_snapshot(storage, LSM, partial(_only, file), lambda: None)
    storage.write(f"{LSM}/other.txt", b"")
    assert remove_unused(storage, LSM, keep=5) == 0
    assert remove_unused(storage, LSM, keep=2) == 6
    assert [info.name for info in storage.list_files(LSM)] == [
        *names[3:],
        "_version_",
        "manifest_4",
        "manifest_5",
        "other.txt",
    ]


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
    LsmWriter(storage, LSM, lambda: None, batch=2, file_bytes=1, retained=1).write(instants)
    (file,) = read_snapshot(storage, LSM)
    assert pq.read_table(io.BytesIO(storage.read(file.path)))["plan"].to_pylist() == [
        expected for *_, expected in cases
    ]
