"""Processes that end with their parent."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest

from hudi_core.engine.local import Processes
from hudi_core.errors import ExecutionError, FormatError


def pid_of(path: str, seconds: float) -> int:
    Path(path).write_text(str(os.getpid()))
    time.sleep(seconds)
    return os.getpid()


def fails(error: Exception) -> None:
    raise error


class Unpicklable(Exception):
    def __init__(self, one: str, two: str) -> None:
        super().__init__(one + two)


def ends(pid: int, seconds: float = 20) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            if Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z":
                return True
        except FileNotFoundError:
            return True
        time.sleep(0.05)
    return False


def written(path: Path, seconds: float = 60) -> int:
    deadline = time.monotonic() + seconds
    while not path.exists() or not path.read_text():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return int(path.read_text())


@pytest.mark.slow
def test_they_run_elsewhere_and_return_typed_errors(tmp_path: Path) -> None:
    processes = Processes(1)
    assert processes.submit(partial(pid_of, str(tmp_path / "pid"), 0)).result(60) != os.getpid()
    with pytest.raises(FormatError, match="broken") as caught:
        processes.submit(partial(fails, FormatError("broken", path="a/b"))).result(60)
    assert caught.value.path == "a/b"
    with pytest.raises(ExecutionError, match="ZeroDivisionError: by zero"):
        processes.submit(partial(fails, ZeroDivisionError("by zero"))).result(60)
    processes.close()


@pytest.mark.slow
def test_close_ends_what_they_are_doing(tmp_path: Path) -> None:
    processes = Processes(1)
    processes.submit(partial(pid_of, str(tmp_path / "pid"), 600))
    pid = written(tmp_path / "pid")
    started = time.monotonic()
    processes.close()
    assert ends(pid)
    assert time.monotonic() - started < 30


@pytest.mark.slow
def test_they_end_when_their_parent_is_killed(tmp_path: Path) -> None:
    script = tmp_path / "parent.py"
    script.write_text(
        "import sys, time\nfrom functools import partial\nfrom hudi_core.engine.local import Processes\n"
        "from tests.unit.hudi_core.engine.test_local_processes import pid_of\n"
        "if __name__ == '__main__':\n"
        "    processes = Processes(1)\n    processes.submit(partial(pid_of, sys.argv[1], 600))\n    time.sleep(600)\n"
    )
    root = Path(__file__).resolve().parents[4]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(root), str(root / "spark_jobs")])}
    parent = subprocess.Popen([sys.executable, str(script), str(tmp_path / "pid")], env=environment)
    try:
        pid = written(tmp_path / "pid")
    finally:
        parent.send_signal(signal.SIGKILL)
        parent.wait()
    assert ends(pid)
