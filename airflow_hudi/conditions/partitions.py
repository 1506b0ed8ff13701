"""That partitions arrived: a rule over a timeline, the commits that it names, and the files of archived ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from airflow_hudi.conditions.completed_after import CompletedAfter
from airflow_hudi.conditions.writes import completed_writes, is_of_writer
from airflow_hudi.timeline_reader import Look
from hudi_core.errors import ConfigError, FormatError
from hudi_core.model.names import parse_data_file
from hudi_core.model.partition import check_partition
from hudi_core.request.texts import check_choice
from hudi_core.timeline.actions.commit import CommitMetadata
from hudi_core.timeline.instant import COMMIT_ACTIONS, Action, Instant
from hudi_core.timeline.timeline import Timeline

ALL: Final = "all"
ANY: Final = "any"
_MOST_SHOWN: Final = 5
"""Partitions that a message names."""


@dataclass(frozen=True, slots=True)
class _Change:
    """What a commit did to a partition: wrote to it, or removed what it held. `completed` is None for an archived
    commit that only the names of its files tell of.
    """

    instant: str
    completed: str | None
    is_write: bool


class PartitionCondition:
    """All of some partitions, or by `match` any of them, were written, by writes that completed later than
    `completed_after` if that is given.

    The last change of a partition decides: a delete_partition takes it away, and so does an insert_overwrite_table
    without rows for it. Without a bound partitions count, too, that only archived commits wrote: the names of their
    files tell, for which a folder is listed once. With a bound archived commits do not count.

    A commit is read once, the newest first, and no more of them than it takes to know the last change of each
    partition. Remembered is what the commits on the timeline did to these partitions. Raises ConfigError for what is no
    partition path or no time, and for another `match`.
    """

    def __init__(self, partitions: Sequence[str], match: str = ALL, completed_after: str | None = None) -> None:
        self._partitions = tuple(dict.fromkeys(partitions))
        self._match = match
        self._bound = CompletedAfter.of(completed_after)
        if not self._partitions:
            raise ConfigError("no partition to wait for", remedy="day=2026-01-02, for instance")
        check_choice("match", match, (ALL, ANY))
        for partition in self._partitions:
            try:
                check_partition(partition, source="partitions")
            except FormatError as error:
                raise ConfigError(
                    error.message, remedy="name a partition by its folder below the table, such as day=2026-01-02"
                ) from error
        self._read: dict[str, dict[str, _Change]] = {}
        self._archived: dict[str, _Change] = {}
        self._listed: set[str] = set()

    @property
    def action(self) -> str:
        return ""

    def check(self, look: Look) -> dict[str, Any] | None:
        """`{"partitions": [{"partition", "instant", "completed"}]}`: those that arrived, each with the last write to
        it; see condition.Condition. `completed` is None where only files tell of that write.
        """
        changes = self._last_changes(look)
        arrived = [(name, changes[name]) for name in self._partitions if name in changes and changes[name].is_write]
        if not arrived or (self._match == ALL and len(arrived) < len(self._partitions)):
            return None
        return {
            "partitions": [
                {"partition": name, "instant": change.instant, "completed": change.completed}
                for name, change in arrived
            ]
        }

    def unmet(self) -> str:
        several = f"{self._match} of " if len(self._partitions) > 1 else ""
        return f"no write to {several}{_shown(self._partitions)}" + (f" {self._bound}" if self._bound else "")

    def waiting(self, look: Look) -> str:
        """See condition.Condition: also which partitions are missing."""
        changes = self._last_changes(look)
        missing = [name for name in self._partitions if name not in changes or not changes[name].is_write]
        return f"{look.uri} shows {self.unmet()} yet" + (
            f"; missing: {_shown(missing)}" if len(missing) < len(self._partitions) else ""
        )

    def as_json(self) -> dict[str, Any]:
        bound = self._bound.text if self._bound else None
        return {"partitions": [*self._partitions], "match": self._match, "completed_after": bound}

    def _last_changes(self, look: Look) -> dict[str, _Change]:
        """The last change of each partition; of no more than are needed with `any`."""
        self._keep_archived(look.timeline)
        found: dict[str, _Change] = {}
        for item in reversed(completed_writes(look, self._bound)):
            for partition, change in self._changes_of(look, item).items():
                found.setdefault(partition, change)
            if len(found) == len(self._partitions) or (
                self._match == ANY and any(change.is_write for change in found.values())
            ):
                return found
        if self._bound is None:
            self._list_archived(look, [name for name in self._partitions if name not in found])
        return {**self._archived, **found}

    def _changes_of(self, look: Look, instant: Instant) -> dict[str, _Change]:
        """What a commit did to these partitions."""
        known = self._read.get(instant.requested_time)
        if known is not None:
            return known
        metadata = look.read_commit(instant)
        if metadata is None:
            return {}
        found: dict[str, _Change] = {}
        if is_of_writer(metadata):
            for name in self._partitions:
                is_write = _is_written(metadata, name)
                if is_write is not None:
                    found[name] = _Change(instant.requested_time, look.completed_at(instant), is_write)
        self._read[instant.requested_time] = found
        return found

    def _keep_archived(self, timeline: Timeline) -> None:
        """Forgets the commits that left the timeline: of those that were archived the last change of each partition is
        kept, those that were rolled back never were.
        """
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
    """Whether a commit wrote to a partition; False where it only removed what was there, None where it did nothing."""
    if metadata.partition_to_write_stats.get(partition):
        return True
    return False if (metadata.replaced_file_ids or {}).get(partition) else None


def _start(timeline: Timeline) -> str | None:
    """Commits before it were archived, as far as no savepoint keeps them on the timeline."""
    kept = COMMIT_ACTIONS | {Action.SAVEPOINT}
    return timeline.filter(lambda item: item.is_completed and item.action in kept).start


def _shown(partitions: Sequence[str]) -> str:
    more = [f"{len(partitions) - _MOST_SHOWN} more"] if len(partitions) > _MOST_SHOWN else []
    return ", ".join([*partitions[:_MOST_SHOWN], *more])
