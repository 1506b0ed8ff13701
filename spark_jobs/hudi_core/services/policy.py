"""Says which services of a table are due by the conditions of a policy (request.services), and why. Writes nothing. The
form of a policy is in config/policy_file.py; quiet hours and the order of services are in request/policy.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import datetime, timezone
from typing import Final

from hudi_core.config.engine_config import EngineConfig
from hudi_core.config.options import check_options
from hudi_core.config.services.clustering_config import (
    ASYNC_COMMITS,
    INLINE_COMMITS,
    SMALL_FILE_LIMIT,
    ClusteringConfig,
)
from hudi_core.config.services.compaction_config import (
    COMPACTION_DELTA_COMMITS,
    COMPACTION_DELTA_SECONDS,
    COMPACTION_TRIGGER,
    CompactionConfig,
    Trigger,
)
from hudi_core.config.services.retention_config import CLEAN_TRIGGER_COMMITS
from hudi_core.engine.protocol import Json
from hudi_core.errors import ConfigError, OrphanFilesError, UnsupportedError
from hudi_core.frozen import dataclass
from hudi_core.history.archived import ArchivedTimeline
from hudi_core.request.policy import Policy, ServicePolicy
from hudi_core.request.services import Conditions
from hudi_core.services.clustering.planner import last_clustering
from hudi_core.services.clustering.strategies import RULES, chosen_partitions
from hudi_core.services.compaction.strategies import Strategies, is_after, last_request
from hudi_core.services.context import TableContext
from hudi_core.services.rewriting.planning import left_partitions, was_cut
from hudi_core.services.service import Scheduled, Service, service_of
from hudi_core.timeline.actions.commit import Operation
from hudi_core.timeline.instant import COMMIT_ACTIONS, REPLACING_ACTIONS, Action, Instant
from hudi_core.timeline.instant_time import zone_of
from hudi_core.timeline.pending_plans import planned_file_groups
from hudi_core.timeline.timeline import LONG_AGO, Timeline, age_shown, pending_longer_than, seconds_since
from hudi_core.transaction.owner import Owner

_ALWAYS: Final[Mapping[str, Mapping[str, str]]] = {
    "compaction": {
        COMPACTION_TRIGGER.name: Trigger.NUM_OR_TIME.value,
        COMPACTION_DELTA_COMMITS.name: "1",
        COMPACTION_DELTA_SECONDS.name: "0",
    },
    "clustering": {INLINE_COMMITS.name: "0", ASYNC_COMMITS.name: "0"},
    "clean": {CLEAN_TRIGGER_COMMITS.name: "1"},
}
"""The options that plan a service when a condition makes it due. Its triggers say when other writers plan it."""


@dataclass(frozen=True, slots=True)
class FileSizes:
    """The bytes of base files and of log files in latest slices; how many base files are small, and their bytes."""

    base: int = 0
    logs: int = 0
    small_files: int = 0
    small: int = 0


@dataclass(frozen=True, slots=True)
class Unseen:
    """How many commits came after the `last` known run of a service, and when the first of them completed."""

    count: int
    first: str
    last: Instant | None = None


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether a service is due. `why` names the conditions that hold, or else how far each condition is from it. `size`
    is the bytes to read or delete, `file_groups` how many there are; 0 where that is unknown.
    """

    service: str
    due: bool
    why: str
    size: int = 0
    file_groups: int = 0


