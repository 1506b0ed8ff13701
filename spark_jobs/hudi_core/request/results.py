"""What a run reports, as JSON: the one language of `main.py`, operators and hudictl."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

from hudi_core.request.requests import REQUEST_VERSION

REMOVED: Final = "removed"
"""The state of an instant whose plan a crash left empty: its files were taken off the timeline, as Hudi does."""


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
    """How many were passed over; they hold no row of a completed commit, unless that was allowed."""
    already_completed: bool = False
    """Whether another run had completed it, so that this one did nothing."""
    reason: str | None = None
    """Of a plan that was made before this run: which of its options are not used."""

    def to_dict(self) -> dict[str, Any]:
        """The object that `hudictl run` prints: `error` and `exit_code` only when there is an error,
        `corrupt_log_blocks` only when there were some, `already_completed` only when it is true, and `reason` only when
        there is one.
        """
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


@dataclass(frozen=True, slots=True)
class RunResult:
    """The result of a run: one entry per instant, in the order they were run; empty when there was nothing to do, but
    for a named instant that was completed before.
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

    def then(self, later: RunResult) -> RunResult:
        """`later`, which is that of what this one left to Spark, with the instants that were run before."""
        if not self.instants:
            return later
        engine = later.engine or self.engine
        return replace(later, instants=(*self.instants, *later.instants), reason=None, engine=engine)

    @property
    def failed(self) -> tuple[InstantResult, ...]:
        """The instants that ended in an error."""
        return tuple(result for result in self.instants if result.error is not None)

    @property
    def exit_code(self) -> int:
        """0 when all went well; the failures' own code when they agree (2 bad input, 3 retry), else 1."""
        codes = {result.exit_code or 1 for result in self.failed}
        if not codes:
            return 0
        return codes.pop() if len(codes) == 1 and len(self.failed) == len(self.instants) else 1

    def to_dict(self) -> dict[str, Any]:
        """The document that hudictl prints with `--json`; of a run with `reason` only when there was nothing to do."""
        if self.document is not None:
            return dict(self.document)
        value: dict[str, Any] = {"instants": [result.to_dict() for result in self.instants], **self._engine}
        return value if self.reason is None else {**value, "reason": self.reason}

    def to_json(self) -> str:
        """One line of JSON, with the version of this format."""
        value = self.to_dict() if self.document is None else {"document": self.to_dict(), **self._engine}
        return json.dumps({"version": REQUEST_VERSION, **value}, sort_keys=True)

    @property
    def _engine(self) -> dict[str, str]:
        return {} if self.engine is None else {"engine": self.engine}
