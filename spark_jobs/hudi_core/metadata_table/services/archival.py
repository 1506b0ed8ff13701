"""Archives the metadata table's own timeline (TimelineArchiverV1 and V2, as HoodieMetadataWriteUtils configures them).

It keeps one commit more, at least and at most, than the data table's, and no instant goes that is not older than the
data table's earliest active commit, than the latest compaction of the metadata table, and than everything pending on
it. Of each round the archive is written first.
"""

from __future__ import annotations

import logging
from itertools import takewhile

from hudi_core.config.services.archive_config import ArchiveConfig
from hudi_core.history.archiving import archive_writer, rounds
from hudi_core.history.log_archive_writer import finish_merge
from hudi_core.history.manifest import Guard
from hudi_core.metadata_table.instants import latest_compaction
from hudi_core.metadata_table.services.outcome import ServiceOutcome
from hudi_core.metadata_table.timeline import MetadataTimeline
from hudi_core.storage.base import Storage
from hudi_core.timeline.instant import COMMIT_ACTIONS, WRITE_ACTIONS, Action, Instant
from hudi_core.timeline.timeline import Timeline

log = logging.getLogger(__name__)

_ROUND = 200
"""Instants in memory at once: the metadata table's have some 20 KB each."""


def to_archive(
    metadata_timeline: Timeline, data: Timeline, keep_min: int, keep_max: int, *, counts_cleans: bool
) -> str | list[Instant]:
    """The instants to archive, in timeline order, or why there are none. Pure. `keep_min` and `keep_max` are
    the data table's options.

    `counts_cleans`: cleans and rollbacks go by their own number, as in layout 1; else those before the last commit that
    goes.
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


def archive(
    storage: Storage, metadata_timeline: MetadataTimeline, data: Timeline, config: ArchiveConfig, guard: Guard
) -> ServiceOutcome:
    """Archives what may go of the metadata table's timeline; `data` is the data table's.

    The caller holds the table lock; `guard` raises when it is lost. Killed anywhere, it can be run again. Memory: a
    round of instants.
    """
    active, features = metadata_timeline.active, metadata_timeline.features
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
