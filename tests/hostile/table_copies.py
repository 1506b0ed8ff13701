"""The golden tables as sources of hostile ones: content in memory, copies on disk, and what is on disk afterwards."""

from __future__ import annotations

import hashlib
import os
import stat
import zipfile
from collections import defaultdict
from functools import cache, lru_cache
from pathlib import Path

from tests.hostile.file_kinds import kind_of
from tests.support.golden_data import golden_cases, golden_root

FOLDERS = ("6", "6-by-1.2.0", "8", "8-by-1.2.0", "9")
HASHED = 64 << 20
"""Larger files are sparse ones that a mutation made; their size alone is compared."""

Golden = tuple[str, str]
"""Folder and case."""


def archive(table: Golden) -> Path:
    """The zip of a table."""
    return golden_root() / table[0] / f"{table[1]}.zip"


@cache
def files_by_kind() -> dict[str, list[tuple[Golden, str]]]:
    """Every file of every golden table by its kind, in a fixed order; no `.crc` side files."""
    found: dict[str, list[tuple[Golden, str]]] = defaultdict(list)
    for folder in FOLDERS:
        for case in golden_cases(folder):
            with zipfile.ZipFile(archive((folder, case))) as zipped:
                for entry in sorted(zipped.infolist(), key=lambda entry: entry.filename):
                    path = entry.filename.partition("/")[2]
                    if not entry.is_dir() and not path.endswith(".crc"):
                        found[kind_of(path)].append(((folder, case), path))
    return dict(sorted(found.items()))


@lru_cache(maxsize=24)
def content(table: Golden) -> dict[str, tuple[bytes, float]]:
    """Bytes and modification time of each file by its path below the base path; no `.crc` side files."""
    import datetime

    found = {}
    with zipfile.ZipFile(archive(table)) as zipped:
        for entry in zipped.infolist():
            path = entry.filename.partition("/")[2]
            if not entry.is_dir() and not path.endswith(".crc"):
                moment = datetime.datetime(*entry.date_time, tzinfo=datetime.timezone.utc).timestamp()
                found[path] = (zipped.read(entry), moment)
    return found


def write_copy(table: Golden, target: Path) -> Path:
    """The table below `target`, as unzipped with its modification times; returns its base path."""
    base = target / table[1]
    folders = {os.path.dirname(path) for path in content(table)}
    for folder in sorted(folders):
        (base / folder).mkdir(parents=True, exist_ok=True)
    for path, (data, moment) in content(table).items():
        (base / path).write_bytes(data)
        os.utime(base / path, (moment, moment))
    return base


Tree = dict[str, tuple[str, int, str]]


def tree_of(base: Path) -> Tree:
    """Type, size and hash of everything below a folder; folders that hold nothing are left out, as on object stores."""
    found: Tree = {}
    for folder, folders, names in os.walk(base):
        for name in [*names, *(name for name in folders if os.path.islink(os.path.join(folder, name)))]:
            path = os.path.join(folder, name)
            status = os.lstat(path)
            kind, digest = stat.filemode(status.st_mode)[0], ""
            if kind == "-" and status.st_size <= HASHED:
                digest = hashlib.md5(Path(path).read_bytes()).hexdigest()
            found[os.path.relpath(path, base)] = (kind, status.st_size if kind == "-" else 0, digest)
    return found


def difference(before: Tree, after: Tree) -> list[str]:
    """Paths that came, went or changed, each with a sign before it."""
    return [
        f"{'+' if path not in before else '-' if path not in after else '~'}{path}"
        for path in sorted(before.keys() | after.keys())
        if before.get(path) != after.get(path)
    ]
