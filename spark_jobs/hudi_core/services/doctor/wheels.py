"""Which distributions the driver and the executors need for a table, and which of them are installed here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from typing import Final, Literal

from hudi_core.config.lock_config import PROVIDER
from hudi_core.services.doctor.observations import Wheel

_Side = Literal["driver", "driver and executors"]
_ENGINE: Final = (
    ("pyarrow", "columns, Parquet, and the data files of object stores"),
    ("numpy", "columns"),
)
_FASTER: Final = (("polars", "Avro log records"),)
"""Without it fastavro decodes them (codec.avro.arrow)."""
_STORES: Final[Mapping[str, tuple[str, str]]] = {
    "s3": ("s3fs", "airflow-hudi[s3]"),
    "gs": ("gcsfs", "gcsfs"),
    "gcs": ("gcsfs", "gcsfs"),
    "abfs": ("adlfs", "adlfs"),
    "abfss": ("adlfs", "adlfs"),
}


def needed_wheels(scheme: str, options: Mapping[str, str]) -> tuple[Wheel, ...]:
    """Those of the engine, of the storage's scheme, and of the lock provider that `options` name. fastavro and sqlglot
    are in the job zip.
    """
    found = [_wheel(name, "driver and executors", why, "airflow-hudi[engine]") for name, why in _ENGINE]
    found += [
        replace(_wheel(name, "driver and executors", why, "airflow-hudi[engine]"), is_optional=True)
        for name, why in _FASTER
    ]
    if scheme in _STORES:
        name, install = _STORES[scheme]
        found.append(_wheel(name, "driver", f"timeline and locks on {scheme}://", install))
    provider = PROVIDER.read(options) or ""
    if "Zookeeper" in provider:
        found.append(_wheel("kazoo", "driver", "the lock in ZooKeeper", "airflow-hudi[zookeeper]"))
    if "DynamoDB" in provider:
        found.append(_wheel("boto3", "driver", "the lock in DynamoDB", "airflow-hudi[dynamodb]"))
    return tuple(found)


def _wheel(name: str, side: _Side, why: str, install: str) -> Wheel:
    try:
        return Wheel(name, side, why, install, version(name))
    except PackageNotFoundError:
        return Wheel(name, side, why, install, None)
