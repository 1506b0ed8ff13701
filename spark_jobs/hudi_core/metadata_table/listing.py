"""The metadata table as a file listing."""

from __future__ import annotations

from hudi_core.metadata_table.reader import MetadataTableReader
from hudi_core.model.partition import join
from hudi_core.storage.base import FileInfo


class MetadataTableListing:
    """view.listing.FileListing over the metadata table: no folder is listed.

    It holds the data files only, and no modification times: those are 0. Errors are those of MetadataTableReader.
    """

    def __init__(self, reader: MetadataTableReader) -> None:
        self._reader = reader

    def partitions(self) -> list[str]:
        """All partition paths, sorted; `[""]` for a table without partitions."""
        return self._reader.list_partitions()

    def files(self, partition: str) -> list[FileInfo]:
        """The data files of a partition, sorted by path."""
        paths = {join(partition, name): size for name, size in self._reader.list_files(partition).items()}
        return [FileInfo(path, size, 0.0) for path, size in sorted(paths.items())]
