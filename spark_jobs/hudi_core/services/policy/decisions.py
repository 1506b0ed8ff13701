"""Which services of a table a policy finds due, and why, and what it reports; nothing is written."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timezone
from typing import Final

from hudi_core.config.engine_config import EngineConfig
from hudi_core.config.options import check_options
from hudi_core.engine.protocol import Json
from hudi_core.errors import ConfigError, OrphanFilesError, UnsupportedError
from hudi_core.request.policy import Policy, ServicePolicy
from hudi_core.services.context import TableContext
from hudi_core.services.policy.conditions import always_planned, answer
from hudi_core.services.service import ImmediateService, InstantService, Scheduled, service_of
from hudi_core.timeline.pending_plans import planned_file_groups
from hudi_core.timeline.timeline import age_shown, pending_longer_than
from hudi_core.transaction.owner import Owner

_WITHOUT_LIMITS: Final = EngineConfig(max_bytes=2**62, max_units=2**31)


@dataclass(frozen=True, slots=True)
class Decision:
    """Of one service: whether it is due, and why, or how far it is from it; the bytes that it would read or delete, and
    the file groups that it would rewrite, as far as it knows.
    """

    service: str
    due: bool
    why: str
    size: int = 0
    file_groups: int = 0


@dataclass(frozen=True, slots=True)
class Alert:
    """An instant that is pending for too long."""

    what: str
    instant: str
    age_seconds: int


@dataclass(frozen=True, slots=True)
class Decisions:
    """Of a table."""

    services: Sequence[Decision]
    alerts: Sequence[Alert] = ()

    def to_dict(self) -> Json:
        """The document of `hudictl plan --json`."""
        return {
            "due": [
                {"service": item.service, "why": item.why, "bytes": item.size, "file_groups": item.file_groups}
                for item in self.services
                if item.due
            ],
            "not_due": [{"service": item.service, "why": item.why} for item in self.services if not item.due],
            "alerts": [asdict(item) for item in self.alerts],
        }


def decide(context: TableContext, policy: Policy, owner: Owner, now: datetime | None = None) -> Decisions:
    """One decision for each service, in the policy's order, and its alerts.

    A service is due when it has pending instants, or when one of its conditions holds and its planner finds something
    to do; one that the table or the options are not for is not due. Raises ConfigError for options that are not valid,
    FormatError for plans that are damaged.
    """
    moment = now or datetime.now(timezone.utc)
    quiet = policy.quiet(moment)
    decisions = []
    for item in policy.services:
        options = policy.options_of(item, context.options)
        check_options(options)
        if quiet is not None:
            decisions.append(Decision(item.service, False, f"quiet hours: {quiet}"))
        else:
            decisions.append(_decide(replace(context, options=options), item, owner, moment))
    alerts = []
    if policy.pending_age is not None:
        pending = pending_longer_than(context.active.load(), policy.pending_age, moment, context.zone)
        overdue = ((instant, age) for instant, age in pending if policy.is_overdue(age, moment))
        alerts = [Alert(age_shown(instant, age), instant.requested_time, age) for instant, age in overdue]
    return Decisions(decisions, alerts)


def _decide(context: TableContext, item: ServicePolicy, owner: Owner, now: datetime) -> Decision:
    service = service_of(item.service)
    try:
        if isinstance(service, ImmediateService):
            return _planned(item.service, service.preview(context), "")
        pending = service.pending(context, context.active.load())
        if pending:
            return _pending(context, service, pending)
        by_conditions = answer(context, item.service, item.when, now)
        if by_conditions is not None and not by_conditions.due:
            return Decision(item.service, False, by_conditions.why)
        planned = service.schedule(always_planned(context, item.service, item.when), owner, dry_run=True)
        return _planned(item.service, planned, "" if by_conditions is None else by_conditions.why)
    except (ConfigError, UnsupportedError, OrphanFilesError) as error:
        remedy = f" ({error.remedy})" if error.remedy else ""
        return Decision(item.service, False, f"{error.message}{remedy}")


def _pending(context: TableContext, service: InstantService, pending: Sequence[str]) -> Decision:
    timeline = context.active.load()
    instants = filter(None, (timeline.find(time, service.action) for time in pending))
    groups = [planned_file_groups(context.active, instant) or () for instant in instants]
    sizes = [service.extent(context, time, _WITHOUT_LIMITS).size for time in pending]
    more = f", and {len(pending) - 1} more" if len(pending) > 1 else ""
    why = f"{service.name} {pending[0]} is pending{more}"
    return Decision(service.name, True, why, sum(sizes), sum(map(len, groups)))


def _planned(service: str, planned: Scheduled, why: str) -> Decision:
    plan = planned.plan
    if plan is None:
        return Decision(service, False, planned.reason or "there is nothing to do")
    groups, size = plan.get("file_groups"), plan.get("bytes")
    return Decision(
        service,
        True,
        why or ", ".join(["by its own triggers", *_content(plan)]),
        size if isinstance(size, int) else 0,
        groups if isinstance(groups, int) else 0,
    )


def _content(plan: Json) -> Iterator[str]:
    """What a plan holds besides file groups, in words."""
    for name in ("files", "instants"):
        planned = plan.get(name)
        count = planned if isinstance(planned, int) else len(planned) if isinstance(planned, list) else 0
        if count:
            yield f"{count} {name}"
