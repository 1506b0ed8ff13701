"""The metadata table's rollback and publication, byte by byte against what real Hudi 0.15 left of the same steps."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hudi_core.codec.log.blocks import BlockType, HeaderKey, encode_block
from hudi_core.config.table_config import TableConfig
from hudi_core.errors import ConflictError, CorruptFileError
from hudi_core.metadata_table.extract.data_file import StatisticsRequirements
from hudi_core.metadata_table.read.file_group import FOLDER, ROOT, LatestSlice, blocks_of, latest_slices, metadata_path
from hudi_core.metadata_table.write.publish import MetadataPublisher
from hudi_core.metadata_table.write.rollback import MetadataRollback
from hudi_core.model.names import FileGroupId, WriteToken
from hudi_core.storage.local import LocalStorage
from hudi_core.timeline.actions.commit import CommitMetadata, decode_commit
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.timeline.instant import Action, State
from tests.support.fault_storage import FaultPlan, FaultStorage
from tests.support.golden_data import GoldenCase

Golden = Callable[[str, str], GoldenCase]

FAILED, ROLLBACK = "20261120222902673", "20261120222904540"
METADATA_ROLLBACK = f"{ROLLBACK}006"
REAL_TOKEN = WriteToken(0, 5934, 8485)


class FailedTable:
    """A table's storage, properties and metadata timeline."""

    def __init__(self, table: Path) -> None:
        self.table = table
        self.storage = LocalStorage(table)
        self.config = TableConfig.load(self.storage)
        self.active = ActiveTimeline(self.storage, self.config, ROOT)
        self.rollback = MetadataRollback(self.storage, self.config, WriteToken(0, 0, 0))

    def names(self) -> set[str]:
        return set(self.active.names()) | {info.name for info in self.storage.list_files(FOLDER)}

    def writer(self, token: WriteToken = REAL_TOKEN) -> MetadataPublisher:
        return MetadataPublisher(self.storage, self.config, token)

    def place(self, pending: str = "") -> LatestSlice:
        """The latest slice of `files`; `pending` is a pending compaction of it."""
        timeline, group = self.active.load(), FileGroupId("files", "files-0000-0")
        (found,) = latest_slices(self.storage, timeline, "files", layout=1, pending={group: pending})
        return found

    def blocks(self, instant: str = FAILED) -> tuple[list[str], list[str]]:
        found = blocks_of(self.storage, self.place().logs, instant)
        return [info.name for info in found.live], [instant for _, instant in found.commands]


@pytest.fixture
def failed(golden: Golden) -> tuple[FailedTable, FailedTable]:
    """A table whose compaction died after it had written the metadata table, and the same after real Hudi rolled it
    back and re-ran it.
    """
    case = golden("6", "compaction_inflight")
    return FailedTable(case.table), FailedTable(case.after())


def commit_of(table: FailedTable) -> CommitMetadata:
    path = table.table / ".hoodie" / f"{FAILED}.commit"
    return decode_commit(path.read_bytes(), path=str(path))


def plain(table: FailedTable, instant: str, action: str, state: State) -> dict[str, Any]:
    """A timeline file with addresses cut to the file name and without durations."""

    def cut(value: Any) -> Any:
        if isinstance(value, dict):
            return {
                cut(key): cut(item)
                for key, item in value.items()
                if key not in ("timeTakenInMillis", "totalUpsertTime")
            }
        if isinstance(value, list):
            return [cut(item) for item in value]
        return value.rpartition("/.hoodie/")[2] if isinstance(value, str) and "/.hoodie/" in value else value

    result: dict[str, Any] = cut(table.active.read_any(instant, action, state))
    return result


def test_rollback_and_publication_leave_what_real_hudi_leaves(failed: tuple[FailedTable, FailedTable]) -> None:
    ours, real = failed
    ours.rollback.run(FAILED, ROLLBACK)
    ours.writer().publish_commit(FAILED, commit_of(real), [], StatisticsRequirements({"fields": []}))
    assert ours.names() == real.names()
    for state in State:
        assert ours.active.path(METADATA_ROLLBACK, Action.ROLLBACK, state)
    for state in (State.REQUESTED, State.COMPLETED):
        assert plain(ours, METADATA_ROLLBACK, Action.ROLLBACK, state) == plain(
            real, METADATA_ROLLBACK, Action.ROLLBACK, state
        )
    command = f"{FOLDER}/.files-0000-0_00000000000000010.log.6_1-0-1"
    assert sorted(ours.storage.read(command)) == sorted(real.storage.read(command)), (
        "only the order of the header entries may differ"
    )
    empty = plain(real, ROLLBACK, Action.DELTA_COMMIT, State.COMPLETED)
    assert plain(ours, ROLLBACK, Action.DELTA_COMMIT, State.COMPLETED) == empty
    assert plain(ours, ROLLBACK, Action.DELTA_COMMIT, State.INFLIGHT) == plain(
        real, ROLLBACK, Action.DELTA_COMMIT, State.INFLIGHT
    )


