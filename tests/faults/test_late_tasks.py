"""Tasks that outlive their driver, or lose against another attempt, and close their file when all is cleaned up."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hudi_core.engine.local import LocalEngine
from hudi_core.engine.protocol import TaskAttempt
from hudi_core.errors import ConflictError
from hudi_core.filegroup.write import markers
from hudi_core.filegroup.write.base_file_writer import BaseFileHandle
from hudi_core.filegroup.write.log_copy import LogCopy
from hudi_core.model.names import parse_data_file
from hudi_core.services.compaction import merge_logs
from hudi_core.services.rewriting import new_file_groups
from tests.faults.test_races_of_rewrites import VERSIONS, WORKS, files, finished
from tests.faults.test_stalled_owners import expire
from tests.support.golden_data import GoldenCase
from tests.support.table_invariants import read_rows
from tests.support.tiers import tiered
from tests.unit.hudi_core.services.rewriting.test_other_writers_conflicts import Table

Golden = Callable[[str, str], GoldenCase]
Hook = Callable[[TaskAttempt], None]
LOSER = 999
"""The number of the attempt that loses; of a log file its last digits."""


def attempt_at(path: str) -> TaskAttempt:
    name = parse_data_file(path.rpartition("/")[2])
    assert name is not None
    assert name.token is not None
    return TaskAttempt(name.token.partition_id, name.token.stage_id, name.token.attempt_id % 1000)


def before_it_announces(monkeypatch: pytest.MonkeyPatch, hook: Hook) -> None:
    """Calls `hook` before each marker."""

    def announced(storage: Any, instant: str, partition: str, name: str, kind: Any) -> Any:
        hook(attempt_at(name))
        return markers.create_marker(storage, instant, partition, name, kind)

    for module in (new_file_groups, merge_logs):
        monkeypatch.setattr(module, "create_marker", announced)


def before_it_closes(monkeypatch: pytest.MonkeyPatch, hook: Hook) -> None:
    """Calls `hook` before a new file is there."""
    for kind in (BaseFileHandle, LogCopy):

        def closed(handle: Any, close: Callable[[Any], int] = kind.close) -> int:
            hook(attempt_at(handle.path))
            return close(handle)

        monkeypatch.setattr(kind, "close", closed)


MOMENTS = {"announced": before_it_announces, "closed": before_it_closes}


class WithoutDriver(LocalEngine):
    """The driver is gone when its tasks end."""

    def run(self, task: Any, units: Any, **named: Any) -> list[Any]:
        if "sample" in task.__name__ or "count" in task.__name__:
            return super().run(task, units, **named)
        return self._alone(lambda: super(WithoutDriver, self).run(task, units, **named))

    def exchange(self, *given: Any, **named: Any) -> list[Any]:
        return self._alone(lambda: super(WithoutDriver, self).exchange(*given, **named))

    def _alone(self, work: Callable[[], object]) -> list[Any]:
        with pytest.raises(ConflictError, match="another run has taken the instant over"):
            work()
        raise KeyboardInterrupt


def once(table: Path, successor: Callable[[], object]) -> Hook:
    """At the first file of the first owner its claim has expired, and `successor` does all of it."""
    fired: list[bool] = []

    def hook(attempt: TaskAttempt) -> None:
        if attempt.stage_id == 1 and not fired:
            fired.append(True)
            expire(table)
            successor()

    return hook


def no_marker(table: Path) -> bool:
    return not list(table.glob(".hoodie/.temp/**/*.marker.*"))


@pytest.mark.parametrize(
    ("version", "work", "moment"),
    tiered(
        [
            (version, work, moment)
            for version in VERSIONS
            for work in WORKS
            for moment in MOMENTS
            if work != "delete"  # whose tasks write no files
        ],
        [
            ("6", "clustering", "announced"),
            ("9", "sorted clustering", "closed"),
            ("8", "log compaction", "announced"),
            ("9", "log compaction", "closed"),
            ("8", "overwrite", "closed"),
        ],
    ),
)
def test_a_task_of_an_earlier_run(
    golden: Golden, monkeypatch: pytest.MonkeyPatch, version: str, work: str, moment: str
) -> None:
    table = golden(version, "mor_basic").table
    rows, known, run = read_rows(table), files(table), WORKS[work].begin(table)
    MOMENTS[moment](monkeypatch, once(table, lambda: run(None, "the second")))
    with pytest.raises(KeyboardInterrupt):
        run(WithoutDriver(1), "the first")
    finished(table, lambda: None, rows, known)
    assert no_marker(table)


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("version", tiered(VERSIONS, ["6"]))
def test_a_task_of_an_earlier_compaction(
    golden: Golden, monkeypatch: pytest.MonkeyPatch, version: str, moment: str
) -> None:
    table = Table(golden(version, "mor_compaction_requested"))
    MOMENTS[moment](monkeypatch, once(table.path, table.compact))
    with pytest.raises(KeyboardInterrupt):
        table.compact(engine=WithoutDriver(1))
    table.assert_compacted()
    assert no_marker(table.path)


class Speculative(LocalEngine):
    """Starts a second attempt at the first unit, whose file is closed when the driver is done with everything."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__(1)
        self._go, self._waits = threading.Event(), threading.Event()
        self._thread: threading.Thread | None = None
        self.error: Exception | None = None
        before_it_closes(monkeypatch, self._hold)

    def run(self, task: Any, units: Any, **named: Any) -> list[Any]:
        if "count" not in task.__name__:
            attempt = TaskAttempt(0, named["run_epoch"], LOSER)
            self._thread = threading.Thread(target=self._lose, args=(task, units[0], attempt))
            self._thread.start()
            assert self._waits.wait(20)
        return super().run(task, units, **named)

    def end(self) -> None:
        """Closes the file."""
        self._go.set()
        assert self._thread is not None
        self._thread.join(20)

    def _lose(self, task: Any, unit: Any, attempt: TaskAttempt) -> None:
        try:
            task(unit, attempt)
        except ConflictError as error:
            self.error = error

    def _hold(self, attempt: TaskAttempt) -> None:
        if attempt.attempt_id == LOSER:
            self._waits.set()
            self._go.wait(20)


@pytest.mark.parametrize(
    ("version", "work"),
    tiered(
        [(version, work) for version in VERSIONS for work in ("clustering", "log compaction")],
        [("9", "clustering"), ("6", "log compaction")],
    ),
)
def test_a_loser_of_the_same_run(golden: Golden, monkeypatch: pytest.MonkeyPatch, version: str, work: str) -> None:
    table = golden(version, "mor_basic").table
    rows, known, run = read_rows(table), files(table), WORKS[work].begin(table)
    engine = Speculative(monkeypatch)
    run(engine, "the first")
    finished(table, engine.end, rows, known)
    assert no_marker(table)
    assert "another run has taken the instant over" in str(engine.error)


@pytest.mark.parametrize("version", tiered(VERSIONS, ["8"]))
def test_a_loser_of_the_same_compaction(golden: Golden, monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    table = Table(golden(version, "mor_compaction_requested"))
    engine = Speculative(monkeypatch)
    table.compact(engine=engine)
    engine.end()
    assert engine.error is not None
    table.assert_compacted()
    assert no_marker(table.path)
