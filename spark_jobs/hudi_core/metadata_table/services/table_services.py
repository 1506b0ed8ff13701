"""The metadata table's services in the order of HoodieBackedTableMetadataWriter.performTableServices, without a write
of the data table: the rollback of failed deltacommits, the clean, and the archival of the timeline (TimelineArchiverV1
and V2, as HoodieMetadataWriteUtils configures them). compaction.py compacts the metadata table.

The archival keeps one commit more, at least and at most, than the data table's archival. It removes only instants that
are older than the data table's earliest active commit, the latest compaction of the metadata table, and every pending
instant of the metadata table. In each round it writes the archive before it removes the instants.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import takewhile
from typing import Final

from hudi_core.config.metadata_config import METADATA_DELTA_COMMITS
from hudi_core.config.services.retention_config import (
    CLEAN_COMMITS_RETAINED,
    KEEP_LATEST_COMMITS,
    KEEP_LATEST_FILE_VERSIONS,
    ArchiveConfig,
)
from hudi_core.config.table_config import TableConfig
from hudi_core.errors import FormatError
from hudi_core.frozen import dataclass
from hudi_core.history.archiving import archive_writer, finish_merge, rounds
from hudi_core.history.manifest import Guard
from hudi_core.metadata_table.instants import (
    OperationSuffix,
    is_of_indexing,
    latest_compaction,
    unfinished_initializations,
)
from hudi_core.metadata_table.read.file_group import ROOT, file_groups, merged_slices, partition_folders, pending_bases
from hudi_core.metadata_table.services.compaction import MetadataCompaction
from hudi_core.metadata_table.timeline import MetadataTimeline, ServiceOutcome
from hudi_core.metadata_table.write.rollback import MetadataRollback
from hudi_core.metadata_table.write.staged_logs import Workers
from hudi_core.model.names import WriteToken
from hudi_core.model.partition import join
from hudi_core.storage.base import Storage
from hudi_core.storage.registry import plan_address
from hudi_core.timeline.actions.clean import (
    CleanedPartition,
    CleanMetadata,
    CleanPlan,
    RetainedInstant,
    encode_clean_metadata,
    encode_clean_plan,
)
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.timeline.instant import COMMIT_ACTIONS, WRITE_ACTIONS, Action, Instant
from hudi_core.timeline.pending_plans import read_clean_plan, rollback_target
from hudi_core.timeline.timeline import Timeline
from hudi_core.transaction.instant_generator import InstantClock
from hudi_core.view.file_group import FileSlice

log = logging.getLogger(__name__)

PlanAndPath = tuple[CleanPlan, str]

_VERSIONS: Final = 2
_LEAST_COMMITS: Final = 3
_MORE_THAN_DATA: Final = 1.2
"""The metadata table keeps a fifth more commits than the data table's clean (HoodieMetadataWriteUtils)."""
_INSTANTS_BETWEEN: Final = 3
_THREADS: Final = 16
"""The deletes at a time: on object stores each one waits for a request."""


def clean(metadata_timeline: MetadataTimeline, data_commits_retained: int) -> ServiceOutcome:
    """Finishes the pending cleans; without any, cleans. `data_commits_retained` is the number of commits that the data
    table's clean keeps (`hoodie.clean.commits.retained`). The caller holds the table lock. Killed anywhere, it can be
    run again. First raises FormatError for a pending plan that names foreign files or files that readers need.
    """
    active, storage = metadata_timeline.active, metadata_timeline.storage
    timeline = active.load()
    pending = _pending_plans(active, timeline)
    if pending:
        for plan, path in pending.values():
            _check_unneeded(metadata_timeline, timeline, plan, path)
        return _execute_all(metadata_timeline, pending)
    timeline = timeline.filter(lambda item: item.is_completed or item.action != Action.CLEAN)
    latest = timeline.completed().of_actions(Action.DELTA_COMMIT).last()
    compaction = latest_compaction(timeline)
    if latest is None or compaction is None:
        return ServiceOutcome(reason="the metadata table was never compacted: it has one slice of each file group")
    if len(timeline.completed().after(compaction.requested_time)) < _INSTANTS_BETWEEN:
        return ServiceOutcome(
            reason=f"fewer than {_INSTANTS_BETWEEN} instants came after compaction {compaction.requested_time}: "
            "readers may need them"
        )
    retained = max(_LEAST_COMMITS, int(data_commits_retained * _MORE_THAN_DATA))
    plan = _plan(metadata_timeline, timeline, retained)
    if not plan.files:
        return ServiceOutcome(reason="every slice of the metadata table is to be kept")
    if metadata_timeline.features.metadata_suffixes:
        instant = OperationSuffix.CLEAN.of(latest.requested_time)
    else:
        instant = metadata_timeline.clock.next(timeline)
    if instant in timeline.requested_times:
        return ServiceOutcome(
            reason=f"the metadata table was cleaned at {instant}, and nothing was written to it since"
        )
    content = encode_clean_plan(plan, lambda path: plan_address(storage, f"{ROOT}/{path}"))
    active.create_requested(instant, Action.CLEAN, content)
    return _execute_all(metadata_timeline, _pending_plans(active, active.load()))


