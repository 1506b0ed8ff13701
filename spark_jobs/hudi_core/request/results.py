"""What a run reports: typed here, one line of JSON between a job and whoever waits for it.

hudictl, the process beside a task, a Spark job and the operators all speak this language. Needs only the standard
library. A task reads the line, or in cluster mode the same JSON as a file at the table, in hudi_submit/job_log.py.
verbs/batch.py says in which order requests are run.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sized
from dataclasses import asdict, replace
from typing import Any, Final, TypeAlias, TypeGuard

from hudi_core import errors
from hudi_core.errors import EXIT_FAILED, ConfigError, ExecutionError, HudiError
from hudi_core.frozen import dataclass
from hudi_core.request.texts import read_fields

REQUEST_VERSION: Final = 1
"""The version of the JSON of requests and results."""
RESULT: Final = "HUDI_RESULT"
PROGRESS: Final = "HUDI_PROGRESS"
"""The first words of a job's lines about itself."""
REMOVED: Final = "removed"
"""The state of an instant whose plan a crash left empty: its files were taken off the timeline, as Hudi does."""
SUBMIT: Final = "submit"
"""The member of a result that says why the rest of the work is for Spark, and was not done."""

Progress = Callable[[str, int, int], None]
"""Called with the instant, its units done and all its units."""

_WHAT: Final = "the job's result"
_LONGEST_PART = 4096
_MOST_INSTANTS = 500
_MOST_FINDINGS = 200


