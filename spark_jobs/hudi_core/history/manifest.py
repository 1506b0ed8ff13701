"""Says which files make up the archived timeline of layout 2, and how they change (LSMTimeline, LSMTimelineWriter).
log_archive.py has the files of layout 1.

<folder>/_version_        the latest snapshot version V
<folder>/manifest_V       the files of that snapshot
<folder>/<min>_<max>_<level>.parquet

A file counts once a manifest names it, and a manifest counts once `_version_` names it. Numbers of manifests grow, with
gaps. A manifest later than `_version_` was left by a crash, or another archiver is about to name it, so its number
stays unused. Hudi follows `_version_`, else the largest number (LSMTimeline.latestSnapshotVersion).
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Sequence
from typing import Final

from hudi_core.errors import ConflictError, CorruptFileError, StorageExistsError, StorageNotFoundError
from hudi_core.frozen import dataclass
from hudi_core.model.partition import check_file_name
from hudi_core.storage.base import ByteRange, Storage
from hudi_core.timeline.actions.content import dump, load_object

log = logging.getLogger(__name__)

VERSION_FILE: Final = "_version_"

Guard = Callable[[], None]
"""Raises an error when the table lock is no longer ours. It is called before every write that could then do harm."""

_MANIFEST = re.compile(r"^manifest_(\d{1,9})\Z", re.ASCII)
_FILE = re.compile(r"^(?P<begin>\d{1,40})_(?P<end>\d{1,40})_(?P<level>\d{1,2})\.parquet\Z", re.ASCII)
_MAX_VERSION_BYTES: Final = 64
_REMEDY: Final = "restore the file from a copy; the instants that it lists are nowhere else"


@dataclass(frozen=True, slots=True)
class HistoryFile:
    """A file of the snapshot: path, first and last requested time in it, level, and length by the manifest."""

    path: str
    begin: str
    end: str
    level: int
    size: int = 0

    @property
    def name(self) -> str:
        return self.path.rsplit("/", 1)[-1]

    def overlaps(self, after: str | None, up_to: str | None) -> bool:
        """Whether the file can hold an instant requested after `after` (exclusive) and at or before `up_to`."""
        return (after is None or self.end > after) and (up_to is None or self.begin <= up_to)


def read_snapshot(storage: Storage, folder: str) -> list[HistoryFile]:
    """Returns the files of the latest snapshot, oldest first; none without an archive. Raises CorruptFileError."""
    version = latest_version(storage, folder)
    return [] if version is None else read_manifest(storage, folder, version)


def read_manifest(storage: Storage, folder: str, version: int) -> list[HistoryFile]:
    """Returns the files of one snapshot, oldest first. Raises CorruptFileError for a missing or damaged manifest."""
    path = f"{folder}/manifest_{version}"
    try:
        data = storage.read(path)
    except StorageNotFoundError as error:
        raise CorruptFileError(
            f"{VERSION_FILE} names the snapshot {version}, whose manifest is missing", path=path, remedy=_REMEDY
        ) from error
    return parse_manifest(data, folder, path=path)


def parse_manifest(data: bytes, folder: str, *, path: str) -> list[HistoryFile]:
    """Returns the files in `folder` that a manifest names, oldest first. Raises CorruptFileError naming `path`."""
    try:
        entries = load_object(data, path=path).get("files")
    except CorruptFileError as error:
        raise CorruptFileError(error.message, path=path, remedy=_REMEDY) from error
    if not isinstance(entries, list):
        raise CorruptFileError("the manifest has no list of files", path=path, remedy=_REMEDY)
    files: dict[str, HistoryFile] = {}
    for entry in entries:
        name = entry.get("fileName") if isinstance(entry, dict) else None
        if not isinstance(name, str):
            raise CorruptFileError("the manifest has an entry without a file name", path=path, remedy=_REMEDY)
        match = _FILE.match(check_file_name(name, source=path))
        if match is None or match["begin"] > match["end"]:
            what = f"the manifest names {name!r}, which is no file of the archive"
            raise CorruptFileError(what, path=path, remedy=_REMEDY)
        # Hudi chooses files to merge by their length: no content depends on it.
        size = entry.get("fileLen")
        length = size if isinstance(size, int) and size > 0 else 0
        files[name] = HistoryFile(f"{folder}/{name}", match["begin"], match["end"], int(match["level"]), length)
    return sorted(files.values(), key=lambda file: (file.begin, file.end, file.level))


def latest_version(storage: Storage, folder: str) -> int | None:
    """Returns the version file's version; the largest while that file is replaced (latestSnapshotVersion)."""
    named = _named_version(storage, folder)
    return max(manifest_versions(storage, folder), default=None) if named is None else named


def _named_version(storage: Storage, folder: str) -> int | None:
    path = f"{folder}/{VERSION_FILE}"
    try:
        text = storage.read_range(path, ByteRange(0, _MAX_VERSION_BYTES))
    except StorageNotFoundError:
        text = b""
    digits = text.strip()
    if digits.isdigit() and len(digits) < 10:
        return int(digits)
    if digits:
        what = "%s holds %r, which is no version; the largest manifest is read instead, as Hudi does"
        log.warning(what, path, digits)
    return None


def manifest_versions(storage: Storage, folder: str) -> list[int]:
    return [int(match[1]) for info in storage.list_files(folder) if (match := _MANIFEST.match(info.name)) is not None]


def history_files(storage: Storage, folder: str) -> list[str]:
    """Returns the names of all Parquet files of the archive, also those of no snapshot."""
    return sorted(name for name in storage.list_names(folder) if _FILE.match(name) is not None)


def publish_snapshot(
    storage: Storage, folder: str, change: Callable[[Sequence[HistoryFile]], Sequence[HistoryFile]], guard: Guard
) -> None:
    """Publishes a new snapshot: what `change` makes of the files of the latest one, in that order. Called under the
    table lock. When this is killed, the archive is the old one or the new one. An archiver that goes on after another
    one has taken the lock deletes no file of the other: its own manifest has a number that no other has, and is not
    named. It then raises ConflictError.
    """
    named, existing = _named_version(storage, folder), manifest_versions(storage, folder)
    version = max(existing, default=0) if named is None else named
    files = change(read_manifest(storage, folder, version) if version else [])
    content = dump({"files": [{"fileName": file.name, "fileLen": file.size} for file in files]})
    number = max([version, *existing]) + 1
    path = f"{folder}/manifest_{number}"
    guard()
    try:
        storage.create_exclusive(path, content)
    except StorageExistsError as error:
        raise overtaken(path) from error
    guard()
    if _named_version(storage, folder) != named:
        raise overtaken(f"{folder}/{VERSION_FILE}")
    storage.write(f"{folder}/{VERSION_FILE}", str(number).encode())


def overtaken(path: str) -> ConflictError:
    return ConflictError("another process is archiving at the same time", path=path, remedy="run the archival again")
