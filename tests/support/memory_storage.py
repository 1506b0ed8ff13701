"""A table in memory: what tests of the timeline, the locks and the services run on."""

from __future__ import annotations

import hashlib
import io
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import BinaryIO

from hudi_core.errors import StorageConflictError, StorageError, StorageExistsError, StorageNotFoundError
from hudi_core.model.partition import check_relative_path
from hudi_core.model.size_limits import NO_OPTIONS
from hudi_core.storage.base import ByteRange, FileInfo
from hudi_core.storage.failures import check_file_path


class MemoryStorage:
    """Storage in a dictionary, safe for threads. `clock` gives the modification times in seconds since the epoch."""

    supports_exclusive_create = True
    supports_conditional_write = True

    def __init__(self, uri: str = "memory://table", clock: Callable[[], float] = time.time) -> None:
        self.uri = uri
        self.limits = NO_OPTIONS
        self._clock = clock
        self._objects: dict[str, tuple[bytes, float]] = {}
        self._lock = threading.Lock()

    def stat(self, path: str) -> FileInfo:
        data, modified = self._get(path)
        return FileInfo(path, len(data), modified)

    def exists(self, path: str) -> bool:
        check_file_path(path, self.uri)
        with self._lock:
            return path in self._objects

    def list_files(self, folder: str) -> list[FileInfo]:
        prefix = self._prefix(folder)
        with self._lock:
            found = [
                FileInfo(path, len(data), modified)
                for path, (data, modified) in self._objects.items()
                if path.startswith(prefix) and "/" not in path[len(prefix) :]
            ]
        return sorted(found, key=lambda info: info.path)

    def list_names(self, folder: str) -> list[str]:
        return [info.name for info in self.list_files(folder)]

    def list_tree(self, folder: str) -> list[FileInfo]:
        prefix = self._prefix(folder)
        with self._lock:
            found = [
                FileInfo(path, len(data), modified)
                for path, (data, modified) in self._objects.items()
                if path.startswith(prefix)
            ]
        return sorted(found, key=lambda info: info.path)

    def list_folders(self, folder: str) -> list[str]:
        prefix = self._prefix(folder)
        with self._lock:
            below = [path[len(prefix) :] for path in self._objects if path.startswith(prefix)]
        return sorted({prefix + rest.split("/", 1)[0] for rest in below if "/" in rest})

    def read(self, path: str) -> bytes:
        data = self._get(path)[0]
        self.limits.check_file(path, len(data))
        return data

    def read_range(self, path: str, span: ByteRange) -> bytes:
        data = self._get(path)[0]
        start = max(0, len(data) + span.start) if span.start < 0 else span.start
        return data[start : start + max(0, span.length)]

    def write(self, path: str, data: bytes) -> None:
        check_file_path(path, self.uri)
        with self._lock:
            self._objects[path] = (bytes(data), self._clock())

    def create_exclusive(self, path: str, data: bytes) -> None:
        check_file_path(path, self.uri)
        with self._lock:
            if path in self._objects:
                raise StorageExistsError(f"the file exists already in {self.uri}", path=path)
            self._objects[path] = (bytes(data), self._clock())

    def read_versioned(self, path: str) -> tuple[bytes, str]:
        data = self.read(path)
        return data, _version(data)

    def write_if(self, path: str, data: bytes, *, version: str | None) -> str:
        if version is None:
            self.create_exclusive(path, data)
            return _version(data)
        check_file_path(path, self.uri)
        with self._lock:
            found = self._objects.get(path)
            if found is None or _version(found[0]) != version:
                raise StorageConflictError(f"the file has another version in {self.uri}, or is gone", path=path)
            self._objects[path] = (bytes(data), self._clock())
        return _version(data)

    def delete(self, path: str) -> bool:
        check_file_path(path, self.uri)
        with self._lock:
            return self._objects.pop(path, None) is not None

    def remove(self, path: str) -> None:
        self.delete(path)

    def delete_folder(self, folder: str) -> list[str]:
        if not folder:
            raise StorageError("refused to delete the root of the storage", path=self.uri)
        prefix = self._prefix(folder)
        with self._lock:
            removed = [path for path in self._objects if path.startswith(prefix)]
            for path in removed:
                del self._objects[path]
        return removed

    def open_input(self, path: str) -> BinaryIO:
        return io.BytesIO(self._get(path)[0])

    def open_output(self, path: str) -> BinaryIO:
        if self.exists(path):
            raise StorageExistsError(f"the file exists already in {self.uri}", path=path)
        return _MemoryOutput(self, path)

    def _get(self, path: str) -> tuple[bytes, float]:
        check_file_path(path, self.uri)
        with self._lock:
            found = self._objects.get(path)
        if found is None:
            raise StorageNotFoundError(f"no such file in {self.uri}", path=path)
        return found

    def _prefix(self, folder: str) -> str:
        check_relative_path(folder, source=self.uri)
        return f"{folder}/" if folder else ""


def _version(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


class _MemoryOutput(io.BytesIO):
    """Puts the object when it is closed, as object stores do."""

    def __init__(self, storage: MemoryStorage, path: str) -> None:
        super().__init__()
        self._storage = storage
        self._path = path

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None:
        if kind is None:
            self.close()
        else:
            super().close()

    def __del__(self) -> None:
        """Nothing: the finaliser of BytesIO would close, and so publish, an unfinished object."""

    def close(self) -> None:
        if not self.closed:
            self._storage.write(self._path, self.getvalue())
        super().close()
