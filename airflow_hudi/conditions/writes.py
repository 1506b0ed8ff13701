"""That a commit arrived, and how a write differs from a compaction or a clustering."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from airflow_hudi.conditions.completed_after import CompletedAfter, is_after
from airflow_hudi.results import instant_named
from airflow_hudi.timeline_reader import Look
from hudi_core.timeline.actions.commit import CommitMetadata, Operation
from hudi_core.timeline.instant import COMMIT_ACTIONS, WRITE_ACTIONS, Instant

_SERVICES: Final = WRITE_ACTIONS - COMMIT_ACTIONS
SERVICE_OPERATIONS: Final = frozenset({Operation.COMPACT, Operation.LOG_COMPACT, Operation.CLUSTER})
"""Operations that leave rows as they are."""


def written(metadata: CommitMetadata) -> dict[str, Any]:
    """What a commit wrote: `{"operation", "partitions", "rows"}`, the partitions by name, those that it emptied among
    them.
    """
    partitions = sorted({*metadata.partition_to_write_stats, *(metadata.replaced_file_ids or {})})
    return {
        "operation": metadata.operation_type,
        "partitions": partitions,
        "rows": sum(stat.num_writes for stat in metadata.write_stats()),
    }


def may_be_write(instant: Instant) -> bool:
    """Whether a completed instant is a commit that its pending files do not show to be a compaction or a clustering;
    its metadata decides (is_of_writer).
    """
    return instant.action in COMMIT_ACTIONS and instant.pending_action not in _SERVICES


def completed_writes(look: Look, bound: CompletedAfter | None) -> list[Instant]:
    """The completed writes that are later than the bound, in the order of completion, but for those that their pending
    files show to be compactions or clusterings.
    """
    found = (item for item in look.timeline.completed() if may_be_write(item) and is_after(bound, look, item))
    return sorted(found, key=lambda item: (look.completed_at(item), item.requested_time))


def is_of_writer(metadata: CommitMetadata) -> bool:
    """Whether a commit may change rows: a compaction or a clustering does not. Names do not tell everything: layout 1
    has one for clusterings and overwrites, and archival removes the pending files of a compaction first.
    """
    return not metadata.compacted and metadata.operation_type not in SERVICE_OPERATIONS


@dataclass(frozen=True, slots=True)
class CommitCondition:
    """A write completed, later than `completed_after` if that is given; compactions and clusterings are none.

    Each commit is read once, up to the oldest that is a write. Raises ConfigError for what is no time.
    """

    completed_after: str | None = None
    _services: set[str] = field(default_factory=set, init=False, repr=False, compare=False)
    """The requested times of commits that turned out to be of services."""

    def __post_init__(self) -> None:
        CompletedAfter.of(self.completed_after)

    @property
    def action(self) -> str:
        return ""

    def check(self, look: Look) -> dict[str, Any] | None:
        """`{"instant", "action", "state", "completed", "operation", "partitions", "rows"}` of the write that completed
        first; see condition.Condition. `completed` is a bound for the next one.
        """
        self._services.intersection_update(look.timeline.requested_times)
        for item in completed_writes(look, CompletedAfter.of(self.completed_after)):
            if item.requested_time in self._services:
                continue
            metadata = look.read_commit(item)
            if metadata is None:
                continue
            if is_of_writer(metadata):
                return {**instant_named(item), "completed": look.completed_at(item), **written(metadata)}
            self._services.add(item.requested_time)
        return None

    def unmet(self) -> str:
        bound = CompletedAfter.of(self.completed_after)
        return f"no write {bound}" if bound else "no completed write"

    def waiting(self, look: Look) -> str:
        return f"{look.uri} shows {self.unmet()} yet"

    def as_json(self) -> dict[str, Any]:
        return {"completed_after": self.completed_after}
