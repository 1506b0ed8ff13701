"""What the wheel holds: the packages, main.py for spark-submit, and the DAGs where Airflow finds them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PARTS = ("airflow_hudi", "spark_jobs", "dags", "pyproject.toml", "README.md", "LICENSE")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from a copy, so that a build leaves nothing in the checkout."""
    folder = tmp_path_factory.mktemp("wheel")
    for name in PARTS:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, folder / name)
    done = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", "out"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    (built,) = (folder / "out").iterdir()
    return built


def test_every_module_and_dag_is_in_the_wheel(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    engine = ("core", "health", "spark", "submit", "cli")
    for package in ("airflow_hudi", *(f"spark_jobs/hudi_{name}" for name in engine)):
        files = [path for path in (ROOT / package).rglob("*") if path.suffix in (".py", ".json", ".properties")]
        assert {path.relative_to((ROOT / package).parent).as_posix() for path in files} <= names
    assert {f"airflow_hudi/example_dags/{path.name}" for path in (ROOT / "dags").glob("*.py")} <= names
    assert any(name.endswith("share/airflow-hudi/main.py") for name in names)


def test_airflow_finds_the_dags_of_an_installed_wheel(wheel: Path, tmp_path: Path) -> None:
    """By the folder `example_dags` of the provider's package, with [core] load_examples."""
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "site")
    program = (
        "from airflow.dag_processing.bundles.manager import DagBundlesManager\n"
        "from airflow.dag_processing.bundles.local import LocalDagBundle\n"
        "found = [bundle.path for bundle in DagBundlesManager().get_all_dag_bundles()]\n"
        "print([str(path) for path in found])\n"
    )
    environment = {
        **os.environ,
        "PYTHONPATH": str(tmp_path / "site"),
        "AIRFLOW_HOME": str(tmp_path / "home"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "True",
    }
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert repr(str(tmp_path / "site/airflow_hudi/example_dags")) in done.stdout.splitlines()[-1]
