"""A metadata table that begins, and one that is compacted, killed before each change of the storage in turn and run
again.

Whatever is listed is whole, and no reader uses the rest; the next run makes all of it good.
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from hudi_core.metadata_table.initialize.initialize import MetadataCreation
from hudi_core.metadata_table.read.file_group import ROOT
from hudi_core.metadata_table.services.compaction import MetadataCompaction
from hudi_core.metadata_table.write.lifetime import drop_metadata_table, is_drop_unfinished
from hudi_core.storage.base import Storage
from hudi_core.storage.local import LocalStorage
from hudi_core.transaction.instant_generator import InstantClock
from tests.support.fault_storage import MUTATIONS, FaultPlan, FaultStorage, InjectedCrash
from tests.support.golden_data import GoldenCase
from tests.support.metadata_records import TOKEN, Table
from tests.support.tiers import tiered
from tests.unit.hudi_core.metadata_table.initialize.test_initialize import creation, filters, listing_of
from tests.unit.hudi_core.metadata_table.services.test_compaction import compaction, held

Golden = Callable[[str, str], GoldenCase]
VERSIONS = ("6", "8", "9")


def killed_at(number: int, table: Table, act: Callable[[Storage], object]) -> bool:
    """Whether there was such a change: the act died before it."""
    plan = FaultPlan(kill_at=number, counts=MUTATIONS)
    with contextlib.suppress(InjectedCrash):
        act(FaultStorage(table.storage, plan))
    return plan.crashed


def copies(source: Path, target: Path) -> Callable[[int], Table]:
    def copy(number: int) -> Table:
        return Table(shutil.copytree(source, target / str(number)))

    return copy


def clock(table: Table) -> InstantClock:
    return InstantClock(table.config.timezone, sleep=lambda seconds: None)


@pytest.mark.parametrize("version", tiered(VERSIONS, ["9"]))
def test_initializing_a_metadata_table(golden: Golden, version: str, tmp_path: Path) -> None:
    source = Table(golden(version, "cow_basic").table)
    expected = listing_of(source)
    drop_metadata_table(source.storage)
    copy = copies(source.path, tmp_path)
    number = VERSIONS.index(version)
    while True:
        table = copy(number)

        def begin(storage: Storage, table: Table = table) -> None:
            MetadataCreation(storage, TOKEN, clock(table)).initialize_table()
            filling = filters(Table(table.path), count=2)
            MetadataCreation(storage, TOKEN, clock(table)).begin(filling)

        crashed = killed_at(number, table, begin)
        check_listed(table, expected)
        begin(LocalStorage(table.path))
        assert table.config.metadata_partitions == {"files", "bloom_filters"}
        check_listed(table, expected)
        assert not table.metadata_timeline.load().pending().instants
        shutil.rmtree(table.path)
        if not crashed:
            break
        number += len(VERSIONS)
    assert number > 20


def check_listed(table: Table, expected: dict[str, dict[str, int]]) -> None:
    """What the properties list is whole."""
    listed = table.config.metadata_partitions
    if "files" in listed:
        assert listing_of(table) == expected
    if "bloom_filters" in listed:
        assert len(table.records()["bloom_filters"]) == 20


@pytest.mark.parametrize("version", ["6", "9"])
def test_dropping_what_a_dead_attempt_began(golden: Golden, version: str, tmp_path: Path) -> None:
    """Before it is listed, the drop takes away what there is of it, in every state."""
    source = Table(golden(version, "cow_basic").table)
    drop_metadata_table(source.storage)
    copy = copies(source.path, tmp_path)
    number = 0
    while killed_at(number, table := copy(number), lambda storage: creation(table, storage).initialize_table()):
        drop_metadata_table(table.storage)
        assert not (table.path / ROOT).exists()
        assert not is_drop_unfinished(table.storage, table.config)
        shutil.rmtree(table.path)
        number += 1
    assert number > 8


@pytest.mark.parametrize("version", VERSIONS)
def test_compacting(golden: Golden, version: str, tmp_path: Path) -> None:
    source = Table(golden(version, "mor_basic").table)
    expected = held(source)
    copy = copies(source.path, tmp_path)
    number = VERSIONS.index(version)
    while True:
        table = copy(number)
        crashed = killed_at(
            number,
            table,
            lambda storage, table=table: MetadataCompaction(storage, table.config, TOKEN, clock(table)).run(trigger=1),  # type: ignore[misc]
        )
        assert held(table) == expected, number
        compaction(table).run(trigger=1)
        assert held(table) == expected, number
        timeline = table.metadata_timeline.load()
        assert not timeline.pending().instants
        (done,) = timeline.completed().of_actions("commit").instants[-1:]
        stats = list(table.metadata_timeline.read_commit(done).write_stats())
        names = {
            path.relative_to(table.path / ROOT).as_posix()
            for path in (table.path / ROOT).glob(f"*/*_{done.requested_time}.hfile")
        }
        assert names == {stat.path for stat in stats}, "nothing of a dead attempt counts"
        shutil.rmtree(table.path)
        if not crashed:
            break
        number += len(VERSIONS)
    assert number > 8
