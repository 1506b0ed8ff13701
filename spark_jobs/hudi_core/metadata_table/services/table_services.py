"""The metadata table's services in the order of HoodieBackedTableMetadataWriter.performTableServices, without a write
of the data table; and the archival of its timeline (TimelineArchiverV1 and V2, as HoodieMetadataWriteUtils configures
them).

The archival keeps one commit more, at least and at most, than the data table's, and no instant goes that is not older
than the data table's earliest active commit, than the latest compaction of the metadata table, and than everything
pending on it. Of each round the archive is written first.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import takewhile

from hudi_core.config.metadata_config import METADATA_DELTA_COMMITS
from hudi_core.config.services.retention_config import CLEAN_COMMITS_RETAINED, ArchiveConfig
from hudi_core.config.table_config import TableConfig
from hudi_core.history.archiving import archive_writer, finish_merge, rounds
from hudi_core.history.manifest import Guard
from hudi_core.metadata_table.instants import is_of_indexing, latest_compaction, unfinished_initializations
from hudi_core.metadata_table.services.cleaning import clean
from hudi_core.metadata_table.services.compaction import MetadataCompaction
from hudi_core.metadata_table.timeline import MetadataTimeline, ServiceOutcome
from hudi_core.metadata_table.write.rollback import MetadataRollback
from hudi_core.metadata_table.write.staged_logs import Workers
from hudi_core.model.names import WriteToken
from hudi_core.storage.base import Storage
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.timeline.instant import COMMIT_ACTIONS, WRITE_ACTIONS, Action, Instant
from hudi_core.timeline.pending_plans import rollback_target
from hudi_core.timeline.timeline import Timeline
from hudi_core.transaction.instant_generator import InstantClock

log = logging.getLogger(__name__)

_ROUND = 200
"""Instants in memory at once: the metadata table's have some 20 KB each."""


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
    """Rolls failed deltacommits back, then cleans, compacts and archives the metadata table.

    The caller holds the table lock; `guard` raises when it is lost. `config` lists a metadata table and was loaded
    under the lock, `options` are Hudi's, `workers` are for the compaction. Killed anywhere, it can be run again. Raises
    ConfigError for options that are not valid, before anything is written, and the errors of the services.
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
    """Rolls pending deltacommits back whose action has ended on the data table, or never was there; returns their
    instants (rollbackFailedWrites). Killed anywhere, it can be run again. Raises as MetadataRollback.run.

    All that is written to the metadata table is written under the table lock, which the caller holds: what is pending
    was left by a dead writer. An action that is pending on the data table is left to its own rollback
    (MetadataPublisher.roll_back), and an index that an indexing action builds, without the lock, to that. A partition
    that was being initialized is not listed: its files go when it is initialized again. A rollback whose plan cannot be
    read leaves the timeline, as on the data table (services/rollback/job.py).
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
            metadata_timeline.active.undo(item.requested_time, Action.DELTA_COMMIT)
        else:
            instant = metadata_timeline.clock.next(metadata_timeline.active.load())
            MetadataRollback(storage, config, token, clock).run(item.requested_time, instant)
        log.warning("deltacommit %s of the metadata table was left by a dead writer: rolled back", item.requested_time)
        done.append(item.requested_time)
    return tuple(done)


def to_archive(
    metadata_timeline: Timeline, data: Timeline, keep_min: int, keep_max: int, *, counts_cleans: bool
) -> str | list[Instant]:
    """The instants to archive, in timeline order, or why there are none. Pure.

    `keep_min` and `keep_max` are the data table's options. `counts_cleans`: cleans and rollbacks go by their own
    number, as in layout 1; else those before the last commit that goes.
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
    # What completed after the compaction was requested is not in it: its log blocks count for as long as a timeline
    # holds the instant.
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
    """The caller holds the table lock. Killed anywhere, it can be run again. Memory: a round of instants."""
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
