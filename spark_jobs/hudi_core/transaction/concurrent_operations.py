"""Reads the file groups of concurrent operations, for the rules of conflict.py.

Markers show a conflict before the work (early conflict detection), by the rules of Hudi's direct markers
(MarkerUtils.getCandidateInstants, DirectMarkerBasedDetectionStrategy). The timeline shows a conflict at the commit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress

from hudi_core.config.concurrency_config import Strategy
from hudi_core.errors import ConflictError, StorageNotFoundError
from hudi_core.filegroup.write.markers import TEMP_FOLDER, Marker, list_markers
from hudi_core.frozen import dataclass
from hudi_core.model.names import FileGroupId, parse_data_file
from hudi_core.storage.base import Storage
from hudi_core.timeline.actions.commit import CommitMetadata, Operation, commit_of
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.timeline.instant import COMMIT_ACTIONS, REPLACING_ACTIONS, Action, Instant, State
from hudi_core.timeline.pending_plans import is_clustering, planned_file_groups, rollback_target
from hudi_core.timeline.timeline import Timeline
from hudi_core.transaction.conflict import RULES, ConcurrentOperation, OperationStart, Other, candidates, judge, refuse

_NO_WRITERS = REPLACING_ACTIONS | {Action.COMPACTION}
_PENDING = _NO_WRITERS | {Action.DELTA_COMMIT, Action.COMMIT}


def operation_start_at(timeline: Timeline, instant: str) -> OperationStart:
    """Returns the state of `timeline` when the operation at `instant` starts, for its commit (TransactionUtils)."""
    last = timeline.commits().last()
    pending = timeline.pending().of_actions(*_PENDING).requested_times - {instant}
    return OperationStart(None if last is None else last.requested_time, pending)


@dataclass(frozen=True, slots=True)
class ConflictCheck:
    """The precondition of a commit: no conflict with concurrent operations, on the timeline as it is under the lock.
    `live` returns the instants with a fresh heartbeat; it is called only with `blocks_on_requested` (see judge).
    """

    active: ActiveTimeline
    this: ConcurrentOperation
    operation_start: OperationStart
    strategy: Strategy
    release: str
    merge_on_read: bool
    live: Callable[[], frozenset[str]] = frozenset
    blocks_on_requested: bool = False

    def __call__(self, timeline: Timeline) -> None:
        refuse(self.conflicts(timeline))

    def conflicts(self, timeline: Timeline) -> list[tuple[ConcurrentOperation, str]]:
        """Returns the conflicting operations with messages. Raises FormatError for unreadable plans or metadata."""
        others, rules = self._others(timeline), RULES[self.release]
        start, merge_on_read = self.operation_start, self.merge_on_read
        chosen = candidates(self.this, others, start, self.strategy, rules, merge_on_read=merge_on_read)
        operations = filter(None, (read_operation(self.active, other) for other in chosen))
        return judge(self.this, operations, self.strategy, blocks_on_requested=self.blocks_on_requested)

    def _others(self, timeline: Timeline) -> list[Other]:
        completed = self.active.completion_times(timeline)
        live = self.live() if self.blocks_on_requested else frozenset()
        others = []
        for instant in timeline:
            may_cluster = not instant.is_completed and instant.action in REPLACING_ACTIONS
            clusters = may_cluster and is_clustering(self.active, instant)
            others.append(Other(instant, completed.get(instant), clusters, instant.requested_time in live))
        return others


def read_operation(active: ActiveTimeline, other: Other) -> ConcurrentOperation | None:
    """Reads an instant's operation, done or planned; None when it was rolled back or archived since the listing."""
    instant, groups = other.instant, frozenset[FileGroupId]()
    kind = rolls_back = None
    with suppress(StorageNotFoundError):
        if instant.action == Action.ROLLBACK:
            rolls_back = rollback_target(active, instant.requested_time)
        elif other.clustering or instant.action == Action.COMPACTION:
            kind = Operation.CLUSTER if other.clustering else Operation.COMPACT
            groups = planned_file_groups(active, instant) or groups
        elif instant.action in COMMIT_ACTIONS and instant.state is not State.REQUESTED:
            metadata = commit_of(active.read_of(instant), path=active.path_of(instant))
            kind, groups = metadata.operation_type, frozenset(changed_groups(metadata, instant))
        return ConcurrentOperation(instant.requested_time, other.action, instant.state, kind, groups, rolls_back)
    return None


def changed_groups(metadata: CommitMetadata, instant: Instant) -> set[FileGroupId]:
    """Returns the file groups that a completed commit wrote and replaced, or that an inflight one recorded to write."""
    written = metadata.partition_to_write_stats.items()
    groups = {FileGroupId(partition, stat.file_id) for partition, stats in written for stat in stats}
    return groups | set(metadata.replaced_file_groups()) if instant.is_completed else groups


def marked_groups(markers: Mapping[str, Iterable[Marker]]) -> dict[FileGroupId, str]:
    """Returns the file groups that have markers, each with its earliest instant. Other names are ignored."""
    earliest: dict[FileGroupId, str] = {}
    for instant, announced in sorted(markers.items()):
        for marker in announced:
            name = parse_data_file(marker.file_name)
            if name is not None:
                earliest.setdefault(FileGroupId(marker.partition, name.file_id), instant)
    return earliest


def rivals(instants: Iterable[str], instant: str, timeline: Timeline, live: Iterable[str]) -> list[str]:
    """Returns the instants whose markers count against `instant`, sorted: earlier, alive, and no yielding service."""
    services = timeline.pending().of_actions(*_NO_WRITERS).requested_times
    return sorted(other for other in set(instants) & set(live) if other < instant and other not in services)


def check_markers(
    storage: Storage, timeline: Timeline, instant: str, groups: Iterable[FileGroupId], live: frozenset[str]
) -> None:
    """Raises ConflictError when one of the `live` writers (instants) has announced a file in one of `groups`."""
    folders = [folder.rpartition("/")[2] for folder in storage.list_folders(TEMP_FOLDER)]
    marked = marked_groups({other: list_markers(storage, other) for other in rivals(folders, instant, timeline, live)})
    for group in sorted(set(groups) & marked.keys()):
        raise ConflictError(
            f"instant {marked[group]} is writing to file group {group.file_id} of partition {group.partition!r}, which "
            f"{instant} is to change",
            path=f"{TEMP_FOLDER}/{marked[group]}",
            remedy="run it again when that writer is done",
        )
