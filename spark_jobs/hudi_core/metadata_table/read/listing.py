"""The metadata table as a file listing."""

from __future__ import annotations

from typing import Protocol

from hudi_core.model.partition import join
from hudi_core.storage.base import FileInfo


class FilesIndex(Protocol):
    """What the `files` partition says: reader.MetadataTable."""

    def list_partitions(self) -> list[str]:
        """All partition paths, sorted."""
        ...

    def list_files(self, partition: str) -> dict[str, int]:
        """Names and sizes in bytes of a partition's files."""
        ...


class MetadataTableListing:
    """view.listing.FileListing over the metadata table: no folder is listed.

    It holds the data files only, and no modification times: those are 0. Errors are those of reader.MetadataTable.
    """

    def __init__(self, files: FilesIndex) -> None:
        self._files = files

    def partitions(self) -> list[str]:
        """All partition paths, sorted; `[""]` for a table without partitions."""
        return self._files.list_partitions()

    def files(self, partition: str) -> list[FileInfo]:
        """The data files of a partition, sorted by path."""
        paths = {join(partition, name): size for name, size in self._files.list_files(partition).items()}
        return [FileInfo(path, size, 0.0) for path, size in sorted(paths.items())]
