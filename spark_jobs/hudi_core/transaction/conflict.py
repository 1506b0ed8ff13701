"""Optimistic concurrency, without I/O: the operations that a commit is compared with, and whether it may proceed.

The rules are those of Hudi's ConflictResolutionStrategy classes in the release that wrote the table's version
(TableVersion.conflict_release): 0.15.0 for version 6, 1.0.2 for version 8, 1.2.0 for version 9. Two operations conflict
when they changed the same file group; strategies and releases differ in the operations that count. Times are compared
as text.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from typing import Final

from hudi_core.config.concurrency_config import Strategy
from hudi_core.errors import ConflictError, FormatError
from hudi_core.frozen import dataclass
from hudi_core.model.names import FileGroupId
from hudi_core.timeline.actions.commit import Operation as OperationType
from hudi_core.timeline.instant import COMMIT_ACTIONS, Action, Instant, State

_BUCKET_DIGITS: Final = 8
_REWRITING: Final = frozenset({Action.COMPACTION, Action.CLUSTERING})


@dataclass(frozen=True, slots=True)
class ReleaseRules:
    """The rules for the choice of operations to compare with, which differ by release."""

    pending_after: frozenset[str]
    """Pending actions that count when they were requested after this operation (SIMPLE, BUCKET)."""
    clusterings_of_any_age: bool
    """Pending clusterings count whenever they were requested; else only those requested after this operation."""
    passes_compactions: bool
    """Completed compactions do not count: writers continue in the slice that a compaction opens."""
    inflight_ingestion: frozenset[str]
    """Inflight actions that a service gives way to (PREFER_WRITER)."""
    sees_rollbacks: bool
    """A pending rollback of this very operation is a conflict (PREFER_WRITER, for writers)."""


_INGESTION: Final = frozenset({Action.COMMIT, Action.DELTA_COMMIT})
RULES: Final[Mapping[str, ReleaseRules]] = {
    "0.15": ReleaseRules(
        frozenset({Action.REPLACE_COMMIT, Action.CLUSTERING, Action.COMPACTION}), False, False, _INGESTION, False
    ),
    "1.0": ReleaseRules(frozenset({Action.CLUSTERING, Action.COMPACTION}), False, False, _INGESTION, False),
    "1.2": ReleaseRules(frozenset({Action.REPLACE_COMMIT}), True, True, COMMIT_ACTIONS, True),
}
"""The rules by the release that wrote the table's version (TableVersion.conflict_release)."""


@dataclass(frozen=True, slots=True)
class OperationStart:
    """The timeline when the operation started: the last completed commit, and the other instants that were pending."""

    last_completed: str | None = None
    pending: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Other:
    """An instant on the timeline under the lock. `completed_at` orders completions (layout 1: the completed file's
    modification time). `clustering`: a pending clustering, under either action. `alive`: has a fresh heartbeat.
    """

    instant: Instant
    completed_at: str | None = None
    clustering: bool = False
    alive: bool = False

    @property
    def action(self) -> str:
        """The action; `clustering` for a pending clustering in layout 1, too."""
        return Action.CLUSTERING if self.clustering and not self.instant.is_completed else self.instant.action


@dataclass(frozen=True, slots=True)
class ConcurrentOperation:
    """One side of a comparison: its pending `action`, and the WriteOperationType `kind`, if known."""

    instant: str
    action: str
    state: State
    kind: str | None
    groups: frozenset[FileGroupId] = field(hash=False)
    rolls_back: str | None = None

    def describe(self) -> str:
        return f"{self.state.value} {self.action} {self.instant}"


def is_compared(action: str, kind: str | None, mode: str | None, strategy: Strategy) -> bool:
    """Returns whether Hudi compares a commit with others at all (HoodieWriteConfig.needResolveWriteConflict). `mode` is
    `hoodie.write.concurrency.mode`, None for optimistic control: this engine is never a table's only writer.
    Compactions are not compared: rows that are written meanwhile belong to the file slice that the compaction opens.
    Clusterings are compared only where they yield to writers (BaseHoodieTableServiceClient).
    """
    if mode == "SINGLE_WRITER":
        return False
    if mode == "NON_BLOCKING_CONCURRENCY_CONTROL":
        return kind == "BULK_INSERT"
    if action == Action.CLUSTERING:
        return strategy is Strategy.PREFER_WRITER
    return action != Action.COMPACTION


def candidates(
    this: ConcurrentOperation,
    others: Iterable[Other],
    operation_start: OperationStart,
    strategy: Strategy,
    rules: ReleaseRules,
    *,
    merge_on_read: bool,
) -> list[Other]:
    """Returns Hudi's getCandidateInstants and the commits that completed since the start, in timeline order."""

    def counts(other: Other) -> bool:
        if strategy is not Strategy.PREFER_WRITER:
            return _simple(this, other, operation_start, rules, merge_on_read)
        return _for_service(this, other, rules) if this.action in _REWRITING else _for_writer(this, other, rules)

    return [
        other
        for other in others
        if other.instant.requested_time != this.instant
        # or completed since this one started (getCompletedInstantsDuringCurrentWriteOperation)
        and (counts(other) or (_is_commit(other) and other.instant.requested_time in operation_start.pending))
    ]