def test_the_deltacommits_stats_are_those_of_real_hudi(failed: tuple[FailedTable, FailedTable]) -> None:
    ours, real = failed
    ours.rollback.run(FAILED, ROLLBACK)
    ours.writer().publish_commit(FAILED, commit_of(real), [], StatisticsRequirements({"fields": []}))
    mine, theirs = (plain(table, FAILED, Action.DELTA_COMMIT, State.COMPLETED) for table in failed)
    for metadata in (mine, theirs):
        stat = metadata["partitionToWriteStats"]["files"][0]
        stat["fileSizeInBytes"] = stat["totalWriteBytes"] = 0  # the schema in our block has no doc texts
    assert mine == theirs
    profile, real_profile = (
        plain(table, FAILED, Action.DELTA_COMMIT, State.INFLIGHT)["partitionToWriteStats"]["files"] for table in failed
    )
    assert profile == [stat for stat in real_profile if stat["fileId"]], "which real Hudi's rollback uses"


def test_a_missing_instant_gets_the_empty_deltacommit_only(failed: tuple[FailedTable, FailedTable]) -> None:
    ours, _ = failed
    before = ours.names()
    ours.rollback.run("20261120222902999", ROLLBACK)
    added = ours.names() - before
    assert added == {f"{ROLLBACK}.deltacommit{suffix}" for suffix in ("", ".inflight", ".requested")}


def test_a_damaged_log_file_stops_the_rollback(failed: tuple[FailedTable, FailedTable]) -> None:
    ours, _ = failed
    path = next(info.path for info in ours.storage.list_files(FOLDER) if ".log.3_" in info.name)
    ours.storage.write(path, ours.storage.read(path)[:-9])
    with pytest.raises(CorruptFileError, match="damaged block"):
        ours.rollback.footprint(FAILED)


def test_a_late_block_of_a_dead_writer_stops_the_publication(failed: tuple[FailedTable, FailedTable]) -> None:
    """It is written between our look at the slice and our log file."""
    ours, real = failed
    ours.rollback.run(FAILED, ROLLBACK)
    late = metadata_path(ours.place().next_log(WriteToken(0, 9, 9)), "files")

    def fire() -> None:
        ours.storage.write(late, encode_block(BlockType.HFILE_DATA, {HeaderKey.INSTANT_TIME: FAILED}, b""))

    storage = _Late(ours.storage, fire)
    with pytest.raises(ConflictError, match="appeared"):
        MetadataPublisher(storage, ours.config, REAL_TOKEN).publish_commit(
            FAILED, commit_of(real), [], StatisticsRequirements({"fields": []})
        )
    assert ours.active.load().get(FAILED, Action.DELTA_COMMIT).state is State.INFLIGHT


class _Late(FaultStorage):
    """Lets something happen right before the metadata table's log file is created."""

    def __init__(self, inner: LocalStorage, fire: Callable[[], None]) -> None:
        super().__init__(inner, FaultPlan())
        self._fire = fire

    def create_exclusive(self, path: str, data: bytes) -> None:
        if path.startswith(FOLDER):
            self._fire()
        super().create_exclusive(path, data)


def test_new_logs_join_the_slice_of_a_pending_compaction(failed: tuple[FailedTable, FailedTable]) -> None:
    _, real = failed
    compaction = f"{FAILED}001"
    real.active.create_requested(compaction, Action.COMPACTION, b"")
    place = real.place(pending=compaction)
    assert place.base_instant == compaction
    assert str(place.next_log(WriteToken(0, 1, 0))) == f".files-0000-0_{compaction}.log.1_0-1-0"
    assert place.base_file is not None
    assert len(place.logs) == 7


def test_a_command_awaits_the_block_of_an_inflight_deltacommit(failed: tuple[FailedTable, FailedTable]) -> None:
    """Its writer chose the next version when it started: the command comes one further on."""
    ours, _ = failed
    (block,), _ = ours.blocks()
    ours.storage.delete(f"{FOLDER}/{block}")
    ours.active.remove(FAILED, Action.DELTA_COMMIT, State.COMPLETED)
    awaited = ours.place().next_log(WriteToken(0, 9, 9))
    ours.rollback.run(FAILED, ROLLBACK)
    commands = [info.name for info in ours.storage.list_files(FOLDER) if info.name.endswith("_1-0-1")]
    assert [int(name.partition(".log.")[2].partition("_")[0]) for name in commands] == [awaited.version + 1]
    ours.storage.write(
        metadata_path(awaited, "files"), encode_block(BlockType.HFILE_DATA, {HeaderKey.INSTANT_TIME: FAILED}, b"")
    )
    assert ours.blocks() == ([], [METADATA_ROLLBACK])