def _pending_plans(active: ActiveTimeline, timeline: Timeline) -> dict[str, PlanAndPath]:
    """Returns the pending cleans' plans, oldest first; removes cleans with plans left empty (services/clean/job.py)."""
    plans: dict[str, PlanAndPath] = {}
    for item in timeline.pending().of_actions(Action.CLEAN):
        found = read_clean_plan(active, item.requested_time)
        if found is not None:
            plans[item.requested_time] = found
            continue
        log.warning("the plan of clean %s of the metadata table is empty: it leaves the timeline", item.requested_time)
        active.drop(item.requested_time, Action.CLEAN)
    return plans


def _plan(metadata_timeline: MetadataTimeline, timeline: Timeline, retained: int) -> CleanPlan:
    features, storage, commits = metadata_timeline.features, metadata_timeline.storage, timeline.commits()
    last, by_versions = commits.last(), features.metadata_keeps_versions
    earliest = None if by_versions or len(commits) <= retained else commits.instants[len(commits) - retained]
    compactions = pending_bases(metadata_timeline.active, timeline).items()
    files: dict[str, tuple[str, ...]] = {}
    for partition in partition_folders(storage):
        names: list[str] = []
        listed = storage.list_files(f"{ROOT}/{partition}")
        for group in file_groups(partition, listed, timeline, features.layout, compactions):
            if by_versions:
                old: Sequence[FileSlice] = group.slices[_VERSIONS:]
            else:  # before the newest slice older than `earliest`: a reader that starts at `earliest` reads that one
                time = "" if earliest is None else earliest.requested_time
                old = [item for item in group.slices if item.base_instant < time][1:]
            names += [file.name for item in old for file in item.files]
        if names:
            files[partition] = tuple(sorted(names))
    return CleanPlan(
        KEEP_LATEST_FILE_VERSIONS if by_versions else KEEP_LATEST_COMMITS,
        files,
        "" if last is None else last.requested_time,
        None if earliest is None else RetainedInstant(earliest.requested_time, earliest.action),
    )


def _check_unneeded(metadata_timeline: MetadataTimeline, timeline: Timeline, plan: CleanPlan, path: str) -> None:
    """Raises FormatError where a pending clean's plan, perhaps another writer's, names a file that readers merge."""
    for partition, names in plan.files.items():
        folder = f"{ROOT}/{partition}"
        files = metadata_timeline.storage.list_files(folder)
        slices = merged_slices(folder, files, timeline, metadata_timeline.features.layout)
        needed = {info.name for item in slices for info in item.files}
        wrong = sorted(needed.intersection(names))
        if wrong:
            message = f"the clean's plan names {wrong[0]} in {folder}, which readers of the latest state need"
            remedy = "drop the metadata table: hudictl metadata drop TABLE, then hudictl metadata create TABLE"
            raise FormatError(message, path=path, remedy=remedy)


