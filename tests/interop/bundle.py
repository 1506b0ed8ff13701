"""Brings jars for the tests from Maven Central into the project's cache, and checks their hashes: real Apache Hudi's
Spark bundles, Spark Connect.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from hudi_core.request.java import find_java


@dataclass(frozen=True)
class Jar:
    """An artifact of Maven Central, and the hash that its jar must have."""

    group: str
    artifact: str
    version: str
    sha256: str

    @property
    def name(self) -> str:
        """The file's name."""
        return f"{self.artifact}-{self.version}.jar"

    @property
    def coordinate(self) -> str:
        """As Maven and Spark write it."""
        return f"{self.group}:{self.artifact}:{self.version}"


SHA256 = {
    "0.15.0": "aab6ecdb5c65fcd20406b980b31ccec294fae95693de947d5778f0b3fb4e302a",
    "1.0.2": "2c2ab65a11e91265e4b7346f954448c46df52d66fb72f52dad83767b621deae8",
    "1.1.1": "5470908f0d26897fb6e0768790e6c75e3d05d2fa013f7d81c8f90c74056d1604",
    "1.2.0": "cc79fba00822f3a6c3a860df99375c2e3d4a034d037dbf4213a4966a706a7676",
}
IN_SOAK: frozenset[str] = frozenset({"1.1.1"})
"""Versions that `make test` does not need."""
GROUP, ARTIFACT = "org.apache.hudi", "hudi-spark3.5-bundle_2.12"
CONNECT = Jar(
    "org.apache.spark",
    "spark-connect_2.12",
    "3.5.7",
    "15366e21273a874c760b51fa00743a2acb8fa78642cc35d7a076a3ade0c5eef6",
)
"""The newest 3.5 of it that Maven Central has; a server of any later 3.5 takes it."""


S3A = (
    Jar(
        "org.apache.hadoop",
        "hadoop-aws",
        "3.3.4",
        "53f9ae03c681a30a50aa17524bd9790ab596b28481858e54efd989a826ed3a4a",
    ),
    Jar(
        "com.amazonaws",
        "aws-java-sdk-bundle",
        "1.12.262",
        "873fe7cf495126619997bec21c44de5d992544aea7e632fdc77adb1a0915bae5",
    ),
)
"""What Spark 3.5 reads S3 with; `make soak` alone needs it."""


def cache_folder() -> Path:
    """Where downloads are kept between runs."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "airflow-hudi" / "jars"


def bundle_jar(version: str) -> Path:
    """The bundle of a Hudi version."""
    return fetched(Jar(GROUP, ARTIFACT, version, SHA256[version]))


def fetched(jar: Jar) -> Path:
    """The jar in the cache; brought by Maven where there is one, else by Spark's own resolver."""
    kept = cache_folder() / jar.name
    if not kept.is_file():
        kept.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=kept.parent) as scratch:
            found = _by_maven(jar, Path(scratch)) if shutil.which("mvn") else _by_spark(jar, Path(scratch))
            _check(found, jar)
            found.replace(kept)
    _check(kept, jar)
    return kept


def _check(path: Path, jar: Jar) -> None:
    with path.open("rb") as file:
        digest = (
            hashlib.file_digest(file, "sha256").hexdigest()
            if hasattr(hashlib, "file_digest")
            else hashlib.sha256(file.read()).hexdigest()
        )
    if digest != jar.sha256:
        raise RuntimeError(f"{path} has sha256 {digest}, expected {jar.sha256}: remove it and run again")


def _by_maven(jar: Jar, scratch: Path) -> Path:
    subprocess.run(
        [
            "mvn",
            "-q",
            "-B",
            "dependency:copy",
            f"-Dartifact={jar.coordinate}",
            f"-DoutputDirectory={scratch}",
            "-Dmdep.useBaseVersion=true",
        ],
        check=True,
        timeout=900,
        stdin=subprocess.DEVNULL,
    )
    return scratch / jar.name


def _by_spark(jar: Jar, scratch: Path) -> Path:
    script = scratch / "nothing.py"
    script.write_text("")
    environment = {**os.environ, "JAVA_HOME": find_java(), "PYSPARK_PYTHON": sys.executable}
    environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{environment.get('PATH', '')}"
    command = [str(Path(sys.executable).parent / "spark-submit"), "--master", "local[1]"]
    command += ["--conf", f"spark.jars.ivy={scratch}", "--conf", "spark.ui.enabled=false"]
    command += ["--packages", jar.coordinate, str(script)]
    subprocess.run(command, check=True, timeout=900, env=environment, stdin=subprocess.DEVNULL)
    return scratch / "jars" / f"{jar.group}_{jar.name}"


if __name__ == "__main__":
    for requested in sys.argv[1:] or sorted(SHA256.keys() - IN_SOAK):
        print(bundle_jar(requested))
    print(fetched(CONNECT))
