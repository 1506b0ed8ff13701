"""The real operators of other providers: what they would send for given arguments.

The providers, in the versions of submission_providers.lock, are installed once into a folder of the cache, without
their dependencies, and run in a process of their own (operator_process.py): the tests' own Python lacks them.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Any

LOCK = Path(__file__).with_name("submission_providers.lock")
ROOT = Path(__file__).parents[2]


@functools.cache
def providers() -> Path:
    """The folder of the providers; installed on first use, published by rename so that parallel tests agree."""
    digest = hashlib.sha256(LOCK.read_bytes()).hexdigest()[:16]
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "airflow-hudi"
    folder = cache / f"submission-providers-{digest}-{sys.implementation.cache_tag}"
    if not folder.is_dir():
        cache.mkdir(parents=True, exist_ok=True)
        fresh = Path(tempfile.mkdtemp(dir=cache))
        try:
            _install(fresh)
            fresh.rename(folder)
        except OSError:
            if not folder.is_dir():
                raise
        finally:
            shutil.rmtree(fresh, ignore_errors=True)
    return folder


def _install(folder: Path) -> None:
    command = [str(Path(sys.executable).parent / "uv"), "pip", "install", "--quiet", "--python", sys.executable]
    command += ["--no-deps", "--only-binary", ":all:", "--require-hashes", "--target", str(folder), "-r", str(LOCK)]
    subprocess.run(command, check=True, timeout=900, stdin=subprocess.DEVNULL)


class OperatorError(Exception):
    """What an operator, or the interface that it calls, refused; the text begins with the name of the error's class."""


class SubmissionOperators:
    """The process of the operators; a context manager that ends it."""

    def __init__(self) -> None:
        paths = [str(ROOT), str(ROOT / "spark_jobs"), str(providers())]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.operator_process"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), "AIRFLOW__CORE__UNIT_TEST_MODE": "True"},
        )

    def template_fields(self, operator: str) -> list[str]:
        """The names of the fields that the operator renders."""
        return list(self._answer({"operator": operator}))

    def attribute(self, operator: str, arguments: dict[str, Any], name: str) -> Any:
        """An attribute of the operator of these arguments. Raises OperatorError."""
        return self._answer({"operator": operator, "arguments": arguments, "attribute": name})

    def sent(self, operator: str, arguments: dict[str, Any], context: dict[str, Any] | None = None) -> Any:
        """What the operator of these arguments sends for a run with this context, once its templates are rendered.

        Raises OperatorError.
        """
        return self._answer({"operator": operator, "arguments": arguments, "context": context or {}})

    def found(self, program: str) -> Any:
        """What the program, which is run beside the operators, has in FOUND. Raises OperatorError."""
        return self._answer({"program": program})

    def _answer(self, call: dict[str, Any]) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(call) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the process of the operators ended with {self._process.wait(30)}")
        answer = json.loads(line)
        if "error" in answer:
            raise OperatorError(answer["error"])
        return answer["value"]

    def __enter__(self) -> SubmissionOperators:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait(60)
