"""Airflow without a configuration file, a database or example DAGs; must be set before Airflow is first imported."""

from __future__ import annotations

import json
import os
import tempfile
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.fake_spark_submit import install, quick_look, real_job

os.environ.setdefault("AIRFLOW_HOME", tempfile.mkdtemp(prefix="airflow-home-"))
os.environ.setdefault("AIRFLOW__CORE__UNIT_TEST_MODE", "True")
os.environ.setdefault("AIRFLOW__CORE__LOAD_EXAMPLES", "False")

_PROPERTIES = {
    "hoodie.table.name": "trips",
    "hoodie.table.type": "MERGE_ON_READ",
    "hoodie.table.version": "6",
    "hoodie.timeline.layout.version": "1",
    "hoodie.table.checksum": str(zlib.crc32(b".trips")),
}


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """The bones of a version 6 table: properties and one completed deltacommit."""
    path = tmp_path / "trips"
    hoodie = path / ".hoodie"
    hoodie.mkdir(parents=True)
    hoodie.joinpath("hoodie.properties").write_text("".join(f"{key}={value}\n" for key, value in _PROPERTIES.items()))
    for state, data in (("deltacommit.requested", b""), ("deltacommit.inflight", b""), ("deltacommit", b"{}")):
        hoodie.joinpath(f"20260101000000000.{state}").write_bytes(data)
    return path


@pytest.fixture
def put(table: Path) -> Callable[..., None]:
    """`put("20260102000000000.compaction.requested")`: a file of the timeline, modified later than those before it.

    The kernel's clock of files stands for some milliseconds, and layout 1 has its completion times from it.
    """

    def write(name: str, data: bytes = b"") -> None:
        folder = table / ".hoodie"
        later = max(path.stat().st_mtime_ns for path in folder.iterdir()) + 1_000_000
        (folder / name).write_bytes(data)
        if (folder / name).stat().st_mtime_ns < later:
            os.utime(folder / name, ns=(later, later))

    return write


@pytest.fixture
def submitted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of the requests that spark-submit, a stand-in, was given; by default it runs the job's own code without
    Spark.
    """
    found = install(tmp_path, monkeypatch, json.dumps({"conn_type": "spark", "host": "local[2]"}))
    real_job(monkeypatch)
    quick_look(monkeypatch)
    return found
