"""Conditions for the arrival of a commit or of partitions. Separates writes from compactions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from datetime import datetime
from typing import Any, Final

from airflow_hudi.arguments import partitions_in
from airflow_hudi.conditions.condition import Condition, bound_of, is_later, later_shown
from airflow_hudi.results import instant_named
from airflow_hudi.timeline_reader import Look
from hudi_core.errors import ConfigError, FormatError
from hudi_core.frozen import dataclass
from hudi_core.model.names import parse_data_file
from hudi_core.model.partition import check_partition
from hudi_core.request.texts import check_choice
from hudi_core.timeline.actions.commit import CommitMetadata, Operation
from hudi_core.timeline.instant import COMMIT_ACTIONS, WRITE_ACTIONS, Action, Instant
from hudi_core.timeline.timeline import Timeline

SERVICE_OPERATIONS: Final = frozenset({Operation.COMPACT, Operation.LOG_COMPACT, Operation.CLUSTER})
"""Operations that leave rows as they are."""
ALL: Final = "all"
ANY: Final = "any"
_SERVICES: Final = WRITE_ACTIONS - COMMIT_ACTIONS
_MOST_SHOWN: Final = 5


def written(metadata: CommitMetadata) -> dict[str, Any]:
    """Returns `{"operation", "partitions", "rows"}` of a commit; the sorted partitions include those it emptied."""
    partitions = sorted({*metadata.partition_to_write_stats, *(metadata.replaced_file_ids or {})})
    rows = sum(stat.num_writes for stat in metadata.write_stats())
    return {"operation": metadata.operation_type, "partitions": partitions, "rows": rows}


def may_be_write(instant: Instant) -> bool:
    """Returns whether a completed commit may be a write, by its pending files. Its metadata decides (is_of_writer)."""
    return instant.action in COMMIT_ACTIONS and instant.pending_action not in _SERVICES


def completed_writes(look: Look, bound: str | None) -> list[Instant]:
    """Returns the instants that may be writes and completed later than the bound, in the order of completion."""
    writes = filter(may_be_write, look.timeline.completed())
    later = (instant for instant in writes if is_later(look, instant, bound))
    return sorted(later, key=lambda instant: (look.completed_at(instant), instant.requested_time))


def is_of_writer(metadata: CommitMetadata) -> bool:
    """Returns whether a commit may change rows. File names do not tell this: layout 1 has one name for clusterings and
    overwrites, and archival removes the pending files of a compaction first.
    """
    return not metadata.compacted and metadata.operation_type not in SERVICE_OPERATIONS


@dataclass
class CommitCondition(Condition):
    """Holds when a write has completed, later than `completed_after` if given. Each commit is read at most once."""

    kind = "commit"
    action = ""
    completed_after: str | datetime | None = None
    _services: set[str] = field(default_factory=set, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        self._bound = self.completed_after = bound_of(self.completed_after)

    def check(self, look: Look) -> dict[str, Any] | None:
        """Returns `{"instant", "action", "state", "completed", "operation", "partitions", "rows"}` of the first write
        to complete.
        """
        self._services.intersection_update(look.timeline.requested_times)
        for instant in completed_writes(look, self._bound):
            if instant.requested_time in self._services:
                continue
            metadata = look.read_commit(instant)
            if metadata is None:
                continue
            if is_of_writer(metadata):
                return {**instant_named(instant), "completed": look.completed_at(instant), **written(metadata)}
            self._services.add(instant.requested_time)
        return None

    def unmet(self) -> str:
        return f"no write{later_shown(self._bound)}" if self._bound else "no completed write"


@dataclass(frozen=True, slots=True)
class _Change:
    """A change of a partition: a write, or the removal of its rows. `completed` is None if only file names show it."""

    instant: str
    completed: str | None
    is_write: bool


@dataclass
class PartitionCondition(Condition):
    """Holds when all given partitions, or with `match` any, were written, later than `completed_after` if given.

    The last change of a partition decides: a delete_partition, or an insert_overwrite_table without rows for the
    partition, removes it. Without a bound, partitions that only archived commits wrote count, too: the names of their
    files show it, and each folder is listed once. Commits are read newest first, each once, until the last change of
    each partition is known.
    """

    kind = "partition"
    action = ""
    partitions: Sequence[str] | str
    match: str = ALL
    completed_after: str | datetime | None = None
    _read: dict[str, dict[str, _Change]] = field(default_factory=dict, init=False)
    _archived: dict[str, _Change] = field(default_factory=dict, init=False)
    _listed: set[str] = field(default_factory=set, init=False)

    def __post_init__(self) -> None:
        self.partitions = tuple(dict.fromkeys(partitions_in(self.partitions)))
        self._bound = self.completed_after = bound_of(self.completed_after)
        self.match = self.match or ALL
        if not self.partitions:
            raise ConfigError("no partition to wait for", remedy="day=2026-01-02, for instance")
        check_choice("match", self.match, (ALL, ANY))
        for partition in self.partitions:
            try:
                check_partition(partition, source="partitions")
            except FormatError as error:
                remedy = "name a partition by its folder below the table, such as day=2026-01-02"
                raise ConfigError(error.message, remedy=remedy) from error

    def check(self, look: Look) -> dict[str, Any] | None:
        """Returns `{"partitions": [{"partition", "instant", "completed"}]}`: the partitions that arrived, each with the
        last write to it.
        """
        changes = self._last_changes(look)
        arrived = [(name, changes[name]) for name in self.partitions if name in changes and changes[name].is_write]
        if not arrived or (self.match == ALL and len(arrived) < len(self.partitions)):
            return None
        return {
            "partitions": [
                {"partition": name, "instant": change.instant, "completed": change.completed}
                for name, change in arrived
            ]
        }

    def unmet(self) -> str:
        several = f"{self.match} of " if len(self.partitions) > 1 else ""
        return f"no write to {several}{_shown(self.partitions)}{later_shown(self._bound)}"

    def waiting(self, look: Look) -> str:
        changes = self._last_changes(look)
        missing = [name for name in self.partitions if name not in changes or not changes[name].is_write]
        return super().waiting(look) + (f"; missing: {_shown(missing)}" if len(missing) < len(self.partitions) else "")

    def _last_changes(self, look: Look) -> dict[str, _Change]:
        """Returns the last change of each partition; with `any`, only of as many as are needed."""
        self._keep_archived(look.timeline)
        last: dict[str, _Change] = {}
        for instant in reversed(completed_writes(look, self._bound)):
            for partition, change in self._changes_of(look, instant).items():
                last.setdefault(partition, change)
            is_enough = self.match == ANY and any(change.is_write for change in last.values())
            if is_enough or len(last) == len(self.partitions):
                return last
        if self._bound is None:
            self._list_archived(look, [name for name in self.partitions if name not in last])
        return {**self._archived, **last}

    def _changes_of(self, look: Look, instant: Instant) -> dict[str, _Change]:
        known = self._read.get(instant.requested_time)
        if known is not None:
            return known
        metadata = look.read_commit(instant)
        if metadata is None:
            return {}
        changes: dict[str, _Change] = {}
        if is_of_writer(metadata):
            for name in self.partitions:
                is_write = _is_written(metadata, name)
                if is_write is not None:
                    changes[name] = _Change(instant.requested_time, look.completed_at(instant), is_write)
        self._read[instant.requested_time] = changes
        return changes

    def _keep_archived(self, timeline: Timeline) -> None:
        """Forgets commits that left the timeline. Keeps the last change of each partition by an archived commit."""
        start = _start(timeline)
        for time in self._read.keys() - timeline.requested_times:
            changes = self._read.pop(time)
            if start is not None and time < start:
                for partition, change in changes.items():
                    self._keep(partition, change)

    def _list_archived(self, look: Look, partitions: Sequence[str]) -> None:
        start = _start(look.timeline)
        for partition in partitions:
            if start is None or partition in self._listed:
                continue
            names = [parse_data_file(info.name) for info in look.reader.storage.list_files(partition)]
            archived = max((name.instant for name in names if name and name.instant < start), default="")
            if archived:
                self._keep(partition, _Change(archived, None, True))
            self._listed.add(partition)

    def _keep(self, partition: str, change: _Change) -> None:
        known = self._archived.get(partition)
        if known is None or known.instant < change.instant:
            self._archived[partition] = change


def _is_written(metadata: CommitMetadata, partition: str) -> bool | None:
    """Returns True if a commit wrote to a partition, False if it only removed the rows, None if it did neither."""
    if metadata.partition_to_write_stats.get(partition):
        return True
    return False if (metadata.replaced_file_ids or {}).get(partition) else None


def _start(timeline: Timeline) -> str | None:
    """Returns the time before which commits are archived, except those that a savepoint keeps on the timeline."""
    kept = COMMIT_ACTIONS | {Action.SAVEPOINT}
    return timeline.filter(lambda instant: instant.is_completed and instant.action in kept).start


def _shown(partitions: Sequence[str]) -> str:
    more = [f"{len(partitions) - _MOST_SHOWN} more"] if len(partitions) > _MOST_SHOWN else []
    return ", ".join([*partitions[:_MOST_SHOWN], *more])
