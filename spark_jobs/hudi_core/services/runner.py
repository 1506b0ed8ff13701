"""From a request to instants to results: which instants a run covers, and what becomes of one that fails."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from hudi_core.errors import HudiError
from hudi_core.model.engine import Engine
from hudi_core.request.model import InstantResult, RunRequest, RunResult
from hudi_core.services.compaction.run import CompactionRun
from hudi_core.services.context import TableContext
from hudi_core.timeline.instant import Action, State
from hudi_core.transaction.owner import Owner

log = logging.getLogger(__name__)

Progress = Callable[[str, int, int], None]
"""Called with the instant, its units done and all its units."""


class ServiceRunner:
    """Runs the instants of a request over one table and engine, one after the other."""

    def __init__(self, context: TableContext, engine: Engine, owner: Owner, progress: Progress | None = None) -> None:
        self._context = context
        self._engine = engine
        self._owner = owner
        self._progress = progress

    def run(self, request: RunRequest) -> RunResult:
        """Runs the named instant, else the oldest pending one, else (`all_pending`) each pending one; no pending instant is an empty result.

        With `all_pending` an instant's HudiError is kept in its result and the next instant is run; otherwise it is raised.
        `max_minutes` keeps further instants from being started.
        """
        if request.instant is not None:
            return RunResult((self._run_one(request.instant),))
        pending = [instant.requested_time for instant in self._context.active.load().pending_compactions()]
        if not request.all_pending:
            return RunResult(tuple(self._run_one(instant) for instant in pending[:1]))
        deadline = None if request.max_minutes is None else time.monotonic() + 60 * request.max_minutes
        results: list[InstantResult] = []
        for instant in pending:
            if deadline is not None and time.monotonic() >= deadline:
                log.info("the %s minutes are over; %d pending instants were not started", request.max_minutes, len(pending) - len(results))
                break
            results.append(self._run_or_report(instant))
        return RunResult(tuple(results))

    def _run_one(self, instant: str) -> InstantResult:
        report = self._progress
        step = None if report is None else lambda done, total: report(instant, done, total)
        return CompactionRun(self._context, instant, self._engine, self._owner, step).run()

    def _run_or_report(self, instant: str) -> InstantResult:
        started = time.monotonic()
        try:
            return self._run_one(instant)
        except HudiError as error:
            log.warning("compaction %s failed: %s", instant, error)
            seconds = round(time.monotonic() - started, 3)
            return InstantResult(instant, Action.COMPACTION, self._state(instant), seconds=seconds, error=str(error), exit_code=error.exit_code)

    def _state(self, instant: str) -> str:
        found = self._context.active.load().find(instant, Action.COMPACTION)
        return State.REQUESTED.value if found is None else found.state.value
