"""Merges of the archive of layout 2, over what crashes of other archivers left."""

from __future__ import annotations

import io
from collections.abc import Sequence
from functools import partial

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_core.config.services.retention_config import ArchiveConfig
from hudi_core.errors import CorruptFileError, FormatError
from hudi_core.history.lsm import LsmHistory
from hudi_core.history.lsm_writer import LsmWriter, candidates, compact_levels, remove_unused
from hudi_core.history.manifest import HistoryFile, publish_snapshot, read_snapshot
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
        with pytest.raises(FormatError, match="no file of the archive"):
            compact_levels(storage, LSM, lambda: None, batch=2, most_bytes=1 << 30)
        storage.delete(f"{LSM}/001_001_0.parquet")
        with pytest.raises(CorruptFileError, match="which is not there"):
            compact_levels(storage, LSM, lambda: None, batch=2, most_bytes=1 << 30)
        assert len(read_snapshot(storage, LSM)) == 2

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


def test_snapshots_that_are_not_needed() -> None:
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


def test_the_latest_snapshot_stays_below_manifests_that_nothing_names() -> None:
    """Left by crashes, or about to be named."""
    storage = MemoryStorage()
    for number in (1, 2):
        name = f"00{number}_00{number}_0.parquet"
        storage.write(f"{LSM}/{name}", b"x")
        file = HistoryFile(f"{LSM}/{name}", f"00{number}", f"00{number}", 0, 1)
        publish_snapshot(storage, LSM, partial(_only, file), lambda: None)
    for number, data in ((3, storage.read(f"{LSM}/manifest_2")), (4, b"cut"), (5, b"")):
        storage.write(f"{LSM}/manifest_{number}", data)
    assert remove_unused(storage, LSM, keep=1) == 2
    assert [info.name for info in storage.list_files(LSM)] == [
        "002_002_0.parquet",
        "_version_",
        *(f"manifest_{number}" for number in (2, 3, 4, 5)),
    ]


def test_a_manifest_that_was_cut_off_does_not_stay_among_the_kept() -> None:
    """Hudi's clean reads all of them (LSMTimelineWriter.clean), and would end there."""
    storage, file = MemoryStorage(), HistoryFile(f"{LSM}/001_001_0.parquet", "001", "001", 0, 1)
    storage.write(file.path, b"x")
    publish_snapshot(storage, LSM, partial(_only, file), lambda: None)
    storage.write(f"{LSM}/manifest_2", b"cut")
    publish_snapshot(storage, LSM, partial(_only, file), lambda: None)
    assert remove_unused(storage, LSM, keep=5) == 1
    names = [info.name for info in storage.list_files(LSM)]
    assert names == ["001_001_0.parquet", "_version_", "manifest_1", "manifest_3"]
    storage.write(f"{LSM}/manifest_3", b"cut")
    with pytest.raises(CorruptFileError):
        remove_unused(storage, LSM, keep=5)
