"""hudictl in a process of its own for each command, which may be killed at one change of the storage.

Each command is a fork of one process that has imported hudictl, as its imports take seconds. As a program it answers
one JSON request a line, until its standard input ends.
"""

from __future__ import annotations

import importlib
import io
import json
import os
import pkgutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[2]
WORK: Final = ("hudi_cli", "hudi_core.services", "hudi_core.metadata_table", "hudi_core.engine", "hudi_core.filegroup")
"""Packages that hudictl imports when it needs them."""


@dataclass(frozen=True)
class Ended:
    """How a command ended: `code` is None when it was killed; its JSON document, and whether its fault took place."""

    code: int | None
    document: dict[str, Any]
    fault: bool

    @property
    def error(self) -> dict[str, Any]:
        """The error, or nothing."""
        found = self.document.get("error")
        return found if isinstance(found, dict) else {}


class CommandServer:
    """Runs hudictl. Close it in the end."""

    def __init__(self) -> None:
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "spark_jobs"), str(ROOT)]), "TZ": "UTC"}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.torture.command_server"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
            cwd=ROOT,
            text=True,
        )

    def run(self, arguments: Sequence[str], fault: str = "", fault_at: int = 0) -> Ended:
        """`hudictl ARGUMENTS --json`; `fault` is "kill" or "error", at the change of this number."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        request = {"arguments": [*arguments, "--json"], "fault": fault, "fault_at": fault_at}
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the process that runs hudictl ended: {self._process.poll()}")
        answer = json.loads(line)
        return Ended(answer["code"], json.loads(answer["out"]) if answer["out"] else {}, answer["fault"])

    def close(self) -> None:
        """Ends the process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(60)


def _install(fault: str, fault_at: int) -> Any:
    """Puts storage that fails under everything that opens a local table; returns its plan."""
    from hudi_core.errors import StorageError
    from hudi_core.storage import arrow_store, registry
    from hudi_core.storage.local import LocalStorage
    from tests.support.fault_storage import MUTATIONS, FaultPlan, FaultStorage, Operation

    class KillPlan(FaultPlan):
        def _fire(self, operation: Operation) -> None:
            if fault == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            super()._fire(operation)

    def error(operation: Operation) -> Exception:
        return StorageError(f"{operation.kind} fails as the test has it", path=operation.path)

    plan = KillPlan(kill_at=fault_at, counts=MUTATIONS, error=error)
    for module in (registry, arrow_store):
        setattr(module, "LocalStorage", lambda *given, **named: FaultStorage(LocalStorage(*given, **named), plan))  # noqa: B010
    return plan


def _command(request: dict[str, Any], answer: int) -> None:
    """One command, in the fork."""
    from hudi_cli.main import execute
    from hudi_core.transaction import commit
    from hudi_spark.signals import Termination

    setattr(commit, "LATE_SECONDS", 0)  # noqa: B010 (no request of a killed process arrives on a local file system)
    plan = _install(request["fault"], request["fault_at"]) if request["fault"] else None
    out = io.StringIO()
    code = execute(request["arguments"], out, sys.stderr, Termination())
    value = {"code": code, "out": out.getvalue(), "fault": plan is not None and plan.fired is not None}
    with os.fdopen(answer, "w") as pipe:
        pipe.write(json.dumps(value))


def _serve() -> None:
    for name in WORK:
        package = importlib.import_module(name)
        for module in pkgutil.walk_packages(package.__path__, f"{name}."):
            importlib.import_module(module.name)
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        source, target = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(source)
            try:
                _command(json.loads(line), target)
            finally:
                sys.stderr.flush()
                os._exit(0)
        os.close(target)
        with os.fdopen(source) as pipe:
            text = pipe.read()
        os.waitpid(child, 0)
        answers.write((text or json.dumps({"code": None, "out": "", "fault": True})) + "\n")
        answers.flush()


if __name__ == "__main__":
    _serve()