@dataclass(frozen=True, slots=True)
class InstantResult:
    """The result of one instant: its state, what this run wrote for it and deleted, and the error when it failed."""

    instant: str
    action: str
    state: str
    files_written: int = 0
    bytes_written: int = 0
    records: int = 0
    seconds: float = 0.0
    error: str | None = None
    exit_code: int = 0
    """The exit code that the error alone would give; 0 without an error."""
    files_deleted: int = 0
    corrupt_log_blocks: int = 0
    """How many corrupt log blocks were passed over. They hold no row of a completed commit, unless that was allowed."""
    already_completed: bool = False
    """Whether another run had completed it, so that this one did nothing."""
    reason: str | None = None
    """For a plan that was made before this run: which of this run's options are not used."""

    def to_dict(self) -> dict[str, Any]:
        """Returns the object that `hudictl run` prints, without the members that say nothing."""
        value = asdict(self)
        if not self.corrupt_log_blocks:
            del value["corrupt_log_blocks"]
        if not self.already_completed:
            del value["already_completed"]
        if self.reason is None:
            del value["reason"]
        if self.error is None:
            del value["error"], value["exit_code"]
        return value

    @staticmethod
    def from_dict(value: Mapping[str, Any]) -> InstantResult:
        return InstantResult(**read_fields(InstantResult, value, what=_WHAT))


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a request. A run has one entry for each instant, in the order they were run. It has none where
    there was nothing to do, except for a named instant that was completed before. Another verb has its `document`.
    """

    instants: tuple[InstantResult, ...] = ()
    reason: str | None = None
    """Why no instant was run, and what would change that."""
    document: Mapping[str, Any] | None = None
    """The result of a verb other than `run`: the JSON document of hudictl's command of that name."""
    engine: str | None = None
    """Which engine did the work: `local` or `spark`; None where there was none to do."""
    left: str | None = None
    """Why what is pending now was left to Spark; None where nothing was."""
    error: Mapping[str, Any] | None = None
    """`{"type", "message", "path", "remedy"}`."""
    error_code: int = EXIT_FAILED
    """The exit code of `error`."""
    omitted: int = 0
    """How many instants a line of a log had no room for."""

    @staticmethod
    def of_error(error: HudiError) -> Result:
        return Result(error=error_to_json(error), error_code=error.exit_code)

    @staticmethod
    def broken(kind: str, message: str, exit_code: int, *, remedy: str | None = None) -> Result:
        """Returns the result of an error that is no HudiError."""
        error = {"type": kind, "message": message, "path": None, "remedy": remedy}
        return Result(error=error, error_code=exit_code)

    def then(self, later: Result) -> Result:
        """Returns `later`, the result of what this one left to Spark, with the instants that were run before."""
        if not self.instants:
            return later
        engine = later.engine or self.engine
        return replace(later, instants=(*self.instants, *later.instants), reason=None, engine=engine)

    @property
    def failed(self) -> tuple[InstantResult, ...]:
        return tuple(result for result in self.instants if result.error is not None)

    @property
    def bytes_written(self) -> int:
        return sum(result.bytes_written for result in self.instants)

    @property
    def exit_code(self) -> int:
        """0 when all went well; else the error's code, or the one that all instants share (2 input, 3 retry), or 1."""
        if self.error is not None:
            return self.error_code
        codes = {result.exit_code or EXIT_FAILED for result in self.failed}
        if not codes:
            return 0
        return codes.pop() if len(codes) == 1 and len(self.failed) == len(self.instants) else EXIT_FAILED

    def to_dict(self) -> dict[str, Any]:
        """Returns the document of `hudictl --json`. A run has `reason` only when there was nothing to do."""
        if self.document is not None:
            return dict(self.document)
        shown = {"engine": self.engine, "reason": self.reason, "error": self.error}
        instants = {"instants": [result.to_dict() for result in self.instants]}
        return {
            **(instants if self.instants or self.error is None else {}),
            **{name: value for name, value in shown.items() if value is not None},
        }

    def to_json(self) -> dict[str, Any]:
        """Returns the members of a result line, short enough for one line of a log (_shortened)."""
        value = {"document": dict(self.document)} if self.document is not None else self.to_dict()
        value |= {} if self.engine is None else {"engine": self.engine}
        value |= {"left_out": self.omitted} if self.omitted else {}
        return _shortened(value) | ({} if self.left is None else {SUBMIT: self.left})

    @staticmethod
    def from_json(value: Mapping[str, Any], exit_code: int) -> Result:
        """Reads what to_json returned; `exit_code` is the process's. Raises ConfigError for other types."""
        _check_members(value, {"instants": list, "document": dict, "error": dict, "left_out": int})
        _check_members(value, {"reason": str, "engine": str, SUBMIT: str})
        for item in value.get("instants") or ():
            _check_members({"instant": item}, {"instant": dict})
        return Result(
            tuple(map(InstantResult.from_dict, value.get("instants") or ())),
            value.get("reason"),
            value.get("document"),
            value.get("engine"),
            value.get(SUBMIT),
            value.get("error"),
            exit_code if value.get("error") is not None else EXIT_FAILED,
            value.get("left_out") or 0,
        )


@dataclass(frozen=True, slots=True)
class BatchItem:
    """The result of one request of a batch, with its table, verb and service."""

    table: str
    verb: str
    service: str | None
    result: Result

    def to_dict(self) -> dict[str, Any]:
        """Returns an item of what hudictl prints of several tables, with the exit code of a process of its own."""
        return {**self._name, **self.result.to_dict()}

    def to_json(self) -> dict[str, Any]:
        return {**self._name, **self.result.to_json()}

    @property
    def _name(self) -> dict[str, Any]:
        code = self.result.exit_code
        return {"table": self.table, "verb": self.verb, "service": self.service, "exit_code": code}


@dataclass(frozen=True, slots=True)
class BatchResult:
    """The results of a batch in the order of its requests, and the error of what stopped it."""

    items: tuple[BatchItem, ...]
    stopped: Result | None = None

    @property
    def exit_code(self) -> int:
        """The code of what stopped the batch, or the one on which the failures agree; 0 without failures, else 1."""
        if self.stopped is not None:
            return self.stopped.exit_code
        codes = {item.result.exit_code for item in self.items} - {0}
        return (codes.pop() if len(codes) == 1 else EXIT_FAILED) if codes else 0

    def to_json(self) -> dict[str, Any]:
        """Returns `{"results": [{"table", "verb", "service", "exit_code", …}]}`, and the `error` of a stopped batch."""
        stopped = {} if self.stopped is None else self.stopped.to_json()
        return {**stopped, "results": [item.to_json() for item in self.items]}


