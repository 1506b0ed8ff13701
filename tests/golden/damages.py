"""Ways to damage a table that real Hudi wrote. Each returns a part of the name of the file that an error must speak
of.
"""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hudi_core.codec.avro.container import read_container, write_container

PROPERTIES = ".hoodie/hoodie.properties"
METADATA = ".hoodie/metadata"
TIMELINE = ".hoodie/timeline"
HISTORY = f"{TIMELINE}/history"
Damage = Callable[[Path], str]
Pick = Callable[[Path], Path]
"""Chooses a file of the table."""


def the(pattern: str, position: int = -1) -> Pick:
    """The last file (or the one at `position`) of the table whose path matches, in the order of names."""
    return lambda table: sorted(table.glob(pattern))[position]


LAST_COMMIT = the(f"{TIMELINE}/*_*.deltacommit")
PLAN = the(f"{TIMELINE}/*.compaction.requested")
BASE_FILE = the("2024-01-01/*.parquet")
LOG_FILE = the("2024-01-01/.*.log.1_*", 0)
METADATA_BASE = the(f"{METADATA}/files/*.hfile")
METADATA_LOG = the(f"{METADATA}/files/.files-*.log.1_*")
MANIFEST = the(f"{HISTORY}/manifest_*")
VERSION = the(f"{HISTORY}/_version_")
ARCHIVE = the(f"{HISTORY}/*_1.parquet")


def replace_content(path: Path, content: bytes) -> None:
    """Writes the file as if an hour ago: of a younger one that is cut short the reader waits for the rest."""
    path.write_bytes(content)
    an_hour_ago = time.time() - 3600
    os.utime(path, (an_hour_ago, an_hour_ago))


def cut(pick: Pick, kept: int = -100) -> Damage:
    """The file without its end."""

    def damage(table: Path) -> str:
        path = pick(table)
        replace_content(path, path.read_bytes()[:kept])
        return path.name

    return damage


def filled(pick: Pick, content: bytes) -> Damage:
    """The file with other content."""

    def damage(table: Path) -> str:
        path = pick(table)
        assert path.read_bytes() != content
        replace_content(path, content)
        return path.name

    return damage


def gone(pick: Pick) -> Damage:
    """The file or folder taken away."""

    def damage(table: Path) -> str:
        path = pick(table)
        shutil.rmtree(path) if path.is_dir() else path.unlink()
        return path.name

    return damage


def renamed(pick: Pick, pattern: str, replacement: str, *, copied: bool = False) -> Damage:
    """The file under another name, or also under it."""

    def damage(table: Path) -> str:
        path = pick(table)
        target = path.with_name(re.sub(pattern, replacement, path.name))
        assert target != path
        shutil.copy2(path, target) if copied else path.rename(target)
        return target.name

    return damage


def property_set(key: str, value: str | None, file: str = PROPERTIES) -> Damage:
    """A property with another value; None takes it out."""

    def damage(table: Path) -> str:
        lines = (table / file).read_text().splitlines()
        others = [line for line in lines if not line.startswith(f"{key}=")]
        assert len(others) == len(lines) - 1
        (table / file).write_text("\n".join([*others, *([] if value is None else [f"{key}={value}"])]) + "\n")
        return file

    return damage


def record_changed(pick: Pick, change: Callable[[dict[str, Any]], None]) -> Damage:
    """The one record of an Avro file, changed in place."""

    def damage(table: Path) -> str:
        path = pick(table)
        schema, (record,) = read_container(path.read_bytes(), path=path.name)
        change(record)
        replace_content(path, write_container(schema, [record]))
        return path.name

    return damage


def stat_set(field: str, value: object, pick: Pick = LAST_COMMIT) -> Damage:
    """A commit with a field of its first write stat set."""

    def change(commit: dict[str, Any]) -> None:
        next(iter(commit["partitionToWriteStats"].values()))[0][field] = value

    return record_changed(pick, change)


def partition_set(value: str) -> Damage:
    """The last commit with its first partition under another path."""

    def change(commit: dict[str, Any]) -> None:
        stats = commit["partitionToWriteStats"]
        stats[value] = stats.pop(next(iter(stats)))

    return record_changed(LAST_COMMIT, change)


def content_of(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Every file and folder below `folder`: modification time and content."""
    paths = sorted(folder.rglob("*"))
    return {
        str(path.relative_to(folder)): (path.stat().st_mtime_ns, path.read_bytes() if path.is_file() else b"")
        for path in paths
    }
