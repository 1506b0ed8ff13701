"""A local table whose requests are counted as a store would bill them."""

from __future__ import annotations

from pathlib import Path

from hudi_core.storage.base import ByteRange, FileInfo
from hudi_core.storage.local import LocalStorage


class CountingStorage(LocalStorage):
    """`requests` are the listings and reads so far, as `list .hoodie` and `read .hoodie/hoodie.properties`; `ranges`
    are the reads of parts of files, path and first byte.
    """

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.requests: list[str] = []
        self.ranges: list[tuple[str, int]] = []

    def list_files(self, folder: str) -> list[FileInfo]:
        self.requests.append(f"list {folder}")
        return super().list_files(folder)

    def list_names(self, folder: str) -> list[str]:
        self.requests.append(f"list {folder}")
        return super().list_names(folder)

    def read(self, path: str) -> bytes:
        self.requests.append(f"read {path}")
        return super().read(path)

    def read_range(self, path: str, span: ByteRange) -> bytes:
        self.ranges.append((path, span.start))
        return super().read_range(path, span)
