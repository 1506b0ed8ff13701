"""Runs hudictl inside the test's process."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hudi_cli.main import execute
from hudi_spark.signals import Termination


@dataclass(frozen=True)
class Done:
    """A finished command."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> dict[str, Any]:
        """The one JSON document of stdout; fails when there is anything else."""
        value = json.loads(self.out)
        assert isinstance(value, dict)
        return value

    @property
    def error(self) -> dict[str, Any]:
        """The error of the JSON document, with its fixed shape."""
        (key,) = self.document
        assert key == "error"
        error = self.document[key]
        assert sorted(error) == ["message", "path", "remedy", "type"]
        return dict(error)


def hudictl(*arguments: str | Path) -> Done:
    """`hudictl` with these arguments."""
    out, err = io.StringIO(), io.StringIO()
    code = execute([str(argument) for argument in arguments], out, err, Termination())
    return Done(code, out.getvalue(), err.getvalue())