def _execute_all(metadata_timeline: MetadataTimeline, plans: Mapping[str, PlanAndPath]) -> ServiceOutcome:
    deleted = (_execute(metadata_timeline, instant, *found) for instant, found in plans.items())
    return ServiceOutcome(tuple(plans), sum(deleted))


def _execute(metadata_timeline: MetadataTimeline, instant: str, plan: CleanPlan, path: str) -> int:
    started, storage = time.monotonic(), metadata_timeline.storage
    in_inflight = metadata_timeline.features.clean_plan_in_inflight
    metadata_timeline.active.to_inflight(instant, Action.CLEAN, storage.read(path) if in_inflight else b"")
    paths = [f"{ROOT}/{join(partition, name)}" for partition, names in plan.files.items() for name in names]
    with ThreadPoolExecutor(_THREADS, "metadata-clean") as pool:
        deleted = sum(pool.map(storage.delete, paths))
    metadata = CleanMetadata(
        instant,
        plan.policy,
        {partition: CleanedPartition(names) for partition, names in plan.files.items()},
        "" if plan.earliest is None else plan.earliest.timestamp,
        plan.last_completed,
        int((time.monotonic() - started) * 1000),
    )
    metadata_timeline.complete(instant, Action.CLEAN, encode_clean_metadata(metadata))
    log.info("clean %s of the metadata table deleted %d files", instant, deleted)
    return deleted


_ROUND = 200
"""The instants in memory at a time: each instant of the metadata table has some 20 KB."""


@dataclass(frozen=True, slots=True)
class ServiceResults:
    rolled_back: tuple[str, ...]
    compacted: ServiceOutcome
    cleaned: ServiceOutcome
    archived: ServiceOutcome


def perform_table_services(
    storage: Storage,
    config: TableConfig,
    token: WriteToken,
    options: Mapping[str, str],
    guard: Guard,
    clock: InstantClock | None = None,
    workers: Workers | None = None,
) -> ServiceResults:
    """Rolls failed deltacommits back and finishes pending compactions; then cleans, compacts (if it finished none) and
    archives the metadata table. The caller holds the table lock; `guard` raises when the lock is lost. `config` lists a
    metadata table and was loaded under the lock, `options` are Hudi's, `workers` are for the compaction. Killed
    anywhere, it can be run again. First raises ConfigError for invalid options; then the errors of the services.
    """
    trigger, retained = METADATA_DELTA_COMMITS.read(options), CLEAN_COMMITS_RETAINED.read(options)
    archiving = ArchiveConfig.of(options)
    metadata_timeline = MetadataTimeline(storage, config, clock)
    rolled_back = roll_back_failed(storage, config, token, clock)
    guard()
    compaction = MetadataCompaction(storage, config, token, clock, workers, guard)
    finished = compaction.finish()
    guard()
    cleaned = clean(metadata_timeline, retained)
    guard()
    compacted = finished if finished.instants else compaction.run(trigger)
    guard()
    archived = archive(metadata_timeline, ActiveTimeline(storage, config).load(), archiving, guard)
    return ServiceResults(rolled_back, compacted, cleaned, archived)


def roll_back_failed(
    storage: Storage, config: TableConfig, token: WriteToken, clock: InstantClock | None = None
) -> tuple[str, ...]:
    """Rolls pending deltacommits back whose action has ended on the data table, or was never on it; returns their
    instants (rollbackFailedWrites). Killed anywhere, it can be run again. Raises the errors of MetadataRollback.run.
    The caller holds the table lock. The metadata table is written under this lock only, so dead writers left the
    pending deltacommits. An action that is pending on the data table is left to its own rollback
    (MetadataPublisher.roll_back); an index that an indexing action builds without the lock is left to that action. A
    partition whose initialization died is not listed: its files are deleted when it is initialized again. A rollback
    whose plan cannot be read is removed from the timeline, as on the data table (services/rollback/job.py).
    """
    metadata_timeline = MetadataTimeline(storage, config, clock)
    timeline = metadata_timeline.active.load()
    initialization = {item.requested_time for item in unfinished_initializations(timeline, metadata_timeline.features)}
    data = ActiveTimeline(storage, config).load()
    awaited = data.pending_changes().requested_times
    for item in timeline.pending().of_actions(Action.ROLLBACK):
        if rollback_target(metadata_timeline.active, item.requested_time) is None:
            metadata_timeline.active.drop(item.requested_time, Action.ROLLBACK)
    done = []
    for item in timeline.pending().of_actions(Action.DELTA_COMMIT):
        if item.requested_time in awaited or is_of_indexing(item.requested_time, data):
            continue
        if item.requested_time in initialization:
            metadata_timeline.active.delete_instant(item.requested_time, Action.DELTA_COMMIT)
        else:
            instant = metadata_timeline.clock.next(metadata_timeline.active.load())
            MetadataRollback(storage, config, token, clock).run(item.requested_time, instant)
        log.warning("deltacommit %s of the metadata table was left by a dead writer: rolled back", item.requested_time)
        done.append(item.requested_time)
    return tuple(done)


