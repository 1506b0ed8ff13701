"""Checks which of the required wheels Spark's executors have, before anything is written.
hudi_core/config/engine_config.py lists the required modules. hudi_health/doctor/wheels.py makes the doctor's findings.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import TYPE_CHECKING

import pyarrow as pa

from hudi_core.codec.gzip import GzipLibrary, chosen_library
from hudi_core.config.engine_config import NEEDED_MODULES, OPTIONAL_MODULES
from hudi_core.engine.protocol import Json
from hudi_core.errors import ConfigError
from hudi_core.frozen import dataclass
from hudi_spark.failure import REMEDY_WHEEL, SPARK_FAILURES, translate
from hudi_spark.tasks import Batches

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_TASKS = 4


@dataclass(frozen=True, slots=True)
class ProbeReport:
    """The Python set-ups of the probed executors: one entry per different set-up.

    An entry is `{"python", "pyarrow", "numpy", "polars", "fastavro", "gzip"}`. Values are versions; None means that the
    module cannot be imported. `fastavro` is "compiled" or "pure" (the copy in the job zip). `gzip` is the default
    library for base files of gzip: "isal", "libdeflate", or "pyarrow" if neither is installed.
    """

    setups: tuple[Json, ...]

    def require(self) -> None:
        """Raises ConfigError, with the remedy, when a needed module is missing on an executor."""
        for setup in self.setups:
            missing = [name for name in (*NEEDED_MODULES, "fastavro") if setup[name] is None]
            if missing:
                raise ConfigError(f"Spark's executors have no Python module {', '.join(missing)}", remedy=REMEDY_WHEEL)

    def warnings(self) -> list[str]:
        """Returns a warning for each missing module without which the work is only slower."""
        lacking = {
            "compiled fastavro and use the pure-Python one of the job zip, which is slower": ("fastavro", "pure"),
            "polars, so Avro log blocks are decoded by fastavro, which is slower": ("polars", None),
            "isal, so base files of gzip are compressed by pyarrow's zlib, which is slower": ("gzip", "pyarrow"),
        }
        return [
            f"executors have no {what}: {REMEDY_WHEEL}"
            for what, (name, value) in lacking.items()
            if any(setup[name] == value for setup in self.setups)
        ]


def probe_executors(spark: SparkSession, within: Callable[[Batches], Batches] = lambda task: task) -> ProbeReport:
    """Runs one small Spark job that imports the modules, on the executors that take its tasks. `within` wraps the task.

    Raises ConfigError if this job cannot run: no pyarrow, no job zip, another Python release.
    """
    try:
        rows = spark.range(0, _TASKS, 1, _TASKS).mapInArrow(within(_probe_partition), "setup string").collect()
    except SPARK_FAILURES as error:
        raise translate(error) from error
    setups = sorted({str(row["setup"]) for row in rows})
    return ProbeReport(tuple(json.loads(setup) for setup in setups))


def local_setup() -> Json:
    """Returns the set-up of this process, as ProbeReport describes it."""
    setup: Json = {"python": platform.python_version()}
    for name in (*NEEDED_MODULES, *OPTIONAL_MODULES):
        setup[name] = _version(name)
    setup["fastavro"] = _fastavro_form()
    setup["gzip"] = chosen_library(GzipLibrary.AUTO).value
    return setup


def _probe_partition(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for _ in batches:
        setup = json.dumps(local_setup(), sort_keys=True)
        yield pa.RecordBatch.from_arrays([pa.array([setup], pa.string())], names=["setup"])


def _version(name: str) -> str | None:
    try:
        return str(import_module(name).__version__)
    except ImportError:
        return None


def _fastavro_form() -> str | None:
    try:
        module = import_module("hudi_core.codec.avro.datum")
    except ImportError:
        return None
    return "pure" if module.IS_PURE else "compiled"
