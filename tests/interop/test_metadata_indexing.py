"""Indexes that we build while real Hudi's writer commits five times: nothing is missing in them, and real Hudi answers
by them.

Nor is anything when the build was killed, the writer met what it left, and another process ran it again, or when an
index is resized.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from hudi_core.config.metadata_config import FILE_GROUPS
from hudi_core.metadata_table.initialize.indexing import IndexBuild
from hudi_core.metadata_table.instants import is_early
from hudi_core.model.names import parse_data_file
from hudi_core.services.indexing.build import group_counts
from hudi_core.storage.local import LocalStorage
from hudi_core.timeline.instant import Action
from hudi_core.transaction.owner import Owner
from tests.faults.test_indexing_faults import Case, run_act
from tests.interop.changes import after_upsert
from tests.interop.fully_indexed_table import BY_RECORD_INDEX, OURS, SECONDARY, SWITCHES, FullyIndexedTable
from tests.interop.judged import COW, JUDGES, MOR, OTHERS
from tests.interop.real_hudi import RealHudi, RealHudiError
from tests.support.changed_tables import open_context
from tests.support.fault_storage import MUTATIONS, FaultPlan, InjectedCrash
from tests.support.metadata_records import Table
from tests.support.service_calls import dead_process, one_of_each_class

pytestmark = [pytest.mark.hudi, pytest.mark.slow, pytest.mark.conformance]

LABELS = {**JUDGES, **OTHERS}
COMMITS = 5
DURING_THE_BUILD = 3
"""Commits that complete before the base files are; the others race with what comes after."""
CONCURRENT = {
    "hoodie.write.concurrency.mode": "optimistic_concurrency_control",
    "hoodie.cleaner.policy.failed.writes": "LAZY",
    "hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider",
    "hoodie.write.lock.wait_time_ms": "60000",
    "hoodie.metadata.index.async": "true",
}
"""As Hudi's documentation has it for a writer beside an indexer."""
PATIENCE = 300.0


class Writer:
    """Real Hudi upserts `COMMITS` times in a thread of its own."""

    def __init__(self, table: FullyIndexedTable) -> None:
        self._table = table
        self._thread = threading.Thread(target=self._write)
        self.committed = 0
        self.failures: list[BaseException] = []

    def start(self) -> None:
        """Begins to write."""
        self._thread.start()

    def _write(self) -> None:
        try:
            for number in range(COMMITS):
                self._table.upsert(4, fresh=number % 2 == 0, options=CONCURRENT)
                self.committed += 1
        except BaseException as error:  # noqa: BLE001 (raised by the test)
            self.failures.append(error)

    def wait_for(self, commits: int) -> None:
        """Returns when so many writes have returned."""
        deadline = time.monotonic() + PATIENCE
        while self.committed < commits and not self.failures:
            assert time.monotonic() < deadline
            time.sleep(0.05)

    def join(self) -> None:
        """Waits for the last write, if there was a first; raises what failed."""
        if self._thread.ident is None:
            return
        self._thread.join(PATIENCE)
        if self.failures:
            raise self.failures[0]
        assert self.committed == COMMITS


PARTITION_STATS = "hoodie.metadata.index.partition.stats.enable"


@dataclass(frozen=True)
class Subject:
    """Indexes that are built: the partitions that are there `before`, the options that `ask` for them, what is listed
    in the end.

    Every commit of a writer of Hudi 1.x fails that enables partition statistics where the column statistics are not
    listed yet (HoodieTableMetadataUtil.convertMetadataToRecords), and in 1.2 one switch enables both.
    """

    before: tuple[str, ...]
    ask: Mapping[str, str]
    listed: frozenset[str]
    writer: Mapping[str, str]


def enabling(*kinds: str) -> dict[str, str]:
    """Options of a writer that has these kinds alone: one of 1.2 fails, too, where a kind that it enables is neither
    listed nor inflight.
    """
    return {
        name: str(any(kind in name for kind in kinds)).lower() if name.endswith("enable") else value
        for name, value in SWITCHES.items()
    }


BY_FILE = {name: value for name, value in SWITCHES.items() if name != PARTITION_STATS}
SUBJECTS = {
    "no columns": Subject(
        (),
        {name: value for name, value in BY_FILE.items() if "column" not in name},
        frozenset({"files", "bloom_filters", "record_index"}),
        enabling("bloom", "record"),
    ),
    "all": Subject(
        (),
        BY_FILE,
        frozenset({"files", "column_stats", "bloom_filters", "record_index"}),
        enabling("column", "bloom", "record"),
    ),
    "secondary": Subject(
        ("record_index",),
        {"hoodie.index.name": "by_name", "hoodie.metadata.index.secondary.column": "name"},
        frozenset({"files", "record_index", SECONDARY}),
        enabling("record"),
    ),
    "partition_stats": Subject(
        ("column_stats",),
        {PARTITION_STATS: "true"},
        frozenset({"files", "column_stats", "partition_stats"}),
        enabling("column", "partition"),
    ),
}