JobResult: TypeAlias = Result | BatchResult
"""The result of a job."""


def job_result_from_json(value: Mapping[str, Any], exit_code: int) -> JobResult:
    """Returns the result in a job's line; `exit_code` is the process's. Raises ConfigError for another form."""
    if "results" not in value:
        return Result.from_json(value, exit_code)
    _check_members(value, {"results": list})
    items = []
    for item in value["results"]:
        _check_members({"result": item}, {"result": dict})
        _check_members(item, {"table": str, "verb": str, "service": str, "exit_code": int})
        result = Result.from_json(item, item.get("exit_code") or 0)
        items.append(BatchItem(item.get("table") or "", item.get("verb") or "", item.get("service"), result))
    return BatchResult(
        tuple(items), Result.from_json({"error": value["error"]}, exit_code) if "error" in value else None
    )


def result_line(result: JobResult) -> dict[str, Any]:
    return {"version": REQUEST_VERSION, **result.to_json()}


def print_line(label: str, document: Mapping[str, Any]) -> None:
    """Writes one of a job's lines about itself."""
    sys.stdout.write(f"{label} {json.dumps(document, sort_keys=True)}\n")
    sys.stdout.flush()


def print_progress(instant: str, done: int, total: int) -> None:
    print_line(PROGRESS, {"instant": instant, "done": done, "total": total})


def error_to_json(error: HudiError) -> dict[str, Any]:
    """Returns `{"type", "message", "path", "remedy"}`: an error as hudictl and the job report it."""
    return {"type": type(error).__name__, "message": error.message, "path": error.path, "remedy": error.remedy}


def error_from_json(value: Mapping[str, Any]) -> HudiError:
    """Returns the error that `error_to_json` described. An unknown type becomes ExecutionError."""
    kind = getattr(errors, str(value.get("type")), None)
    if not (isinstance(kind, type) and issubclass(kind, HudiError)):
        kind = ExecutionError
    return kind(str(value.get("message")), path=value.get("path"), remedy=value.get("remedy"))


def _check_members(value: Mapping[str, Any], kinds: Mapping[str, type]) -> None:
    """Raises ConfigError for a member that is there and of another type."""
    for name, kind in kinds.items():
        if value.get(name) is not None and not isinstance(value[name], kind):
            raise ConfigError(f"{_WHAT}: {name} is no {kind.__name__}", remedy="use the same release on both sides")


def _shortened(value: dict[str, Any]) -> dict[str, Any]:
    """Returns the members without what makes them long. Long parts of a plan become their count: the timeline holds
    them. Of many instants the failed ones and the last stay, of many findings the worst, of many differences the first.
    `left_out` counts the others.
    """
    value = json.loads(json.dumps(value))
    document = value.get("document") or {}
    for name in ("findings", "differences"):
        listed = document.get(name)
        if isinstance(listed, list) and len(listed) > _MOST_FINDINGS:
            document.update({name: listed[:_MOST_FINDINGS], "left_out": len(listed) - _MOST_FINDINGS})
    plan = document.get("plan")
    if isinstance(plan, dict):
        document["plan"] = {key: len(part) if _is_long(part) else part for key, part in plan.items()}
    instants = value.get("instants", [])
    if len(instants) > _MOST_INSTANTS:
        kept = [item for item in instants[:-1] if "error" in item][:_MOST_INSTANTS] + instants[-1:]
        value.update({"instants": kept, "left_out": value.get("left_out", 0) + len(instants) - len(kept)})
    return value


def _is_long(part: object) -> TypeGuard[Sized]:
    return isinstance(part, dict | list) and len(json.dumps(part)) > _LONGEST_PART
