"""Turns a request into instants and results. find_work says which instants a run takes, and whether it runs a pending
plan or makes a new one. The runner says what happens to an instant that fails.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from functools import partial
from typing import Final

from hudi_core.config.options import planned_before
from hudi_core.engine.protocol import Engine, Json
from hudi_core.errors import ConfigError, ConflictError, HudiError
from hudi_core.frozen import dataclass
from hudi_core.request.results import InstantResult, Progress, Result
from hudi_core.request.services import nothing_pending
from hudi_core.services.context import TableContext
from hudi_core.services.engine_choice import Choice
from hudi_core.services.lifecycle import UnitProgress
from hudi_core.services.policy import always_planned, answer
from hudi_core.services.rewriting.planning import PLANS_IN_TIME, cut_to
from hudi_core.services.service import Scheduled, Service, service_of
from hudi_core.storage.one_look import look_again, no_look, one_look
from hudi_core.timeline.instant import State
from hudi_core.timeline.instant_time import of_epoch_millis
from hudi_core.transaction.heartbeat_thread import is_stopped
from hudi_core.transaction.owner import Owner

log = logging.getLogger(__name__)

Choose = Callable[[str], Choice]
"""Chooses the engine of a planned instant."""

_TIME_IS_OVER: Final = "the time of the run is over"


@dataclass(frozen=True, slots=True)
class RunScope:
    """The instants of a service that a run takes, and where the run ends. The fields are as in verbs.run.RunRequest."""

    service: str
    instant: str | None = None
    all_pending: bool = False
    schedule: bool = False
    max_minutes: int | None = None
    starts_until: int | None = None
    max_bytes: int | None = None
    began_ms: int | None = None
    when: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FoundWork:
    """The instants of a run, oldest first, or the `reason` without any. `plan` is what a dry run would plan."""

    instants: Sequence[str]
    reason: str | None = None
    plan: Json | None = None


@dataclass(frozen=True, slots=True)
class Limits:
    """Where a run ends: at `end` by the monotonic clock, which is `seconds` after its start, or when its instants have
    written `max_bytes`. The time is divided into `plans` plans. None is no limit.
    """

    end: float | None
    seconds: float
    plans: int
    max_bytes: int | None

    @staticmethod
    def of(scope: RunScope) -> Limits:
        """Returns the limits of a run that starts now."""
        seconds = [] if scope.max_minutes is None else [60.0 * scope.max_minutes]
        if scope.starts_until is not None:
            seconds.append(scope.starts_until - time.time())
        least = min(seconds, default=0.0)
        end = time.monotonic() + least if seconds else None
        return Limits(end, least, PLANS_IN_TIME if scope.all_pending else 1, scope.max_bytes)

    def are_reached(self, results: Sequence[InstantResult]) -> bool:
        """Whether no further instant starts. Raises KeyboardInterrupt if the job is stopped before its first result."""
        if is_stopped():
            if results:
                return True
            raise KeyboardInterrupt
        is_spent = self.max_bytes is not None and _written(results) >= self.max_bytes
        return is_spent or (self.end is not None and time.monotonic() >= self.end)

    def cut(self, context: TableContext, results: Sequence[InstantResult] = ()) -> TableContext:
        """Returns the table with the limits for the next plan of a run with these results (planning.cut_to)."""
        seconds = None if self.end is None else min(self.seconds / self.plans, self.end - time.monotonic())
        most = None if self.max_bytes is None else self.max_bytes - _written(results)
        return cut_to(context, seconds, _rate(results), most)


def find_work(
    context: TableContext, service: Service, owner: Owner, scope: RunScope, *, dry_run: bool = False
) -> FoundWork:
    """Returns what a run takes that names no instant: the pending instants. Where nothing is pending and the run
    schedules, plans one instant; with conditions only where one of them holds. The plan is cut to the limits of the
    run, and the rest is due at once. With `dry_run` nothing is written. Raises the errors of Service.schedule.
    """
    pending = service.pending(context, context.active.load())
    if pending:
        return FoundWork(pending)
    if not scope.schedule and service.has_instants:
        return FoundWork((), nothing_pending(service.name, context.config.name))
    limits = Limits.of(scope)
    if service.has_instants and limits.are_reached(()):
        return FoundWork((), _TIME_IS_OVER)
    planned = plan_due(limits.cut(context), service, owner, scope.when, dry_run=dry_run)
    if planned.instant is not None:
        return FoundWork([planned.instant])
    if planned.plan is not None:
        return FoundWork((), plan=planned.plan)
    return FoundWork(service.pending(context, context.active.load()), planned.reason)


def completed_before(service: Service, instant: str) -> str:
    """Says why a run of a named instant found nothing to do."""
    return f"{service.name} {instant} was completed before; --schedule without --instant plans another"


def plan_due(
    context: TableContext, service: Service, owner: Owner, when: Mapping[str, str], *, dry_run: bool
) -> Scheduled:
    """Plans an instant where one of the conditions `when` holds, or without any. Raises the service's errors."""
    with one_look(context.storage, goes_on=True):
        found = answer(context, service.name, when)
        if found is not None and not found.due:
            return Scheduled(None, None, found.why)
        planned = service.schedule(always_planned(context, service.name, when), owner, dry_run=dry_run)
        if planned.instant is not None:
            look_again(context.storage)  # a writer that began before the plan was there does not see it
        return planned


