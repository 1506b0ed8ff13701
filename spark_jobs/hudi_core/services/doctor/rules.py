"""The doctor's rules, pure functions of observations; more of them are beside what reads clocks, locks and files."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from hudi_core.services.doctor.clocks import clock_skew, instant_ahead, timeline_zone
from hudi_core.services.doctor.data_files.buckets import shared_buckets
from hudi_core.services.doctor.data_files.compression import codec_saving
from hudi_core.services.doctor.data_files.copied_files import copied_files
from hudi_core.services.doctor.data_files.cut_files import cut_files
from hudi_core.services.doctor.data_files.log_files import damaged_logs
from hudi_core.services.doctor.data_files.mislabelled_files import mislabelled_files
from hudi_core.services.doctor.data_files.orphans import orphans
from hudi_core.services.doctor.finding import Finding, Observations, PendingObservations, duration
from hudi_core.services.doctor.indexes import indexes
from hudi_core.services.doctor.listings import listings
from hudi_core.services.doctor.locks import lock
from hudi_core.services.doctor.wheels import executors, wheels
from hudi_core.services.doctor.writer_rules import unnamed_indexes, writers
from hudi_core.services.repair.pending_plan import not_run_here
from hudi_core.services.rollback.failed_writes import finish_restore
from hudi_core.timeline.instant import WRITE_ACTIONS, Action, State

_DROPPABLE = frozenset({"compaction", "log_compaction", "clustering", "indexing", Action.RESTORE})
"""What unschedule drops without its plan."""
_ORDER = {"error": 0, "warning": 1, "info": 2}


def diagnose(observed: Observations) -> list[Finding]:
    """All findings, the worst first; of one severity in the order of the rules and then of the timeline."""
    return sorted(
        (finding for rule in _RULES for finding in rule(observed)), key=lambda finding: _ORDER[finding.severity]
    )


def stalled_instants(observed: Observations) -> Iterator[Finding]:
    """Pending instants without a live writer: for long, or with an owner that released them or is provably dead."""
    for item in observed.pending:
        time, named = item.instant.requested_time, f"{item.instant.pending_action} {item.instant.requested_time}"
        found = partial(Finding, instant=time, age_seconds=item.age, owner=item.owner, blocks=item.blocks)
        is_old = item.age is None or item.age > observed.stalled_after
        if item.problem is not None:
            fix = "bring the file back from a copy"
            if item.kind in _DROPPABLE:
                fix += f"; without one, drop the plan: hudictl unschedule {observed.uri} {time}"
            what = f"the plan or claim of pending {named} cannot be read: {item.problem}"
            yield found("unreadable_plan", "error", what, fix)
        elif not item.alive and (is_old or (item.owner is not None and item.instant.state is State.INFLIGHT)):
            since = "" if item.age is None else f" for {duration(item.age)}"
            what = f"{named} is {item.instant.state.value}{since}, and {_without_owner(item)}"
            yield found("stuck_instant", "warning", what, _way_out(observed.uri, item))


def _without_owner(item: PendingObservations) -> str:
    if item.owner is not None:
        return f"{item.owner}, who ran it last, is gone"
    return "its writer shows no sign of life" if item.kind == "write" else "no run is at it"


def _way_out(uri: str, item: PendingObservations) -> str:
    instant = item.instant.requested_time
    if item.kind in ("write", Action.ROLLBACK):
        return f"when its writer is dead: hudictl rollback {uri} --instant {instant}"
    if item.kind == Action.RESTORE:
        return f"finish it: {finish_restore(item.restores_to, instant, uri)}"
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
    first, time = found.first, found.first.requested_time
    fix = f"hudictl run archive {observed.uri}"
    if not first.is_completed:
        fix = f"bring {first.action} {time} to its end, then: {fix}"
    elif first.action in (*WRITE_ACTIONS, Action.SAVEPOINT):
        fix = f"delete the savepoint: hudictl savepoint delete {observed.uri} --instant {time}; then: {fix}"
    what = (
        f"{found.count} commits up to {found.latest} are archived, but {first.action} {time}, which is older, is on "
        "the timeline: Hudi 1.2 takes them for pending; it leaves their log files out of the compactions that it "
        "plans, so that rows are lost, and reads them after newer files, so that deleted rows come back"
    )
    yield Finding("archive_overtook", "error", what, f"neither read nor compact with Hudi 1.2 before: {fix}", time)


def latest_indexing(observed: Observations) -> Iterator[Finding]:
    """An indexing of Hudi's own planning, whose name the next writer takes (generateUniqueInstantTime of 1.x)."""
    time = observed.latest_indexing
    if time is not None:
        yield Finding(
            "latest_is_indexing",
            "warning",
            f"indexing {time} is the latest completed action: a writer of Hudi 1.x that begins another index now does "
            "it under that name, and rolls back the index of this one, which stays listed; its writes fail then",
            "let one write complete with hoodie.metadata.index.async=true, by which it begins no index, before any "
            "other",
            time,
        )


def metadata_drop(observed: Observations) -> Iterator[Finding]:
    """A metadata table that was being dropped when its process died."""
    if observed.metadata_drop_unfinished:
        yield Finding(
            "metadata_drop_unfinished",
            "warning",
            "hoodie.properties list no metadata table, but parts of one are left: a drop was cut off",
            "a restore finishes it under the lock; else delete .hoodie/metadata while no writer is at work",
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
    damaged_logs,
    copied_files,
    shared_buckets,
    mislabelled_files,
    cut_files,
    indexes,
    strange_names,
    stalled_instants,
    lock,
    writers,
    unnamed_indexes,
    timeline_zone,
    clock_skew,
    instant_ahead,
    overtaken,
    latest_indexing,
    metadata_drop,
    store,
    wheels,
    executors,
    codec_saving,
)
