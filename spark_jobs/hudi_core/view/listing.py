"""Which partitions a table has and which files lie in them: by listing the storage here, by the metadata table elsewhere."""

from __future__ import annotations

from typing import Final, Protocol

from hudi_core.errors import FormatError
from hudi_core.model.partition import PARTITION_METADATA, check_partition, join
from hudi_core.storage.base import FileInfo, Storage

_METADATA_FOLDER: Final = ".hoodie"
_METADATA_FILES: Final = frozenset({PARTITION_METADATA, f"{PARTITION_METADATA}.parquet", f"{PARTITION_METADATA}.orc"})
_MAX_DEPTH: Final = 32
"""Partition paths have as many levels as the table has partition fields; a deeper tree is a loop of links or no table."""


class FileListing(Protocol):
    """A listing of a table: equal for equal tables, whoever makes it."""

    def partitions(self) -> list[str]:
        """All partition paths, sorted; `[""]` for a table without partitions, `[]` for one without files."""
        ...

    def files(self, partition: str) -> list[FileInfo]:
        """The files of a partition, sorted by path. May name files that are no data files. Empty for an unknown partition."""
        ...


class StorageListing:
    """Lists the storage itself.

    A folder is a partition when it holds `.hoodie_partition_metadata` (with `hoodie.partition.metafile.use.base.format`, that name with
    the base format's extension), as in FileSystemBackedTableMetadata. Each folder is listed at most once: one value is one view.
    """

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._files: dict[str, list[FileInfo]] = {}

    def partitions(self) -> list[str]:
        """See FileListing. Does not look below a partition, nor into `.hoodie`."""
        found: list[str] = []
        pending = [("", 0)]
        while pending:
            folder, depth = pending.pop()
            if any(info.name in _METADATA_FILES for info in self.files(folder)):
                found.append(folder)
                continue
            for child in self._storage.list_folders(folder):
                if child == _METADATA_FOLDER:
                    continue
                if depth >= _MAX_DEPTH:
                    raise FormatError(f"folders nest deeper than {_MAX_DEPTH} levels", path=child, remedy="is this the table's base path?")
                pending.append((child, depth + 1))
        return sorted(found)

    def files(self, partition: str) -> list[FileInfo]:
        """See FileListing. Raises FormatError for a partition path that leaves the table."""
        if partition not in self._files:
            check_partition(partition, source=join(partition, PARTITION_METADATA))
            self._files[partition] = self._storage.list_files(partition)
        return self._files[partition]
