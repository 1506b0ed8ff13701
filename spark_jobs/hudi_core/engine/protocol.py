"""The port that runs a plan's units, and the form in which they cross it; serializer.py writes one value as text."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

from hudi_core.engine.serializer import field_names, fields_from_text, fields_to_text
from hudi_core.frozen import dataclass

Json = dict[str, Any]
U = TypeVar("U")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class TaskAttempt:
    """The attempt that is running, and its unit. The write token is made of it, so attempts never share a file name."""

    partition_id: int
    stage_id: int
    attempt_id: int


UnitTask = Callable[[U, TaskAttempt], R]
"""A module-level function that takes a unit and its attempt, writes files and returns its result. It raises HudiError
only. Units and results are frozen dataclasses (engine.serializer); the return annotation names the result's class.
"""
RowBatch = Any
"""A pyarrow.RecordBatch; Any, since this module is imported where pyarrow is not installed."""
Produce = Callable[[U, TaskAttempt], Iterator[RowBatch]]
"""A module-level function that takes a unit and its attempt and yields rows as engine.exchange.ROWS, a few MB a batch.
It writes no files: an attempt may be abandoned, and a unit's rows requested again. It raises HudiError only.
"""
Consume = Callable[[int, Iterator[RowBatch], TaskAttempt], R]
"""A module-level function, or a functools.partial of one, that takes a shard, its rows and its attempt, writes files,
and returns its result, like a UnitTask. Rows come as engine.exchange.SHARD_ROWS, sorted by the unsigned bytes of their
keys; rows of one key come in no order. The function may stop before the last row. It raises HudiError only.
"""


class Engine(Protocol):
    """Runs one task over many units. An engine may run a unit several times (retries, speculation), but it returns the
    result of one attempt per unit, in the order of `units`. The caller removes the files that other attempts left.
    """

    name: str
    is_remote: bool
    """Whether units run on executors, so that each row of an exchange crosses to them and back."""

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
        """Runs `produce` on the units, moves the rows to their shards, and runs `consume` on each shard.

        Every shard from 0 to `shards` - 1 is consumed, after all units are produced; the shard is the partition id of a
        consumer's attempt. Results come in the order of shards. An attempt that failed for a transient reason
        (errors.is_transient) is repeated some times. `progress` counts units (in_units). Memory does not grow with the
        rows. A class of units whose rows are large has an attribute `rows_per_batch` (exchange.PIECES_PER_BATCH).

        Raises ValueError for no shard, either function's HudiError, or ExecutionError (also for bad rows or shards).
        """
        ...


def in_units(progress: Callable[[int, int], None] | None, units: int, shards: int) -> Callable[[int, int], None] | None:
    """Returns a function that reports the progress of units and shards in units: the user was told their number."""
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
    """An engine that answers SQL queries and has DataFrames."""

    def stage_query(self, query: str, folder: str, storage_options: Mapping[str, str]) -> frozenset[str]:
        """Answers the query once, writes its rows as Parquet files into `folder`, and returns their names. The folder
        may hold or get other files, of attempts that lost. Raises ConfigError for an invalid query, or ExecutionError.
        """
        ...

    def stage_dataframe(
        self, function: str, arguments: Mapping[str, str], folder: str, storage_options: Mapping[str, str]
    ) -> frozenset[str]:
        """Writes the DataFrame of a `module:function`, like stage_query. Raises ConfigError where it returns none."""
        ...


@runtime_checkable
class RemoteEngine(Protocol):
    """An engine whose units run in other environments than the driver's."""

    def setups(self) -> tuple[Json, ...]:
        """Returns the different environments of some executors: module name to version, None where the import fails.
        Raises ConfigError when executors lack a module of the probe, ExecutionError when they are unreachable.
        """
        ...


@dataclass(frozen=True)
class PackedUnits(Generic[U]):
    """Units as text: the fields that all units share once, the other fields by unit. Nobody may change their values."""

    unit_type: type[U]
    shared: bytes
    separate: tuple[bytes, ...]
    compressed: bool

    def unit(self, index: int) -> U:
        """Returns the unit at `index`, equal to the packed unit; raises the errors of serializer.from_text."""
        unit_type: Any = self.unit_type
        shared = _shared_values(unit_type, self.shared, self.compressed)
        return self.unit_type(**shared, **_values(self.unit_type, self.separate[index], self.compressed))

    def only(self, index: int) -> PackedUnits[U]:
        """Returns the unit at `index` alone, as unit 0, for another process."""
        return PackedUnits(self.unit_type, self.shared, (self.separate[index],), self.compressed)


@lru_cache(maxsize=2)
def _shared_values(unit_type: type[Any], text: bytes, compressed: bool) -> dict[str, Any]:
    """Returns the shared values, and keeps them for the next unit of this process, which comes with the same text."""
    return _values(unit_type, text, compressed)


def _values(unit_type: type[Any], text: bytes, compressed: bool) -> dict[str, Any]:
    return fields_from_text(unit_type, zlib.decompress(text) if compressed else text)


def pack_units(units: Sequence[U], *, compress: bool = False) -> PackedUnits[U]:
    """Packs units of one class. A field is shared where all units hold the same object (table, schema). `compress` is
    for engines that send all units to every task. Raises TypeError for a unit of another class or without a text form.
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
    """Returns the class of a task's results, by its annotation. Raises TypeError where the annotation is no class."""
    function: Any = task
    while isinstance(function, partial):
        function = function.func
    kind = function.__annotations__.get("return")
    if isinstance(kind, str):
        kind = eval(kind, function.__globals__)
    if not isinstance(kind, type):
        raise TypeError(f"{function.__name__} names no class of results")
    return kind
