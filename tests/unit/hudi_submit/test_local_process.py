"""The process of the local engine: its call, its lines, and its end."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hudi_core.config.engine_config import Mode
from hudi_core.errors import ConfigError
from hudi_core.request.results import Result
from hudi_core.verbs.run import RunRequest
from hudi_submit import local_process
from hudi_submit.local_process import LocalProcess, ProcessSettings, missing_wheels, require_wheels

REQUEST = RunRequest("/warehouse/trips", "clean")


class Log:
    """Keeps its lines."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def info(self, message: str, *arguments: Any) -> None:
        self.lines.append(message % arguments if arguments else message)


def process_of(log: Log, *, grace_seconds: int = 20, secret: str = "hidden") -> LocalProcess:
    settings = ProcessSettings({"MORE": "yes"}, grace_seconds, lambda: {"secret": secret})
    return LocalProcess(REQUEST, Mode.LOCAL, settings, log)


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    def write(text: str) -> None:
        file = tmp_path / "job.py"
        file.write_text(text)
        monkeypatch.setattr(local_process, "COMMAND", (sys.executable, str(file)))

    return write


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_the_call_goes_through_the_pipe_and_the_result_comes_back(script: Callable[[str], None]) -> None:
    script(
        "import json, os, sys\ncall = json.loads(sys.stdin.readline())\nprint('working')\n"
        "print('HUDI_PROGRESS', json.dumps({'instant': '1', 'done': 1, 'total': 2}))\n"
        "document = {'call': call, 'more': os.environ['MORE'], 'arguments': sys.argv[1:]}\n"
        "print('HUDI_RESULT', json.dumps({'version': 1, 'document': document}))\nsys.exit(3)\n"
    )
    log = Log()
    process = process_of(log)
    assert process.run() == 3
    assert isinstance(process.result, Result)
    document = process.result.document
    assert document is not None
    call = document["call"]
    assert (call["mode"], call["credentials"]) == ("local", {"secret": "hidden"})
    assert call["request"] == json.loads(REQUEST.to_json())
    assert (document["more"], document["arguments"]) == ("yes", [])
    assert log.lines[:2] == ["working", "Instant 1: 1 of 2 units done"]


def test_a_process_that_ends_before_it_reads_its_call_gives_its_exit_code(script: Callable[[str], None]) -> None:
    # More than a pipe holds: the process is gone while the call is still being written, on every machine.
    script("import os, sys\nprint('no engine here', flush=True)\nos.close(0)\nsys.exit(4)\n")
    log = Log()
    process = process_of(log, secret="s" * 2**20)
    assert process.run() == 4
    assert process.result is None
    assert log.lines == ["no engine here"]


def test_stop_ends_the_whole_group_by_force_after_the_grace(script: Callable[[str], None], tmp_path: Path) -> None:
    script(
        "import os, signal, subprocess, sys, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        f"child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        f"open({str(tmp_path / 'pids')!r}, 'w').write(f'{{os.getpid()}} {{child.pid}}')\n"
        "print('up', flush=True)\ntime.sleep(600)\n"
    )
    log = Log()
    process = process_of(log, grace_seconds=1)
    codes: list[int] = []
    thread = threading.Thread(target=lambda: codes.append(process.run()))
    thread.start()
    deadline = time.monotonic() + 30
    while "up" not in log.lines:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    process.stop()
    process.stop()
    thread.join(30)
    assert codes == [-9]
    for pid in (tmp_path / "pids").read_text().split():
        while is_alive(int(pid)):
            assert time.monotonic() < deadline
            time.sleep(0.02)


def test_one_that_was_stopped_before_does_not_start(script: Callable[[str], None], tmp_path: Path) -> None:
    script(f"open({str(tmp_path / 'started')!r}, 'w')")
    process = process_of(Log())
    process.stop()
    assert process.run() != 0
    assert not (tmp_path / "started").exists()


def test_a_process_that_reads_nothing_is_an_exit_code(script: Callable[[str], None]) -> None:
    script("raise SystemExit(1)")
    process = process_of(Log())
    assert process.run() == 1
    assert process.result is None


def test_missing_wheels_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    require_wheels()
    monkeypatch.setattr(local_process, "find_spec", lambda name: None if name == "numpy" else os)
    assert missing_wheels() == ["numpy"]
    with pytest.raises(ConfigError, match=r"numpy.*airflow-hudi-engine"):
        require_wheels()
