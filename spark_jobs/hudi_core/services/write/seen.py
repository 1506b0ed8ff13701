"""What a query that makes rows has seen of the table that it reads."""

from __future__ import annotations

from collections.abc import Iterator

from hudi_core.frozen import dataclass
from hudi_core.history.archived import begin_of_writes
from hudi_core.services.context import TableContext
from hudi_core.timeline.actions.commit import CommitMetadata
from hudi_core.timeline.instant import COMMIT_ACTIONS, Instant
from hudi_core.timeline.timeline import Timeline


@dataclass(frozen=True, slots=True)
class Seen:
    """The requested times of the commits that the table had before the query, and where its timeline began
    (begin_of_writes).
    """

    commits: frozenset[str]
    begin: str | None

    @staticmethod
    def of(timeline: Timeline) -> Seen:
        return Seen(timeline.commits().requested_times, begin_of_writes(timeline))

    def archived_since(self, context: TableContext, now: Timeline) -> Iterator[tuple[Instant, CommitMetadata]]:
        """Yields the commits that came after these and are archived: before a write is requested, nothing holds an
        archival back. A change of the begin shows one, since an archival takes the oldest writes.
        """
        if begin_of_writes(now) == self.begin:
            return
        history = context.history()
        yield from history.commits(history.timeline().of_actions(*COMMIT_ACTIONS).filter(self._is_later))

    def _is_later(self, commit: Instant) -> bool:
        time = commit.requested_time
        return time not in self.commits and (self.begin is None or time >= self.begin)
