"""Two shells run one instant at once: one completes it, the other exits 3 while it runs and 0 once it is completed; a
killed one is taken over.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.golden_data import GoldenCase
from tests.support.table_invariants import assert_compacted, pending_instants, read_rows

INSTANT = "20261120214905004"
PATIENCE_SECONDS = 120
Golden = Callable[[str, str], GoldenCase]


def start(table: Path) -> subprocess.Popen[str]:
    command = [
        str(Path(sys.executable).parent / "hudictl"),
        "run",
        "compaction",
        str(table),
        "--instant",
        INSTANT,
        "--engine",
        "local",
        "--json",
    ]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def end(run: subprocess.Popen[str]) -> tuple[int, dict[str, object]]:
    output, _ = run.communicate(timeout=PATIENCE_SECONDS)
    return run.returncode, json.loads(output)


def stop_when(run: subprocess.Popen[str], reached: Callable[[], bool], number: int) -> None:
    """Signals the run as soon as it has come to a point, and before it is over."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not reached():
        assert run.poll() is None, run.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.0005)
    os.kill(run.pid, number)


@pytest.fixture
def table(golden: Golden) -> Path:
    return golden("6", "mor_compaction_requested").table


def inflight(table: Path) -> bool:
    return (table / ".hoodie" / f"{INSTANT}.compaction.inflight").exists()


def completed(table: Path) -> bool:
    return (table / ".hoodie" / f"{INSTANT}.commit").exists()


def test_the_second_run_has_to_come_back(table: Path) -> None:
    rows, pending = read_rows(table), pending_instants(table)
    first = start(table)
    stop_when(first, lambda: inflight(table), signal.SIGSTOP)
    assert not completed(table)
    code, document = end(start(table))
    assert code == 3
    assert document["error"]["type"] == "ConflictError"  # type: ignore[index]
    os.kill(first.pid, signal.SIGCONT)
    code, document = end(first)
    assert code == 0
    assert document["instants"][0]["state"] == "completed"  # type: ignore[index]
    code, document = end(start(table))
    assert code == 0
    assert document["instants"][0]["state"] == "completed"  # type: ignore[index]
    assert_compacted(table, INSTANT, rows, pending)


def test_a_killed_run_is_taken_over_by_the_next_shell(table: Path) -> None:
    rows, pending = read_rows(table), pending_instants(table)
    first = start(table)
    stop_when(first, lambda: inflight(table), signal.SIGKILL)
    first.communicate()
    code, document = end(start(table))
    assert code == 0, document
    for path in table.rglob(".airflow-hudi-*.tmp"):
        path.unlink()  # what SIGKILL leaves of a file that was being written: no listing shows it, Hudi's or ours
    assert_compacted(table, INSTANT, rows, pending)


def test_many_at_once_leave_one_compaction(table: Path) -> None:
    rows, pending = read_rows(table), pending_instants(table)
    ended = [end(run) for run in [start(table) for _ in range(6)]]
    codes = {code for code, _ in ended}
    assert codes <= {0, 3}, [document for code, document in ended if code not in (0, 3)]
    assert 0 in codes
    assert_compacted(table, INSTANT, rows, pending)
