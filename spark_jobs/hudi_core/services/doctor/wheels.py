"""Which distributions the driver and the executors need for a table, which are installed, and the rules on them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from typing import Final, Literal

from hudi_core.codec.gzip import GzipLibrary, chosen_library
from hudi_core.config.lock_config import PROVIDER
from hudi_core.config.write_config import GZIP_LIBRARY
from hudi_core.engine.protocol import Engine, RemoteEngine
from hudi_core.errors import ConfigError
from hudi_core.services.doctor.finding import ExecutorObservations, Finding, Observations, Wheel

_Side = Literal["driver", "driver and executors"]
_ENGINE: Final = (
    ("pyarrow", "columns, Parquet, and the data files of object stores", False),
    ("numpy", "columns", False),
    ("polars", "Avro log records", True),  # without it fastavro decodes them (codec.avro.arrow)
)
"""Name, what for, and whether units run without it as well."""
_GZIP: Final = {
    GzipLibrary.ISAL: ("isal", "airflow-hudi[isal]"),
    GzipLibrary.LIBDEFLATE: ("deflate", "airflow-hudi[libdeflate]"),
}
_STORES: Final[Mapping[str, tuple[str, str]]] = {
    "s3": ("s3fs", "airflow-hudi[s3]"),
    "gs": ("gcsfs", "gcsfs"),
    "gcs": ("gcsfs", "gcsfs"),
    "abfs": ("adlfs", "adlfs"),
    "abfss": ("adlfs", "adlfs"),
}


_NEEDED: Final = ("pyarrow", "numpy", "fastavro")
_ZIP: Final = "give the job zip to spark-submit with --py-files: it brings a fastavro"


def _on_every_executor(install: str) -> str:
    return f"install {install} on every executor, or ship an environment with --archives (spark.archives)"


_INSTALL: Final = _on_every_executor("airflow-hudi[engine]")


def needed_wheels(scheme: str, options: Mapping[str, str], codec: str | None) -> tuple[Wheel, ...]:
    """Those of the engine, the `codec` of base files, the storage and the lock provider. fastavro and sqlglot are in
    the job zip.
    """
    found = [
        replace(_wheel(name, "driver and executors", why, "airflow-hudi[engine]"), is_optional=optional)
        for name, why, optional in _ENGINE
    ]
    if codec == "GZIP":
        found += _gzip_wheels(GzipLibrary(GZIP_LIBRARY.read(options)))
    if scheme in _STORES:
        name, install = _STORES[scheme]
        found.append(_wheel(name, "driver", f"timeline and locks on {scheme}://", install))
    provider = PROVIDER.read(options) or ""
    if "Zookeeper" in provider:
        found.append(_wheel("kazoo", "driver", "the lock in ZooKeeper", "airflow-hudi[zookeeper]"))
    if "DynamoDB" in provider:
        found.append(_wheel("boto3", "driver", "the lock in DynamoDB", "airflow-hudi[dynamodb]"))
    return tuple(found)


def _gzip_wheels(requested: GzipLibrary) -> Iterator[Wheel]:
    """The library that the options name; else the one that is chosen, or ISA-L where that is none."""
    library = chosen_library(requested) if requested is GzipLibrary.AUTO else requested
    if library in _GZIP:
        name, install = _GZIP[library]
        wheel = _wheel(name, "driver and executors", "base files of gzip", install)
        yield replace(wheel, is_optional=requested is GzipLibrary.AUTO)
    elif requested is GzipLibrary.AUTO:
        name, install = _GZIP[GzipLibrary.ISAL]
        yield Wheel(name, "driver and executors", "base files of gzip", install, None, is_optional=True)


def _wheel(name: str, side: _Side, why: str, install: str) -> Wheel:
    try:
        return Wheel(name, side, why, install, version(name))
    except PackageNotFoundError:
        return Wheel(name, side, why, install, None)


def read_executors(engine: Engine) -> ExecutorObservations | None:
    """What executors have; None of an engine in this process. Raises ExecutionError when none can be reached."""
    if not isinstance(engine, RemoteEngine):
        return None
    try:
        return ExecutorObservations(engine.setups())
    except ConfigError as error:
        return ExecutorObservations(problem=error.message, remedy=error.remedy)


def wheels(observed: Observations) -> Iterator[Finding]:
    """Distributions that are missing here."""
    for wheel in observed.wheels:
        if wheel.version is None:
            need = "are faster with it" if wheel.is_optional else "need it"
            what = f"{wheel.name} is not installed here; {wheel.side} {need}: {wheel.why}"
            yield Finding(
                "missing_wheel", "info" if wheel.is_optional else "error", what, f"pip install '{wheel.install}'"
            )


def executors(observed: Observations) -> Iterator[Finding]:
    """Modules without which a unit of a service fails, and modules without which it is slower."""
    found = observed.executors
    if found is None:
        return
    if found.problem is not None:
        what = f"the executors cannot run a unit: {found.problem}"
        yield Finding("executor_wheel", "error", what, found.remedy or _INSTALL)
    for name in _NEEDED:
        if any(setup.get(name) is None for setup in found.setups):
            what = f"{name} cannot be imported on the executors: units fail there"
            yield Finding("executor_wheel", "error", what, _ZIP if name == "fastavro" else _INSTALL)
    if any(setup.get("polars") is None for setup in found.setups):
        what = "the executors have no polars: fastavro decodes Avro log blocks there, which is slower"
        yield Finding("executor_slow", "info", what, _INSTALL)
    if observed.compression.codec == "GZIP" and any(setup.get("gzip") == "pyarrow" for setup in found.setups):
        yield from _without_gzip(GzipLibrary(GZIP_LIBRARY.read(observed.options)))
    if any(setup.get("fastavro") == "pure" for setup in found.setups):
        what = "the executors have no compiled fastavro and use the pure-Python one of the job zip, which is slower"
        yield Finding("executor_slow", "info", what, _on_every_executor("fastavro"))


def _without_gzip(requested: GzipLibrary) -> Iterator[Finding]:
    """Of executors that have neither library."""
    if requested is GzipLibrary.AUTO:
        what = "the executors have neither isal nor deflate: pyarrow's zlib makes base files there, which is slower"
        yield Finding("executor_slow", "info", what, _on_every_executor(_GZIP[GzipLibrary.ISAL][1]))
    elif requested in _GZIP:
        name, install = _GZIP[requested]
        what = f"{GZIP_LIBRARY.name} is {requested.value}, and the executors have no {name}: units fail there"
        yield Finding("executor_wheel", "error", what, _on_every_executor(install))
