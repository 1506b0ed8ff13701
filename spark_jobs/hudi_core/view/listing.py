"""Which partitions a table has and which files are in them, by listing the storage (or by the metadata table)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Final, Protocol

from hudi_core.errors import FormatError
from hudi_core.model.partition import MAX_DEPTH, PARTITION_METADATA, check_partition, join, own_folder
from hudi_core.storage.base import FileInfo, Storage
from hudi_core.storage.registry import scheme_of

_METADATA_FOLDER: Final = ".hoodie"
_OWN_METADATA: Final = f"{_METADATA_FOLDER}/{PARTITION_METADATA}"
_METADATA_FILES: Final = frozenset({PARTITION_METADATA, f"{PARTITION_METADATA}.parquet", f"{PARTITION_METADATA}.orc"})
_NEAR: Final = frozenset({"file", "memory"})
"""Schemes whose listings have no latency, so that threads would only cost."""
LISTING_THREADS: Final = 16


def walk_partitions(
    storage: Storage, list_files: Callable[[str], list[FileInfo]]
) -> Iterator[tuple[str, list[FileInfo]]]:
    """Every partition with its files, sorted by path, by one listing of each folder; not below a partition, nor
    `.hoodie`. Threads list the next folders of a remote storage ahead; at most LISTING_THREADS results of each level
    are held. Raises FormatError where `.hoodie` is a partition itself, as Hudi's writers make it of that value: its
    rows would be lost silently.
    """

    def visit(folder: str) -> tuple[list[FileInfo] | None, list[str]]:
        files = list_files(folder)
        if any(info.name in _METADATA_FILES for info in files):
            return files, []
        # One request for the whole walk: that folder has the thousands of files of a timeline of layout 1.
        if not folder and storage.exists(_OWN_METADATA):
            raise own_folder(_METADATA_FOLDER, source=_OWN_METADATA)
        return None, [child for child in storage.list_folders(folder) if child != _METADATA_FOLDER]

    with ExitStack() as stack:
        near = scheme_of(storage.uri) in _NEAR
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
        """All partition paths, sorted; `[""]` for a table without partitions, `[]` for one without files."""
        ...

    def files(self, partition: str) -> list[FileInfo]:
        """The files of a partition, sorted by path, foreign ones among them; empty for an unknown partition."""
        ...


class StorageListing:
    """Lists the storage itself, each folder at most once. A folder is a partition when it holds
    `.hoodie_partition_metadata` (with `hoodie.partition.metafile.use.base.format` with the base format's extension), as
    in FileSystemBackedTableMetadata.
    """

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._files: dict[str, list[FileInfo]] = {}

    def partitions(self) -> list[str]:
        return sorted(folder for folder, _ in walk_partitions(self._storage, self.files))

    def files(self, partition: str) -> list[FileInfo]:
        """Raises FormatError for a partition path that leaves the table."""
        if partition not in self._files:
            check_partition(partition, source=join(partition, PARTITION_METADATA))
            self._files[partition] = self._storage.list_files(partition)
        return self._files[partition]
