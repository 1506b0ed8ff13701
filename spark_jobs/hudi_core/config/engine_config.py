"""The engines, and which work a process does itself; options of the local engine: what `--engine auto` gives it, how
many processors and how much memory it takes; the extent of a plan, which is compared with these; and the Python modules
that every engine needs. hudi_spark/probe.py finds out whether executors have them.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Final

from hudi_core.config.keys import MAX_INT, keys_in, number, read_fields
from hudi_core.frozen import dataclass

SPARK: Final = "spark"
ENGINES: Final = (SPARK, "auto", "local")
"""The places of work, by the word in a command or a task."""


class Mode(Enum):
    """The work of this process: `look` only finds out whether there is work, `auto` does small work, `local` all."""

    LOOK = "look"
    AUTO = "auto"
    LOCAL = "local"


NEEDED_MODULES = {"pyarrow": "columns, Parquet, and the data files of object stores", "numpy": "columns"}
"""Modules that every unit needs beside fastavro and sqlglot, which the zip has. main.py has its own words for them."""
OPTIONAL_MODULES = {"polars": "Avro log records"}
"""Modules without which a unit takes longer, since fastavro decodes then (codec.avro.arrow)."""

_MAX = 2**53

LOCAL_MAX_BYTES = number("airflow_hudi.engine.local.max.bytes", 1 << 30, within=(0, _MAX))
LOCAL_MAX_UNITS = number("airflow_hudi.engine.local.max.units", 1000, within=(0, MAX_INT))
LOCAL_MEMORY = number("airflow_hudi.engine.local.memory.bytes", 4 << 30, within=(64 << 20, _MAX))
LOCAL_WIDTH = number("airflow_hudi.engine.local.processors", 0, within=(0, 1024))

ENGINE_KEYS = keys_in(globals())


@dataclass(frozen=True, slots=True)
class EngineConfig:
    """Options of the local engine; units are those of the keys."""

    max_bytes: int = LOCAL_MAX_BYTES.field()
    max_units: int = LOCAL_MAX_UNITS.field()
    memory_bytes: int = LOCAL_MEMORY.field()
    processors: int = LOCAL_WIDTH.field()

    @staticmethod
    def of(options: Mapping[str, str]) -> EngineConfig:
        return read_fields(EngineConfig, options)

    @property
    def width(self) -> int:
        return self.processors or len(os.sched_getaffinity(0))


@dataclass(frozen=True, slots=True)
class Extent:
    """The extent of a plan: units, the bytes of the files that they read (counted until they decide), and the bytes of
    the largest unit. `for_spark` says why the plan is for Spark, however small it is.
    """

    units: int = 1
    size: int = 0
    largest: int = 0
    for_spark: str | None = None

    @staticmethod
    def of(sizes: Iterable[int], config: EngineConfig) -> Extent:
        units = total = largest = 0
        for size in sizes:
            units, total, largest = units + 1, total + size, max(largest, size)
            if units > config.max_units or total > config.max_bytes:
                break
        return Extent(units, total, largest)

    def __or__(self, other: Extent) -> Extent:
        """Returns the extent of two plans that run one after the other."""
        return Extent(max(self.units, other.units), max(self.size, other.size), max(self.largest, other.largest))
