"""The port over which a plan's units are spread: threads of this process, or Spark executors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar, runtime_checkable

Json = dict[str, Any]
"""A JSON object, as documents and read plans are."""
U = TypeVar("U")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class TaskAttempt:
    """Which attempt of which unit is running; the source of the write token, so two attempts never share a file
    name.
    """

    partition_id: int
    stage_id: int
    attempt_id: int


UnitTask = Callable[[U, TaskAttempt], R]
"""A module-level function: takes a unit and its attempt, writes files, returns its result. It raises HudiError only.

Units and results are frozen dataclasses that engine.serializer can write; the function's annotations name the result's
class.
"""
RowBatch = Any
"""A pyarrow.RecordBatch; this module is imported where there is no pyarrow."""
Produce = Callable[[U, TaskAttempt], Iterator[RowBatch]]
"""A module-level function: takes a unit and its attempt, yields rows as engine.exchange.ROWS: shard (int32), key
and value (binary, not null).

It should write nothing: an attempt's rows may be thrown away, and those of a unit may be asked for again. A batch is
held as a whole, so a few megabytes each are right. It raises HudiError only.
"""
Consume = Callable[[int, Iterator[RowBatch], TaskAttempt], R]
"""A module-level function, or a functools.partial of one: takes a shard, its rows and its attempt, writes files,
returns its result, a frozen dataclass as that of a UnitTask.

Rows come as engine.exchange.SHARD_ROWS (key, value), sorted by the bytes of their keys, unsigned; rows of one key
in no order. It need not read them all. It raises HudiError only.
"""


class Engine(Protocol):
    """Runs one task over many units; exactly once per unit as far as the caller sees.

    An implementation may run a unit several times (retries, speculation) but returns the result of exactly one attempt
    per unit, in the order of `units`. Files that other attempts left are the caller's to remove: it knows the winners.
    """

    name: str

    def run(
        self,
        task: UnitTask[U, R],
        units: Sequence[U],
        *,
        run_epoch: int,
        progress: Callable[[int, int], None] | None = None,
    ) -> list[R]:
        """Runs `task` on each unit. `run_epoch` becomes the stage id of every attempt. Raises the task's HudiError, or
        ExecutionError.
        """
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
        """Brings the rows that `produce` makes of the units to the shards that they name, and runs `consume` on each of
        these.

        Every shard of 0 to `shards` - 1 is consumed, one without rows too, and exactly one attempt of each gives the
        result; results come in the order of shards. No shard is consumed before all units are produced. An attempt that
        failed for a passing reason (errors.is_transient) is made again, of `produce` and of `consume`, some times. A
        consumer's attempt has the shard as its partition id. `progress` counts units and shards together. Memory does
        not grow with the rows: what does not fit is sorted on disk.

        Raises ValueError for fewer shards than one, the HudiError of either function, or ExecutionError, also for rows
        of another form or for shards that there are not.
        """
        ...


@runtime_checkable
class RemoteEngine(Protocol):
    """An engine whose units run in environments of their own, which can be asked what they have."""

    def setups(self) -> tuple[Json, ...]:
        """The different set-ups of the executors that happened to be asked: module name to version, None where it
        cannot be imported.

        Raises ConfigError when they lack even what it takes to be asked, ExecutionError when they cannot be reached.
        """
        ...