def judge(
    this: ConcurrentOperation,
    others: Iterable[ConcurrentOperation],
    strategy: Strategy = Strategy.SIMPLE,
    *,
    blocks_on_requested: bool = False,
) -> list[tuple[ConcurrentOperation, str]]:
    """Returns the candidates that conflict, each with a message. Without a conflict the operation may complete. With
    `blocks_on_requested`, a clustering yields to live ingestion that has not yet recorded its file groups
    (`hoodie.clustering.fail.on.pending.ingestion.during.conflict.resolution`). Raises FormatError where a bucket's file
    id has no number.
    """
    compared = ((other, _conflict(this, other, strategy, blocks_on_requested)) for other in others)
    return [(other, text) for other, text in compared if text is not None]


def refuse(conflicts: Sequence[tuple[ConcurrentOperation, str]]) -> None:
    """Raises ConflictError when there are conflicts."""
    if conflicts:
        remedy = (
            "run it again when the other one has ended; which side yields is set by "
            "hoodie.write.lock.conflict.resolution.strategy"
        )
        raise ConflictError("; ".join(text for _, text in conflicts), remedy=remedy)


def _is_commit(other: Other) -> bool:
    return other.instant.is_completed and other.instant.action in COMMIT_ACTIONS


def _simple(
    this: ConcurrentOperation, other: Other, operation_start: OperationStart, rules: ReleaseRules, merge_on_read: bool
) -> bool:
    time = other.instant.requested_time
    if other.instant.is_completed:
        compaction = merge_on_read and other.instant.action == Action.COMMIT
        return (
            _is_commit(other)
            and time > (operation_start.last_completed or "")
            and not (compaction and rules.passes_compactions)
        )
    if other.clustering and rules.clusterings_of_any_age:
        return True
    return other.action in rules.pending_after and time > this.instant


def _for_service(this: ConcurrentOperation, other: Other, rules: ReleaseRules) -> bool:
    if other.instant.is_completed:
        return _is_commit(other) and (other.completed_at or "") > this.instant
    if other.clustering:
        return False
    inflight = other.instant.state is State.INFLIGHT
    return other.instant.action in rules.inflight_ingestion and (inflight or other.alive)


def _for_writer(this: ConcurrentOperation, other: Other, rules: ReleaseRules) -> bool:
    if other.instant.action == Action.ROLLBACK:
        return rules.sees_rollbacks and not other.instant.is_completed and other.instant.requested_time > this.instant
    return _is_commit(other) and (other.completed_at or "") > this.instant


def _conflict(
    this: ConcurrentOperation, other: ConcurrentOperation, strategy: Strategy, blocks_on_requested: bool
) -> str | None:
    unrecorded = other.state is State.REQUESTED and other.action in COMMIT_ACTIONS
    if blocks_on_requested and this.action == Action.CLUSTERING and unrecorded:
        return f"{other.describe()} is alive and has not recorded yet what it writes"
    if other.rolls_back is not None:
        return f"{other.describe()} rolls it back" if other.rolls_back == this.instant else None
    shared = _shared(this.groups, other.groups, strategy)
    if not shared or _is_harmless(this, other):
        return None
    shown = ", ".join(f"{group.partition or '.'}/{group.file_id}" for group in sorted(shared)[:3])
    more = f" and {len(shared) - 3} more" if len(shared) > 3 else ""
    return f"{other.describe()} changes file groups that {this.action} {this.instant} changes: {shown}{more}"


def _shared(mine: frozenset[FileGroupId], theirs: frozenset[FileGroupId], strategy: Strategy) -> frozenset[FileGroupId]:
    if strategy is not Strategy.BUCKET:
        return mine & theirs
    buckets = set(map(_bucket, theirs))
    return frozenset(group for group in mine if _bucket(group) in buckets)


def _bucket(group: FileGroupId) -> tuple[str, int]:
    digits = group.file_id[:_BUCKET_DIGITS]
    if len(digits) != _BUCKET_DIGITS or not (digits.isdigit() and digits.isascii()):
        remedy = "the bucket strategy is for tables with a bucket index only"
        raise FormatError(f"file id {group.file_id!r} names no bucket", remedy=remedy)
    return group.partition, int(digits)


def _is_harmless(this: ConcurrentOperation, other: ConcurrentOperation) -> bool:
    """Whether a shared group is no conflict: a compaction read earlier data, a log compaction harms no writer."""
    if other.kind == OperationType.COMPACT:
        return other.instant < this.instant
    return this.action == Action.LOG_COMPACTION