def write_during_the_build(monkeypatch: pytest.MonkeyPatch, writer: Writer) -> None:
    """The writer starts when the indexing has started, and the base files wait for its commits."""
    fill: Callable[..., object] = IndexBuild.fill
    started: list[bool] = []

    def filled(self: IndexBuild, *arguments: object) -> object:
        if not started:
            started.append(True)
            writer.start()
            writer.wait_for(DURING_THE_BUILD)
        return fill(self, *arguments)

    monkeypatch.setattr(IndexBuild, "fill", filled)


CASES = [
    *((label, kind, "no columns" if LABELS[label] == "hudi_1_2" else "all") for kind in (MOR, COW) for label in LABELS),
    *(
        (label, kind, names)
        for names in ("secondary", "partition_stats")
        for label in ("8", "9", "8-by-1.2.0")
        for kind in (MOR, COW)
    ),
]


@pytest.mark.parametrize(("label", "kind", "names"), CASES)
def test_an_index_is_whole_though_a_writer_commits_five_times(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, label: str, kind: str, names: str
) -> None:
    hudi: RealHudi = request.getfixturevalue(LABELS[label])
    subject = SUBJECTS[names]
    table = FullyIndexedTable.without_metadata(hudi, tmp_path / "table", kind, label[0])
    table.ours("metadata_create", partitions=subject.before)
    table.options |= {**subject.writer, "hoodie.metadata.enable": "true"}
    options = {name: value for name, value in OURS.items() if name not in SWITCHES} | CONCURRENT | dict(subject.ask)
    planned = table.run("schedule", service="indexing", options=options).document
    assert planned is not None
    before = {item.requested_time for item in table.instants()}
    writer = Writer(table)
    write_during_the_build(monkeypatch, writer)
    try:
        result = table.run(service="indexing", instant=planned["instant"], options=options)
    finally:
        writer.join()
    monkeypatch.undo()
    assert [item.state for item in result.instants] == ["completed"]
    writes = {Action.COMMIT, Action.DELTA_COMMIT}
    commits = [item for item in table.instants() if item.action in writes and item.requested_time not in before]
    assert len(commits) == COMMITS
    assert_whole(table, subject)
    if label[0] == "6":
        assert_compacts(table)
        assert_whole(table, subject)


def assert_compacts(table: FullyIndexedTable) -> None:
    """The writer's next metadata compaction merges the file groups, which began under an instant that is not on the
    timeline.
    """
    metadata_timeline = Table(table.base).metadata_timeline
    before = metadata_timeline.load().completed().of_actions(Action.COMMIT).requested_times
    table.upsert(4, options={**CONCURRENT, "hoodie.metadata.compact.max.delta.commits": "1"})
    (compaction,) = metadata_timeline.load().completed().of_actions(Action.COMMIT).requested_times - before
    metadata = metadata_timeline.read_commit(metadata_timeline.load().get(compaction, Action.COMMIT))
    assert table.config.metadata_partitions <= metadata.partition_to_write_stats.keys()


def assert_whole(table: FullyIndexedTable, subject: Subject) -> None:
    """Every index is listed, true, and what real Hudi answers by."""
    assert table.config.metadata_partitions == subject.listed
    assert table.config.metadata_partitions_inflight == frozenset()
    table.check()
    table.check_queries()
    if "record_index" in subject.listed:
        table.check_locations()
    if "bloom_filters" in subject.listed:
        table.check_filters()
    assert table.found() == []


SOON_DEAD = {"hoodie.client.heartbeat.interval_in_ms": "1000", "hoodie.client.heartbeat.tolerable.misses": "1"}
"""Who shows no sign of life for that long is dead to us; real Hudi's writer itself, on a busy machine, would be with
such options.
"""
LONG_AGO = 600.0
"""Seconds by which heartbeats in the metadata table are made older than real Hudi waits for them: it has no option for
that.
"""
KILLS = 8
RESIZED = 3
"""File groups."""


