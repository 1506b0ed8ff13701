"""Finds the distributions that the driver and the executors need for a table, and the missing ones.
config/engine_config.py lists the modules. hudi_spark/probe.py looks at the executors.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import Final, Literal

from hudi_core.codec.gzip import GzipLibrary, chosen_library
from hudi_core.config.concurrency_config import PROVIDER
from hudi_core.config.engine_config import NEEDED_MODULES, OPTIONAL_MODULES
from hudi_core.config.rows_config import GZIP_LIBRARY
from hudi_core.engine.protocol import Engine, RemoteEngine
from hudi_core.errors import ConfigError
from hudi_core.frozen import dataclass
from hudi_health.doctor.findings import Finding, Severity

_Side = Literal["driver", "driver and executors"]
_BOTH: Final = "driver and executors"
_ENGINE: Final = "airflow-hudi-engine"
_POLARS: Final = "airflow-hudi-engine[polars]"
_GZIP: Final = {
    GzipLibrary.ISAL: ("isal", "airflow-hudi-engine[isal]"),
    GzipLibrary.LIBDEFLATE: ("deflate", "airflow-hudi-engine[libdeflate]"),
}
_STORES: Final[Mapping[str, tuple[str, str]]] = {
    "s3": ("s3fs", "airflow-hudi-engine[s3]"),
    "gs": ("gcsfs", "gcsfs"),
    "gcs": ("gcsfs", "gcsfs"),
    "abfs": ("adlfs", "adlfs"),
    "abfss": ("adlfs", "adlfs"),
}
_ZIP: Final = "give the job zip to spark-submit with --py-files: it brings a fastavro"


@dataclass(frozen=True, slots=True)
class Wheel:
    """A distribution that `side` needs, with its `version` here, or None. Optional ones only make work faster."""

    name: str
    side: _Side
    why: str
    install: str
    version: str | None
    is_optional: bool = False


@dataclass(frozen=True, slots=True)
class ExecutorObservations:
    """The different set-ups of Spark's executors (protocol.RemoteEngine). `problem` says why there was no check."""

    setups: tuple[Mapping[str, str | None], ...] = ()
    problem: str | None = None
    remedy: str | None = None


def needed_wheels(scheme: str, options: Mapping[str, str], codec: str | None) -> tuple[Wheel, ...]:
    """Returns the wheels for engine, `codec`, storage and lock provider. fastavro and sqlglot are in the job zip."""
    wheels = [_wheel(name, _BOTH, why, _ENGINE) for name, why in NEEDED_MODULES.items()]
    wheels += [_wheel(name, _BOTH, why, _POLARS, is_optional=True) for name, why in OPTIONAL_MODULES.items()]
    if codec == "GZIP":
        wheels += _gzip_wheels(GzipLibrary(GZIP_LIBRARY.read(options)))
    if scheme in _STORES:
        name, install = _STORES[scheme]
        wheels.append(_wheel(name, "driver", f"timeline and locks on {scheme}://", install))
    provider = PROVIDER.read(options) or ""
    if "Zookeeper" in provider:
        wheels.append(_wheel("kazoo", "driver", "the lock in ZooKeeper", "airflow-hudi-engine[zookeeper]"))
    if "DynamoDB" in provider:
        wheels.append(_wheel("boto3", "driver", "the lock in DynamoDB", "airflow-hudi-engine[dynamodb]"))
    return tuple(wheels)


def _gzip_wheels(requested: GzipLibrary) -> Iterator[Wheel]:
    """Yields the wheel of the gzip library of the options; with AUTO the chosen one, or ISA-L if none is there."""
    is_auto, why = requested is GzipLibrary.AUTO, "base files of gzip"
    library = chosen_library(requested) if is_auto else requested
    if library in _GZIP:
        name, install = _GZIP[library]
        yield _wheel(name, _BOTH, why, install, is_optional=is_auto)
    elif is_auto:
        name, install = _GZIP[GzipLibrary.ISAL]
        yield Wheel(name, _BOTH, why, install, None, is_optional=True)


def _wheel(name: str, side: _Side, why: str, install: str, *, is_optional: bool = False) -> Wheel:
    try:
        return Wheel(name, side, why, install, version(name), is_optional)
    except PackageNotFoundError:
        return Wheel(name, side, why, install, None, is_optional)


def missing_wheels(wheels: tuple[Wheel, ...]) -> Iterator[Finding]:
    """Reports distributions that are missing here."""
    for wheel in wheels:
        if wheel.version is None:
            need = "are faster with it" if wheel.is_optional else "need it"
            what = f"{wheel.name} is not installed here; {wheel.side} {need}: {wheel.why}"
            severity: Severity = "info" if wheel.is_optional else "error"
            yield Finding("missing_wheel", severity, what, f"pip install '{wheel.install}'")


def read_executors(engine: Engine) -> ExecutorObservations | None:
    """Returns the executors' set-ups; None for an engine in this process. Raises ExecutionError if none is reached."""
    if not isinstance(engine, RemoteEngine):
        return None
    try:
        return ExecutorObservations(engine.setups())
    except ConfigError as error:
        return ExecutorObservations(problem=error.message, remedy=error.remedy)


def executor_modules(
    executors: ExecutorObservations | None, codec: str | None, options: Mapping[str, str]
) -> Iterator[Finding]:
    """Reports missing modules without which a unit of a service fails, or is slower."""
    if executors is None:
        return
    if executors.problem is not None:
        what = f"the executors cannot run a unit: {executors.problem}"
        yield Finding("executor_wheel", "error", what, executors.remedy or _on_every_executor(_ENGINE))

    def is_lacking(name: str) -> bool:
        return any(setup.get(name) is None for setup in executors.setups)

    for name in filter(is_lacking, (*NEEDED_MODULES, "fastavro")):
        what = f"{name} cannot be imported on the executors: units fail there"
        yield Finding("executor_wheel", "error", what, _ZIP if name == "fastavro" else _on_every_executor(_ENGINE))
    if is_lacking("polars"):
        what = "the executors have no polars: fastavro decodes Avro log blocks there, which is slower"
        yield Finding("executor_slow", "info", what, _on_every_executor(_POLARS))
    if codec == "GZIP" and any(setup.get("gzip") == "pyarrow" for setup in executors.setups):
        yield from _without_gzip(GzipLibrary(GZIP_LIBRARY.read(options)))
    if any(setup.get("fastavro") == "pure" for setup in executors.setups):
        what = "the executors have no compiled fastavro and use the pure-Python one of the job zip, which is slower"
        yield Finding("executor_slow", "info", what, _on_every_executor("fastavro"))


def _without_gzip(requested: GzipLibrary) -> Iterator[Finding]:
    """Reports executors that lack the gzip library."""
    if requested is GzipLibrary.AUTO:
        what = "the executors have neither isal nor deflate: pyarrow's zlib makes base files there, which is slower"
        yield Finding("executor_slow", "info", what, _on_every_executor(_GZIP[GzipLibrary.ISAL][1]))
    elif requested in _GZIP:
        name, install = _GZIP[requested]
        what = f"{GZIP_LIBRARY.name} is {requested.value}, and the executors have no {name}: units fail there"
        yield Finding("executor_wheel", "error", what, _on_every_executor(install))


def _on_every_executor(install: str) -> str:
    return f"install {install} on every executor, or ship an environment with --archives (spark.archives)"
