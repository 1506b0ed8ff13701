"""Processes found by their mark, and none else ended."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest

from demo import marked

Start = Callable[[str, str], "subprocess.Popen[str]"]
SLEEPER = "print('up', flush=True); import time; time.sleep(60)"
DEAF = f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); {SLEEPER}"
PARENT = f"import os, subprocess, sys; subprocess.run([sys.executable, '-c', {SLEEPER!r}], env={{}})"


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts a program of Python with a mark, in a session of its own, and waits until it is up."""
    started = []

    def run(program: str, mark: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-c", program],
            env={**os.environ, **marked.variables(mark)},
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        started.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == "up\n"
        return process

    yield run
    for process in started:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


def test_only_what_has_the_mark_is_ended(start: Start) -> None:
    mine, other = marked.new_mark(), marked.new_mark()
    first, second, foreign = start(SLEEPER, mine), start(SLEEPER, mine), start(SLEEPER, other)

    assert {process.pid for process in marked.processes(mine)} == {first.pid, second.pid}
    assert marked.end(mine, 5) == 2

    assert [process for process in (first, second) if process.poll() is None] == []
    assert foreign.poll() is None
    assert marked.processes(mine) == []


def test_a_child_without_the_mark_is_ended_with_its_parent(start: Start) -> None:
    mark = marked.new_mark()
    start(PARENT, mark)
    before = marked.processes(mark)

    assert len(before) == 2
    assert marked.end(mark, 5) == 2
    assert [process for process in before if process.is_running() and process.status() != "zombie"] == []


def test_what_ignores_sigterm_is_killed(start: Start) -> None:
    mark = marked.new_mark()
    process = start(DEAF, mark)
    process.terminate()
    marked.end(mark, 0.5)
    assert process.poll() is not None


def test_no_process_is_no_error() -> None:
    assert marked.end(marked.new_mark(), 5) == 0
