"""A process that is signalled to end does so in order."""

from __future__ import annotations

import signal
import subprocess
import sys

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


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_lets_the_run_clean_up(number: signal.Signals, code: int) -> None:
    with subprocess.Popen([sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(number)
        assert process.stdout.readline() == "released\n"
        assert process.wait(10) == code
