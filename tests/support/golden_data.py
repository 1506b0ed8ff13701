"""The golden tables: written by real Apache Hudi, with what real Hudi reads from them.

The archive holds `cases/<table version>/<case>.zip` and `<case>.expected/`. It is unpacked once per content hash into
the cache folder; each table is unpacked afresh for the test that asks for it, with its modification times: Hudi 1.x
reads them.
"""

from __future__ import annotations

import datetime
import functools
import hashlib
import json
import os
import shutil
import tarfile
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

ARCHIVE = Path(__file__).parents[1] / "golden" / "data" / "golden.tar.xz"
WRITTEN = ARCHIVE.with_name("metadata_tables.tar.xz")
STALE = ARCHIVE.with_name("stale_indexes.tar.xz")
REPORTED = ARCHIVE.with_name("reported_tables.tar.xz")
MISLABELLED = ARCHIVE.with_name("mislabelled_tables.tar.xz")
SCHEMA_ON_READ = ARCHIVE.with_name("schema_on_read_v6.zip")
"""Tables whose metadata tables hold what the golden tables lack: the fixture `written`."""


@functools.cache
def unpacked_once(archive: Path, name: str) -> Path:
    """The content of a tar archive in the cache; unpacked on first use, published by rename so that parallel tests
    agree.
    """
    digest = hashlib.sha256(archive.read_bytes()).hexdigest()[:16]
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "airflow-hudi" / f"{name}-{digest}"
    if not cache.is_dir():
        cache.parent.mkdir(parents=True, exist_ok=True)
        fresh = Path(tempfile.mkdtemp(dir=cache.parent))
        with tarfile.open(archive) as tar:
            tar.extraction_filter = getattr(tarfile, "data_filter", None)  # from 3.10.12 and 3.11.4 on
            tar.extractall(fresh)
        try:
            fresh.rename(cache)
        except OSError:
            shutil.rmtree(fresh)
            if not cache.is_dir():
                raise
    return cache


def golden_root() -> Path:
    """The folder `cases` of the unpacked archive."""
    return unpacked_once(ARCHIVE, "golden") / "cases"


def golden_cases(version: str) -> list[str]:
    """The names of the cases of a folder such as "6", "8", "6-by-1.2.0"."""
    return sorted(path.stem for path in (golden_root() / version).glob("*.zip"))


class _Packed(NamedTuple):
    """What a zip holds: the folder of the table, every folder, parents first, and name, content and modification time
    in seconds of each file.
    """

    table: str
    folders: tuple[str, ...]
    files: tuple[tuple[str, bytes, float], ...]


@functools.lru_cache(maxsize=64)
def _packed(archive: Path, modified_ns: int) -> _Packed:
    """Kept in memory: the tests of a module take the same few tables again and again."""
    folders: set[PurePosixPath] = set()
    files = []
    with zipfile.ZipFile(archive) as zipped:
        for entry in zipped.infolist():
            path = PurePosixPath(entry.filename)
            if entry.is_dir():
                folders.add(path)
            else:
                moment = datetime.datetime(*entry.date_time, tzinfo=datetime.timezone.utc).timestamp()
                files.append((entry.filename, zipped.read(entry), moment))
            folders.update(parent for parent in path.parents if parent.name)
    (table,) = (folder.parent.name for folder in folders if folder.name == ".hoodie" and len(folder.parts) == 2)
    return _Packed(table, tuple(map(str, sorted(folders))), tuple(files))


def unpack(archive: Path, target: Path) -> Path:
    """Unpacks a table's zip below `target`, restores modification times, and returns the table's base path."""
    packed = _packed(archive, archive.stat().st_mtime_ns)
    target.mkdir(parents=True, exist_ok=True)
    for folder in packed.folders:
        (target / folder).mkdir(exist_ok=True)
    root = str(target)
    for name, data, moment in packed.files:
        handle = os.open(f"{root}/{name}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
        try:
            os.write(handle, data)
            os.utime(handle, (moment, moment))
        finally:
            os.close(handle)
    return target / packed.table


def written_table(name: str, scratch: Path) -> Path:
    """A fresh copy, below `scratch`, of a table that tests/golden/make_metadata_tables.py had real Hudi write."""
    source = unpacked_once(WRITTEN, "metadata-tables") / name
    return Path(shutil.copytree(source, Path(tempfile.mkdtemp(dir=scratch)) / name))


def reported_table(name: str, scratch: Path) -> Path:
    """A fresh copy, below `scratch`, of a table of real Hudi that users reported: tests/golden/data/reported.md."""
    source = unpacked_once(REPORTED, "reported") / name
    if not source.is_dir():
        source = unpacked_once(MISLABELLED, "mislabelled") / name
    return Path(shutil.copytree(source, Path(tempfile.mkdtemp(dir=scratch)) / name))


@dataclass(frozen=True)
class GoldenCase:
    """One case: `table` is a fresh copy, `expected` the folder of what real Hudi reads, `info` its case.json."""

    version: str
    name: str
    table: Path
    expected: Path
    info: dict[str, Any]
    scratch: Path

    def after(self) -> Path:
        """A fresh copy of the same table after real Hudi executed the pending plan."""
        return unpack(self.expected / "after.zip", Path(tempfile.mkdtemp(dir=self.scratch)))


def open_case(version: str, name: str, scratch: Path) -> GoldenCase:
    """Unpacks one case below `scratch`."""
    root = golden_root() / version
    expected = root / f"{name}.expected"
    table = unpack(root / f"{name}.zip", Path(tempfile.mkdtemp(dir=scratch)))
    return GoldenCase(version, name, table, expected, json.loads((expected / "case.json").read_text()), scratch)


PARTITIONED = "partitioned_v9"
"""A merge-on-read table of version 9 with a record index of each data partition. Hudi-rs 0.5 gives rows of real Hudi's
log files there the partition columns of other rows.
"""


def open_table(version: str, name: str, scratch: Path) -> Path:
    """A fresh copy of the table of a case, or of PARTITIONED."""
    return written_table(name, scratch) if name == PARTITIONED else open_case(version, name, scratch).table