def answer(
    context: TableContext, service: str, when: Mapping[str, str], now: datetime | None = None
) -> Decision | None:
    """Returns the decision by the conditions `when`; None without conditions: then the service's own triggers decide. A
    service is due where its last plan left something out for lack of bytes. Where the last plan left out partitions for
    another reason, files count even without a commit since. Raises ConfigError. May list the table once.
    """
    conditions = Conditions.of(service, when)
    if conditions == Conditions():
        return None
    timeline = context.active.load()
    last = last_run(context, timeline, service)
    if service in ("compaction", "clustering") and was_cut(context, last):
        planned = last.requested_time if last else ""
        return Decision(service, True, f"the plan {planned} left out what did not fit into its bytes")
    since = commits_since(context, timeline, service, last)
    moment = now or datetime.now(timezone.utc)
    compared = [(False, f"no commit since {_shown(last)}")]
    if since:
        unseen = Unseen(len(since), min(commit.completed_at for commit in since), last)
        compared = _by_commits(context, conditions, unseen, moment)
        if last is None and compared and not any(holds for holds, _ in compared):
            compared = _by_archived(context, conditions, timeline, service, unseen, moment)
    if conditions.needs_files and (since or left_partitions(context, last)):
        compared += _by_files(conditions, service, file_sizes(context, timeline, service, moment))
    true = [text for holds, text in compared if holds]
    return Decision(service, bool(true), "; ".join(true or [text for _, text in compared]))


def always_planned(context: TableContext, service: str, when: Mapping[str, str]) -> TableContext:
    """Returns the table with the options that plan the service where its conditions make it due."""
    if not when:
        return context
    return replace(context, options={**context.options, **_ALWAYS.get(service, {})})


def last_run(context: TableContext, timeline: Timeline, service: str) -> Instant | None:
    """Returns the newest instant of the service on the timeline: a completed clean, or any compaction or clustering."""
    if service == "compaction":
        return last_request(timeline)
    if service == "clean":
        return timeline.completed().of_actions(Action.CLEAN).last()
    return last_clustering(context, timeline)


def commits_since(context: TableContext, timeline: Timeline, service: str, last: Instant | None) -> list[Instant]:
    """Returns the completed commits that the service has not seen, oldest first; a compaction sees delta commits."""
    commits = timeline.commits()
    if service == "compaction":
        commits = commits.of_actions(Action.DELTA_COMMIT)
    if last is None:
        return [*commits]
    by_completion = context.config.features.completion_time_in_name
    return [item for item in commits if item != last and is_after(item, last, by_completion=by_completion)]


def file_sizes(context: TableContext, timeline: Timeline, service: str, now: datetime) -> FileSizes:
    """Returns the sizes in partitions that a compaction or clustering looks at. Raises ConfigError for options."""
    limit = SMALL_FILE_LIMIT.read(context.options)
    view = context.view(timeline)
    bases: list[int] = []
    logs = 0
    for partition in _planned_partitions(context, service, view.partitions(), now):
        for item in view.latest_merged_slices(partition):
            logs += sum(file.size for file in item.log_files)
            bases += [] if item.base_file is None else [item.base_file.size]
    small = [size for size in bases if size < limit]
    return FileSizes(sum(bases), logs, len(small), sum(small))


def _planned_partitions(context: TableContext, service: str, paths: Sequence[str], now: datetime) -> Sequence[str]:
    local = now.astimezone(zone_of(context.zone))
    if service == "compaction":
        return Strategies(CompactionConfig.of(context.options), local.date()).partitions(paths)
    rules = RULES[context.config.features.conflict_release]
    return chosen_partitions(ClusteringConfig.of(context.options), paths, rules, hour=local.hour)


def _by_commits(context: TableContext, conditions: Conditions, unseen: Unseen, now: datetime) -> list[tuple[bool, str]]:
    compared, last = [], _shown(unseen.last)
    if conditions.commits is not None:
        compared.append(_compared(unseen.count, conditions.commits, f"commits since {last}", str))
    if conditions.age is not None:
        age, since = max(0, seconds_since(unseen.first, now, context.zone)), f"the first commit after {last}"
        if age == LONG_AGO:  # a time that is no date, such as that of a bootstrap
            compared.append((True, f"{since} is {unseen.first}, which is no date and counts as long ago"))
        else:
            compared.append(_compared(age, conditions.age, f"since {since}", "{:.0f} s".format))
    return compared


