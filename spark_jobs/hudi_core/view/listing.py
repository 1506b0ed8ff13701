"""Says which partitions a table has and which files are in them, by listing the storage (or by the metadata table).
Also says which data files lost bytes: their commit wrote more bytes than there are. metadata_table/read/whole_files.py
does so for files of the metadata table.

A query that lists the storage fails on such a file. The metadata table would leave it out, where it has no byte, or
list it with the bytes that are left: readers would miss its rows without an error. So it is refused there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Final, Protocol

from hudi_core.errors import CorruptFileError, FormatError
from hudi_core.history.archived import ArchivedTimeline
from hudi_core.model.names import BaseFileName, parse_data_file
from hudi_core.model.partition import MAX_DEPTH, PARTITION_METADATA, check_partition, join, own_folder
from hudi_core.storage.base import FileInfo, Storage
from hudi_core.storage.overlapped import is_remote
from hudi_core.timeline.actions.commit import CommitMetadata
from hudi_core.timeline.actions.write_stats import WriteStat
from hudi_core.timeline.instant import Instant
from hudi_core.timeline.timeline import Timeline

_METADATA_FOLDER: Final = ".hoodie"
_OWN_METADATA: Final = f"{_METADATA_FOLDER}/{PARTITION_METADATA}"
_METADATA_FILES: Final = frozenset({PARTITION_METADATA, f"{PARTITION_METADATA}.parquet", f"{PARTITION_METADATA}.orc"})
LISTING_THREADS: Final = 16


def walk_partitions(
    storage: Storage, list_files: Callable[[str], list[FileInfo]]
) -> Iterator[tuple[str, list[FileInfo]]]:
    """Yields every partition with its files, sorted by path, by one listing of each folder. Goes neither below a
    partition, nor into `.hoodie`. Threads list the next folders of a remote storage ahead; at most LISTING_THREADS
    results of each level are held. Raises FormatError where `.hoodie` is a partition: its rows would be lost silently.
    """

    def visit(folder: str) -> tuple[list[FileInfo] | None, list[str]]:
        files = list_files(folder)
        if any(info.name in _METADATA_FILES for info in files):
            return files, []
        # One request for the whole walk: `.hoodie` has the thousands of files of a timeline of layout 1.
        if not folder and storage.exists(_OWN_METADATA):
            raise own_folder(_METADATA_FOLDER, source=_OWN_METADATA)
        return None, [child for child in storage.list_folders(folder) if child != _METADATA_FOLDER]

    with ExitStack() as stack:
        near = not is_remote(storage)  # threads would only cost
        visit_all = map if near else stack.enter_context(ThreadPoolExecutor(LISTING_THREADS, "hudi-listing")).map
        pending = [("", 0)]
        visited: dict[str, tuple[list[FileInfo] | None, list[str]]] = {}
        while pending:
            folder, depth = pending[-1]
            if folder not in visited:
                ahead = [
                    name for name, _ in pending[: -2 if near else -LISTING_THREADS - 1 : -1] if name not in visited
                ]
                visited.update(zip(ahead, visit_all(visit, ahead), strict=True))
            pending.pop()
            files, children = visited.pop(folder)
            if files is not None:
                yield folder, files
            if children and depth >= MAX_DEPTH:
                remedy = "is this the table's base path?"
                raise FormatError(f"folders nest deeper than {MAX_DEPTH} levels", path=children[0], remedy=remedy)
            pending += [(child, depth + 1) for child in reversed(children)]


class FileListing(Protocol):
    """A listing of a table: equal for equal tables, from whatever source."""

    def partitions(self) -> list[str]:
        """Returns all partition paths, sorted; `[""]` for a table without partitions, `[]` for one without files."""
        ...

    def files(self, partition: str) -> list[FileInfo]:
        """Returns the files of a partition, sorted by path, also foreign ones; none for an unknown partition."""
        ...


class StorageListing:
    """Lists each folder at most once. As in FileSystemBackedTableMetadata, a folder is a partition when it holds
    `.hoodie_partition_metadata` (with `hoodie.partition.metafile.use.base.format` with the base format's extension).
    """

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._files: dict[str, list[FileInfo]] = {}

    def partitions(self) -> list[str]:
        return sorted(folder for folder, _ in walk_partitions(self._storage, self.files))

    def files(self, partition: str) -> list[FileInfo]:
        """Returns the files of a partition. Raises FormatError for a partition path that leaves the table."""
        if partition not in self._files:
            check_partition(partition, source=join(partition, PARTITION_METADATA))
            self._files[partition] = self._storage.list_files(partition)
        return self._files[partition]


REMEDY: Final = (
    "restore the file from a copy; without one its rows are lost: restore the table to the commit before, or delete "
    "the file and write the rows again"
)


class CutFileError(CorruptFileError):
    """A data file has fewer bytes than its commit wrote."""

    usual_remedy = REMEDY


class CommittedSizes:
    """The sizes of data files by a timeline's completed commits, each read once. Memory: a path and a number for each
    of their files. Archived commits are read only where they seem to have written a base file of no bytes.
    """

    def __init__(
        self,
        timeline: Timeline,
        read_commit: Callable[[Instant], CommitMetadata],
        history: Callable[[], ArchivedTimeline],
    ) -> None:
        self._commits = timeline.commits()
        self._history = history
        self._least: dict[str, tuple[int, str]] = {}
        for instant in self._commits:
            for stat in read_commit(instant).write_stats():
                known = self._least.get(stat.path, (0, ""))
                self._least[stat.path] = max(known, (least_size(stat), instant.requested_time))

    def names(self, path: str) -> bool:
        """Whether a commit of the timeline says that it wrote the file."""
        return path in self._least

    def cut(self, info: FileInfo) -> str | None:
        """Returns what a commit says against the bytes of a file; None where the file has as many as are known of."""
        size, instant = self._least.get(info.path, (0, ""))
        if info.size < size:
            return _says(instant, size, info)
        name = parse_data_file(info.name)
        if info.size or not isinstance(name, BaseFileName) or not self._is_archived(name.instant, info.path):
            return None
        return f"commit {name.instant}, which is archived, wrote this file, but it has no bytes"

    def refuse_cut(self, info: FileInfo) -> None:
        what = self.cut(info)
        if what is not None:
            raise CutFileError(what, path=info.path)

    def _is_archived(self, instant: str, path: str) -> bool:
        """Whether a commit before the timeline wrote the file. Also True where that commit is unknown."""
        times = self._commits.requested_times
        if instant in times or not self._commits.contains_or_before_start(instant):
            return False
        commit = self._history().commit(instant)
        return commit is None or any(stat.path == path for stat in commit.write_stats())


def least_size(stat: WriteStat) -> int:
    """Returns the least bytes of a file after its commit. In version 6 a stat counts only its own append."""
    appended = 0 if stat.log_version is None else (stat.log_offset or 0) + stat.total_write_bytes
    return max(stat.file_size_in_bytes, appended)


def refuse_cut_stat(stat: WriteStat, instant: str, info: FileInfo) -> None:
    """Raises CutFileError where the file has fewer bytes than commit `instant` says in this stat of it."""
    if info.size < least_size(stat):
        raise CutFileError(_says(instant, least_size(stat), info), path=info.path)


def _says(instant: str, size: int, info: FileInfo) -> str:
    return f"commit {instant} wrote this file with {size} bytes, but it has {info.size}"
