"""Builds the job zip for `spark-submit --py-files`. It contains hudi_core, hudi_health, hudi_spark, and a pure-Python
fastavro and sqlglot. It also contains our modules compiled for this Python: without them, Python would compile each
module in each process, which takes as long as running it. This module uses only the standard library. The same sources
give the same bytes on any machine with the same Python. `python -m hudi_submit.zip OUT` writes the zip to a file (`make
zip`).
"""

from __future__ import annotations

import hashlib
import importlib.util
import io
import marshal
import os
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

from hudi_core.errors import ConfigError
from hudi_core.request.java import cache_folder

PACKAGES = ("hudi_core", "hudi_health", "hudi_spark")
VENDOR = "_vendor"
"""The folder in the zip for third-party pure Python. It is used only if an executor or the driver lacks the wheel."""
VENDORED = ("fastavro", "sqlglot")
"""The wheels in the folder VENDOR. Both work without their compiled modules."""

_SHIPPED = {".py", ".avsc", ".json", ".typed"}
_PASSED_OVER = {".pyc", ".pyo"}
_LICENCE_NAMES = ("LICENSE", "LICENCE", "COPYING", "NOTICE")
# The earliest time that a zip entry can have.
_TIMESTAMP = (1980, 1, 1, 0, 0, 0)
_UNIX = 3
_UNCHECKED_HASH = 0b01
"""The flags of a `.pyc` that is valid without a check of its source."""
_FILE_MODE = 0o100644 << 16


def publish_zip(cache_dir: Path | None = None) -> Path:
    """Returns the path of the zip of the current sources in `cache_dir`. Builds the zip if it is not there. Raises
    ConfigError if it cannot write the zip.
    """
    contents = _contents()
    digest = hashlib.sha256()
    for name, data in sorted(contents.items()):
        digest.update(b"%s\0%d\0" % (name.encode(), len(data)))
        digest.update(data)
    folder = default_cache_dir() if cache_dir is None else cache_dir
    target = folder / f"hudi-jobs-{digest.hexdigest()[:16]}-{sys.implementation.cache_tag}.zip"
    try:
        if not _is_whole(target, contents):
            folder.mkdir(parents=True, exist_ok=True)
            _write_atomically(target, _zipped(contents))
    except OSError as error:
        remedy = "set XDG_CACHE_HOME to a folder that this user may write"
        raise ConfigError(f"cannot store the job zip: {error.strerror}", path=str(target), remedy=remedy) from error
    return target


def _is_whole(target: Path, contents: Mapping[str, bytes]) -> bool:
    """Returns whether the file exists and contains the sources. The zip's checksum checks the compiled modules."""
    if not target.is_file():
        return False
    try:
        with zipfile.ZipFile(target) as archive:
            found = {name: archive.read(name) for name in archive.namelist()}
    except (zipfile.BadZipFile, EOFError):
        return False
    return {name: data for name, data in found.items() if not name.endswith(".pyc")} == contents


def default_cache_dir() -> Path:
    return cache_folder(os.environ) / "jobs"


def build_zip() -> bytes:
    """Builds the zip. Raises ConfigError if a package is missing or contains a file that the zip has no rule for."""
    return _zipped(_contents())


def _contents() -> dict[str, bytes]:
    contents = dict(_package_files())
    for wheel in VENDORED:
        contents.update(_vendored(wheel))
    return contents


def _zipped(contents: Mapping[str, bytes]) -> bytes:
    modules = [name for name in contents if name.endswith(".py") and not name.startswith(VENDOR)]
    entries = {**contents, **{f"{name}c": _compiled(name, contents[name]) for name in modules}}
    return stored_zip({name: entries[name] for name in sorted(entries)})