def _by_archived(
    context: TableContext, conditions: Conditions, timeline: Timeline, service: str, unseen: Unseen, now: datetime
) -> list[tuple[bool, str]]:
    """Compares like _by_commits, and counts the archive's commits, newest first, to the service's run or the result."""
    history = context.history()
    counts = (Action.DELTA_COMMIT,) if service == "compaction" else COMMIT_ACTIONS
    compared = _by_commits(context, conditions, unseen, now)
    for instant in history.latest():
        if timeline.find(instant.requested_time, instant.action) is not None:
            continue  # archival copies instants before it removes them
        if _is_archived_run(history, service, instant):
            return _by_commits(context, conditions, replace(unseen, last=instant), now)
        if instant.action in counts:
            unseen = Unseen(unseen.count + 1, min(unseen.first, instant.completed_at))
            compared = _by_commits(context, conditions, unseen, now)
            if any(holds for holds, _ in compared):
                break
    return compared


def _is_archived_run(history: ArchivedTimeline, service: str, instant: Instant) -> bool:
    """Whether an archived instant is the service's run (last_run). A clustering has the action of overwrites."""
    if service == "clustering":
        commits = history.commits([instant]) if instant.action in REPLACING_ACTIONS else ()
        return any(metadata.operation_type == Operation.CLUSTER for _, metadata in commits)
    return instant.action == (Action.CLEAN if service == "clean" else Action.COMMIT)


def _by_files(conditions: Conditions, service: str, sizes: FileSizes) -> Iterator[tuple[bool, str]]:
    clusters = service == "clustering"
    if conditions.size is not None:
        size, what = (sizes.small, "in small files") if clusters else (sizes.logs, "in log files")
        yield _compared(size, conditions.size, what, lambda value: f"{value / (1 << 20):.1f} MiB")
    if conditions.log_ratio is not None:
        ratio = sizes.logs / max(1, sizes.base)
        yield _compared(ratio, conditions.log_ratio, "bytes of log files for each of base files", "{:.2f}".format)
    if conditions.small_files is not None:
        yield _compared(sizes.small_files, conditions.small_files, "small files", str)


def _compared(value: float, due: float, what: str, shown: Callable[..., str]) -> tuple[bool, str]:
    return value >= due, f"{shown(value)} {what}, due at {shown(due)}"


def _shown(last: Instant | None) -> str:
    return f"{last.pending_action} {last.requested_time}" if last else "the beginning of the timeline"


_WITHOUT_LIMITS: Final = EngineConfig(max_bytes=2**62, max_units=2**31)


@dataclass(frozen=True, slots=True)
class Alert:
    """An instant that is pending for too long."""

    what: str
    instant: str
    age_seconds: int


@dataclass(frozen=True, slots=True)
class Decisions:
    """The decisions and alerts of a table."""

    services: Sequence[Decision]
    alerts: Sequence[Alert] = ()

    def to_dict(self) -> Json:
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
    """Returns one decision for each service, in the policy's order, and the alerts of the policy. A service is due when
    it has pending instants, or when a condition holds and its planner finds something to do. Raises ConfigError for
    options that are not valid, FormatError for damaged plans.
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
        pending = service.pending(context, context.active.load())
        if pending:
            return _pending(context, service, pending)
        by_conditions = answer(context, item.service, item.when, now)
        if by_conditions is not None and not by_conditions.due:
            return by_conditions
        planned = service.schedule(always_planned(context, item.service, item.when), owner, dry_run=True)
        return _planned(item.service, planned, "" if by_conditions is None else by_conditions.why)
    except (ConfigError, UnsupportedError, OrphanFilesError) as error:
        remedy = f" ({error.remedy})" if error.remedy else ""
        return Decision(item.service, False, f"{error.message}{remedy}")


def _pending(context: TableContext, service: Service, pending: Sequence[str]) -> Decision:
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
    """Yields what a plan holds besides file groups, in words."""
    for name in ("files", "instants"):
        planned = plan.get(name)
        count = planned if isinstance(planned, int) else len(planned) if isinstance(planned, list) else 0
        if count:
            yield f"{count} {name}"
