"""A process that is signalled to end does so in order."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable

import pytest

PROGRAM = """
import sys, time
from hudi_spark.signals import Termination
termination = Termination()
termination.install()
try:
    print("ready", flush=True)
    time.sleep(60)
except KeyboardInterrupt:
    print("released", flush=True)
    sys.exit(termination.exit_code)
"""


def ignore_interrupts() -> None:
    """As a shell without job control does to a command in the background."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def take_interrupts() -> None:
    """As in the foreground, also where the tests run in the background."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.mark.parametrize(
    ("number", "code", "before"),
    [
        (signal.SIGTERM, 143, take_interrupts),
        (signal.SIGINT, 130, take_interrupts),
        (signal.SIGTERM, 143, ignore_interrupts),
    ],
)
def test_a_signal_lets_the_run_clean_up(number: signal.Signals, code: int, before: Callable[[], None]) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, text=True, preexec_fn=before
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(number)
        assert process.stdout.readline() == "released\n"
        assert process.wait(10) == code
