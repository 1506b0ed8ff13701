"""Airflow's components as processes of their own, each started again when it dies, as systemd or Kubernetes does."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import threading
from contextlib import suppress
from pathlib import Path
from typing import Final

import psutil

from demo.stack import STOP_SECONDS, DemoError, Stack

COMPONENTS: Final = ("api-server", "scheduler", "dag-processor", "triggerer")
_KEPT_EVERY: Final = 0.5
"""Seconds between two looks at which components are alive."""


class Components(Stack):
    """Use as a context manager. `restarts` counts components that were started again."""

    def __init__(self, home: Path, dags: Path, environment: dict[str, str]) -> None:
        super().__init__(home, dags, environment)
        # An installed package is compiled; each job would compile it again.
        self.environment.pop("PYTHONDONTWRITEBYTECODE", None)
        self.restarts = 0
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._over = threading.Event()
        self._keeper = threading.Thread(target=self._keep, daemon=True)
        self._lock = threading.Lock()

    def start(self) -> None:
        """See Stack. Raises DemoError where the database cannot be made."""
        airflow = shutil.which("airflow", path=self.environment["PATH"])
        if airflow is None:
            raise DemoError("there is no `airflow` in this environment")
        self._airflow = airflow
        self.home.mkdir(parents=True, exist_ok=True)
        made = subprocess.run(
            [airflow, "db", "migrate"], cwd=self.home, env=self.environment, capture_output=True, text=True
        )
        if made.returncode:
            raise DemoError(f"`airflow db migrate` failed: {made.stderr[-2000:]}")
        for name in COMPONENTS:
            self._spawn(name)
        self._keeper.start()

    def stop(self) -> None:
        """See Stack."""
        self._over.set()
        self._keeper.join()
        for number in (signal.SIGTERM, signal.SIGKILL):
            for process in self._running.values():
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, number)
            for process in self._running.values():
                with suppress(subprocess.TimeoutExpired):
                    process.wait(STOP_SECONDS)

    def check_alive(self) -> None:
        """A dead component is started again."""

    def kill(self, name: str) -> None:
        """Kills a component with all its children, as a machine that goes does."""
        with self._lock, suppress(ProcessLookupError):
            os.killpg(self._running[name].pid, signal.SIGKILL)

    def children(self, name: str) -> list[psutil.Process]:
        """All processes below a component."""
        with self._lock:
            pid = self._running[name].pid
        try:
            return list(psutil.Process(pid).children(recursive=True))
        except psutil.NoSuchProcess:
            return []

    def _spawn(self, name: str) -> None:
        with self.log.open("ab") as log:
            self._running[name] = subprocess.Popen(
                [self._airflow, name],
                cwd=self.home,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def _keep(self) -> None:
        while not self._over.wait(_KEPT_EVERY):
            with self._lock:
                for name, process in list(self._running.items()):
                    if process.poll() is not None and not self._over.is_set():
                        self.restarts += 1
                        self._spawn(name)
