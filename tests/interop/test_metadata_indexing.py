"""Indexes that we build while real Hudi's writer commits five times: nothing is missing in them, and real Hudi answers by them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from hudi_core.metadata_table.create.indexing import IndexBuild
from hudi_core.timeline.instant import Action
from tests.interop.every_kind import OURS, SECONDARY, SWITCHES, EveryKind
from tests.interop.judged import COW, JUDGES, MOR, OTHERS
from tests.interop.real_hudi import RealHudi

pytestmark = [pytest.mark.hudi, pytest.mark.slow]

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

    def __init__(self, table: EveryKind) -> None:
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
    """Indexes that are built: the partitions that are there `before`, the options that `ask` for them, what is listed in the end.

    Every commit of a writer of Hudi 1.x fails that enables partition statistics where the column statistics are not listed yet
    (HoodieTableMetadataUtil.convertMetadataToRecords), and in 1.2 one switch enables both.
    """

    before: tuple[str, ...]
    ask: Mapping[str, str]
    listed: frozenset[str]
    writer: Mapping[str, str]


def enabling(*kinds: str) -> dict[str, str]:
    """Options of a writer that has these kinds alone: one of 1.2 fails, too, where a kind that it enables is neither listed nor inflight."""
    return {name: str(any(kind in name for kind in kinds)).lower() if name.endswith("enable") else value for name, value in SWITCHES.items()}


BY_FILE = {name: value for name, value in SWITCHES.items() if name != PARTITION_STATS}
SUBJECTS = {
    "no columns": Subject(
        (),
        {name: value for name, value in BY_FILE.items() if "column" not in name},
        frozenset({"files", "bloom_filters", "record_index"}),
        enabling("bloom", "record"),
    ),
    "all": Subject((), BY_FILE, frozenset({"files", "column_stats", "bloom_filters", "record_index"}), enabling("column", "bloom", "record")),
    "secondary": Subject(
        ("record_index",),
        {"hoodie.index.name": "by_name", "hoodie.metadata.index.secondary.column": "name"},
        frozenset({"files", "record_index", SECONDARY}),
        enabling("record"),
    ),
    "partition_stats": Subject(
        ("column_stats",), {PARTITION_STATS: "true"}, frozenset({"files", "column_stats", "partition_stats"}), enabling("column", "partition")
    ),
}


def write_during_the_build(monkeypatch: pytest.MonkeyPatch, writer: Writer) -> None:
    """The writer starts when the index has begun, and the base files wait for its commits."""
    fill: Callable[..., object] = IndexBuild.fill
    started: list[bool] = []

    def filled(self: IndexBuild, *arguments: object) -> object:
        if not started:
            started.append(True)
            writer.start()
            writer.wait_for(DURING_THE_BUILD)
        return fill(self, *arguments)

    monkeypatch.setattr(IndexBuild, "fill", filled)


IN_TEST = ("9", MOR, "no columns")
"""The writer of 1.2 that streams to the metadata table, and takes back there what shows no sign of life."""
CASES = [
    *((label, kind, "no columns" if LABELS[label] == "hudi_1_2" else "all") for kind in (MOR, COW) for label in LABELS),
    *((label, kind, names) for names in ("secondary", "partition_stats") for label in ("8", "9", "8-by-1.2.0") for kind in (MOR, COW)),
]


@pytest.mark.parametrize(("label", "kind", "names"), [pytest.param(*case, marks=() if case == IN_TEST else pytest.mark.soak) for case in CASES])
def test_an_index_is_whole_though_a_writer_commits_five_times(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, label: str, kind: str, names: str
) -> None:
    hudi: RealHudi = request.getfixturevalue(LABELS[label])
    subject = SUBJECTS[names]
    table = EveryKind.without_metadata(hudi, tmp_path / "table", kind, label[0])
    table.ours("metadata_create", partitions=subject.before)
    table.options |= {**subject.writer, "hoodie.metadata.enable": "true"}
    options = {name: value for name, value in OURS.items() if name not in SWITCHES} | CONCURRENT | dict(subject.ask)
    planned = table.run("schedule", service="indexing", options=options).document
    assert planned is not None
    writer = Writer(table)
    write_during_the_build(monkeypatch, writer)
    try:
        result = table.run(service="indexing", instant=planned["instant"], options=options)
    finally:
        writer.join()
    monkeypatch.undo()
    assert [item.state for item in result.instants] == ["completed"]
    writes = {Action.COMMIT, Action.DELTA_COMMIT}
    commits = [item for item in table.instants() if item.action in writes and item.requested_time > planned["instant"]]
    assert len(commits) == COMMITS
    assert table.config.metadata_partitions == subject.listed
    assert table.config.metadata_partitions_inflight == frozenset()
    table.check()
    table.check_queries()
    if "record_index" in subject.listed:
        table.check_locations()
    if "bloom_filters" in subject.listed:
        table.check_filters()
    assert table.found() == []