def stored_zip(entries: Mapping[str, bytes]) -> bytes:
    """Returns a zip of the entries in order, with fixed times, stored: deflate differs between zlib builds."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name, data in entries.items():
            entry = zipfile.ZipInfo(name, _TIMESTAMP)
            entry.create_system = _UNIX
            entry.external_attr = _FILE_MODE
            archive.writestr(entry, data)
    return buffer.getvalue()


def _compiled(name: str, source: bytes) -> bytes:
    """Returns a module as a `.pyc` that never checks its source (PEP 552), by marshal 2, without references."""
    code = compile(source, name, "exec", dont_inherit=True, optimize=0)
    head = importlib.util.MAGIC_NUMBER + _UNCHECKED_HASH.to_bytes(4, "little") + importlib.util.source_hash(source)
    return head + marshal.dumps(code, 2)


def entry_file() -> Path:
    """Returns spark-submit's `main.py`: the checkout's, else the wheel's. Raises ConfigError if there is neither."""
    try:
        installed = metadata.distribution("airflow-hudi-engine").files or []
    except metadata.PackageNotFoundError:
        installed = []
    # The checkout comes first: an editable install copies the wheel's file once, and does not follow its changes.
    candidates = [Path(__file__).resolve().parents[2] / "spark_jobs" / "main.py"]
    candidates += [
        Path(str(file.locate())) for file in installed if file.as_posix().endswith("share/airflow-hudi/main.py")
    ]
    for candidate in candidates:
        if candidate.is_file():
            return candidate.resolve()
    remedy = "reinstall airflow-hudi-engine"
    raise ConfigError("the job's main.py was not found", path=str(candidates[-1]), remedy=remedy)


def _package_files() -> Iterator[tuple[str, bytes]]:
    for package in PACKAGES:
        root = _package_root(package)
        for file in sorted(root.rglob("*")):
            name = file.relative_to(root.parent)
            if not file.is_file() or _is_passed_over(name):
                continue
            if file.suffix not in _SHIPPED:
                remedy = "remove it, or add its type to the zip builder"
                raise ConfigError("the job zip has no rule for this file", path=str(file), remedy=remedy)
            yield name.as_posix(), file.read_bytes()


def _is_passed_over(name: Path) -> bool:
    hidden = any(part.startswith(".") or part == "__pycache__" for part in name.parts)
    return hidden or name.suffix in _PASSED_OVER or name.name.endswith("~")


def _package_root(package: str) -> Path:
    spec = find_spec(package)
    places = list(spec.submodule_search_locations or []) if spec is not None else []
    if not places or not Path(places[0]).is_dir():
        remedy = "install airflow-hudi-engine from its wheel, or in editable mode from a checkout"
        raise ConfigError(f"the package {package} is not installed as a folder", remedy=remedy)
    return Path(places[0])


def _vendored(wheel: str) -> Iterator[tuple[str, bytes]]:
    """Yields a wheel's Python modules, which serve where its compiled ones are missing, and its licence."""
    try:
        distribution = metadata.distribution(wheel)
    except metadata.PackageNotFoundError as error:
        raise ConfigError(f"{wheel} is not installed", remedy=f"pip install {wheel}") from error
    if not distribution.files:
        raise ConfigError(
            f"{wheel} was installed without a list of its files", remedy=f"pip install --force-reinstall {wheel}"
        )
    for file in distribution.files:
        top = file.parts[0]
        if top == wheel and file.suffix == ".py":
            yield f"{VENDOR}/{file.as_posix()}", Path(str(file.locate())).read_bytes()
        elif top.endswith(".dist-info") and file.name.upper().startswith(_LICENCE_NAMES):
            yield f"{VENDOR}/licences/{wheel}-{distribution.version}/{file.name}", Path(str(file.locate())).read_bytes()


def _write_atomically(target: Path, data: bytes) -> None:
    handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=".hudi-jobs-", suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
        # mkstemp makes files private, but executors on this host may run as another user.
        Path(temporary).chmod(0o644)
        Path(temporary).replace(target)
    except OSError:
        Path(temporary).unlink(missing_ok=True)
        raise


def main(arguments: list[str]) -> int:
    """Writes the zip for `python -m hudi_submit.zip OUT`. Returns 0, or 2 on wrong usage or a missing package."""
    if len(arguments) != 1:
        sys.stderr.write("usage: python -m hudi_submit.zip OUT\n")
        return 2
    target = Path(arguments[0])
    try:
        data = build_zip()
        target.parent.mkdir(parents=True, exist_ok=True)
        _write_atomically(target, data)
    except (ConfigError, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    sys.stdout.write(f"{target} {len(data)} bytes sha256 {hashlib.sha256(data).hexdigest()}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
