"""Brings the Spark bundle jars of real Apache Hudi from Maven Central into the project's cache, and checks their hashes."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from hudi_core.request.java import find_java

SHA256 = {
    "0.15.0": "aab6ecdb5c65fcd20406b980b31ccec294fae95693de947d5778f0b3fb4e302a",
    "1.2.0": "cc79fba00822f3a6c3a860df99375c2e3d4a034d037dbf4213a4966a706a7676",
}
GROUP, ARTIFACT = "org.apache.hudi", "hudi-spark3.5-bundle_2.12"


def cache_folder() -> Path:
    """Where downloads are kept between runs."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "airflow-hudi" / "jars"


def bundle_jar(version: str) -> Path:
    """The bundle of a Hudi version; fetched by Maven where there is one, else by Spark's own resolver."""
    jar = cache_folder() / f"{ARTIFACT}-{version}.jar"
    if not jar.is_file():
        jar.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=jar.parent) as scratch:
            fetched = _by_maven(version, Path(scratch)) if shutil.which("mvn") else _by_spark(version, Path(scratch))
            _check(fetched, version)
            fetched.replace(jar)
    _check(jar, version)
    return jar


def _check(jar: Path, version: str) -> None:
    with jar.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest() if hasattr(hashlib, "file_digest") else hashlib.sha256(file.read()).hexdigest()
    if digest != SHA256[version]:
        raise RuntimeError(f"{jar} has sha256 {digest}, expected {SHA256[version]}: remove it and run again")


def _by_maven(version: str, scratch: Path) -> Path:
    coordinate = f"{GROUP}:{ARTIFACT}:{version}"
    subprocess.run(
        ["mvn", "-q", "-B", "dependency:copy", f"-Dartifact={coordinate}", f"-DoutputDirectory={scratch}", "-Dmdep.useBaseVersion=true"],
        check=True,
        timeout=900,
        stdin=subprocess.DEVNULL,
    )
    return scratch / f"{ARTIFACT}-{version}.jar"


def _by_spark(version: str, scratch: Path) -> Path:
    script = scratch / "nothing.py"
    script.write_text("")
    environment = {**os.environ, "JAVA_HOME": find_java(), "PYSPARK_PYTHON": sys.executable}
    environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{environment.get('PATH', '')}"
    command = [str(Path(sys.executable).parent / "spark-submit"), "--master", "local[1]"]
    command += ["--conf", f"spark.jars.ivy={scratch}", "--conf", "spark.ui.enabled=false"]
    command += ["--packages", f"{GROUP}:{ARTIFACT}:{version}", str(script)]
    subprocess.run(command, check=True, timeout=900, env=environment, stdin=subprocess.DEVNULL)
    return scratch / "jars" / f"{GROUP}_{ARTIFACT}-{version}.jar"


if __name__ == "__main__":
    for wanted in sys.argv[1:] or sorted(SHA256):
        print(bundle_jar(wanted))
