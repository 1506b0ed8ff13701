"""What a write does, as verb.py sees it. Overwrites (services/overwrite) and writes of rows (plan.py) are its kinds."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from hudi_core.frozen import dataclass
from hudi_core.services.concurrent_changes import Seen
from hudi_core.services.context import TableContext
from hudi_core.services.source.files import CountedRows, Needs, RowsFrom
from hudi_core.timeline.actions.commit import CommitMetadata
from hudi_core.timeline.timeline import Timeline


@dataclass(frozen=True, slots=True)
class WriteResult:
    """The result of a write. `instant` is None in a dry run, and where there was nothing to do; `reason` says why.
    `records` are the rows of new files; `inserted`, `updated` and `deleted` are rows of the table. `repeated`: an
    earlier run with the same token did the work; the numbers are those of that run, also in a dry run. Else a dry run
    has the numbers that are known without writing.
    """

    instant: str | None
    operation: str
    partitions: int
    replaced_file_groups: int
    files_written: int
    records: int
    repeated: bool = False
    reason: str | None = None
    engine: str | None = None
    inserted: int = 0
    updated: int = 0
    deleted: int = 0
    created: bool = False
    """Whether this run made the table."""

    def to_dict(self) -> dict[str, Any]:
        """The document of `hudictl insert-overwrite --json` and `hudictl write --json`."""
        return asdict(self)

    @staticmethod
    def of(instant: str, metadata: CommitMetadata) -> WriteResult:
        stats = list(metadata.write_stats())
        replaced = metadata.replaced_file_ids or {}
        return WriteResult(
            instant,
            metadata.operation_type or "",
            len({*replaced, *metadata.partition_to_write_stats}),
            sum(map(len, replaced.values())),
            len(stats),
            sum(stat.num_writes for stat in stats),
            inserted=sum(stat.num_inserts for stat in stats),
            updated=sum(stat.num_update_writes for stat in stats),
            deleted=sum(stat.num_deletes for stat in stats),
        )


@dataclass(frozen=True, slots=True)
class Extent:
    """What a write is known to touch before it is requested: its partitions, and how many file groups it replaces."""

    partitions: frozenset[str]
    replaced_file_groups: int = 0


@dataclass(frozen=True, slots=True)
class Work(ABC):
    """One write. `operation` is the operation type of the commit. `rows` are the counted rows, and `rows_from` says
    where they come from; a delete_partition has neither. `token` names the work, so that it is done once. `seen` is
    what the table had before Spark evaluated the rows, because these may come from the table itself; None where the
    rows come from files. `searched` are the commits without the token when the instant was requested.
    """

    operation: str
    rows: CountedRows | None = None
    token: str | None = None
    seen: Seen | None = None
    rows_from: RowsFrom | None = None
    searched: frozenset[str] = frozenset()

    @property
    def row_counts(self) -> Mapping[str, int]:
        """How many rows of the source each partition gets."""
        return {} if self.rows is None else self.rows.by_partition

    @abstractmethod
    def action(self, context: TableContext) -> str:
        """Returns the action of the instant."""

    @abstractmethod
    def needs(self) -> Needs:
        """Returns what the rows of the source must have."""

    @abstractmethod
    def nothing(self) -> str | None:
        """Returns why the counted rows leave nothing to do; None where there is something to do."""

    @abstractmethod
    def extent(self, context: TableContext, timeline: Timeline) -> Extent:
        """Returns what the write touches. Raises the errors of the run for bad input, and ConflictError."""

    @abstractmethod
    def check_plans(self, context: TableContext, timeline: Timeline, extent: Extent) -> None:
        """Raises ConflictError where a pending plan stops the write. Called under the table lock."""

    @abstractmethod
    def requested(self, context: TableContext, process: Mapping[str, str]) -> bytes:
        """Returns the content of the requested file, with the token and with `process`, which names the owner."""

    def other_partitions(self, metadata: CommitMetadata) -> frozenset[str]:
        """Returns the partitions that only one of this work and a commit with its token names."""
        return frozenset()
