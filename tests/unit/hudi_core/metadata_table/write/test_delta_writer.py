"""Deltacommits of the metadata table: written once by repeated attempts, or by one attempt alone; deletions of
keys.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hudi_core.errors import ConflictError
from hudi_core.metadata_table.indexed_table import load_index_definitions
from hudi_core.metadata_table.keys import secondary_hashed_part
from hudi_core.metadata_table.read.file_group import ROOT
from hudi_core.metadata_table.read.row_level import SecondaryIndexRules
from hudi_core.metadata_table.read.snapshot import MetadataTableSnapshot
from hudi_core.metadata_table.record import RecordType, files_datum
from hudi_core.metadata_table.records.file_statistics import Record
from hudi_core.metadata_table.records.files import commit_records
from hudi_core.metadata_table.timeline import MetadataTimeline
from hudi_core.metadata_table.write.delta_writer import DeltaWriter
from hudi_core.model.names import WriteToken
from hudi_core.storage.base import Storage
from hudi_core.storage.local import LocalStorage
from hudi_core.timeline.actions.write_stats import WriteStat
from hudi_core.timeline.instant import Action
from hudi_core.transaction.instant_generator import InstantClock
from tests.support.fault_storage import FaultPlan, FaultStorage
from tests.support.golden_data import GoldenCase
from tests.support.metadata_cells import secondary_key
from tests.support.metadata_records import Table
from tests.support.tiers import tiered

Golden = Callable[[str, str], GoldenCase]
PARTITION = "2024-01-01"


def writer(table: Table, epoch: int, storage: Storage | None = None) -> DeltaWriter:
    mine = storage or table.storage
    return DeltaWriter(
        MetadataTimeline(mine, table.config, InstantClock("UTC", sleep=lambda seconds: None)),
        WriteToken(0, epoch, 0),
    )


def of_file(name: str) -> dict[str, list[Record]]:
    stat = WriteStat("f", f"{PARTITION}/{name}", PARTITION, "null", 1, 0, 0, 1, 10, 10)
    return {"files": [(record.key, files_datum(record)) for record in commit_records({PARTITION: (stat,)})]}


def logs_of(table: Table, instant: str) -> list[str]:
    return sorted(path.name for path in (table.path / ROOT / "files").glob(f".*_{instant}.log.*"))


@pytest.mark.parametrize("version", ["8", "9"])
def test_two_attempts_cannot_both_leave_a_log_file(golden: Golden, version: str) -> None:
    """The name is the same for all of them: the late one finds it used."""
    table = Table(golden(version, "mor_basic").table)
    instant = table.new_instant()

    def succeed() -> None:
        table.metadata_timeline.delete_instant(instant, Action.DELTA_COMMIT)
        writer(table, 2).write_alone(instant, of_file("b_0-2-0_1.parquet"))

    with pytest.raises(ConflictError, match="another attempt"):
        writer(table, 1, _Before(table.storage, succeed)).write_alone(instant, of_file("a_0-1-0_1.parquet"))
    assert len(logs_of(table, instant)) == 1
    with pytest.raises(ConflictError, match="deltacommit"):
        writer(table, 3).write_alone(instant, of_file("c_0-3-0_1.parquet"))


class _Before(FaultStorage):
    """Lets something happen once, right before the metadata table's log file is created."""

    def __init__(self, inner: LocalStorage, fire: Callable[[], None]) -> None:
        super().__init__(inner, FaultPlan())
        self._fire: list[Callable[[], None]] = [fire]

    def create_exclusive(self, path: str, data: bytes) -> None:
        if path.startswith(f"{ROOT}/files/") and self._fire:
            self._fire.pop()()
        super().create_exclusive(path, data)


@pytest.mark.parametrize("version", ["8", "9"])
def test_an_answer_that_was_lost_is_no_conflict(golden: Golden, version: str) -> None:
    """The very bytes that we meant to write are there."""
    table = Table(golden(version, "mor_basic").table)
    instant = table.new_instant()
    twice = _Twice(table.storage)
    writer(table, 1, twice).write_alone(instant, of_file("a_0-1-0_1.parquet"))
    assert twice.done == logs_of(table, instant) != []
    assert table.metadata_timeline.load().get(instant, Action.DELTA_COMMIT).is_completed


class _Twice(FaultStorage):
    """Every log file of the metadata table is there when it is created."""

    def __init__(self, inner: LocalStorage) -> None:
        super().__init__(inner, FaultPlan())
        self.done: list[str] = []

    def create_exclusive(self, path: str, data: bytes) -> None:
        if path.startswith(f"{ROOT}/files/"):
            super().create_exclusive(path, data)
            self.done.append(path.rpartition("/")[2])
        super().create_exclusive(path, data)


@pytest.mark.parametrize("version", tiered(["6", "8", "9"], ["6", "9"]))
def test_deleted_keys(golden: Golden, version: str) -> None:
    """As real Hudi deletes them from a record index: in a delete block behind the records."""
    table = Table(golden(version, "mdt_all_mor").table)
    before = table.live()["record_index"]
    gone, *_ = before
    instant = table.new_instant()
    table.data.create_requested(instant, Action.DELTA_COMMIT)
    table.data.to_inflight(instant, Action.DELTA_COMMIT)
    writer(table, 1).write_alone(instant, {"record_index": [(gone, None)]})
    assert table.live()["record_index"] == before, "the instant is not completed"
    table.data.complete(instant, Action.DELTA_COMMIT, b"{}", table.later(instant))
    assert table.live()["record_index"] == {key: place for key, place in before.items() if key != gone}
    commit = table.metadata_timeline.read_commit(table.metadata_timeline.load().get(instant, Action.DELTA_COMMIT))
    (stat,) = commit.write_stats()
    assert (stat.num_writes, stat.num_deletes) == (0, 1)


@pytest.mark.parametrize("version", ["8", "9"])
def test_pairs_of_a_secondary_index_go_to_the_group_of_their_value(golden: Golden, version: str) -> None:
    """Index version 2 hashes the value alone, version 1 the whole key: a record and its deletion go to the same file
    group.
    """
    table = Table(golden(version, "mdt_all_mor").table)
    name = "secondary_index_idx_name"
    definition = load_index_definitions(table.storage, table.config)[name]
    keys = [secondary_key("a value", f"key-{number}") for number in range(40)]
    datum = {"type": int(RecordType.SECONDARY_INDEX), "SecondaryIndexMetadata": {"isDeleted": False}}
    for records in ([(key, datum) for key in keys], [(key, None) for key in keys]):
        instant = table.new_instant()
        table.data.create_requested(instant, Action.DELTA_COMMIT)
        table.data.to_inflight(instant, Action.DELTA_COMMIT)
        writer(table, 1).write(instant, {name: records})
        table.data.complete(instant, Action.DELTA_COMMIT, b"{}", table.later(instant))
        stats = list(
            table.metadata_timeline.read_commit(
                table.metadata_timeline.load().get(instant, Action.DELTA_COMMIT)
            ).write_stats()
        )
        assert (len(stats) == 1) is (definition.version > 1)
        metadata_snapshot = MetadataTableSnapshot(table.storage, table.config, table.data.load())
        hashed = secondary_hashed_part if definition.version > 1 else str
        found = metadata_snapshot.partition(name, SecondaryIndexRules(), hashed).lookup(keys)
        assert {key for key, current in found.items() if current} == ({*keys} if records[0][1] is not None else set())
    assert definition.version == (2 if version == "9" else 1)
