"""The golden tables of every version in memory: nothing is unpacked to disk."""

from __future__ import annotations

import datetime
import functools
import json
import zipfile
from pathlib import Path
from typing import Any

from hudi_core.config.table_config import TableConfig
from hudi_core.history.archived import load_history
from hudi_core.model.names import FileGroupId
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.view.file_group import FileGroup
from hudi_core.view.file_system_view import FileSystemView, load_view
from hudi_core.view.listing import StorageListing
from tests.support.golden_data import golden_cases, golden_root
from tests.support.memory_storage import MemoryStorage

VERSIONS = ("6", "6-by-1.2.0", "8", "8-by-1.2.0", "9")


def table_names(*versions: str) -> list[str]:
    """`version/case`, and `version/case.after` where real Hudi then executed what was pending."""
    found = []
    for version in versions or VERSIONS:
        for case in golden_cases(version):
            found.append(f"{version}/{case}")
            if (golden_root() / version / f"{case}.expected" / "after.zip").exists():
                found.append(f"{version}/{case}.after")
    return found


def expected_folder(name: str) -> Path:
    """What real Hudi reads of the case."""
    return golden_root() / f"{name.removesuffix('.after')}.expected"


def info_of(name: str) -> dict[str, Any]:
    """case.json of the table's case."""
    info: dict[str, Any] = json.loads((expected_folder(name) / "case.json").read_text())
    return info


@functools.lru_cache(maxsize=8)
def _content(name: str) -> dict[str, tuple[bytes, float]]:
    archive = expected_folder(name) / "after.zip" if name.endswith(".after") else golden_root() / f"{name}.zip"
    content = {}
    with zipfile.ZipFile(archive) as zipped:
        for entry in zipped.infolist():
            if not entry.is_dir() and not entry.filename.endswith(".crc"):
                moment = datetime.datetime(*entry.date_time, tzinfo=datetime.timezone.utc).timestamp()
                content[entry.filename.split("/", 1)[1]] = (zipped.read(entry), moment)
    return content


def load_table(name: str) -> MemoryStorage:
    """The whole table in memory with its modification times, a fresh storage each time; local `.crc` side files left
    out.
    """
    now = [0.0]
    storage = MemoryStorage(f"memory://{name}", clock=lambda: now[0])
    for path, (data, moment) in _content(name).items():
        now[0] = moment
        storage.write(path, data)
    return storage


def open_table(name: str) -> tuple[MemoryStorage, ActiveTimeline, FileSystemView]:
    """A golden table, its timeline and its view by listing the storage."""
    storage = load_table(name)
    config = TableConfig.load(storage)
    active = ActiveTimeline(storage, config)
    return (
        storage,
        active,
        load_view(active, StorageListing(storage), active.load(), lambda: load_history(storage, config)),
    )


def groups_in_pending_clustering(view: FileSystemView) -> dict[FileGroupId, str]:
    """The file groups that pending clusterings will replace, with the clustering's requested time."""
    plans = view.pending.read_clusterings()
    return {group: instant for instant, plan in sorted(plans.items()) for group in plan.file_groups()}


def replaced_groups(view: FileSystemView, partition: str) -> list[FileGroup]:
    """The file groups of a partition that replacecommits replaced."""
    return [group for group in view.all_file_groups(partition) if view.replaced_at(group.id) is not None]