def to_archive(
    metadata_timeline: Timeline, data: Timeline, keep_min: int, keep_max: int, *, counts_cleans: bool
) -> str | list[Instant]:
    """Returns the instants to archive, in timeline order, or the reason why there are none. Without I/O. `keep_min` and
    `keep_max` are the data table's options. With `counts_cleans` (layout 1) cleans and rollbacks are archived by their
    own number; else those before the last archived commit.
    """
    commits = metadata_timeline.commits()
    least, most = keep_min + 1, keep_max + 1
    if len(commits) <= most:
        return f"the metadata table's timeline has {len(commits)} commits, of which {most} are kept"
    compaction = latest_compaction(metadata_timeline)
    first = data.of_actions(*WRITE_ACTIONS).first()
    if compaction is None or first is None:
        return "the metadata table was never compacted, or the data table has no commit"
    pending = metadata_timeline.pending().first()
    limit = min(compaction.requested_time, first.requested_time, *([] if pending is None else [pending.requested_time]))
    # A commit that completed after the request of the compaction is not in it: its log blocks count only while the
    # instant is on a timeline.
    merged = takewhile(
        lambda item: item.requested_time < limit and item.completed_at < compaction.requested_time, commits
    )
    chosen = list(merged)[: len(commits) - least]
    if not chosen:
        return f"every commit of the metadata table before {limit} is archived, and what came later is needed"
    others = metadata_timeline.completed().filter(
        lambda item: item.action not in COMMIT_ACTIONS and item.requested_time < limit
    )
    last = chosen[-1].requested_time
    gone = _by_number(others, least, most) if counts_cleans else [item for item in others if item.requested_time < last]
    return sorted((*chosen, *gone), key=lambda item: item.sort_key)


def _by_number(others: Timeline, least: int, most: int) -> list[Instant]:
    found: list[Instant] = []
    for action in (Action.CLEAN, Action.ROLLBACK):
        items = others.of_actions(action).instants
        found += items[: len(items) - least] if len(items) > most else ()
    return found


def archive(metadata_timeline: MetadataTimeline, data: Timeline, config: ArchiveConfig, guard: Guard) -> ServiceOutcome:
    """Archives instants of the metadata table under the table lock, repeatably. Memory: a round of instants."""
    active, features, storage = metadata_timeline.active, metadata_timeline.features, metadata_timeline.storage
    counts_cleans = not features.completion_time_in_name
    if counts_cleans:
        finish_merge(storage, metadata_timeline.history_folder)
    chosen = to_archive(active.load(), data, config.keep_min, config.keep_max, counts_cleans=counts_cleans)
    if isinstance(chosen, str):
        return ServiceOutcome(reason=chosen)
    writer = archive_writer(storage, features, metadata_timeline.history_folder, config, guard)
    held = writer.held(chosen)
    for taken in rounds(storage, active, metadata_timeline.clock.zone, chosen, most=_ROUND):
        fresh = [item for item in taken if item.key not in held]
        guard()
        if fresh:
            writer.write(fresh)
        guard()
        active.forget(item.instant for item in taken)
    writer.finish()
    log.info("%d instants of the metadata table archived", len(chosen))
    return ServiceOutcome(tuple(item.requested_time for item in chosen))
