"""The golden tables in memory: their timelines and listings without unpacking a file."""

from __future__ import annotations

import functools
import json
import re
import zipfile
from pathlib import Path
from typing import Any

from hudi_core.config.table_config import TableConfig
from hudi_core.timeline.active import ActiveTimeline
from tests.support.golden_data import golden_cases, golden_root
from tests.support.memory_storage import MemoryStorage

METADATA = ".hoodie/metadata"
_TIMELINE = re.compile(r"\.hoodie/(metadata/\.hoodie/|(?!metadata/))")
VERSIONS = ("6", "6-by-1.2.0", "8", "8-by-1.2.0", "9")


class Layout1:
    """What a timeline asks of the configuration of a table of version 6."""

    layout_version = 1
    timeline_folder = ".hoodie"


def table_names(version: str = "6") -> list[str]:
    """Every table of a folder: `case`, and `case.after` where real Hudi then executed the pending plan."""
    root = golden_root() / version
    names = golden_cases(version)
    return sorted(names + [f"{name}.after" for name in names if (root / f"{name}.expected" / "after.zip").exists()])


def every_table(*versions: str) -> list[tuple[str, str]]:
    """Folder and name of every table of the folders, of all when none is given."""
    return [(version, name) for version in versions or VERSIONS for name in table_names(version)]


def archive_of(name: str, version: str = "6") -> Path:
    root = golden_root() / version
    case = name.removesuffix(".after")
    return root / f"{case}.expected" / "after.zip" if name.endswith(".after") else root / f"{case}.zip"


def info_of(name: str, version: str = "6") -> dict[str, Any]:
    """case.json of the table's case."""
    case = name.removesuffix(".after")
    info: dict[str, Any] = json.loads((golden_root() / version / f"{case}.expected" / "case.json").read_text())
    return info


@functools.lru_cache(maxsize=64)
def _content(name: str, version: str, timelines_only: bool = False) -> dict[str, bytes]:
    with zipfile.ZipFile(archive_of(name, version)) as zipped:
        files = {entry.filename.split("/", 1)[1]: entry for entry in zipped.infolist() if not entry.is_dir()}
        if timelines_only:
            files = {path: entry for path, entry in files.items() if _TIMELINE.match(path)}
        return {path: zipped.read(entry) for path, entry in files.items() if not path.endswith(".crc")}


def load_table(name: str, version: str = "6") -> MemoryStorage:
    """The whole table in memory, a fresh storage each time; local `.crc` side files excluded."""
    storage = MemoryStorage(f"memory://{version}/{name}")
    for path, data in _content(name, version).items():
        storage.write(path, data)
    return storage


def load_timelines(name: str, version: str = "6") -> MemoryStorage:
    """As load_table, without the base and log files."""
    storage = MemoryStorage(f"memory://{version}/{name}")
    for path, data in _content(name, version, timelines_only=True).items():
        storage.write(path, data)
    return storage


def timelines_of(storage: MemoryStorage) -> list[ActiveTimeline]:
    """The data timeline, and the metadata table's where there is one."""
    found = [ActiveTimeline(storage, TableConfig.load(storage))]
    if storage.exists(f"{METADATA}/.hoodie/hoodie.properties"):
        found.append(ActiveTimeline(storage, TableConfig.load(storage, base=METADATA), METADATA))
    return found
