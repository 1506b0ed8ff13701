"""A whole Airflow on free ports, in one process group that ends with the demo."""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType

from demo.rest import Airflow, Login
from hudi_core.errors import Reminder

STOP_SECONDS = 15.0
SAID_EVERY = 10.0
"""Seconds between two lines of a wait."""


_DECORATION = re.compile(r"\S+Z \[\w+ *\] | +\[airflow\..*")


class DemoError(Exception):
    """The demo cannot continue; the text has the reason and the log to read."""


class Stack:
    """`airflow standalone` (api-server, scheduler, dag-processor, triggerer) in a home of its own.

    Use as a context manager.
    """

    def __init__(self, home: Path, dags: Path, environment: dict[str, str], login: Login | None = None) -> None:
        """With `login` it has that one user, an admin; without, whoever reaches it is an admin."""
        self.home = home
        self.log = home / "standalone.log"
        self.port, worker_log, trigger_log = _free_ports(3)
        self.url = f"http://127.0.0.1:{self.port}"
        self.api = Airflow(self.url, login)
        self._login = login
        self._process: subprocess.Popen[bytes] | None = None
        # For other commands of the same Airflow, too.
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("AIRFLOW_")},
            # Standalone starts its components as `airflow`, and Spark's scripts look for `python3`: both must be this
            # environment's.
            "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)]),
            "AIRFLOW_HOME": str(home),
            "AIRFLOW__CORE__DAGS_FOLDER": str(dags),
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            "AIRFLOW__CORE__PARALLELISM": "2",
            "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"{self.url}/execution/",
            "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": str(login is None),
            "AIRFLOW__API__HOST": "127.0.0.1",
            "AIRFLOW__API__PORT": str(self.port),
            "AIRFLOW__API__WORKERS": "1",
            "AIRFLOW__API_AUTH__JWT_SECRET": secrets.token_hex(48),
            "AIRFLOW__DAG_PROCESSOR__REFRESH_INTERVAL": "5",
            "AIRFLOW__LOGGING__WORKER_LOG_SERVER_PORT": str(worker_log),
            "AIRFLOW__LOGGING__TRIGGER_LOG_SERVER_PORT": str(trigger_log),
            # Two busy cores answer late: the default of 5 s fails tasks.
            "AIRFLOW__WORKERS__EXECUTION_API_TIMEOUT": "60",
            "AIRFLOW__SCHEDULER__SCHEDULER_HEARTBEAT_SEC": "1",
            **environment,
        }
        if login is not None:
            self.environment["AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS"] = f"{login.user}:admin"
            self.environment["AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE"] = str(home / "passwords.json")

    def __enter__(self) -> Stack:
        self.start()
        return self

    def start(self) -> None:
        """Starts it in the background; it stays when this process ends. Raises DemoError."""
        airflow = shutil.which("airflow", path=self.environment["PATH"])
        if airflow is None:
            raise DemoError("there is no `airflow` in this environment; run `make demo`, which installs it")
        self.home.mkdir(parents=True, exist_ok=True)
        if self._login is not None:
            passwords = self.home / "passwords.json"
            passwords.touch(mode=0o600)
            passwords.write_text(json.dumps({self._login.user: self._login.password}))
        with self.log.open("wb") as log:
            # A session of its own: the terminal's Ctrl-C reaches only the demo, which then stops the whole group.
            self._process = subprocess.Popen(
                [airflow, "standalone"],
                cwd=self.home,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with _uninterrupted():
            self.stop()

    def stop(self) -> None:
        """Ends every process of the group: SIGTERM, then SIGKILL for what is left."""
        if self._process is None:
            return
        for number, patience in ((signal.SIGTERM, STOP_SECONDS), (signal.SIGKILL, STOP_SECONDS)):
            try:
                os.killpg(self._process.pid, number)
            except ProcessLookupError:
                break
            deadline = time.monotonic() + patience
            while time.monotonic() < deadline and self._group_lives():
                time.sleep(0.2)
        self._process.wait()
        self._process = None

    def wait_until_healthy(self, timeout: float, say: Callable[[str], None] | None = None) -> None:
        """Returns when all four components report health. Says what it waits for, when that changes and every
        SAID_EVERY seconds. Raises DemoError.
        """
        started, shown = time.monotonic(), list[str]()
        reminder = Reminder(time.monotonic, every=SAID_EVERY)
        missing: list[str] = []
        while time.monotonic() < started + timeout:
            self.check_alive()
            missing = self.api.unhealthy()
            if not missing:
                return
            if say is not None and (reminder.is_due() or missing != shown):
                shown = missing
                said = f"; it says: {line}" if (line := self._said()) else ""
                say(f"{time.monotonic() - started:3.0f} s: waiting for Airflow's {', '.join(missing)}{said}")
            time.sleep(0.5)
        raise DemoError(f"after {timeout:.0f} s Airflow still lacks {', '.join(missing)}")

    def check_alive(self) -> None:
        """Raises DemoError when Airflow's main process has ended."""
        code = self._process.poll() if self._process is not None else None
        if code is not None:
            raise DemoError(f"`airflow standalone` ended with exit code {code}")

    def wait_for_log(self, text: str, timeout: float) -> None:
        """Returns when Airflow's log holds `text`. Raises DemoError."""
        deadline = time.monotonic() + timeout
        while text not in self.log.read_text(errors="replace"):
            self.check_alive()
            if time.monotonic() > deadline:
                raise DemoError(f"after {timeout:.0f} s Airflow's log still lacks {text!r}")
            time.sleep(0.5)

    def log_tail(self, lines: int = 40) -> str:
        """The last lines of Airflow's log."""
        if not self.log.is_file():
            return "(no log)"
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])

    def _said(self) -> str:
        """The last line of its log, without the time and the place in Airflow's code."""
        return _DECORATION.sub("", self.log_tail(1))[:100].strip()

    def _group_lives(self) -> bool:
        if self._process is None:
            return False
        self._process.poll()
        try:
            os.killpg(self._process.pid, 0)
        except ProcessLookupError:
            return False
        return True


def _free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [sock.getsockname()[1] for sock in sockets]
    for sock in sockets:
        sock.close()
    return ports


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """A second Ctrl-C must not leave half of the processes behind."""
    previous = {number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
