"""The files of an instant in the metadata table, and the obstacles to their rollback."""

from __future__ import annotations

from dataclasses import dataclass

from hudi_core.errors import TimelineError
from hudi_core.metadata_table.timeline import MetadataTimeline
from hudi_core.storage.base import FileInfo
from hudi_core.timeline.instant import Action, Instant
from hudi_core.timeline.timeline import Timeline

_REBUILD = (
    "drop it with `hudictl metadata drop TABLE`, roll the instant back again, then begin it anew: `hudictl "
    "metadata create TABLE --partition …`, "
    "or let Hudi's next write do so"
)


@dataclass(frozen=True, slots=True)
class Footprint:
    """What the metadata table holds of an instant: its deltacommit, an unfinished rollback of it, files with blocks
    that count.
    """

    delta_commit: Instant | None
    pending_rollback: str | None
    live: tuple[FileInfo, ...]

    def __bool__(self) -> bool:
        return self.delta_commit is not None or self.pending_rollback is not None or bool(self.live)


def check_not_merged(metadata_timeline: MetadataTimeline, timeline: Timeline, failed: str) -> None:
    """Raises TimelineError when a compaction or log compaction of the metadata table has taken `failed` in, or is about
    to.

    HoodieBackedTableMetadataWriter.validateRollback: in layout 1 by requested times; in layout 2 a compaction merges
    what was completed before it was requested. Hudi does not look at pending compactions; one whose plan names the
    instant's logs would fail without them.
    """
    found = timeline.find(failed, Action.DELTA_COMMIT)
    by_completion = metadata_timeline.features.completion_time_in_name
    written = failed if found is None or not by_completion else found.completed_at
    if by_completion and (found is None or not found.is_completed):
        return
    for other in reversed(timeline.instants):
        merges = other.pending_action in (Action.COMPACTION, Action.LOG_COMPACTION) or other.action == Action.COMMIT
        if merges and other.requested_time >= written:
            verb = "was compacted" if other.is_completed else "is about to be compacted"
            raise TimelineError(
                f"the metadata table {verb} at {other.requested_time}, after instant {failed}: it cannot be "
                "taken out any more",
                path=metadata_timeline.active.path_of(other),
                remedy=_REBUILD,
            )
