"""Chooses the engine of a plan, local or Spark, where the engine `auto` is named. The choice follows from the plan's
units and bytes, and from the memory that they need. With `spark` (the default of a task) and with `local` there is no
choice: airflow_hudi/jobs/engine_job.py and driver.py say what runs where.

The choice does not change what is written: an engine runs units, and the service makes them (engine.protocol).
"""

from __future__ import annotations

from typing import Final

from hudi_core.config.engine_config import LOCAL_MAX_BYTES, LOCAL_MAX_UNITS, LOCAL_MEMORY, EngineConfig, Extent
from hudi_core.config.rows_config import WriteConfig
from hudi_core.engine.local import LocalEngine
from hudi_core.frozen import dataclass

PROCESS_BYTES: Final = 128 << 20
"""Plans of this many bytes or more run in processes, whose start takes a second (docs/internals/benchmarks.md)."""
_FIXED: Final = 200 << 20
"""Bytes of memory that a task needs besides its rows (docs/guarantees/memory.md)."""
_EXPANSION: Final = 16
"""The most bytes of memory that a compressed byte of a file takes while its rows are merged."""
_MIB: Final = 1 << 20
_WAITING: Final = 4
"""Threads for each processor where units wait for requests."""


@dataclass(frozen=True, slots=True)
class Choice:
    """The chosen engine: Spark, or `local` with `width` units in processes or threads. `why` is for the log."""

    local: bool
    why: str
    width: int = 1
    in_processes: bool = False

    def engine(self) -> LocalEngine:
        """Returns the local engine of this width. The caller closes it."""
        return LocalEngine(processes=self.width) if self.in_processes else LocalEngine(self.width)


def choose(
    extent: Extent, config: EngineConfig, writing: WriteConfig, *, at_once: int = 1, waits: bool = False
) -> Choice:
    """Chooses the engine for a plan. `at_once` is how many plans share the processors and the memory. With `waits`,
    small units wait for requests most of their time: more of them run side by side, unless the options say how many.
    """
    if extent.for_spark is not None:
        return Choice(False, extent.for_spark)
    needed = task_memory(extent, writing)
    memory = config.memory_bytes // at_once
    is_small = extent.size < PROCESS_BYTES
    width = config.width * (_WAITING if waits and is_small and not config.processors else 1)
    width = max(1, min(width // at_once, extent.units, memory // needed))
    processes = width > 1 and not is_small
    plan = f"{extent.units} units, {extent.size / _MIB:.1f} MiB"
    if extent.units > config.max_units:
        return Choice(False, f"more than {config.max_units} units ({LOCAL_MAX_UNITS.name})", width, processes)
    if extent.size > config.max_bytes:
        limit = f"{config.max_bytes / _MIB:.0f} MiB ({LOCAL_MAX_BYTES.name})"
        return Choice(False, f"more than {limit} to read", width, processes)
    if needed > memory:
        limit = f"{memory / _MIB:.0f} MiB ({LOCAL_MEMORY.name})"
        return Choice(False, f"a unit may need {needed / _MIB:.0f} MiB of memory, more than {limit}", 1)
    return Choice(True, plan, width, processes)


def task_memory(extent: Extent, writing: WriteConfig) -> int:
    """Returns the memory bytes that a unit may need, by docs/guarantees/memory.md; less for small files."""
    stated = writing.memory_bytes + 2 * writing.row_group_bytes
    return _FIXED + min(stated, _EXPANSION * extent.largest)
