"""Markers: an empty file per data file, written before it, so that a rollback finds the files of a dead writer.

The run that completes or rolls back the instant deletes them, last of all (services/rewrite.py, rollback/job.py). As
DirectWriteMarkers.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from hudi_core.errors import CorruptFileError, FormatError
from hudi_core.model.partition import check_file_name, check_partition, join
from hudi_core.storage.base import Storage

TEMP_FOLDER = ".hoodie/.temp"
_MIDDLE = ".marker."
_TYPE_FILE = "MARKERS.type"
_TYPES = ("TIMELINE_SERVER_BASED", "DIRECT")
_SERVER_PREFIX = "MARKERS"


class MarkerType(Enum):
    """What the writer is about to write: a new file group, a new version of one, or a log file."""

    CREATE = "CREATE"
    MERGE = "MERGE"
    APPEND = "APPEND"


@dataclass(frozen=True, slots=True, order=True)
class Marker:
    """A data file that an attempt announced."""

    partition: str
    file_name: str
    kind: str

    @property
    def data_path(self) -> str:
        """The data file, relative to the table's base path."""
        return join(self.partition, self.file_name)


def marker_folder(instant: str) -> str:
    """Where the markers of an instant lie."""
    return f"{TEMP_FOLDER}/{check_file_name(instant, source='instant')}"


def create_marker(storage: Storage, instant: str, partition: str, file_name: str, kind: MarkerType) -> Marker:
    """Announces a data file; returns when the marker is there."""
    marker = Marker(partition, file_name, kind.value)
    storage.write(f"{marker_folder(instant)}/{marker.data_path}{_MIDDLE}{marker.kind}", b"")
    return marker


def list_markers(storage: Storage, instant: str) -> list[Marker]:
    """All markers of an instant, sorted: direct ones, and those that a timeline server batched into `MARKERS<n>` files.

    Raises FormatError for a marker that points out of the table.
    """
    folder = marker_folder(instant)
    found = set(_direct(storage, folder, ""))
    for file in storage.list_files(folder):
        if file.name == _TYPE_FILE:
            kind = _text(storage, file.path).strip()
            if kind not in _TYPES:
                raise FormatError(f"unknown marker type {kind!r}", path=file.path)
        elif file.name.startswith(_SERVER_PREFIX) and file.name[len(_SERVER_PREFIX) :].isdigit():
            found.update(_parse(line, file.path) for line in _whole_lines(_text(storage, file.path)) if line)
    return sorted(found)


def delete_markers(storage: Storage, instant: str) -> None:
    """Removes the marker folder of an instant; nothing happens when it is not there."""
    storage.delete_folder(marker_folder(instant))


def _direct(storage: Storage, root: str, inner: str) -> list[Marker]:
    folder = join(root, inner) if inner else root
    found = [_parse(join(inner, file.name), file.path) for file in storage.list_files(folder) if _MIDDLE in file.name]
    for child in storage.list_folders(folder):
        found += _direct(storage, root, child[len(root) + 1 :])
    return found


def _whole_lines(text: str) -> list[str]:
    """The lines of a `MARKERS<n>` file.

    A last line that was cut announces no file yet: the timeline server answers its writer after it is written.
    """
    lines = text.splitlines()
    if lines and not text.endswith("\n") and lines[-1].rpartition(_MIDDLE)[2] not in MarkerType.__members__:
        lines.pop()
    return lines


def _parse(line: str, source: str) -> Marker:
    path, middle, kind = line.rpartition(_MIDDLE)
    if not middle or kind not in MarkerType.__members__:
        raise FormatError(f"not a marker: {line!r}", path=source)
    partition, _, name = path.rpartition("/")
    return Marker(check_partition(partition, source=source), check_file_name(name, source=source), kind)


def _text(storage: Storage, path: str) -> str:
    try:
        return storage.read(path).decode("utf-8")
    except UnicodeDecodeError as error:
        raise CorruptFileError(f"marker file is not UTF-8: {error}", path=path) from error