class ServiceRunner:
    """Runs the instants of a request over one table, one after the other, on one engine. `choose` gives the engine of
    each instant that the runner plans itself. The run ends before an instant that is for Spark.
    """

    def __init__(
        self,
        context: TableContext,
        engine: Engine,
        owner: Owner,
        progress: Progress | None = None,
        choose: Choose | None = None,
    ) -> None:
        self._context = context
        self._engine = engine
        self._owner = owner
        self._progress = progress
        self._choose = choose

    def run(self, scope: RunScope) -> Result:
        """Runs the named instant, else the oldest pending instant, or with `all_pending` each of them. The result is
        empty and says why where none is pending; it also says so where a named instant was completed before.

        With `schedule`, plans an instant when none is pending; with `all_pending` too, plans until nothing is left to
        plan. With `all_pending`, keeps the HudiError of an instant in its result and runs the next one; otherwise
        raises it. The limits let no further instant start, and cut plans (planning.cut_to).
        """
        service = service_of(scope.service)
        if not service.has_instants:
            if scope.instant is not None:
                raise ConfigError(f"{service.name} has no instants of its own", remedy="leave out the instant")
            with no_look(self._context.storage):
                return service.run_now(self._context, self._owner, self._progress_of(service.name))
        with one_look(self._context.storage, goes_on=True):
            return self._run(service, scope)

    def _run(self, service: Service, scope: RunScope) -> Result:
        if scope.instant is not None:
            is_done = self._state(scope.instant) == State.COMPLETED.value
            why = completed_before(service, scope.instant) if is_done else None
            return Result((self._run_one(service, scope.instant),), why)
        limits = Limits.of(scope)
        if scope.schedule and scope.all_pending:
            return self._run_and_plan(service, limits, scope)
        work = find_work(self._context, service, self._owner, scope)
        if not work.instants:
            return Result((), work.reason)
        if not scope.all_pending:
            return Result((self._by_plan(scope, self._run_one(service, work.instants[0])),))
        return _result(self._run_all(service, work.instants, limits, scope))

    def _run_and_plan(self, service: Service, limits: Limits, scope: RunScope) -> Result:
        pending = service.pending(self._context, self._context.active.load())
        results = self._run_all(service, pending, limits, scope)
        while not any(result.exit_code for result in results) and not limits.are_reached(results):
            look_again(self._context.storage)
            cut = limits.cut(self._context, results)
            planned = plan_due(cut, service, self._owner, scope.when, dry_run=False)
            if planned.instant is None:
                return Result(tuple(results), None if results else planned.reason)
            # The instant is run even after the end: a plan that stays would hold its file groups until the next run.
            if self._choose is None:
                results.append(self._run_or_report(service, planned.instant))
                continue
            choice = self._choose(planned.instant)
            if not choice.local:
                return Result(tuple(results), left=choice.why)
            with choice.engine() as engine:
                runner = ServiceRunner(self._context, engine, self._owner, self._progress)
                results.append(runner._run_or_report(service, planned.instant))
        return _result(results)

    def _run_all(
        self, service: Service, pending: Sequence[str], limits: Limits, scope: RunScope
    ) -> list[InstantResult]:
        results: list[InstantResult] = []
        for number, instant in enumerate(pending):
            if limits.are_reached(results):
                log.info("the limits of this run are reached; %d pending instants are left", len(pending) - number)
                break
            results.append(self._by_plan(scope, self._run_or_report(service, instant)))
            look_again(self._context.storage)
        return results

    def _run_one(self, service: Service, instant: str) -> InstantResult:
        return service.run(self._context, instant, self._engine, self._owner, self._progress_of(instant))

    def _by_plan(self, scope: RunScope, result: InstantResult) -> InstantResult:
        """Returns a pending instant's result. Its reason names options that another run's plan made unused."""
        if not scope.schedule or scope.began_ms is None or result.already_completed or result.error is not None:
            return result
        if result.instant >= of_epoch_millis(scope.began_ms, self._context.zone):
            return result
        said = planned_before(scope.service, result.instant, scope.options)
        if said is not None:
            log.warning("%s", said)
        return replace(result, reason=said)

    def _progress_of(self, name: str) -> UnitProgress | None:
        return None if self._progress is None else partial(self._progress, name)

    def _run_or_report(self, service: Service, instant: str) -> InstantResult:
        started = time.monotonic()
        try:
            return self._run_one(service, instant)
        except HudiError as error:
            look_again(self._context.storage)
            state, seconds = self._state(instant), round(time.monotonic() - started, 3)
            if isinstance(error, ConflictError) and state == State.COMPLETED.value:
                log.info("another run completed %s %s meanwhile: %s", service.name, instant, error)
                return InstantResult(instant, service.name, state, seconds=seconds, already_completed=True)
            log.warning("%s %s failed: %s", service.name, instant, error)
            return InstantResult(
                instant, service.name, state, seconds=seconds, error=str(error), exit_code=error.exit_code
            )

    def _state(self, instant: str) -> str:
        states = [found.state for found in self._context.active.load() if found.requested_time == instant]
        return min(states, key=lambda state: state.rank, default=State.REQUESTED).value


def _result(results: Sequence[InstantResult]) -> Result:
    """Returns the result of a run that had work, or that planned none because its time was over."""
    return Result(tuple(results), None if results else _TIME_IS_OVER)


def _written(results: Sequence[InstantResult]) -> int:
    return sum(item.bytes_written for item in results)


def _rate(results: Sequence[InstantResult]) -> float | None:
    """Returns the bytes per second that completed instants wrote, about what they read; None without a measure."""
    written, seconds = _written(results), sum(item.seconds for item in results)
    return written / seconds if written and seconds else None
