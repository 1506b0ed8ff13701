"""Indexes that we build while real Hudi's writer commits five times: nothing is missing in them, and real Hudi answers by them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
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
        """Waits for the last write; raises what failed."""
        self._thread.join(PATIENCE)
        if self.failures:
            raise self.failures[0]
        assert self.committed == COMMITS


def indexes_of(label: str, names: str) -> Mapping[str, str]:
    """The options of an indexing action."""
    if names == "secondary":
        return {"hoodie.index.name": "by_name", "hoodie.metadata.index.secondary.column": "name"}
    return {name: value for name, value in SWITCHES.items() if label[0] != "6" or "partition.stats" not in name}


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


CASES = [("6", MOR, "all"), ("8", MOR, "all"), ("9", MOR, "all")]
MORE = [
    *((label, COW, "all") for label in LABELS),
    *((label, MOR, "all") for label in OTHERS),
    *((label, kind, "secondary") for label in ("8", "9", "8-by-1.2.0") for kind in (MOR, COW)),
]


@pytest.mark.parametrize(("label", "kind", "names"), [*CASES, *(pytest.param(*case, marks=pytest.mark.soak) for case in MORE)])
def test_an_index_is_whole_though_a_writer_commits_five_times(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, label: str, kind: str, names: str
) -> None:
    hudi: RealHudi = request.getfixturevalue(LABELS[label])
    table = EveryKind.without_metadata(hudi, tmp_path / "table", kind, label[0])
    table.ours("metadata_create", partitions=() if names == "all" else ("record_index",))
    asked = indexes_of(label, names)
    switches = {name: "false" for name in SWITCHES if name.endswith("enable")} | SWITCHES
    table.options |= {**switches, "hoodie.metadata.enable": "true"}
    options = {name: value for name, value in OURS.items() if name not in SWITCHES} | CONCURRENT | dict(asked)
    planned = table.run("schedule", service="indexing", options=options).document
    assert planned is not None
    writer = Writer(table)
    write_during_the_build(monkeypatch, writer)
    result = table.run(service="indexing", instant=planned["instant"], options=options)
    writer.join()
    monkeypatch.undo()
    assert [item.state for item in result.instants] == ["completed"]
    writes = {Action.COMMIT, Action.DELTA_COMMIT}
    commits = [item for item in table.instants() if item.action in writes and item.requested_time > planned["instant"]]
    assert len(commits) == COMMITS
    listed = table.config.metadata_partitions
    assert listed == ({"files", "record_index", SECONDARY} if names == "secondary" else {*listed_by(label), "files"})
    assert table.config.metadata_partitions_inflight == frozenset()
    table.check()
    table.check_queries()
    table.check_locations()
    if names == "all":
        table.check_filters()
    assert table.found() == []


def listed_by(label: str) -> set[str]:
    """The partitions that an action with every switch makes."""
    return {"column_stats", "bloom_filters", "record_index"} | (set() if label[0] == "6" else {"partition_stats"})
