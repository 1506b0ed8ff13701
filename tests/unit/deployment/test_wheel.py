"""The two distributions: what their wheels hold and require, that the engine's is enough for a compaction without
Airflow, and that Airflow finds the DAGs of the provider's.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable
from email.message import Message
from email.parser import Parser
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pytest
from packaging.requirements import Requirement

from hudi_core import VERSION
from hudi_core.table import HudiTable
from tests.support.golden_data import GoldenCase
from tests.support.rows import assert_same_rows

ROOT = Path(__file__).parents[3]
PARTS = ("airflow_hudi", "spark_jobs", "dags", "pyproject.toml", "README.md", "LICENSE")
ENGINE_PACKAGES = tuple(f"spark_jobs/hudi_{name}" for name in ("core", "health", "spark", "submit", "cli"))
MODULES = (".py", ".json", ".properties", ".avsc", ".typed")
UV = str(Path(sys.executable).parent / "uv")


class Built(NamedTuple):
    """The wheel of one distribution, and its sdist."""

    wheel: Path
    sdist: Path


def build(folder: Path, out: Path, *targets: str) -> list[Path]:
    """Runs the build backend in `folder`; what it made, by name."""
    wanted = [word for target in targets for word in ("-t", target)]
    done = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", *wanted, "-d", str(out)],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return sorted(out.iterdir())


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Built]:
    """Built from a copy, so that a build leaves nothing in the checkout."""
    folder = tmp_path_factory.mktemp("checkout")
    for name in PARTS:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, folder / name)
    found = {}
    for name, source in (("engine", folder / "spark_jobs"), ("provider", folder)):
        wheel, sdist = build(source, folder / f"out-{name}", "wheel", "sdist")
        found[name] = Built(wheel, sdist)
    return found


def content(wheel: Path) -> dict[str, int]:
    """The checksum of every file."""
    with zipfile.ZipFile(wheel) as archive:
        return {entry.filename: entry.CRC for entry in archive.infolist()}


def metadata(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return Parser().parsestr(archive.read(name).decode())


def requirements(wheel: Path) -> list[Requirement]:
    return [Requirement(line) for line in metadata(wheel).get_all("Requires-Dist") or []]


def test_every_module_and_dag_is_in_its_wheel(built: dict[str, Built]) -> None:
    engine, provider = content(built["engine"].wheel), content(built["provider"].wheel)
    assert not {name for name in engine if ".dist-info/" not in name} & set(provider)
    for names, packages in ((engine, ENGINE_PACKAGES), (provider, ("airflow_hudi",))):
        for package in packages:
            files = [path for path in (ROOT / package).rglob("*") if path.suffix in MODULES]
            assert {path.relative_to((ROOT / package).parent).as_posix() for path in files} <= set(names)
    assert {f"airflow_hudi/example_dags/{path.name}" for path in (ROOT / "dags").glob("*.py")} <= set(provider)
    assert any(name.endswith("share/airflow-hudi/main.py") for name in engine)
    tops = {name.split("/")[0] for name in engine} | {name.split("/")[0] for name in provider}
    packages = {"airflow_hudi", *(package.rpartition("/")[2] for package in ENGINE_PACKAGES)}
    assert {top for top in tops if f"-{VERSION}." not in top} == packages


def test_both_hold_the_licence(built: dict[str, Built]) -> None:
    found = [
        archive.read(name)
        for wheel, _ in built.values()
        for archive in [zipfile.ZipFile(wheel)]
        for name in archive.namelist()
        if name.endswith(".dist-info/licenses/LICENSE")
    ]
    assert found == [(ROOT / "LICENSE").read_bytes()] * 2


@pytest.mark.slow
@pytest.mark.parametrize("name", ["engine", "provider"])
def test_an_sdist_builds_the_same_wheel(built: dict[str, Built], name: str, tmp_path: Path) -> None:
    with tarfile.open(built[name].sdist) as archive:
        archive.extraction_filter = getattr(tarfile, "data_filter", None)  # from 3.10.12 and 3.11.4 on
        archive.extractall(tmp_path)
    (source,) = tmp_path.iterdir()
    (again,) = build(source, tmp_path / "out", "wheel")
    assert content(again) == content(built[name].wheel)


def test_the_provider_requires_the_engine_of_its_own_version(built: dict[str, Built]) -> None:
    engine, provider = metadata(built["engine"].wheel), metadata(built["provider"].wheel)
    assert (engine["Name"], provider["Name"]) == ("airflow-hudi-engine", "airflow-hudi")
    assert (engine["Version"], provider["Version"]) == (VERSION, VERSION)
    asked = [one for one in requirements(built["provider"].wheel) if one.name == "airflow-hudi-engine"]
    assert any(one.marker is None for one in asked)
    assert {str(one.specifier) for one in asked} == {f"=={VERSION}"}
    assert {extra for one in asked for extra in one.extras} <= set(engine.get_all("Provides-Extra") or [])


def test_the_engine_requires_no_airflow(built: dict[str, Built]) -> None:
    names = {one.name for one in requirements(built["engine"].wheel)} - {"airflow-hudi-engine"}
    assert names >= {"click", "pyarrow", "polars", "pyspark"}
    assert [name for name in names if "airflow" in name] == []


def rows(table: Path) -> pa.Table:
    """What the base files hold."""
    found = HudiTable.open(str(table)).read("read_optimized")
    return pa.Table.from_batches(found.batches, found.schema)


@pytest.mark.slow
def test_hudictl_compacts_where_only_the_engine_is_installed(
    built: dict[str, Built], golden: Callable[[str, str], GoldenCase], tmp_path: Path
) -> None:
    """By its name, into an empty venv, with what it requires from the index or the installer's cache."""
    case = golden("6", "mor_compaction_requested")
    expected = rows(case.after())
    (planned,) = case.table.glob(".hoodie/*.compaction.requested")
    venv = tmp_path / "venv"
    constraints = ROOT / "constraints" / f"constraints-{sys.version_info[0]}.{sys.version_info[1]}.txt"
    install = [UV, "pip", "install", "--quiet", "--link-mode", "symlink", "--python", str(venv), "--constraint"]
    install += [str(constraints), "--find-links", str(built["engine"].wheel.parent), "airflow-hudi-engine"]
    for command in ([UV, "venv", "--quiet", "--python", sys.executable, str(venv)], install):
        subprocess.run(command, check=True, timeout=600, cwd=tmp_path, stdin=subprocess.DEVNULL)

    def run(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(venv / "bin" / program), *arguments],
            cwd=tmp_path,
            env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )

    for name in ("airflow", "airflow_hudi", "polars", "pyspark"):
        assert f"No module named '{name}'" in run("python", "-c", f"import {name}").stderr
    assert run("hudictl", "--version").stdout == f"hudictl, version {VERSION}\n"
    refused = run("hudictl", "run", "compaction", str(case.table))
    assert (refused.returncode, "--engine local" in refused.stderr) == (2, True), refused.stderr
    done = run("hudictl", "run", "compaction", str(case.table), "--engine", "local")
    assert done.returncode == 0, done.stdout + done.stderr
    assert (case.table / ".hoodie" / planned.name.replace(".compaction.requested", ".commit")).is_file()
    assert_same_rows(rows(case.table), expected)
    program = "from hudi_submit import zip; print(zip.entry_file(), len(zip.build_zip()) > 1_000_000)"
    entry, is_whole = run("python", "-c", program).stdout.split()
    assert (Path(entry).name, is_whole) == ("main.py", "True")


def test_airflow_finds_the_dags_of_an_installed_wheel(built: dict[str, Built], tmp_path: Path) -> None:
    """By the folder `example_dags` of the provider's package, with [core] load_examples."""
    for wheel, _ in built.values():
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
