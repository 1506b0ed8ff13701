"""The data path: which storage serves base and log files, and the storage over pyarrow.fs (S3, GCS, Azure, HDFS)."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any, BinaryIO, Final, cast

import pyarrow as pa
from pyarrow import fs as arrow_fs

from hudi_core.errors import ConfigError, StorageNotFoundError, UnsupportedError
from hudi_core.model.partition import check_relative_path
from hudi_core.model.size_limits import NO_OPTIONS, SizeLimits, without_limits
from hudi_core.storage.base import ByteRange, FileInfo, LibraryStorage, Storage, by_path
from hudi_core.storage.failures import GuardedOutput, check_removable, missing_bucket
from hudi_core.storage.registry import arrow_s3_options, open_storage, scheme_of

_AHEAD: Final = 1 << 20
"""The least bytes that a request for a part of an object asks for: column chunks of small files are read together."""
ARROW_SCHEMES = frozenset({"s3", "gs", "gcs", "abfs", "abfss", "hdfs"})


def open_data_storage(uri: str, options: Mapping[str, str] | None = None) -> Storage:
    """Opens the storage of base and log files: by Arrow when its wheel has the scheme, else by open_storage."""
    scheme = scheme_of(uri)
    return open_arrow_storage(uri, scheme, options or {}) if scheme in ARROW_SCHEMES else open_storage(uri, options)


def open_deleting_storage(uri: str, options: Mapping[str, str] | None = None) -> Storage:
    """Opens the storage for tasks that only delete: by open_storage when its library is installed, else by
    open_data_storage.

    Each time that Arrow deletes a file, it puts an empty object in the place of the file's folder
    (S3FileSystem::DeleteFile).
    """
    try:
        return open_storage(uri, options)
    except ConfigError:
        # No such library on this executor; options that are wrong are wrong for Arrow, too.
        return open_data_storage(uri, options)


def open_arrow_storage(uri: str, scheme: str, options: Mapping[str, str]) -> ArrowStorage:
    """Returns the storage of a URI. Raises ConfigError for options that Arrow does not take for this scheme."""
    limits, options = SizeLimits.of(options), without_limits(options)
    if scheme == "s3":
        root = uri.split("://", 1)[1].rstrip("/")
        return ArrowStorage(_s3_file_system(arrow_s3_options(options)), root, uri, limits)
    if options:
        raise ConfigError(
            f"storage options are not taken for {scheme}:// on the data path: {', '.join(sorted(options))}",
            path=uri,
            remedy=(
                "give them by the environment or in the query part of the address, as "
                "pyarrow.fs.FileSystem.from_uri reads it"
            ),
        )
    try:
        filesystem, root = arrow_fs.FileSystem.from_uri(uri)
    except (ValueError, OSError) as error:
        raise ConfigError(
            f"cannot open {uri}: {error}", path=uri, remedy="check the address and the storage options"
        ) from error
    return ArrowStorage(filesystem, root, uri, limits)


def _s3_file_system(arguments: Mapping[str, Any]) -> arrow_fs.S3FileSystem:
    """Returns the file system; it writes a small file by one request instead of three, where Arrow can."""
    try:
        return arrow_fs.S3FileSystem(**arguments, allow_delayed_open=True)
    except TypeError:  # an older Arrow
        return arrow_fs.S3FileSystem(**arguments)


class _ReadAhead:
    """Reads at least _AHEAD bytes of an object by each request, and keeps the last such part. A read up to the end of
    the object also gets what is before it: the footer of a file, however large, and a small file as a whole.
    """

    def __init__(self, file: pa.NativeFile) -> None:
        self._file, self._size, self._position = file, file.size(), 0
        self._start, self._part = 0, b""

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._position = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        return self._position

    def tell(self) -> int:
        return self._position

    def read(self, size: int = -1) -> bytes:
        start = self._position
        end = self._size if size < 0 else min(start + size, self._size)
        if start >= end:
            return b""
        if not self._start <= start <= end <= self._start + len(self._part):
            first = start if end < self._size else min(start, max(0, self._size - _AHEAD))
            length = max(end - first, min(_AHEAD, self._size - first))
            self._start, self._part = first, bytes(self._file.read_at(length, first))
        found = self._part[start - self._start : end - self._start]
        if len(self._part) > _AHEAD:
            self._part = b""
        self._position += len(found)
        return found

    def close(self) -> None:
        self._file.close()


class ArrowStorage(LibraryStorage):
    """A storage over an Arrow file system."""

    failures = (pa.ArrowException,)

    def __init__(self, filesystem: arrow_fs.FileSystem, root: str, uri: str, limits: SizeLimits = NO_OPTIONS) -> None:
        has_folders = isinstance(filesystem, (arrow_fs.LocalFileSystem, arrow_fs.HadoopFileSystem))
        super().__init__(filesystem, root, uri, limits, has_folders=has_folders)
        self._bucket_seen = False

    def stat(self, path: str) -> FileInfo:
        target = self._file(path)
        with self._calls(path):
            info = self._fs.get_file_info(target)
        if info.type != arrow_fs.FileType.File:
            self._check_bucket(path)
            raise StorageNotFoundError(f"no such file in {self.uri}", path=path)
        return self._info(info)

    def list_files(self, folder: str) -> list[FileInfo]:
        return by_path(self._info(child) for child in self._children(folder) if child.type == arrow_fs.FileType.File)

    def list_folders(self, folder: str) -> list[str]:
        return sorted(
            self._relative(info.path) for info in self._children(folder) if info.type == arrow_fs.FileType.Directory
        )

    def read(self, path: str) -> bytes:
        with self._open(path) as file, self._calls(path):
            self.limits.check_file(path, file.size())
            return bytes(file.read())

    def read_range(self, path: str, span: ByteRange) -> bytes:
        with self._open(path) as file, self._calls(path):
            size = file.size()
            start = max(0, size + span.start) if span.start < 0 else min(span.start, size)
            length = max(0, min(span.length, size - start))
            return bytes(file.read_at(length, start)) if length else b""

    def write(self, path: str, data: bytes) -> None:
        """Writes an object, which appears whole at close. Raises UnsupportedError on file systems."""
        target = self._file(path)
        if self._has_folders:
            message = "Arrow cannot replace a file of a file system as a whole"
            raise UnsupportedError(message, path=path, remedy="write through the control side")
        with self._calls(path), self._fs.open_output_stream(target) as file:
            file.write(data)

    def delete_folder(self, folder: str) -> list[str]:
        check_removable(folder, self.uri)
        target = self._target(folder)
        below = arrow_fs.FileSelector(target, allow_not_found=True, recursive=True)
        with self._calls(folder):
            files = [info.path for info in self._fs.get_file_info(below) if info.type == arrow_fs.FileType.File]
            if self._fs.get_file_info(target).type == arrow_fs.FileType.Directory:
                self._fs.delete_dir(target)
        return [self._relative(path) for path in files]

    def open_input(self, path: str) -> BinaryIO:
        file = self._open(path)
        return self._reader(file if self._has_folders else _ReadAhead(file), path)

    def open_output(self, path: str) -> BinaryIO:
        target = self._file(path)
        with self._calls(path):
            if self._has_folders:
                self._fs.create_dir(target.rsplit("/", 1)[0], recursive=True)
            file = self._fs.open_output_stream(target)
        return cast(BinaryIO, GuardedOutput(file, lambda _: self._calls(path)))

    def _remove(self, target: str) -> None:
        self._fs.delete_file(target)

    def _info(self, info: arrow_fs.FileInfo) -> FileInfo:
        modified = info.mtime_ns
        return FileInfo(self._relative(info.path), int(info.size or 0), 0.0 if modified is None else modified / 1e9)

    def _children(self, folder: str) -> list[arrow_fs.FileInfo]:
        check_relative_path(folder, source=self.uri)
        selector = arrow_fs.FileSelector(self._target(folder), allow_not_found=True, recursive=False)
        try:
            with self._calls(folder):
                children = list(self._fs.get_file_info(selector))
        except StorageNotFoundError:
            return []  # it is a file
        if not children:
            self._check_bucket(folder)
        return children

    def _open(self, path: str) -> pa.NativeFile:
        target = self._file(path)
        if self._has_folders:
            self.stat(path)  # opening a folder is an error of its own there
        try:
            with self._calls(path):
                return self._fs.open_input_file(target)
        except StorageNotFoundError:
            self._check_bucket(path)
            raise

    def _check_bucket(self, path: str) -> None:
        """Raises StorageError for a missing bucket. Arrow gives the same answer for it as for a missing object."""
        if self._bucket_seen or not isinstance(self._fs, arrow_fs.S3FileSystem):
            return
        try:
            absent = self._fs.get_file_info(self._root.split("/", 1)[0]).type == arrow_fs.FileType.NotFound
        except OSError:
            absent = False  # this process may not look at it, but it exists
        if absent:
            raise missing_bucket(path, self.uri)
        self._bucket_seen = True