@pytest.mark.parametrize("label", JUDGES)
def test_a_build_that_died_is_run_again_whatever_a_writer_did_meanwhile(
    request: pytest.FixtureRequest, tmp_path: Path, label: str
) -> None:
    """From version 8 on the writer may roll the metadata table's own instant back, and may fail while the index is
    listed as inflight; it goes on afterwards.
    """
    hudi: RealHudi = request.getfixturevalue(LABELS[label])
    subject = SUBJECTS["no columns" if label == "9" else "all"]
    source = FullyIndexedTable.without_metadata(hudi, tmp_path / "table", MOR, label[0])
    source.ours("metadata_create", partitions=subject.before)
    source.options |= {**subject.writer, **CONCURRENT, "hoodie.metadata.enable": "true"}
    options = {name: value for name, value in OURS.items() if name not in SWITCHES} | CONCURRENT | dict(subject.ask)
    planned = source.run("schedule", service="indexing", options=options).document
    assert planned is not None
    case = Case(source.base, run_act(planned["instant"], options))
    counted = FaultPlan(counts=MUTATIONS)
    case.do(case.copy(tmp_path / "undisturbed"), Owner.current("the tests"), counted)
    points = one_of_each_class(counted.mutations())
    assert len(points) > KILLS, points
    met: dict[str, str] = {}
    for turn, (name, number) in enumerate(list(points.items())[:: len(points) // KILLS]):
        table = source.copy(tmp_path / f"killed-{number}")
        with pytest.raises(InjectedCrash):
            case.do(table.base, dead_process(), FaultPlan(kill_at=number, timing="after", counts=MUTATIONS))
        with open_context(table.base, options).lock(Owner.current("the next process")):
            # The dead process may have left the lock, for which real Hudi's file system lock waits without an end.
            pass
        if turn % 2:
            age_heartbeats(table)
        met[f"{number} {name}"] = what_a_writer_meets(table)
        table.run(service="indexing", instant=planned["instant"], options={**options, **SOON_DEAD})
        table.upsert(4)
        assert_whole(table, subject)
    committed = [outcome == "committed" for outcome in met.values()]
    assert all(committed) if label[0] == "6" else any(committed), met


def age_heartbeats(table: FullyIndexedTable) -> None:
    """The writers of the metadata table have been dead for long."""
    then = time.time() - LONG_AGO
    for heartbeat in (table.base / ".hoodie" / "metadata" / ".hoodie" / ".heartbeat").glob("*"):
        os.utime(heartbeat, (then, then))


def what_a_writer_meets(table: FullyIndexedTable) -> str:
    """An upsert of real Hudi commits, and its rows are there, or it fails, and they are not."""
    rows = table.next_rows(4)
    before = table.times()
    try:
        table.write(rows)
    except RealHudiError as error:
        assert table.times() == before
        return str(error)
    table.rows = after_upsert(table.rows, rows)
    return "committed"


@pytest.mark.parametrize("label", LABELS)
def test_real_hudi_goes_on_by_resized_indexes(request: pytest.FixtureRequest, tmp_path: Path, label: str) -> None:
    """With another number of file groups than its options would give: it answers, tags and updates by them, and
    rebuilds none.

    1.0.2, too, answers by those of a table of version 6 that 1.2.0 keeps.
    """
    table = FullyIndexedTable.without_metadata(
        request.getfixturevalue(LABELS[label]), tmp_path / "table", MOR, label[0]
    )
    table.begin()
    storage = LocalStorage(table.base)
    indexes = [
        {"hoodie.metadata.record.index.enable": "true"},
        {"hoodie.index.name": "by_name", "hoodie.metadata.index.secondary.column": "name"},
    ]
    for name, options in zip(("record_index", SECONDARY), indexes, strict=True):
        if name in table.config.metadata_partitions:
            assert sum(group_counts(storage, name).values()) != RESIZED
            table.index({**options, FILE_GROUPS.name: str(RESIZED)})
            assert sum(group_counts(storage, name).values()) == RESIZED
    table.judge()
    table.go_on()
    table.judge()
    for name in table.config.metadata_partitions & {"record_index", SECONDARY}:
        assert sum(group_counts(storage, name).values()) == RESIZED
    if label == "6-by-1.2.0":
        other = table.copy(tmp_path / "other")
        other.hudi = request.getfixturevalue(JUDGES["8"])
        for ask in (
            other.check_queries,
            other.check_locations,
            other.check_filters,
            other.check,
        ):  # the last loses the definitions
            ask()


MANY = 40
"""File groups, of which some stay empty."""


@pytest.mark.parametrize("label", ["6", "6-by-1.2.0"])
def test_an_index_of_version_6_outlives_an_upgrade(request: pytest.FixtureRequest, tmp_path: Path, label: str) -> None:
    """1.2.0 takes the table to version 9, and begins another index by itself: under an instant that ours must stay
    before.
    """
    table = FullyIndexedTable.without_metadata(request.getfixturevalue(LABELS[label]), tmp_path / "table", MOR, "6")
    table.ours("metadata_create")
    table.index({"hoodie.metadata.record.index.enable": "true", FILE_GROUPS.name: str(MANY)})
    table.hudi = request.getfixturevalue(JUDGES["9"])
    upgrade = {
        "hoodie.write.auto.upgrade": "true",
        "hoodie.write.table.version": "9",
        "hoodie.embed.timeline.server": "true",
    }
    table.options |= {**enabling("record", "column", "partition"), **upgrade, "hoodie.metadata.enable": "true"}
    table.upsert(4)
    assert table.version == "9"
    assert {"column_stats", "record_index"} <= table.config.metadata_partitions
    table.upsert(4, options=BY_RECORD_INDEX)
    storage = LocalStorage(table.base)
    assert sum(group_counts(storage, "record_index").values()) == MANY
    started = [
        item.instant
        for info in storage.list_files(".hoodie/metadata/record_index")
        if (item := parse_data_file(info.name)) is not None
    ]
    assert any(map(is_early, started)), "what was compacted since would prove nothing"
    table.check()
    table.check_locations()
    assert table.found() == []
