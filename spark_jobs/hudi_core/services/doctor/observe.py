"""Reads the doctor's observations. Nothing is written, so ages are measured by this process's clock."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from hudi_core.config.table_config import timeline_zone
from hudi_core.config.transaction_config import CONCURRENCY_MODE, STALLED_MINUTES, HeartbeatConfig
from hudi_core.errors import ConflictError, FormatError, StorageNotFoundError
from hudi_core.metadata_table.write.lifetime import is_drop_unfinished
from hudi_core.model.partition import join
from hudi_core.request.services import SERVICES
from hudi_core.services.context import TableContext
from hudi_core.services.doctor.clocks import moment_of, read_clocks
from hudi_core.services.doctor.data_files.buckets import find_shared_buckets
from hudi_core.services.doctor.data_files.compression import read_compression
from hudi_core.services.doctor.data_files.copied_files import find_copied_files
from hudi_core.services.doctor.data_files.cut_files import find_cut_files
from hudi_core.services.doctor.data_files.log_files import find_damaged_logs
from hudi_core.services.doctor.data_files.mislabelled_files import find_mislabelled_files
from hudi_core.services.doctor.data_files.orphans import find_orphans
from hudi_core.services.doctor.finding import (
    Counted,
    ExecutorObservations,
    ListingObservations,
    LogObservations,
    Observations,
    OrphanObservations,
    Overtaken,
    PendingObservations,
    StoreObservations,
)
from hudi_core.services.doctor.indexes import read_indexes
from hudi_core.services.doctor.listings import compare_listings
from hudi_core.services.doctor.locks import read_lock
from hudi_core.services.doctor.wheels import needed_wheels
from hudi_core.services.repair.pending_plan import find_pending, unblocked_by
from hudi_core.services.rollback.failed_writes import pending_rollbacks
from hudi_core.storage.registry import scheme_of
from hudi_core.timeline.instant import KNOWN_ACTIONS, WRITE_ACTIONS, Action, Instant
from hudi_core.timeline.naming import naming_for
from hudi_core.timeline.timeline import Timeline
from hudi_core.transaction.claim_file import current_claim
from hudi_core.transaction.locks.unlocked_writers import read_signs
from hudi_core.transaction.own_writes import with_own_writes
from hudi_core.transaction.owner_liveness import is_live
from hudi_core.transaction.writer_heartbeats import Heartbeats, eager_writers, read_heartbeats

_ENDINGS: Final = tuple(f".{word}" for word in (*sorted(KNOWN_ACTIONS), "requested", "inflight"))
_STARTS_AS_TIME: Final = re.compile(r"^\d{8}", re.ASCII)


def observe(
    context: TableContext,
    *,
    files: bool = True,
    executors: ExecutorObservations | None = None,
    now: Callable[[], float] = time.time,
) -> Observations:
    """The observations of a table; `files` lists its data files, too, and samples some. `now` gives seconds since the
    epoch.

    Raises FormatError naming a damaged file of the archive or a damaged log file; other damage is an observation.
    """
    moment = now()
    timeline, modified = context.active.load(), context.active.modified()
    heartbeats = read_heartbeats(context.storage, HeartbeatConfig.of(context.options), now=now)
    heartbeats = with_own_writes(heartbeats, context.storage, context.active, timeline)
    mode = CONCURRENCY_MODE.name
    recorded = {mode: context.config.raw[mode]} if mode in context.config.raw else {}
    scheme = scheme_of(context.uri)
    compression = read_compression(context, timeline, files=files)
    return Observations(
        uri=context.uri,
        options={**recorded, **context.options},
        stalled_after=STALLED_MINUTES.read(context.options) * 60.0,
        clock=read_clocks(context, timeline, modified, moment),
        lock=read_lock(context, context.options, moment),
        store=StoreObservations(
            scheme, context.storage.supports_exclusive_create, context.storage.supports_conditional_write
        ),
        wheels=needed_wheels(scheme, context.options, compression.codec),
        version=context.config.version,
        metadata_partitions=context.config.metadata_partitions,
        pending=tuple(_pending(context, timeline, modified, heartbeats)),
        eager=tuple(instant.requested_time for instant in eager_writers(context.active, timeline, heartbeats)),
        other_writers=read_signs(context.storage, context.config, context.options, now=now).describe(),
        strange_names=tuple(_strange(context)),
        overtaken=_overtaken(context, timeline),
        latest_indexing=_latest_indexing(timeline),
        metadata_drop_unfinished=is_drop_unfinished(context.storage, context.config),
        orphans=find_orphans(context, timeline) if files else OrphanObservations(),
        listings=compare_listings(context, timeline) if files else ListingObservations(),
        logs=find_damaged_logs(context, timeline) if files else LogObservations(),
        copied=find_copied_files(context, timeline) if files else Counted(),
        shared_buckets=find_shared_buckets(context, timeline) if files else Counted(),
        mislabelled=find_mislabelled_files(context, timeline) if files else Counted(),
        cut=find_cut_files(context, timeline) if files else Counted(),
        indexes=read_indexes(context, timeline, ranges=files),
        compression=compression,
        executors=executors,
    )


def _overtaken(context: TableContext, timeline: Timeline) -> Overtaken | None:
    """Only log files need the completion times of archived commits."""
    first = timeline.first()
    if first is None or not (context.config.features.completion_time_in_name and context.config.is_merge_on_read):
        return None
    archived = context.history().instants(after=first.requested_time)
    later = [item.requested_time for item in archived if item.action in WRITE_ACTIONS]
    return Overtaken(first, len(later), max(later)) if later else None


def _latest_indexing(timeline: Timeline) -> str | None:
    latest = timeline.last_completed()
    return latest.requested_time if latest is not None and latest.action == Action.INDEXING else None


def _pending(
    context: TableContext, timeline: Timeline, modified: Mapping[str, float], heartbeats: Heartbeats
) -> Iterator[PendingObservations]:
    """The pending instants, but for rollbacks of a restore: those stay inflight for good."""
    try:
        rollbacks = frozenset(pending_rollbacks(context.active, timeline))
    except (FormatError, StorageNotFoundError):  # each rollback is read then, and reports its damage
        rollbacks = timeline.requested_times
    for instant in timeline.pending():
        if instant.action != Action.ROLLBACK or instant.requested_time in rollbacks:
            yield _one(context, timeline, instant, modified, heartbeats)


def _one(
    context: TableContext, timeline: Timeline, instant: Instant, modified: Mapping[str, float], heartbeats: Heartbeats
) -> PendingObservations:
    age = _age(context, instant, modified, heartbeats.now)
    owner, alive = None, False
    try:
        owner, alive = _owner(context, instant.requested_time, heartbeats)
        plan = find_pending(context, timeline, instant.requested_time)
        blocks = tuple(unblocked_by(context, timeline, plan)["work"])
    except (FormatError, StorageNotFoundError, ConflictError) as error:
        return PendingObservations(instant, instant.pending_action, age, owner, alive, problem=str(error))
    problem = None if plan.damaged is None else str(plan.damaged)
    runs_here = plan.runs_here and plan.kind in SERVICES
    return PendingObservations(instant, plan.kind, age, owner, alive, blocks, problem, runs_here, plan.restores_to)


def _age(context: TableContext, instant: Instant, modified: Mapping[str, float], now: float) -> float | None:
    """The younger of the file's and the instant's: both may be old for other reasons. One in the future has none."""
    made = modified.get(context.active.path_of(instant))
    if made is None:
        return None
    drawn = moment_of(instant.requested_time, timeline_zone(context.config, context.options))
    ages = (now - moment for moment in (made, drawn) if moment is not None and moment <= now)
    return min(ages, default=0.0)


def _owner(context: TableContext, instant: str, heartbeats: Heartbeats) -> tuple[str | None, bool]:
    """The owner of the instant's claim, and whether it, or a writer of Hudi by its heartbeat, may be at work on it."""
    claimed = current_claim(context.storage, instant) if instant.isdigit() else None
    if claimed is None:
        return None, not heartbeats.is_expired(instant)
    return claimed.owner.describe(), is_live(context.storage, instant, claimed.epoch, now=lambda: heartbeats.now)


def _strange(context: TableContext) -> Iterator[str]:
    """Files named with a date or an instant's extension that name no instant: Hudi ignores them silently."""
    naming = naming_for(context.config.layout_version)
    for name in context.active.names():
        if (_STARTS_AS_TIME.match(name) or name.endswith(_ENDINGS)) and not naming.instants([name]):
            yield join(context.active.folder, name)
