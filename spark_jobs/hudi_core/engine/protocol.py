"""The port over which a plan's units are spread: threads of this process, or Spark executors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar, runtime_checkable

Json = dict[str, Any]
"""A JSON object, as documents and read plans are."""
U = TypeVar("U")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class TaskAttempt:
    """Which attempt of which unit is running: the source of the write token, so attempts never share a file name."""

    partition_id: int
    stage_id: int
    attempt_id: int


UnitTask = Callable[[U, TaskAttempt], R]
"""A module-level function that takes a unit and its attempt, writes files and returns its result. It raises HudiError
only. Units and results are frozen dataclasses that engine.serializer can write; annotations name the result's class.
"""
RowBatch = Any
"""A pyarrow.RecordBatch; this module is imported where there is no pyarrow."""
Produce = Callable[[U, TaskAttempt], Iterator[RowBatch]]
"""A module-level function that takes a unit and its attempt and yields rows as engine.exchange.ROWS. It writes nothing:
rows of an attempt may be discarded, and those of a unit requested again. A batch is held as a whole, so a few megabytes
each are right. It raises HudiError only.
"""
Consume = Callable[[int, Iterator[RowBatch], TaskAttempt], R]
"""A module-level function, or a functools.partial of one, that takes a shard, its rows and its attempt, writes files,
and returns its result, as a UnitTask does. Rows come as engine.exchange.SHARD_ROWS, sorted by the unsigned bytes of
their keys; rows of one key in no order. It may stop before their end. It raises HudiError only.
"""


class Engine(Protocol):
    """Runs one task over many units; exactly once per unit as far as the caller sees. An implementation may run a unit
    several times (retries, speculation) but returns the result of exactly one attempt per unit, in the order of
    `units`. Files that other attempts left are the caller's to remove: it knows the winners.
    """

    name: str
    is_remote: bool
    """Whether units run in processes elsewhere, and each row of an exchange crosses to them and back."""

    def run(
        self,
        task: UnitTask[U, R],
        units: Sequence[U],
        *,
        run_epoch: int,
        progress: Callable[[int, int], None] | None = None,
    ) -> list[R]:
        """Runs `task` on each unit; `run_epoch` is the attempts' stage id. Raises a HudiError or ExecutionError."""
        ...

    def exchange(
        self,
        produce: Produce[U],
        units: Sequence[U],
        consume: Consume[R],
        *,
        shards: int,
        run_epoch: int,
        progress: Callable[[int, int], None] | None = None,
    ) -> list[R]:
        """Shuffles the rows that `produce` makes of the units to their shards, and runs `consume` on each shard.

        Every shard of 0 to `shards` - 1 is consumed, one without rows too, after all units are produced, and exactly
        one attempt of each gives the result; results come in the order of shards. An attempt that failed for a
        transient reason (errors.is_transient) is repeated, of `produce` and of `consume`, some times. The shard is the
        partition id of a consumer's attempt. `progress` counts units: see in_units. Memory does not grow with the rows:
        what does not fit is sorted on disk. A class of units whose rows are large has an attribute `rows_per_batch`: an
        engine that cuts batches by rows alone gives a consumer no more at a time (exchange.PIECES_PER_BATCH).

        Raises ValueError for fewer shards than one, the HudiError of either function, or ExecutionError, also for rows
        of another form or for shards that do not exist.
        """
        ...


def in_units(progress: Callable[[int, int], None] | None, units: int, shards: int) -> Callable[[int, int], None] | None:
    """What reports an exchange, whose `done` counts units and shards, in units, of which the user was told the number:
    as many are done as is the share of both that is done.
    """
    if progress is None:
        return None
    whole, tell, said = max(units, 1), progress, -1

    def report(done: int, _: int) -> None:
        nonlocal said
        share = done * whole // (units + shards)
        if share > said:
            said = share
            tell(share, whole)

    return report


@runtime_checkable
class FrameEngine(Protocol):
    """An engine that answers queries of SQL, and has DataFrames."""

    def stage_query(self, query: str, folder: str, storage_options: Mapping[str, str]) -> frozenset[str]:
        """Answers the query once, and writes its rows as Parquet files into a folder that is empty: their names. The
        folder may hold other files, of attempts that lost, and may get some later. Raises ConfigError for a query that
        is not valid, ExecutionError.
        """
        ...

    def stage_dataframe(
        self, function: str, arguments: Mapping[str, str], folder: str, storage_options: Mapping[str, str]
    ) -> frozenset[str]:
        """Writes the rows of the DataFrame that `function`, a `module:function`, makes of the session and `arguments`,
        as stage_query does. Raises ConfigError for one that cannot be imported or returns no DataFrame, ExecutionError.
        """
        ...


@runtime_checkable
class RemoteEngine(Protocol):
    """An engine whose units run in environments of their own."""

    def setups(self) -> tuple[Json, ...]:
        """The different environments of some executors: module name to version, None where it cannot be imported.
        Raises ConfigError when they lack what the probe needs, ExecutionError when they cannot be reached.
        """
        ...
