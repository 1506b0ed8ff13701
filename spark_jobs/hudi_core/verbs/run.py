"""The verbs schedule and run: plan an instant of a table service, and run instants, whichever writer planned them."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import field, fields, replace
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING

from hudi_core.config.engine_config import EngineConfig, Extent
from hudi_core.errors import ConfigError, HudiError, OrphanFilesError
from hudi_core.frozen import dataclass
from hudi_core.request.policy import MAX_MINUTES
from hudi_core.request.results import Result
from hudi_core.request.services import SERVICES, Conditions
from hudi_core.request.texts import one_of
from hudi_core.verbs.request import WHAT, Request, Work, check_instant

if TYPE_CHECKING:
    from hudi_core.engine.protocol import Json
    from hudi_core.services.context import TableContext
    from hudi_core.services.engine_choice import Choice
    from hudi_core.services.runner import RunScope
    from hudi_core.services.service import Scheduled, Service
    from hudi_core.timeline.instant import Instant
    from hudi_core.transaction.owner import Owner


@dataclass(frozen=True, slots=True)
class ScheduleRequest(Request):
    """Plans an instant of a table service; with `dry_run` the plan is reported, and nothing is written."""

    verb = "schedule"
    service: str
    dry_run: bool = False

    def check_fields(self) -> None:
        check_service_name(self.service)

    def nothing(self, context: TableContext, owner: Owner) -> Result | None:
        planned = schedule(context, self.service, owner, dry_run=True)
        return None if planned.plan is not None else Result(document=planned.to_dict())

    def run(self, work: Work) -> Result:
        planned = schedule(work.context, self.service, work.owner, dry_run=self.dry_run)
        return Result(document=planned.to_dict())


def schedule(context: TableContext, name: str, owner: Owner, *, dry_run: bool) -> Scheduled:
    """Plans an instant, or says why not, or what a service without instants would do. Raises UnsupportedError."""
    from hudi_core.services.service import Scheduled, service_of

    try:
        return service_of(name).schedule(context, owner, dry_run=dry_run)
    except OrphanFilesError as error:  # only an archival raises it
        return Scheduled(None, None, str(error))


def check_service_name(name: str) -> None:
    """Raises ConfigError for a service that this release does not have."""
    if name not in SERVICES:
        raise ConfigError(f"{WHAT}: unknown service {name!r}", remedy=one_of(name, sorted(SERVICES)))


log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RunRequest(Request):
    """Runs `instant` of a table service, or every pending one, or the oldest. `schedule` plans one when none is
    pending.

    No further instant is started after `max_minutes`, nor from `starts_until` on (seconds since the epoch), nor when
    the instants of the run have written `max_bytes`. Plans are cut so that they are done by then, with `all_pending`
    several, and to the bytes that are left. With `when`, an instant is planned where one of these conditions holds
    (request/services.py). `began_ms` (milliseconds since the epoch) is when the whole work began: the result names
    options that an earlier plan does not follow.
    """

    verb = "run"
    looks_once = True
    plans = True
    service: str
    instant: str | None = None
    all_pending: bool = False
    schedule: bool = False
    max_minutes: int | None = None
    starts_until: int | None = None
    max_bytes: int | None = None
    began_ms: int | None = None
    when: Mapping[str, str] = field(default_factory=dict)

    def check_fields(self) -> None:
        check_service_name(self.service)
        check_instant(self.instant)
        Conditions.of(self.service, self.when)
        for name in ("all_pending", "schedule"):
            if self.instant is not None and getattr(self, name):
                raise ConfigError(f"{WHAT}: instant and {name} exclude each other", remedy="leave one of them out")
        if self.max_minutes is not None and not 1 <= self.max_minutes <= MAX_MINUTES:
            raise ConfigError(
                f"{WHAT}: max_minutes must be between 1 and {MAX_MINUTES}",
                remedy="set it to such a number, or leave it out",
            )
        if self.max_bytes is not None and self.max_bytes < 1:
            raise ConfigError(
                f"{WHAT}: max_bytes must be at least 1", remedy="set it to a number of bytes, or leave it out"
            )

    @property
    def needs_executors(self) -> bool:
        return not SERVICES[self.service].on_driver

    def nothing(self, context: TableContext, owner: Owner) -> Result | None:
        from hudi_core.services.lifecycle import Run
        from hudi_core.services.runner import find_work
        from hudi_core.services.service import service_of

        service = service_of(self.service)
        if self.instant is not None and service.has_instants:
            service.job(Run(context, self.instant, owner)).find(context.active.load())
            return None
        # The run does that work first. What cannot be planned now may be planned then.
        if self._has_work_before(context, service, owner) and not service.pending(context, context.active.load()):
            return None
        work = find_work(context, service, owner, self._scope(), dry_run=True)
        return None if work.instants or work.plan is not None else Result((), work.reason)

    def plan(self, context: TableContext, owner: Owner) -> Result | None:
        from hudi_core.services.runner import find_work
        from hudi_core.services.service import service_of

        service = service_of(self.service)
        if self.instant is not None or not service.has_instants:
            return None
        work = find_work(context, service, owner, self._scope())
        return None if work.instants else Result((), work.reason)

    def extent(self, context: TableContext, config: EngineConfig) -> Extent:
        """Returns the largest extent of the pending plans that the run takes."""
        from hudi_core.services.service import service_of

        if SERVICES[self.service].on_driver:
            return Extent()
        service = service_of(self.service)
        pending = service.pending(context, context.active.load())
        if self.instant is not None:
            # The run reports what is wrong with another instant.
            pending = [instant for instant in pending if instant == self.instant]
        taken = pending if self.all_pending else pending[:1]
        extents = (self._extent_of(context, service, instant, config) for instant in taken)
        return reduce(or_, extents, Extent())

    def _extent_of(self, context: TableContext, service: Service, instant: str, config: EngineConfig) -> Extent:
        """Returns the extent of one plan. Of several instants, the run reports each plan that cannot be read."""
        try:
            return service.extent(context, instant, config)
        except HudiError as error:
            if not self.all_pending:
                raise
            log.info("the plan of %s is left out of the choice of an engine: %s", instant, error)
            return Extent()

    def run(self, work: Work) -> Result:
        from hudi_core.services.runner import ServiceRunner

        choose = work.choose

        def choose_for(instant: str) -> Choice:
            assert choose is not None
            return choose(replace(self, instant=instant, schedule=False, all_pending=False))

        runner = ServiceRunner(
            work.context, work.engine, work.owner, work.progress, None if choose is None else choose_for
        )
        return runner.run(self._scope())

    def preview(self, context: TableContext, owner: Owner) -> Result:
        """Returns what `run` would do, as a document: `{"dry_run": true, "instants": [{"instant", "action", "state"}],
        "plan", "reason"}`. It has the instants that the run would take (with `all_pending` those that are pending now),
        or the plan that it would make, or why neither. Writes nothing. Raises the errors of `run` for bad input.
        """
        from hudi_core.services.lifecycle import Run
        from hudi_core.services.runner import completed_before, find_work
        from hudi_core.services.service import service_of

        service = service_of(self.service)
        if not service.has_instants:
            planned = schedule(context, self.service, owner, dry_run=True)
            return _would_do([], planned.plan, planned.reason)
        timeline = context.active.load()
        if self.instant is not None:
            named = service.job(Run(context, self.instant, owner)).find(timeline)
            if named.is_completed:
                return _would_do([], None, completed_before(service, self.instant))
            return _would_do([named], None, None)
        work = find_work(context, service, owner, self._scope(), dry_run=True)
        taken = work.instants if self.all_pending else work.instants[:1]
        pending = [service.job(Run(context, instant, owner)).find(timeline) for instant in taken]
        reason = work.reason
        if not pending and self._has_work_before(context, service, owner):
            reason = "; ".join(filter(None, (reason, "failed writes would be rolled back first")))
        return _would_do(pending, work.plan, reason)

    def _has_work_before(self, context: TableContext, service: Service, owner: Owner) -> bool:
        return self.schedule and not self.when and service.has_work_before(context, owner)

    def rest(self, since: float, done: Result) -> RunRequest:
        if not done.instants:
            return self
        most = None if self.max_bytes is None else max(1, self.max_bytes - done.bytes_written)
        return replace(self.counted_from(since), max_bytes=most)

    def counted_from(self, since: float) -> RunRequest:
        """Returns the request as part of a run that began at `since` (seconds since the epoch): its minutes go on."""
        ends = [] if self.starts_until is None else [self.starts_until]
        if self.max_minutes is not None:
            ends.append(int(since) + 60 * self.max_minutes)
        return replace(self, max_minutes=None, starts_until=min(ends, default=None))

    def _scope(self) -> RunScope:
        from hudi_core.services.runner import RunScope

        return RunScope(**{item.name: getattr(self, item.name) for item in fields(RunScope)})


def _would_do(pending: Sequence[Instant], plan: Json | None, reason: str | None) -> Result:
    instants = [
        {"instant": one.requested_time, "action": one.pending_action, "state": one.state.value} for one in pending
    ]
    return Result(document={"dry_run": True, "instants": instants, "plan": plan, "reason": reason})
