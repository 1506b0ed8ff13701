"""Moves instants from the timeline to the archive, in an order in which a kill at any point does no harm. planner.py
says which instants are moved.

Each round writes the archive first. Then it removes the pending files from the timeline, and the completed ones, oldest
first (HUDI-7207). So an instant is on the timeline, in the archive, or for a while in both; readers take one of the
two. The next archival does not write again what an interrupted one left in both. It only removes those instants from
the timeline, also where fewer instants than the maximum are left.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Collection, Iterable
from datetime import datetime, timezone

from hudi_core.config.services.retention_config import (
    IGNORE_ORPHANS,
    KEEP_LATEST_BY_HOURS,
    ORPHANS,
    REFUSE_ORPHANS,
    ArchiveConfig,
    CleanConfig,
)
from hudi_core.errors import OrphanFilesError
from hudi_core.filegroup.write.markers import TEMP_FOLDER
from hudi_core.history.archiving import archive_writer, finish_merge, rounds
from hudi_core.metadata_table.write.staged_logs import forget_staged, staged_instants
from hudi_core.model.names import HUDI_HEARTBEATS
from hudi_core.request.results import InstantResult, Result
from hudi_core.services.archive.listing import Search, appended_log_bytes, search
from hudi_core.services.archive.planner import (
    NOT_LISTED,
    ArchiveInputs,
    ArchivePlan,
    Findings,
    plan_archival,
    start_after,
)
from hudi_core.services.clean.planner import last_clean
from hudi_core.services.clean.retention import RetentionInputs, earliest_to_retain
from hudi_core.services.context import TableContext
from hudi_core.services.lifecycle import UnitProgress
from hudi_core.services.rollback.failed_writes import pending_rollbacks
from hudi_core.services.service import Scheduled, Service
from hudi_core.timeline.actions.commit import CommitMetadata, replaced_file_groups
from hudi_core.timeline.instant import COMMIT_ACTIONS, REPLACING_ACTIONS, Action, Instant
from hudi_core.timeline.instant_time import parse_instant
from hudi_core.timeline.timeline import Timeline
from hudi_core.transaction.claim_file import claimed_instants, forget_claims
from hudi_core.transaction.locks.base import TableLock
from hudi_core.transaction.owner import Owner
from hudi_core.view.listing import walk_partitions

log = logging.getLogger(__name__)

ARCHIVED = "archived"
_NAMED = 10


class ArchiveService(Service):
    """Archives tables of versions 6, 8 and 9."""

    name = "archive"
    has_instants = False

    def pending(self, context: TableContext, timeline: Timeline) -> list[str]:
        return []

    def schedule(self, context: TableContext, owner: Owner, *, dry_run: bool) -> Scheduled:
        """Returns what `run_now` would archive, and what keeps the rest. Raises as `look`; ConfigError, FormatError."""
        config = ArchiveConfig.of(context.options)
        plan, _ = look(context, config)
        if not plan.instants:
            return Scheduled(None, None, plan.reason)
        counts = dict(sorted(Counter(item.action for item in plan.instants).items()))
        instants = [{"instant": item.requested_time, "action": item.action} for item in plan.instants]
        return Scheduled(None, {"instants": instants, "by_action": counts, "held_by": plan.reason})

    def run_now(self, context: TableContext, owner: Owner, progress: UnitProgress | None) -> Result:
        """Archives what may be archived, oldest first. Returns one result for each instant, or the reason why there is
        none. Lists the files before it takes the lock, and applies the rules again under it. Raises OrphanFilesError
        before anything is written, and LockError: instants that were archived until then stay archived.
        """
        config = ArchiveConfig.of(context.options)
        planned, findings = look(context, config)
        if not planned.instants:
            log.info("nothing to archive: %s", planned.reason)
            return Result((), planned.reason)
        with context.lock(owner) as lock:
            return _archive(context, config, lock, planned.instants, findings, progress)


def look(context: TableContext, config: ArchiveConfig) -> tuple[ArchivePlan, Findings]:
    """Returns the plan and what files say. Raises OrphanFilesError where options forbid to archive beside orphans."""
    timeline = context.active.load()
    inputs = read_inputs(context, timeline, config)
    most, findings = find(context, timeline, inputs, config)
    plan = plan_archival(inputs, config, findings) if most.instants else most
    _refuse_orphans(findings, config)
    return plan, findings


def _refuse_orphans(findings: Findings, config: ArchiveConfig) -> None:
    if config.orphans != REFUSE_ORPHANS or not findings.orphans:
        return
    paths = sorted((time, path) for time, orphans in findings.orphans.items() for path in orphans)
    named = ", ".join(f"{path} (instant {time})" for time, path in paths[:_NAMED])
    more = f" and {len(paths) - _NAMED} more" if len(paths) > _NAMED else ""
    raise OrphanFilesError(
        f"{len(paths)} files are of instants that never completed; readers would take them for committed after "
        f"the archival: {named}{more}",
        path=paths[0][1],
        remedy="make sure that no writer is at work on these instants and delete the files (log files of "
        "version 6: compact or cluster their file "
        f"groups, then clean), or set {ORPHANS.name}=leave to keep those instants on the timeline",
    )


def _archive(
    context: TableContext,
    config: ArchiveConfig,
    lock: TableLock,
    passed: Collection[Instant],
    findings: Findings,
    progress: UnitProgress | None,
) -> Result:
    history_folder = context.config.history_folder
    if not context.config.features.completion_time_in_name:
        finish_merge(context.storage, history_folder)
    inputs = read_inputs(context, context.active.load(), config)
    plan = plan_archival(inputs, config, findings)
    keys = {item.sort_key for item in passed}
    instants = [item for item in plan.instants if item.sort_key in keys]
    writer = archive_writer(context.storage, context.config.features, history_folder, config, lock.check)
    with_markers = {folder.rsplit("/", 1)[-1] for folder in context.storage.list_folders(TEMP_FOLDER)}
    claimed = claimed_instants(context.storage) - inputs.timeline.pending().requested_times
    results: list[InstantResult] = []
    for taken in rounds(context.storage, context.active, context.zone, instants):
        times = {item.instant.requested_time for item in taken}
        for time in sorted(times & with_markers):  # markers of a completed instant are not used
            context.storage.delete_folder(f"{TEMP_FOLDER}/{time}")
        _remove_claims(context, claimed & times)
        lock.check()
        if fresh := [item for item in taken if item.key not in inputs.interrupted]:
            writer.write(fresh)
        lock.check()
        context.active.forget(item.instant for item in taken)
        results += [
            InstantResult(item.instant.requested_time, item.instant.action, ARCHIVED, files_deleted=len(item.files))
            for item in taken
        ]
        if progress is not None:
            progress(len(results), len(instants))
    lock.check()
    if results:
        timeline = context.active.load()
        first = min(timeline.requested_times, default="")
        # These instants are before the whole timeline: no run can reach them any more.
        _remove_claims(context, (instant for instant in claimed if instant < first))
        # Records that are staged for the metadata table. No process adds any under the lock.
        for instant in staged_instants(context.storage) - timeline.pending().requested_times:
            forget_staged(context.storage, instant)
        writer.finish()
    log.info("%d instants archived; %s", len(results), plan.reason)
    return Result(tuple(results), None if results else plan.reason)


def _remove_claims(context: TableContext, instants: Iterable[str]) -> None:
    """Removes claims and heartbeat of instants that are over: completed by another process, or off the timeline."""
    for instant in instants:
        context.storage.delete(f"{HUDI_HEARTBEATS}/{instant}")
        forget_claims(context.storage, instant)


def read_inputs(context: TableContext, timeline: Timeline, config: ArchiveConfig) -> ArchiveInputs:
    """Reads the inputs from the timeline. Raises FormatError naming a damaged clean, rollback or archive file."""
    clean = CleanConfig.of(context.options)
    publisher = context.metadata_publisher()
    pending = pending_rollbacks(context.active, timeline).values()
    return ArchiveInputs(
        timeline=timeline,
        merge_on_read=context.config.is_merge_on_read,
        counts_cleans=not context.config.features.completion_time_in_name,
        clean_policy=clean.policy,
        cleaner_keeps=_cleaner_keeps(context, timeline, clean),
        last_clean=last_clean(context.active, timeline),
        has_metadata_table=publisher is not None,
        metadata_compaction=None if publisher is None else publisher.latest_compaction(),
        rolling_back=frozenset(target for target in pending if target is not None),
        interrupted=archive_writer(
            context.storage, context.config.features, context.config.history_folder, config, lambda: None
        ).held(timeline.completed().instants),
    )


def find(
    context: TableContext, timeline: Timeline, inputs: ArchiveInputs, config: ArchiveConfig
) -> tuple[ArchivePlan, Findings]:
    """Returns what the timeline allows to archive, and what files say against it. Lists the storage, since the metadata
    table knows no orphans. Needs no lock: files of replaced file groups only become fewer; orphans may appear.
    """
    most = plan_archival(inputs, config)
    if not most.commits:
        return most, NOT_LISTED  # cleans and rollbacks alone do not move the timeline's start

    def read(instant: Instant) -> CommitMetadata:
        metadata = context.active.read_commit(instant)
        metadata.check_paths(source=context.active.path_of(instant))
        return metadata

    replaced = replaced_file_groups(Timeline(most.commits), read)
    searched = Search(None, None, frozenset(), replaced)
    if config.orphans != IGNORE_ORPHANS:
        searched = Search(
            begin=start_after(timeline, frozenset()),
            end=start_after(timeline, frozenset(item.requested_time for item in most.commits))
            or timeline.commits().instants[-1].requested_time,
            committed=timeline.commits().requested_times,
            replaced=replaced,
            written=appended_log_bytes(context, timeline),
            hidden=_hidden(context, timeline, most),
            clusterings=timeline.of_actions(*REPLACING_ACTIONS).requested_times,
        )
    list_files = context.storage.list_files
    named = ((name, list_files(name)) for name in sorted({group.partition for group in replaced}))
    partitions = named if searched.begin is None else walk_partitions(context.storage, list_files)
    return most, search(context.storage, partitions, searched)


def _hidden(context: TableContext, timeline: Timeline, plan: ArchivePlan) -> dict[str, str]:
    first = min(timeline.savepoints(), default=None)
    behind = [item for item in plan.commits if first is not None and item.requested_time > first]
    return {
        stat.path: item.requested_time for item in behind for stat in context.active.read_commit(item).write_stats()
    }


def _cleaner_keeps(context: TableContext, timeline: Timeline, clean: CleanConfig) -> str | None:
    """Returns the earliest commit that the cleaner retains. The policy by hours counts from the last commit. Pending
    compactions hold nothing back (ArchivalUtils, getCommitsTimeline).
    """
    last = timeline.commits().last()
    now = datetime.now(timezone.utc)
    if clean.policy == KEEP_LATEST_BY_HOURS and last is not None:
        now = parse_instant(last.requested_time, context.zone)
    writes = timeline.of_actions(*COMMIT_ACTIONS, Action.CLUSTERING)
    earliest = earliest_to_retain(RetentionInputs(writes, now, context.zone), clean)
    return None if earliest is None else earliest.requested_time
