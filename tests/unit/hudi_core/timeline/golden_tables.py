"""The golden tables of version 6 in memory: their timelines and listings without unpacking a file."""

from __future__ import annotations

import functools
import json
import zipfile
from pathlib import Path
from typing import Any

from hudi_core.storage.memory import MemoryStorage
from hudi_core.timeline.active import ActiveTimeline
from tests.golden_data import golden_cases, golden_root


class Layout1:
    """The one property that a timeline asks of the configuration."""

    layout_version = 1


def table_names() -> list[str]:
    """Every table of version 6: `case`, and `case.after` where real Hudi then executed the pending plan."""
    root = golden_root() / "6"
    names = golden_cases("6")
    return sorted(names + [f"{name}.after" for name in names if (root / f"{name}.expected" / "after.zip").exists()])


def archive_of(name: str) -> Path:
    root = golden_root() / "6"
    case = name.removesuffix(".after")
    return root / f"{case}.expected" / "after.zip" if name.endswith(".after") else root / f"{case}.zip"


def info_of(name: str) -> dict[str, Any]:
    """case.json of the table's case."""
    info: dict[str, Any] = json.loads((golden_root() / "6" / f"{name.removesuffix('.after')}.expected" / "case.json").read_text())
    return info


@functools.cache
def _content(name: str) -> dict[str, bytes]:
    with zipfile.ZipFile(archive_of(name)) as zipped:
        files = {entry.filename.split("/", 1)[1]: entry for entry in zipped.infolist() if not entry.is_dir()}
        return {path: zipped.read(entry) for path, entry in files.items() if not path.endswith(".crc")}


def load_table(name: str) -> MemoryStorage:
    """The whole table in memory, a fresh storage each time; local `.crc` side files left out."""
    storage = MemoryStorage(f"memory://{name}")
    for path, data in _content(name).items():
        storage.write(path, data)
    return storage


def timelines_of(storage: MemoryStorage) -> list[ActiveTimeline]:
    """The data timeline, and the metadata table's where there is one."""
    found = [ActiveTimeline(storage, Layout1()), ActiveTimeline(storage, Layout1(), ".hoodie/metadata")]
    return [active for active in found if active.names()]
