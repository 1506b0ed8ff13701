"""A process beside the tests that reads lines of its standard input and answers them. It ends with this process."""

from __future__ import annotations

import atexit
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import IO

ROOT = Path(__file__).parents[2]


class LineServer:
    """The program `python -m MODULE`, which serves until its standard input ends. Started at once."""

    def __init__(self, module: str, environment: Mapping[str, str], *, stderr: int | None = None) -> None:
        """`stderr` as of Popen."""
        self.process = subprocess.Popen(
            [sys.executable, "-m", module],
            cwd=ROOT,
            env=dict(environment),
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
        )
        atexit.register(self._end)

    def ask(self, line: str) -> IO[str]:
        """Sends a line; the answer follows on the output that is returned."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return self.process.stdout

    def _end(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(60)
