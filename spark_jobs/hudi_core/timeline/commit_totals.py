"""What each commit of a timeline wrote: its operation, rows and bytes."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

from hudi_core.errors import FormatError, StorageNotFoundError
from hudi_core.timeline.actions.commit import CommitMetadata
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.timeline.instant import COMMIT_ACTIONS, Instant

log = logging.getLogger(__name__)

_READERS: Final = 16
"""Commit files that are read at once: the work is waiting for storage."""


@dataclass(frozen=True, slots=True)
class CommitTotals:
    """What a completed commit wrote: its operation (None where not recorded), rows written and deleted, and bytes."""

    operation: str | None
    rows: int
    bytes: int

    @staticmethod
    def of(commit: CommitMetadata) -> CommitTotals:
        """The sums of the commit's write stats."""
        stats = list(commit.write_stats())
        rows = sum(stat.num_writes + stat.num_deletes for stat in stats)
        return CommitTotals(commit.operation_type, rows, sum(stat.total_write_bytes for stat in stats))


def active_commit_totals(active: ActiveTimeline, instants: Iterable[Instant]) -> dict[Instant, CommitTotals]:
    """What each completed commit among `instants`, of the active timeline, wrote.

    A commit is missing whose file is gone or damaged. It costs one read for each commit, several at once.
    """

    def read(instant: Instant) -> CommitMetadata | None:
        try:
            return active.read_commit(instant)
        except StorageNotFoundError:
            return None  # rolled back or archived since the listing
        except FormatError as error:  # the other instants are shown
            log.warning("what %s %s wrote is unknown: %s", instant.action, instant.requested_time, error)
            return None

    commits = [item for item in instants if item.is_completed and item.action in COMMIT_ACTIONS]
    with ThreadPoolExecutor(max_workers=_READERS, thread_name_prefix="commits") as pool:
        contents = zip(commits, pool.map(read, commits), strict=True)
        return {instant: CommitTotals.of(commit) for instant, commit in contents if commit is not None}
