"""Markers: an empty file for each data file, written before it, so that a rollback finds the files of a dead writer
(DirectWriteMarkers). The run that completes or rolls back the instant deletes them, last of all
(services/rewriting/job.py, rollback/job.py). A task whose attempt is over deletes its file and its marker
(check_attempt). transaction/reconcile.py deletes files of other attempts that lost.
"""

from __future__ import annotations

from enum import Enum

from hudi_core.errors import ConflictError, CorruptFileError, FormatError
from hudi_core.frozen import dataclass
from hudi_core.model.names import ClaimFolder
from hudi_core.model.partition import MAX_DEPTH, check_file_name, check_partition, join
from hudi_core.storage.base import Storage

TEMP_FOLDER = ".hoodie/.temp"
_MIDDLE = ".marker."
_TYPE_FILE = "MARKERS.type"
_TYPES = ("TIMELINE_SERVER_BASED", "DIRECT")
_SERVER_PREFIX = "MARKERS"
_NO_MARKER = (
    "a list of markers cannot name a partition whose value has a line feed: where the table has one, roll the instant "
    "back with hoodie.rollback.using.markers=false; else find out what wrote this file"
)


class MarkerType(Enum):
    """What the writer is about to write: a new file group, a new version of a file group, or a log file."""

    CREATE = "CREATE"
    MERGE = "MERGE"
    APPEND = "APPEND"


@dataclass(frozen=True, slots=True, order=True)
class Marker:
    partition: str
    file_name: str
    kind: str

    @property
    def data_path(self) -> str:
        return join(self.partition, self.file_name)


def log_marker(*, by_name: bool) -> MarkerType:
    """Returns the type for a new log file; `by_name`: it is named after its write, as in version 8 and later. Hudi 1.2
    fails to roll back a log file of one writer alone unless its marker says so; 0.15 takes no other than APPEND.
    """
    return MarkerType.CREATE if by_name else MarkerType.APPEND


def marker_folder(instant: str) -> str:
    return f"{TEMP_FOLDER}/{check_file_name(instant, source='instant')}"


def create_marker(storage: Storage, instant: str, partition: str, file_name: str, kind: MarkerType) -> Marker:
    marker = Marker(partition, file_name, kind.value)
    storage.write(_path(instant, marker), b"")
    return marker


def check_attempt(storage: Storage, instant: str, epoch: int, marker: Marker, *, closed: bool) -> None:
    """Checks that the attempt with the claim `epoch`, which writes the data file of `marker`, goes on. When the attempt
    is over, deletes the data file and the marker, and raises ConflictError. It is called before the file is opened,
    right after the marker was made, and again when the file is `closed`.

    A task may outlive its driver, or lose against another attempt, and close its file after the clean-up. The sign of
    the end is the epoch's decision, which is recorded before the files of the attempts are listed the last time. A file
    that exists while there is no sign is in that listing. A task that sees the sign has returned no result yet. Later
    the claims are removed, the decision after the claim (forget_claims), and before them the markers. By its own
    missing marker, a task sees that the claims of that number are another's by then.
    """
    claims, path = ClaimFolder(instant), _path(instant, marker)
    names = {f"{claims.path}/{name}" for name in storage.list_names(claims.path)}
    goes_on = claims.claim(epoch) in names and claims.decision(epoch) not in names
    if goes_on and (not closed or storage.exists(path)):
        return
    storage.delete(marker.data_path)
    storage.delete(path)  # last: it is the trace of the file
    raise ConflictError(
        f"run {epoch} of instant {instant} has ended, or another run has taken the instant over: the file was deleted",
        path=marker.data_path,
        remedy="leave the instant to its present owner",
    )


def list_markers(storage: Storage, instant: str) -> list[Marker]:
    """Returns all markers of an instant, sorted: direct ones, and those that a timeline server batched into
    `MARKERS<n>` files. Raises FormatError for a marker that points out of the table.
    """
    folder = marker_folder(instant)
    markers: set[Marker] = set()
    for file in storage.list_tree(folder):
        inner = file.path[len(folder) + 1 :]
        if inner.count("/") > MAX_DEPTH:
            raise FormatError(f"marker folders are nested more than {MAX_DEPTH} levels deep", path=file.path)
        if _MIDDLE in file.name:
            markers.add(_parse(inner, file.path))
        elif inner != file.name:
            continue
        elif file.name == _TYPE_FILE:
            kind = _text(storage, file.path).strip()
            if kind and kind not in _TYPES:  # a crash leaves it empty (MarkerUtils.readMarkerType takes that for none)
                raise FormatError(f"unknown marker type {kind!r}", path=file.path)
        elif file.name.startswith(_SERVER_PREFIX) and file.name[len(_SERVER_PREFIX) :].isdigit():
            markers.update(_parse(line, file.path) for line in _whole_lines(_text(storage, file.path)) if line)
    return sorted(markers)


def delete_markers(storage: Storage, instant: str) -> None:
    storage.delete_folder(marker_folder(instant))


def _path(instant: str, marker: Marker) -> str:
    return f"{marker_folder(instant)}/{marker.data_path}{_MIDDLE}{marker.kind}"


def _whole_lines(text: str) -> list[str]:
    """Returns the lines of a `MARKERS<n>` file. Each line ends with a line feed: a partition may have any other
    separator. A last line that was cut announces no file: the timeline server answers its writer after the line is
    written.
    """
    *lines, last = text.split("\n")
    return [*lines, last] if last.rpartition(_MIDDLE)[2] in MarkerType.__members__ else lines


def _parse(line: str, source: str) -> Marker:
    path, middle, kind = line.rpartition(_MIDDLE)
    if not middle or kind not in MarkerType.__members__:
        raise FormatError(f"not a marker: {line!r}", path=source, remedy=_NO_MARKER)
    partition, _, name = path.rpartition("/")
    return Marker(check_partition(partition, source=source), check_file_name(name, source=source), kind)


def _text(storage: Storage, path: str) -> str:
    try:
        return storage.read(path).decode("utf-8")
    except UnicodeDecodeError as error:
        raise CorruptFileError(f"marker file is not UTF-8: {error}", path=path) from error
