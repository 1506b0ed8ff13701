"""What importing the provider costs a DAG processor."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import airflow_hudi
from airflow_hudi.get_provider_info import get_provider_info

PACKAGE = Path(airflow_hudi.__file__).parent
MODULES = [
    "airflow_hudi.get_provider_info",
    "airflow_hudi.hooks",
    "airflow_hudi.assets",
    "airflow_hudi.maintenance_dag",
    "airflow_hudi.notifier",
    *(f"airflow_hudi.submission.{path.stem}" for path in sorted((PACKAGE / "submission").glob("[!_]*.py"))),
    *get_provider_info()["operators"][0]["python-modules"],
    *get_provider_info()["sensors"][0]["python-modules"],
    *get_provider_info()["triggers"][0]["python-modules"],
    "hudi_core.timeline.active",
]
HEAVY = ["pyspark", "pyarrow", "pandas", "numpy", "polars", "s3fs", "boto3", "airflow.providers.apache.spark.hooks"]


def test_nothing_heavy_is_imported() -> None:
    program = f"import sys, json; import {', '.join(MODULES)}; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=True)
    loaded = set(json.loads(done.stdout.splitlines()[-1]))
    assert [name for name in HEAVY if name in loaded] == []


def test_the_provider_info_needs_nothing() -> None:
    program = (
        "import sys; import airflow_hudi.get_provider_info; print('airflow' in sys.modules, 'hudi_core' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.split() == ["False", "False"]
