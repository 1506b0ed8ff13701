"""An owner stalls before, or while, it lists the files of attempts that lost, for as long as its claim or its lock
lasts; its successor completes the work; then it goes on. It deletes nothing of the successor's.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hudi_core.engine.local import LocalEngine
from hudi_core.errors import ConflictError, FormatError, LockError
from hudi_core.metadata_table.initialize.indexing import IndexBuild
from hudi_core.metadata_table.initialize.initialize import MetadataCreation
from hudi_core.metadata_table.initialize.target import NewBaseFile, NewPartition
from hudi_core.metadata_table.services.compaction import MetadataCompaction
from hudi_core.metadata_table.write.lifetime import drop_metadata_table
from hudi_core.model.names import CLAIMS, WriteToken
from hudi_core.services.rewriting import job as rewrite
from hudi_core.transaction.instant_generator import InstantClock
from tests.faults.test_races_of_rewrites import PLANNED, VERSIONS, WORKS, files, finished
from tests.support.golden_data import GoldenCase
from tests.support.metadata_records import Table as MetadataTable
from tests.support.metadata_records import comparable
from tests.support.table_invariants import read_rows
from tests.support.tiers import tiered
from tests.unit.hudi_core.metadata_table.initialize.test_initialize import filters
from tests.unit.hudi_core.services.rewriting.test_other_writers_conflicts import Table

Golden = Callable[[str, str], GoldenCase]


class BadInput(LocalEngine):
    """Writes the files; then bad input shows."""

    def run(self, task: Any, units: Any, **named: Any) -> list[Any]:
        results = super().run(task, units, **named)
        if "sample" in task.__name__:
            return results
        raise FormatError("the file is damaged")

    def exchange(self, *given: Any, **named: Any) -> list[Any]:
        super().exchange(*given, **named)
        raise FormatError("the file is damaged")


ENGINES = {"losers": LocalEngine, "bad input": BadInput}


def expire(table: Path) -> None:
    """The claims that are there look like those of a process elsewhere that is silent for long."""
    for path in (table / CLAIMS).glob("*/*.json"):
        path.write_text(path.read_text().replace('"process_start": "', '"process_start": "1'))


def stalls(monkeypatch: pytest.MonkeyPatch, table: Path, meanwhile: Callable[[], object]) -> None:
    """The first removal of files."""
    remove, fired = rewrite.remove_losers, list[bool]()

    def stalled(*given: Any, **named: Any) -> dict[str, int]:
        if not fired:
            fired.append(True)
            expire(table)
            meanwhile()
        return remove(*given, **named)

    monkeypatch.setattr(rewrite, "remove_losers", stalled)


@pytest.mark.parametrize(
    ("version", "work", "removes"),
    tiered(
        [(version, work, removes) for version in VERSIONS for work in PLANNED for removes in ENGINES],
        [("6", "clustering", "losers"), ("9", "sorted clustering", "bad input"), ("8", "log compaction", "losers")],
    ),
)
def test_a_rewrite(golden: Golden, monkeypatch: pytest.MonkeyPatch, version: str, work: str, removes: str) -> None:
    """A successor runs the plan again; an overwrite would be rolled back, and get an instant of its own."""
    table = golden(version, "mor_basic").table
    rows, known, run = read_rows(table), files(table), WORKS[work].begin(table)
    stalls(monkeypatch, table, lambda: run(None, "the second"))
    with pytest.raises(ConflictError, match="was removed"):
        run(ENGINES[removes](1), "the first")
    finished(table, lambda: None, rows, known)


@pytest.mark.parametrize("removes", ENGINES)
@pytest.mark.parametrize("version", tiered(VERSIONS, ["6"]))
def test_a_compaction(golden: Golden, monkeypatch: pytest.MonkeyPatch, version: str, removes: str) -> None:
    table = Table(golden(version, "mor_compaction_requested"))
    stalls(monkeypatch, table.path, table.compact)
    with pytest.raises(ConflictError, match="was removed"):
        table.compact(engine=ENGINES[removes](1))
    table.assert_compacted()


class Lock:
    """The table lock, as its first holder sees it; `lose` lets the next one do its part."""

    def __init__(self) -> None:
        self._is_lost = False

    def check(self) -> None:
        if self._is_lost:
            raise LockError("lost")

    def lose(self, next_holder: Callable[[], object]) -> None:
        if not self._is_lost:
            self._is_lost = True
            next_holder()


FIRST, NEXT = WriteToken(0, 5, 0), WriteToken(0, 77, 0)


def clock_of(table: MetadataTable) -> InstantClock:
    return InstantClock(table.config.timezone, sleep=lambda seconds: None)


@pytest.mark.parametrize("version", tiered(VERSIONS, ["9"]))
def test_a_compaction_of_the_metadata_table(golden: Golden, monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    table, lock = MetadataTable(golden(version, "mdt_all_mor").table), Lock()
    before, rows = comparable(table.records()), read_rows(table.path)
    merge = MetadataCompaction._run

    def compaction(token: WriteToken, check: Callable[[], None] = lambda: None) -> MetadataCompaction:
        return MetadataCompaction(table.storage, table.config, token, clock_of(table), guard=check)

    def loses_the_lock(self: MetadataCompaction, units: Any) -> Any:
        results = merge(self, units)
        lock.lose(lambda: compaction(NEXT).finish())
        return results

    monkeypatch.setattr(MetadataCompaction, "_run", loses_the_lock)
    with pytest.raises(LockError):
        compaction(FIRST, lock.check).run(trigger=1)
    assert not table.metadata_timeline.load().pending_compactions()
    assert comparable(table.records()) == before
    assert read_rows(table.path, "on").equals(rows)


@pytest.mark.parametrize("version", VERSIONS)
def test_an_initialization_of_an_index(golden: Golden, version: str) -> None:
    table, lock = MetadataTable(golden(version, "cow_basic").table), Lock()
    drop_metadata_table(table.storage)

    def creation(token: WriteToken, check: Callable[[], None] = lambda: None) -> MetadataCreation:
        return MetadataCreation(table.storage, token, clock_of(table), check)

    creation(FIRST).initialize_table()
    index = filters(table, count=3)

    def loses_the_lock(target: NewPartition) -> list[NewBaseFile]:
        written = list(index.fill(target))
        lock.lose(lambda: creation(NEXT).begin(index))
        return written

    with pytest.raises(LockError):
        creation(FIRST, lock.check).begin(replace(index, fill=loses_the_lock))
    assert index.name in table.config.metadata_partitions
    assert len(table.records()[index.name]) == 20


@pytest.mark.parametrize("version", VERSIONS)
def test_a_build_of_an_index(golden: Golden, monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    table, lock = MetadataTable(golden(version, "cow_basic").table), Lock()
    drop_metadata_table(table.storage)
    MetadataCreation(table.storage, FIRST, clock_of(table)).initialize_table()
    index, instant, look = filters(table, count=3), table.new_instant(), IndexBuild._check_there

    def build(token: WriteToken, check: Callable[[], None] = lambda: None) -> None:
        made = IndexBuild(table.storage, instant, token, clock_of(table))
        begun = made.begin([index], table.data.load())
        made.publish(begun, made.fill(begun, [index]), check)

    def loses_the_lock(self: IndexBuild, *given: Any) -> None:
        look(self, *given)
        lock.lose(lambda: build(NEXT))

    monkeypatch.setattr(IndexBuild, "_check_there", loses_the_lock)
    with pytest.raises(LockError):
        build(FIRST, lock.check)
    assert index.name in table.config.metadata_partitions
    assert len(table.records()[index.name]) == 20
