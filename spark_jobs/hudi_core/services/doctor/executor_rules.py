"""The doctor's rules on what Spark's executors have."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from hudi_core.services.doctor.finding import Finding
from hudi_core.services.doctor.observations import Observations

_NEEDED: Final = ("pyarrow", "numpy", "fastavro")
_INSTALL: Final = (
    "install airflow-hudi[engine] on every executor, or ship an environment with --archives (spark.archives)"
)
_ZIP: Final = "give the job zip to spark-submit with --py-files: it brings a fastavro"


def executors(observed: Observations) -> Iterator[Finding]:
    """Modules without which a unit of a service fails, and modules without which it is slower."""
    found = observed.executors
    if found is None:
        return
    if found.problem is not None:
        yield Finding(
            "executor_wheel", "error", f"the executors cannot run a unit: {found.problem}", found.remedy or _INSTALL
        )
    for name in _NEEDED:
        if any(setup.get(name) is None for setup in found.setups):
            fix = _ZIP if name == "fastavro" else _INSTALL
            yield Finding(
                "executor_wheel", "error", f"{name} cannot be imported on the executors: units fail there", fix
            )
    if any(setup.get("polars") is None for setup in found.setups):
        yield Finding(
            "executor_slow",
            "info",
            "the executors have no polars: fastavro decodes Avro log blocks there, which is slower",
            _INSTALL,
        )
    if any(setup.get("fastavro") == "pure" for setup in found.setups):
        what = "the executors have no compiled fastavro and use the pure-Python one of the job zip, which is slower"
        yield Finding(
            "executor_slow",
            "info",
            what,
            "install fastavro on every executor, or ship an environment with --archives (spark.archives)",
        )
