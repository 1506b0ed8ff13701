"""What a task leaves behind in its worker."""

from __future__ import annotations

import importlib
import subprocess
import sys
import zipfile
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark import SparkFiles, TaskContext

from hudi_spark import tasks
from hudi_spark.tasks import forget_importers, numbers_of


def zip_of(path: Path, package: str) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"{package}/__init__.py", "")
        archive.writestr(f"{package}/inner/__init__.py", "")
        archive.writestr(f"{package}/inner/module.py", "VALUE = 1")
        archive.writestr(f"{package}/inner/later.py", "VALUE = 2")
    return str(path)


def kept(folder: Path) -> set[str]:
    return {path for path in sys.path_importer_cache if ".zip" in path and path.startswith(str(folder))}


@pytest.fixture
def zips(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, str, str]:
    """The user's zip and the job's in Spark's folder of files, and an installed one; a module of each is imported."""
    found = (
        zip_of(tmp_path / "brought" / "users.zip", "forgotten_users"),
        zip_of(tmp_path / "brought" / "job.zip", "forgotten_job"),
        zip_of(tmp_path / "installed.zip", "forgotten_installed"),
    )
    monkeypatch.setattr(TaskContext, "get", object)
    monkeypatch.setattr(SparkFiles, "getRootDirectory", lambda: str(tmp_path / "brought"))
    monkeypatch.setattr(tasks, "__file__", f"{found[1]}/hudi_spark/tasks.pyc")
    monkeypatch.setattr(sys, "path", [*found, *sys.path])
    for module in [name for name in sys.modules if name.startswith("forgotten_")]:
        del sys.modules[module]
    for name in ("users", "job", "installed"):
        importlib.import_module(f"forgotten_{name}.inner.module")
    return found


def test_only_the_users_zip_is_asked_again(zips: tuple[str, str, str], tmp_path: Path) -> None:
    users, job, installed = zips
    assert {users, job, installed, f"{job}/forgotten_job/inner"} <= kept(tmp_path)
    forget_importers()
    assert kept(tmp_path) == {users}
    for name in ("users", "job", "installed"):
        assert importlib.import_module(f"forgotten_{name}.inner.later").VALUE == 2


def test_they_are_forgotten_behind_the_last_unit(zips: tuple[str, str, str], tmp_path: Path) -> None:
    numbers = numbers_of(iter([pa.RecordBatch.from_pydict({"id": [4, 5]})]))
    assert next(numbers) == 4
    assert zips[1] in kept(tmp_path)
    assert list(numbers) == [5]
    assert zips[1] not in kept(tmp_path)


def test_a_worker_without_pandas_runs_the_task_and_imports_none() -> None:
    code = (
        "import sys\nimport pyarrow as pa\nfrom hudi_spark.tasks import WithoutPandas\n"
        "task = WithoutPandas(lambda batches: (pa.array([1]), *batches))\n"
        "print(len(task(iter([2]))), 'pandas' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["2", "False"]
