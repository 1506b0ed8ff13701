"""What a job reports about a request: a JSON document that fits one line of a log, and an exit code."""

from __future__ import annotations

import json
from collections.abc import Sequence, Sized
from dataclasses import dataclass
from typing import Any, Final, TypeGuard

from hudi_core import errors
from hudi_core.errors import EXIT_FAILED, ExecutionError, HudiError
from hudi_core.request.requests import REQUEST_VERSION, Request
from hudi_core.request.results import RunResult

RESULT: Final = "HUDI_RESULT"
PROGRESS: Final = "HUDI_PROGRESS"
"""The first words of a job's lines about itself."""
SUBMIT: Final = "submit"
"""The member of a document that says why what is left of the work is for Spark, and was not done."""

_LONGEST_PART = 4096
_MOST_INSTANTS = 500
_MOST_FINDINGS = 200


@dataclass(frozen=True, slots=True)
class Outcome:
    """The document of a request, without the version of its form, and the exit code."""

    document: dict[str, Any]
    exit_code: int

    @staticmethod
    def of(result: RunResult) -> Outcome:
        """That of a result."""
        left = {} if result.left is None else {SUBMIT: result.left}
        return Outcome({**printable(result), **left}, result.exit_code)

    @staticmethod
    def of_error(error: HudiError, exit_code: int | None = None) -> Outcome:
        """`{"error": {"type", "message", "path", "remedy"}}`."""
        return Outcome({"error": error_to_json(error)}, error.exit_code if exit_code is None else exit_code)

    @staticmethod
    def broken(kind: str, message: str, exit_code: int, *, remedy: str | None = None) -> Outcome:
        """As of_error, for what is no HudiError."""
        error = {"type": kind, "message": message, "path": None, "remedy": remedy}
        return Outcome({"error": error}, exit_code)

    @staticmethod
    def for_spark(why: str) -> Outcome:
        """Nothing was done: the request is to be submitted to Spark."""
        return Outcome({SUBMIT: why}, 0)

    def then(self, later: Outcome) -> Outcome:
        """`later`, which is that of what this one left to Spark, with the instants that were run before."""
        done = self.document.get("instants")
        if not done:
            return later
        found = {name: value for name, value in later.document.items() if name != "reason"}
        instants = [*done, *found.get("instants", ())]
        engine = found.get("engine") or self.document.get("engine")
        return Outcome({**found, "engine": engine, "instants": instants}, later.exit_code)

    def to_json(self) -> dict[str, Any]:
        """The object of a result line."""
        return {"version": REQUEST_VERSION, **self.document}


def outcome_of_all(requests: Sequence[Request], outcomes: Sequence[Outcome]) -> Outcome:
    """`{"results": [{"table", "verb", "service", "exit_code", …}]}` in the order of the requests, each with the members
    of its own document. The exit code is that on which the failures agree, 0 without any, else 1.
    """
    results = [
        {
            "table": request.table,
            "verb": request.verb,
            "service": getattr(request, "service", None),
            "exit_code": outcome.exit_code,
            **outcome.document,
        }
        for request, outcome in zip(requests, outcomes, strict=True)
    ]
    codes = {outcome.exit_code for outcome in outcomes} - {0}
    return Outcome({"results": results}, (codes.pop() if len(codes) == 1 else EXIT_FAILED) if codes else 0)


def error_to_json(error: HudiError) -> dict[str, Any]:
    """`{"type", "message", "path", "remedy"}`: an error as hudictl and the job report it."""
    return {"type": type(error).__name__, "message": error.message, "path": error.path, "remedy": error.remedy}


def error_from_json(value: dict[str, Any]) -> HudiError:
    """The error that `error_to_json` described; an unknown type becomes ExecutionError."""
    kind = getattr(errors, str(value.get("type")), None)
    if not (isinstance(kind, type) and issubclass(kind, HudiError)):
        kind = ExecutionError
    return kind(str(value.get("message")), path=value.get("path"), remedy=value.get("remedy"))


def printable(result: RunResult) -> dict[str, Any]:
    """The result in the length that one line of a log can hold.

    Long parts of a plan are replaced by their count, since the timeline holds them (`hudictl show`); of very many
    instants the failed ones and the last stay, and `left_out` counts the others; of very many findings the worst, of
    very many differences the first.
    """
    document: dict[str, Any] = json.loads(result.to_json())
    del document["version"]
    reported = document.get("document") or {}
    for name in ("findings", "differences"):
        found = reported.get(name)
        if isinstance(found, list) and len(found) > _MOST_FINDINGS:
            reported.update({name: found[:_MOST_FINDINGS], "left_out": len(found) - _MOST_FINDINGS})
    plan = reported.get("plan")
    if isinstance(plan, dict):
        reported["plan"] = {key: len(part) if _is_long(part) else part for key, part in plan.items()}
    instants = document.get("instants", [])
    if len(instants) > _MOST_INSTANTS:
        kept = [item for item in instants[:-1] if "error" in item][:_MOST_INSTANTS] + instants[-1:]
        document.update({"instants": kept, "left_out": len(instants) - len(kept)})
    return document


def _is_long(part: object) -> TypeGuard[Sized]:
    return isinstance(part, dict | list) and len(json.dumps(part)) > _LONGEST_PART
