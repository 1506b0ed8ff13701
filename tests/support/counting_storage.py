"""A local table whose requests are counted as a store would bill them."""

from __future__ import annotations

from pathlib import Path

from hudi_core.storage.base import FileInfo
from hudi_core.storage.local import LocalStorage


class CountingStorage(LocalStorage):
    """`requests` are the listings and reads so far, as `list .hoodie` and `read .hoodie/hoodie.properties`."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.requests: list[str] = []

    def list_files(self, folder: str) -> list[FileInfo]:
        self.requests.append(f"list {folder}")
        return super().list_files(folder)

    def list_names(self, folder: str) -> list[str]:
        self.requests.append(f"list {folder}")
        return super().list_names(folder)

    def read(self, path: str) -> bytes:
        self.requests.append(f"read {path}")
        return super().read(path)
