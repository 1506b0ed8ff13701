"""The port over which a plan's units are spread, threads of this process or Spark executors, and the form in which they
cross it. The text of one value: serializer.py.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

from hudi_core.engine.serializer import field_names, fields_from_text, fields_to_text

Json = dict[str, Any]
U = TypeVar("U")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class TaskAttempt:
    """Which attempt of which unit is running: the source of the write token, so attempts never share a file name."""

    partition_id: int
    stage_id: int
    attempt_id: int


UnitTask = Callable[[U, TaskAttempt], R]
"""A module-level function that takes a unit and its attempt, writes files and returns its result; raises HudiError
only. Units and results are frozen dataclasses (engine.serializer); annotations name the result's class.
"""
RowBatch = Any
"""A pyarrow.RecordBatch; this module is imported where there is no pyarrow."""
Produce = Callable[[U, TaskAttempt], Iterator[RowBatch]]
"""A module-level function that takes a unit and its attempt and yields rows as engine.exchange.ROWS, a few megabytes a
batch. It writes nothing: an attempt may be abandoned with its rows, and those of a unit requested again. Raises
HudiError only.
"""
Consume = Callable[[int, Iterator[RowBatch], TaskAttempt], R]
"""A module-level function, or a functools.partial of one, that takes a shard, its rows and its attempt, writes files,
and returns its result, as a UnitTask. Rows come as engine.exchange.SHARD_ROWS, sorted by the unsigned bytes of their
keys; rows of one key in no order. It may stop before their end. Raises HudiError only.
"""


class Engine(Protocol):
    """Runs one task over many units; exactly once per unit as far as the caller sees: an implementation may run a unit
    several times (retries, speculation) but returns the result of one attempt per unit, in the order of `units`. Files
    that other attempts left are the caller's to remove.
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

        Every shard of 0 to `shards` - 1 is consumed, after all units are produced; the shard is the partition id of a
        consumer's attempt. Results come in the order of shards. An attempt that failed for a transient reason
        (errors.is_transient) is repeated some times. `progress` counts units: see in_units. Memory does not grow with
        the rows. A class of units whose rows are large has an attribute `rows_per_batch` (exchange.PIECES_PER_BATCH).

        Raises ValueError for fewer shards than one, the HudiError of either function, or ExecutionError, also for rows
        of another form or for shards that do not exist.
        """
        ...


def in_units(progress: Callable[[int, int], None] | None, units: int, shards: int) -> Callable[[int, int], None] | None:
    """Reports the progress of units and shards in units, of which the user was told the number."""
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
        """Answers the query once, and writes its rows as Parquet files into a folder: their names. The folder may hold
        other files, of attempts that lost, and may get some later. Raises ConfigError for a query that is not valid,
        ExecutionError.
        """
        ...

    def stage_dataframe(
        self, function: str, arguments: Mapping[str, str], folder: str, storage_options: Mapping[str, str]
    ) -> frozenset[str]:
        """As stage_query, of the DataFrame that a `module:function` returns. ConfigError for one that does not."""
        ...


@runtime_checkable
class RemoteEngine(Protocol):
    """An engine whose units run in environments of their own."""

    def setups(self) -> tuple[Json, ...]:
        """The different environments of some executors: module name to version, None where it cannot be imported.
        Raises ConfigError when they lack what the probe needs, ExecutionError when they cannot be reached.
        """
        ...


@dataclass(frozen=True)
class PackedUnits(Generic[U]):
    """As text: the fields that all units share once, the others by unit. Values are not to be changed."""

    unit_type: type[U]
    shared: bytes
    separate: tuple[bytes, ...]
    compressed: bool

    def unit(self, index: int) -> U:
        """The unit at `index`, equal to the one that was packed; errors as serializer.from_text."""
        unit_type: Any = self.unit_type
        shared = _shared_values(unit_type, self.shared, self.compressed)
        return self.unit_type(**shared, **_values(self.unit_type, self.separate[index], self.compressed))

    def only(self, index: int) -> PackedUnits[U]:
        """The unit at `index` alone, as the first one: what another process needs of it."""
        return PackedUnits(self.unit_type, self.shared, (self.separate[index],), self.compressed)


@lru_cache(maxsize=2)
def _shared_values(unit_type: type[Any], text: bytes, compressed: bool) -> dict[str, Any]:
    """Kept for the next unit of this process, where each comes with the text of its own."""
    return _values(unit_type, text, compressed)


def _values(unit_type: type[Any], text: bytes, compressed: bool) -> dict[str, Any]:
    return fields_from_text(unit_type, zlib.decompress(text) if compressed else text)


def pack_units(units: Sequence[U], *, compress: bool = False) -> PackedUnits[U]:
    """Packs units of one class. A field is shared where all units hold the very same object (table, schema, timeline).
    `compress` is for an engine that sends all units to every task. Raises TypeError for a unit of another class or that
    cannot cross.
    """
    first = units[0]
    unit_type = type(first)
    if any(type(unit) is not unit_type for unit in units):
        raise TypeError(f"not all units are of the class {unit_type.__name__}")
    names = list(field_names(unit_type))
    shared = [name for name in names if all(getattr(unit, name) is getattr(first, name) for unit in units)]
    separate = [name for name in names if name not in shared]

    def pack(unit: U, fields: Sequence[str]) -> bytes:
        text = fields_to_text(unit, fields).encode("ascii")
        return zlib.compress(text, level=1) if compress else text

    return PackedUnits(unit_type, pack(first, shared), tuple(pack(unit, separate) for unit in units), compress)


def result_type(task: Callable[..., R]) -> type[R]:
    """The class of a task's results, by its annotation. Raises TypeError where the function names none."""
    function: Any = task
    while isinstance(function, partial):
        function = function.func
    kind = function.__annotations__.get("return")
    if isinstance(kind, str):
        kind = eval(kind, function.__globals__)
    if not isinstance(kind, type):
        raise TypeError(f"{function.__name__} names no class of results")
    return kind
