"""Writers of real Hudi that die in the middle of a commit.

The JVM is stopped (SIGSTOP) at the moment that is wanted, and the table is copied: that copy is what a kill at this
moment leaves behind. Then the JVM goes on, for the next test. (benchmarks/soak_services.py kills one for good.)
"""

from __future__ import annotations

import os
import shutil
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pyarrow as pa

from tests.interop.judged import Judged
from tests.interop.real_hudi import RealHudiError

ATTEMPTS: Final = 5
"""The time between the metadata table's commit and the table's own is some milliseconds: not every stop is in time."""
LAZY: Final = {
    "hoodie.cleaner.policy.failed.writes": "LAZY",
    "hoodie.clean.failed.writes.policy": "LAZY",
    "hoodie.client.heartbeat.interval_in_ms": "1000",
    "hoodie.client.heartbeat.tolerable.misses": "2",
}
"""Options of a writer that leaves a heartbeat, and of those that judge by it."""
WRITING, PUBLISHED = "while it writes data files", "after it updated the metadata table"
MOMENTS: Final = (WRITING, PUBLISHED)
Seen = Callable[[], bool]


def left_by_a_killed_writer(
    table: Judged, base: Path, moment: str, options: dict[str, str] | None = None
) -> tuple[Judged, str]:
    """A copy of the table at `base` as a writer leaves it that is killed at `moment`, and the instant of that
    writer.
    """
    rows = table.next_rows()
    pid = int(table.hudi.ask("process"))
    for attempt in range(ATTEMPTS):
        work = table.copy(base.with_name(f"{base.name}-attempt{attempt}"))
        instant = _stopped(work, rows, pid, moment, options or {}, base)
        shutil.rmtree(work.base)
        if instant is not None:
            return Judged(table.hudi, base, table.rows, dict(table.options), table.steps), instant
        shutil.rmtree(base, ignore_errors=True)
    raise AssertionError(f"real Hudi was never stopped {moment}")


def _stopped(table: Judged, rows: pa.Table, pid: int, moment: str, options: dict[str, str], target: Path) -> str | None:
    """The pending instant of the copy at `target`; None when the writer had gone on before it was stopped."""
    writer = _Writing(table, rows, options)
    try:
        writer.wait_for(_moment(table, moment, writer.before))
        os.kill(pid, signal.SIGSTOP)
        shutil.copytree(table.base, target)
    finally:
        os.kill(pid, signal.SIGCONT)
        writer.join()
    copied = Judged(table.hudi, target, table.rows)
    pending = [
        item.requested_time
        for item in copied.instants(completed=False)
        if not item.is_completed and item.requested_time not in writer.before
    ]
    in_metadata = bool(pending) and any(name.startswith(pending[0]) for name in copied.metadata_files())
    return pending[0] if pending and in_metadata == (moment == PUBLISHED) else None


class _Writing:
    """An upsert of real Hudi in a thread: it may fail once its JVM was stopped for longer than its heartbeat lasts, or
    killed.
    """

    def __init__(self, table: Judged, rows: pa.Table, options: dict[str, str]) -> None:
        self.before = frozenset(table.times(completed=False))
        self.error: RealHudiError | None = None
        self._table = table
        self._thread = threading.Thread(target=self._write, args=(rows, options))
        self._thread.start()

    def _write(self, rows: pa.Table, options: dict[str, str]) -> None:
        try:
            self._table.write(rows, options)
        except RealHudiError as error:
            self.error = error

    def wait_for(self, seen: Seen) -> None:
        deadline = time.monotonic() + 120
        while self._thread.is_alive() and not seen() and time.monotonic() < deadline:
            time.sleep(0.0005)
        assert time.monotonic() < deadline

    def join(self) -> None:
        self._thread.join()


def _moment(table: Judged, moment: str, before: frozenset[str]) -> Seen:
    if moment == PUBLISHED:
        known = frozenset(table.metadata_files())
        return lambda: any(
            name.split(".")[1] == "deltacommit"
            for name in table.metadata_files().keys() - known
            if name[:17] not in before
        )
    partitions = [path for path in table.base.iterdir() if path.is_dir() and path.name != ".hoodie"]
    count = sum(len(os.listdir(path)) for path in partitions)
    return lambda: sum(len(os.listdir(path)) for path in partitions) > count
