"""Publishes and lists the snapshots of the archive of layout 2 (LSMTimelineWriter.createManifestFile).

A file counts once a manifest names it, and a manifest once `_version_` does. A manifest later than `_version_` is left
from a crash: no reader uses it, and it is removed before its number is used.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hudi_core.history.manifest import VERSION_FILE, HistoryFile, latest_version, manifest_versions, read_manifest
from hudi_core.storage.base import Storage
from hudi_core.timeline.actions.pretty_json import dump

Guard = Callable[[], None]
"""Raises when the table lock is no longer ours; called before every write that could then do harm."""


def publish_snapshot(
    storage: Storage, folder: str, change: Callable[[Sequence[HistoryFile]], Sequence[HistoryFile]], guard: Guard
) -> None:
    """Makes the archive what `change` makes of the files of the latest snapshot; they are written in the order given.

    Called under the table lock; killed anywhere, the archive is the old one or this one.
    """
    version = latest_version(storage, folder) or 0
    files = change(read_manifest(storage, folder, version) if version else [])
    path = f"{folder}/manifest_{version + 1}"
    guard()
    storage.delete(path)
    storage.create_exclusive(path, dump({"files": [{"fileName": file.name, "fileLen": file.size} for file in files]}))
    guard()
    storage.write(f"{folder}/{VERSION_FILE}", str(version + 1).encode())


def old_versions(storage: Storage, folder: str, keep: int) -> tuple[list[int], list[int]]:
    """The versions to keep, latest first, and the others."""
    versions = sorted(manifest_versions(storage, folder), reverse=True)
    return versions[:keep], versions[keep:]
