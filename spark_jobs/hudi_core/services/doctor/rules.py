"""The doctor's rules: observations in, findings out. Pure; each rule is one function.

The rules on clocks, listings, locks, orphans and wheels are beside what reads them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from hudi_core.services.doctor.clocks import clock_skew, instant_ahead, timeline_zone
from hudi_core.services.doctor.finding import Finding, duration
from hudi_core.services.doctor.listings import listings
from hudi_core.services.doctor.locks import lock
from hudi_core.services.doctor.observations import Observations, PendingObservations
from hudi_core.services.doctor.orphans import orphans
from hudi_core.services.doctor.wheels import executors, wheels
from hudi_core.services.doctor.writer_rules import writers
from hudi_core.services.repair.pending_plan import finish_restore, not_run_here
from hudi_core.timeline.instant import WRITE_ACTIONS, Action, State

_DROPPABLE = frozenset({"compaction", "log_compaction", "clustering", "indexing"})
_ORDER = {"error": 0, "warning": 1, "info": 2}


def diagnose(observed: Observations) -> list[Finding]:
    """All findings, the worst first; of one severity in the order of the rules and then of the timeline."""
    return sorted(
        (finding for rule in _RULES for finding in rule(observed)), key=lambda finding: _ORDER[finding.severity]
    )


def stalled_instants(observed: Observations) -> Iterator[Finding]:
    """Pending instants without a live writer: for long, or with an owner that released them or is provably dead."""
    for item in observed.pending:
        instant = item.instant
        if item.problem is not None:
            yield Finding(
                "unreadable_plan",
                "error",
                f"the plan or claim of pending {instant.pending_action} {instant.requested_time} cannot be read: "
                f"{item.problem}",
                f"bring the file back from a copy{_or_drop(observed.uri, item)}",
                instant.requested_time,
                age_seconds=item.age,
                owner=item.owner,
                blocks=item.blocks,
            )
        elif not item.alive and (
            _is_old(item, observed.stalled_after) or (item.owner is not None and instant.state is State.INFLIGHT)
        ):
            since = "" if item.age is None else f" for {duration(item.age)}"
            yield Finding(
                "stuck_instant",
                "warning",
                f"{instant.pending_action} {instant.requested_time} is {instant.state.value}{since}, and "
                f"{_without_owner(item)}",
                _way_out(observed.uri, item),
                instant.requested_time,
                age_seconds=item.age,
                owner=item.owner,
                blocks=item.blocks,
            )


def _is_old(item: PendingObservations, stalled_after: float) -> bool:
    return item.age is None or item.age > stalled_after


def _without_owner(item: PendingObservations) -> str:
    if item.owner is not None:
        return f"{item.owner}, who ran it last, is gone"
    return "its writer shows no sign of life" if item.kind == "write" else "nobody runs it"


def _or_drop(uri: str, item: PendingObservations) -> str:
    """Only what unschedule takes without its plan."""
    if item.kind not in _DROPPABLE:
        return ""
    return f"; without one, drop the plan: hudictl unschedule {uri} {item.instant.requested_time}"


def _way_out(uri: str, item: PendingObservations) -> str:
    instant = item.instant.requested_time
    if item.kind in ("write", Action.ROLLBACK):
        return f"when its writer is dead: hudictl rollback {uri} --instant {instant}"
    if item.kind == Action.RESTORE:
        return f"finish it: {finish_restore(item.restores_to, uri)}"
    if item.kind == Action.SAVEPOINT:
        return f"delete it: hudictl savepoint delete {uri} --instant {instant}"
    if not item.runs_here:
        return not_run_here(item.kind, instant, uri)
    if item.kind == "clean" and item.instant.state is State.INFLIGHT:
        return f"finish it: hudictl run clean {uri} --instant {instant}"
    return f"hudictl run {item.kind} {uri} --instant {instant}; or drop it: hudictl unschedule {uri} {instant}"


def store(observed: Observations) -> Iterator[Finding]:
    """A storage that cannot carry a timeline, or an untested one."""
    found = observed.store
    if not found.exclusive_create:
        yield Finding(
            "store_not_atomic",
            "error",
            f"the storage library of {found.scheme}:// offers no exclusive create: two runs may both believe to have "
            "won",
            "run one writer and one service at a time, or keep the table on a storage with conditional puts",
        )
    elif found.scheme not in ("file", "memory"):
        yield Finding(
            "store_unproven",
            "info",
            "timeline and lease rest on conditional puts, which many S3-compatible servers get wrong under a race",
            f"once per storage: hudictl probe-store on a folder of the same bucket as {observed.uri}",
        )


def overtaken(observed: Observations) -> Iterator[Finding]:
    """Commits archived behind an instant that is still on the timeline (CompletionTimeQueryViewV2 of 1.2)."""
    found = observed.overtaken
    if found is None:
        return
    first = found.first
    fix = f"hudictl run archive {observed.uri}"
    if not first.is_completed:
        fix = f"bring {first.action} {first.requested_time} to its end, then: {fix}"
    elif first.action in (*WRITE_ACTIONS, Action.SAVEPOINT):
        fix = (
            f"delete the savepoint: hudictl savepoint delete {observed.uri} --instant "
            f"{first.requested_time}; then: {fix}"
        )
    yield Finding(
        "archive_overtook",
        "error",
        (
            f"{found.count} commits up to {found.latest} are archived, but {first.action} {first.requested_time}, "
            "which is older, is on the timeline: Hudi 1.2 takes them for pending, and leaves their log files out of "
            "the compactions that it plans, so that rows are lost"
        ),
        f"plan no compaction with Hudi 1.2 before: {fix}",
        first.requested_time,
    )


def metadata_drop(observed: Observations) -> Iterator[Finding]:
    """A metadata table that was being dropped when its process died."""
    if observed.metadata_drop_unfinished:
        yield Finding(
            "metadata_drop_unfinished",
            "warning",
            "hoodie.properties list no metadata table, but parts of one are left: a drop was cut off",
            "a restore finishes it under the lock; else delete .hoodie/metadata while nobody writes",
            path=".hoodie/metadata",
        )


def strange_names(observed: Observations) -> Iterator[Finding]:
    """Timeline files whose name does not parse: what they completed looks pending, for Hudi and for us."""
    for path in observed.strange_names:
        yield Finding(
            "timeline_name",
            "error",
            "the name is no timeline file's, so Hudi and we pass over it: an instant that it completed looks "
            "pending or is not there",
            "find out what made it; give it its right name (<instant>.<action>, from version 8 on "
            "<instant>_<completion>.<action>), or delete it",
            path=path,
        )


_RULES: tuple[Callable[[Observations], Iterator[Finding]], ...] = (
    orphans,
    listings,
    strange_names,
    stalled_instants,
    lock,
    writers,
    timeline_zone,
    clock_skew,
    instant_ahead,
    overtaken,
    metadata_drop,
    store,
    wheels,
    executors,
)
