"""The rules on the instants of a table's timeline: instants that are pending without a writer, file names that name no
instant, and commits that were archived although an older instant was not.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final

from hudi_core.errors import ConflictError, FormatError, StorageNotFoundError
from hudi_core.frozen import dataclass
from hudi_core.model.partition import join
from hudi_core.services.context import TableContext
from hudi_core.services.rollback.failed_writes import pending_rollbacks
from hudi_core.services.takeover import PendingPlan, advice, find_pending, unblocked_by
from hudi_core.timeline.instant import KNOWN_ACTIONS, WRITE_ACTIONS, Action, Instant, State
from hudi_core.timeline.naming import naming_for
from hudi_core.timeline.timeline import Timeline
from hudi_core.transaction.claim_file import current_claim, is_live
from hudi_core.transaction.writer_heartbeats import Heartbeats
from hudi_health.doctor.clocks import moment_of
from hudi_health.doctor.findings import DataFiles, Finding, duration

_DROPPABLE: Final = frozenset({"compaction", "log_compaction", "clustering", "indexing", Action.RESTORE})
"""The actions that unschedule drops without reading their plan."""
_ENDINGS: Final = tuple(f".{word}" for word in (*sorted(KNOWN_ACTIONS), "requested", "inflight"))
_STARTS_AS_TIME: Final = re.compile(r"^\d{8}", re.ASCII)


@dataclass(frozen=True, slots=True)
class PendingObservations:
    """A pending instant. `age` is the age of its file or of the instant, whichever is younger. `alive` says whether its
    owner or writer may be alive. `problem` says why its plan or claim cannot be read.
    """

    plan: PendingPlan
    age: float | None
    owner: str | None = None
    alive: bool = False
    blocks: tuple[str, ...] = ()
    problem: str | None = None


def pending_instants(
    context: TableContext, timeline: Timeline, modified: Mapping[str, float], heartbeats: Heartbeats
) -> Iterator[PendingObservations]:
    """Yields the pending instants. Rollbacks of a restore are omitted, because they stay inflight forever."""
    try:
        rollbacks = frozenset(pending_rollbacks(context.active, timeline))
    except (FormatError, StorageNotFoundError):  # Then each rollback is read below, and its damage is reported.
        rollbacks = timeline.requested_times
    for instant in timeline.pending():
        if instant.action == Action.ROLLBACK and instant.requested_time not in rollbacks:
            continue
        age, owner, alive = _age(context, instant, modified, heartbeats.now), None, False
        try:
            owner, alive = _owner(context, instant.requested_time, heartbeats)
            plan = find_pending(context, timeline, instant.requested_time)
            blocks = tuple(unblocked_by(context, timeline, plan)["work"])
        except (FormatError, StorageNotFoundError, ConflictError) as error:
            unread = PendingPlan(instant, instant.pending_action)
            yield PendingObservations(unread, age, owner, alive, problem=str(error))
        else:
            problem = None if plan.damaged is None else str(plan.damaged)
            yield PendingObservations(plan, age, owner, alive, blocks, problem)


def _age(context: TableContext, instant: Instant, modified: Mapping[str, float], now: float) -> float | None:
    """Returns the age of the file or of the instant, whichever is younger: each may look old for another reason. A time
    in the future has no age. Returns None if the file has no time.
    """
    made = modified.get(context.active.path_of(instant))
    if made is None:
        return None
    drawn = moment_of(instant.requested_time, context.zone)
    ages = (now - moment for moment in (made, drawn) if moment is not None and moment <= now)
    return min(ages, default=0.0)


def _owner(context: TableContext, instant: str, heartbeats: Heartbeats) -> tuple[str | None, bool]:
    """Returns the owner of the instant's claim, and whether the owner may be at work on the instant. Without a claim,
    the heartbeat says whether a Hudi writer may be at work.
    """
    claimed = current_claim(context.storage, instant) if instant.isdigit() else None
    if claimed is None:
        return None, not heartbeats.is_expired(instant)
    return claimed.owner.describe(), is_live(context.storage, instant, claimed.epoch, now=lambda: heartbeats.now)


def stalled_instants(pending: Iterable[PendingObservations], uri: str, stalled_after: float) -> Iterator[Finding]:
    """Reports pending instants without a live writer: instants that are old, and inflight instants whose owner released
    them or is provably dead. Also reports plans and claims that cannot be read.
    """
    for seen in pending:
        instant, kind = seen.plan.instant, seen.plan.kind
        time, named = instant.requested_time, f"{instant.pending_action} {instant.requested_time}"
        finding = partial(Finding, instant=time, age_seconds=seen.age, owner=seen.owner, blocks=seen.blocks)
        is_old = seen.age is None or seen.age > stalled_after
        if seen.problem is not None:
            fix = "bring the file back from a copy"
            if kind in _DROPPABLE:
                fix += f"; without one, drop the plan: hudictl unschedule {uri} {time}"
            what = f"the plan or claim of pending {named} cannot be read: {seen.problem}"
            yield finding("unreadable_plan", "error", what, fix)
        elif not seen.alive and (is_old or (seen.owner is not None and instant.state is State.INFLIGHT)):
            since = "" if seen.age is None else f" for {duration(seen.age)}"
            idle = "its writer shows no sign of life" if kind == "write" else "no run is at it"
            if seen.owner is not None:
                idle = f"{seen.owner}, who ran it last, is gone"
            what = f"{named} is {instant.state.value}{since}, and {idle}"
            yield finding("stuck_instant", "warning", what, _way_out(uri, seen.plan))


def _way_out(uri: str, plan: PendingPlan) -> str:
    instant, kind, command = plan.instant.requested_time, plan.kind, advice(plan, uri)
    if kind in ("write", Action.ROLLBACK):
        return f"when its writer is dead: hudictl rollback {uri} --instant {instant}"
    if kind == Action.SAVEPOINT:
        return f"delete it: hudictl savepoint delete {uri} --instant {instant}"
    if kind == Action.RESTORE or (kind == "clean" and plan.is_run_here and plan.instant.state is State.INFLIGHT):
        return f"finish it: {command}"
    return f"{command}; or drop it: hudictl unschedule {uri} {instant}" if plan.is_run_here else command


def overtaken(files: DataFiles) -> Iterator[Finding]:
    """Reports archived commits that are later than an instant on the timeline. This matters only for tables with log
    files, because only log files need the completion times of commits.
    """
    first, config = files.timeline.first(), files.context.config
    if first is not None and config.features.completion_time_in_name and config.is_merge_on_read:
        archived = files.history().instants(after=first.requested_time)
        later = [instant.requested_time for instant in archived if instant.action in WRITE_ACTIONS]
        if later:
            yield archived_behind(first, later, files.context.uri)


def archived_behind(first: Instant, later: Sequence[str], uri: str) -> Finding:
    """Returns the finding on the `first` instant and `later` archived commits (CompletionTimeQueryViewV2 of 1.2)."""
    time = first.requested_time
    fix = f"hudictl run archive {uri}"
    if not first.is_completed:
        fix = f"bring {first.action} {time} to its end, then: {fix}"
    elif first.action in (*WRITE_ACTIONS, Action.SAVEPOINT):
        fix = f"delete the savepoint: hudictl savepoint delete {uri} --instant {time}; then: {fix}"
    what = (
        f"{len(later)} commits up to {max(later)} are archived, but {first.action} {time}, which is older, is on "
        "the timeline: Hudi 1.2 takes them for pending; it leaves their log files out of the compactions that it "
        "plans, so that rows are lost, and reads them after newer files, so that deleted rows come back"
    )
    return Finding("archive_overtook", "error", what, f"neither read nor compact with Hudi 1.2 before: {fix}", time)


def latest_indexing(timeline: Timeline) -> Iterator[Finding]:
    """Reports an indexing that is the latest completed action. The next writer that begins an index takes the name of
    this indexing (generateUniqueInstantTime of 1.x).
    """
    latest = timeline.last_completed()
    if latest is not None and latest.action == Action.INDEXING:
        time = latest.requested_time
        yield Finding(
            "latest_is_indexing",
            "warning",
            f"indexing {time} is the latest completed action: a writer of Hudi 1.x that begins another index now does "
            "it under that name, and rolls back the index of this one, which stays listed; its writes fail then",
            "let one write complete with hoodie.metadata.index.async=true, by which it begins no index, before any "
            "other",
            time,
        )


def strange_names(context: TableContext) -> Iterator[Finding]:
    """Reports files of the timeline that name no instant. Hudi and we ignore them silently, so an instant that such a
    file completed looks pending.
    """
    naming = naming_for(context.config.layout_version)
    for name in context.active.names():
        if (_STARTS_AS_TIME.match(name) or name.endswith(_ENDINGS)) and not naming.instants([name]):
            yield Finding(
                "timeline_name",
                "error",
                "the name is no timeline file's, so Hudi and we pass over it: an instant that it completed looks "
                "pending or is not there",
                "find out what made it; give it its right name (<instant>.<action>, from version 8 on "
                "<instant>_<completion>.<action>), or delete it",
                path=join(context.active.folder, name),
            )
