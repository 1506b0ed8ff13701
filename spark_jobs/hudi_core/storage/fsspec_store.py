"""A table on any storage that fsspec reaches. s3_conditional.py has a table on S3 with its timeline."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import datetime
from typing import Any, BinaryIO, cast

from fsspec.spec import AbstractBufferedFile

from hudi_core.errors import StorageError, StorageNotFoundError
from hudi_core.model.partition import check_relative_path
from hudi_core.model.size_limits import NO_OPTIONS, SizeLimits, limit_of
from hudi_core.storage.base import ByteRange, FileInfo, LibraryStorage, by_path
from hudi_core.storage.failures import LIBRARY_FAILURES, GuardedOutput, check_removable, service_code

FOLDER_PROTOCOLS = frozenset({"file", "local", "memory", "hdfs", "webhdfs", "sftp", "ftp", "smb", "dbfs"})
"""File systems whose folders need not be created and remain after their files."""

_DELETE_THREADS = 16


class FsspecStorage(LibraryStorage):
    """A storage over a file system of fsspec, made without listings cache."""

    failures = LIBRARY_FAILURES

    def __init__(self, fs: Any, root: str, uri: str, limits: SizeLimits = NO_OPTIONS) -> None:
        super().__init__(fs, root, uri, limits, has_folders=bool(protocols_of(fs) & FOLDER_PROTOCOLS))

    def stat(self, path: str) -> FileInfo:
        target = self._file(path)
        with self._calls(path):
            info = self._fs.info(target)
        if info["type"] != "file":
            raise StorageNotFoundError(f"not a file in {self.uri}", path=path)
        return file_info(path, info)

    def list_files(self, folder: str) -> list[FileInfo]:
        children = self._children(folder)
        return by_path(file_info(path, child) for path, child in children if child["type"] == "file")

    def list_folders(self, folder: str) -> list[str]:
        return sorted(path for path, info in self._children(folder) if info["type"] == "directory")

    def list_tree(self, folder: str) -> list[FileInfo]:
        if self._has_folders:
            return super().list_tree(folder)
        below = self._children(folder, deep=True)
        return by_path(file_info(path, info) for path, info in below if info["type"] == "file")

    def read(self, path: str) -> bytes:
        # One request reads a range that ends after the limit: the size need not be requested.
        try:
            data = self.read_range(path, ByteRange(0, self.limits.most(limit_of(path)) + 1))
        except StorageNotFoundError:
            raise
        except Exception:
            # Libraries of other object stores have errors of their own for a range of an empty object.
            if self.stat(path).size:
                raise
            data = b""
        if len(data) > self.limits.most(limit_of(path)):
            self.limits.check_file(path, max(len(data), self.stat(path).size))  # the error has its whole size
        return data

    def read_range(self, path: str, span: ByteRange) -> bytes:
        target = self._file(path)
        start, length = span.start, max(0, span.length)
        if start < 0 or length == 0:
            size = self.stat(path).size  # fsspec has no suffix whose length may exceed the file
            start = max(0, size + start) if start < 0 else start
            length = min(length, size - start)
            if length <= 0:
                return b""
        try:
            with self._calls(path):
                return bytes(self._fs.cat_file(target, start=start, end=start + length))
        except StorageError as error:
            if service_code(error) in ("InvalidRange", "416"):
                return b""  # S3 refuses a range that starts behind the end
            raise

    def write(self, path: str, data: bytes) -> None:
        target = self._file(path)
        with self._calls(path):
            self._make_parent(target)
            self._fs.pipe_file(target, bytes(data))

    def delete_folder(self, folder: str) -> list[str]:
        check_removable(folder, self.uri)
        target = self._target(folder)
        with self._calls(folder):
            if self._has_folders:
                self._fs.invalidate_cache(target)
                below: Mapping[str, Any] = self._fs.find(target, withdirs=True, detail=True)
            else:
                below = {f"{self._root}/{path}": info for path, info in self._children(folder, deep=True)}
            files = [name for name, info in below.items() if info["type"] == "file" and name.startswith(target + "/")]
            # One by one: fsspec's recursive rm reads `*`, `?` and `[` of a partition value as a pattern.
            with ThreadPoolExecutor(_DELETE_THREADS) as pool:
                list(pool.map(self._remove_if_there, files))
            if self._has_folders:
                folders = {name for name, info in below.items() if info["type"] == "directory"}
                for name in sorted(folders | {target}, reverse=True):
                    if self._fs.isdir(name):
                        self._fs.rmdir(name)
        return [self._relative(name) for name in files]

    def open_input(self, path: str) -> BinaryIO:
        size = self.stat(path).size  # s3fs opens a prefix as if it were an empty file
        with self._calls(path):
            file = self._fs.open(self._target(path), "rb", size=size, cache_type="none")
        return self._reader(file, path)

    def open_output(self, path: str) -> BinaryIO:
        target = self._file(path)
        with self._calls(path):
            self._make_parent(target)
            file = self._fs.open(target, "wb")

        def discard() -> None:
            file.discard()
            file.closed = True  # else its finaliser stumbles over the discarded buffer

        of_buffered = discard if isinstance(file, AbstractBufferedFile) else None
        return cast(BinaryIO, GuardedOutput(file, lambda _: self._calls(path), discard=of_buffered))

    def _remove(self, target: str) -> None:
        self._fs.rm_file(target)

    def _make_parent(self, target: str) -> None:
        if self._has_folders:
            self._fs.makedirs(target.rsplit("/", 1)[0], exist_ok=True)

    def _remove_if_there(self, target: str) -> None:
        with suppress(FileNotFoundError):  # another process removed it, which is the requested state
            self._fs.rm_file(target)

    def _children(self, folder: str, *, deep: bool = False) -> list[tuple[str, Mapping[str, Any]]]:
        """Returns what is in `folder`, and with `deep` the files below it, with their paths."""
        check_relative_path(folder, source=self.uri)
        target = self._target(folder)
        try:
            with self._calls(folder):
                self._fs.invalidate_cache(target)
                listed = self._fs.find(target, detail=True).values() if deep else self._fs.ls(target, detail=True)
        except StorageNotFoundError:
            return []
        prefix = target + "/"
        below = [(str(info["name"]) if deep else str(info["name"]).rstrip("/"), info) for info in listed]
        # An object store may list the folder's own marker object, or the file of that name, besides what is in the
        # folder.
        return [(self._relative(name), info) for name, info in below if name.startswith(prefix)]


def protocols_of(fs: Any) -> set[str]:
    return {fs.protocol} if isinstance(fs.protocol, str) else set(fs.protocol)


def file_info(path: str, info: Mapping[str, Any]) -> FileInfo:
    return FileInfo(path, int(info["size"]), _modified(info))


def _modified(info: Mapping[str, Any]) -> float:
    """Returns seconds since the epoch, from the fields that fsspec's file systems use; 0 when the storage has none."""
    for key in ("mtime", "LastModified", "last_modified", "updated", "modified", "created"):
        value = info.get(key)
        if isinstance(value, datetime):
            return value.timestamp()
        if isinstance(value, (int, float)):
            return float(value)
        if isinstance(value, str) and value:
            return datetime.fromisoformat(value.replace("Z", "+00:00")).timestamp()
    return 0.0
