"""The storage port: what the engine needs of a file system or an object store, and what each verb promises; and what
storages over a library have in common.

Every path is relative to the storage's root (the table's base path), `/`-separated, without a leading slash; `""` is
the root. An implementation refuses paths that leave the root (model.partition.check_relative_path). LATE_SECONDS says
how long a request may be tried again, and so arrive late.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from contextlib import AbstractContextManager
from typing import Any, BinaryIO, ClassVar, Final, Protocol, cast

from hudi_core.errors import StorageNotFoundError, UnsupportedError
from hudi_core.frozen import dataclass
from hudi_core.model.size_limits import SizeLimits
from hudi_core.storage.failures import GuardedInput, check_file_path, translated

LATE_SECONDS: Final = 900
"""For so many seconds after a process's last sign of life, one of its requests may still arrive, since storages try a
request again. s3fs does so for about nine minutes: five times five tries of 20 seconds, and the pauses between them.
s3_conditional.py tries a conditional write again that meets another one; timeline/actions/content.py reads a file again
that its writer has not finished.
"""


@dataclass(frozen=True, slots=True)
class FileInfo:
    """A file: path relative to the root, size in bytes, modification time in seconds by the storage's clock."""

    path: str
    size: int
    modified: float

    @property
    def name(self) -> str:
        return self.path.rsplit("/", 1)[-1]


@dataclass(frozen=True, slots=True)
class ByteRange:
    """`length` bytes from `start`; a negative start counts from the end (a suffix), as in HTTP ranges."""

    start: int
    length: int


class Storage(Protocol):
    """One table's storage.

    Guarantees on every implementation that may carry a timeline (`supports_exclusive_create`):
    - `create_exclusive` is atomic: of any number of racing calls for a path exactly one returns, the others raise
      StorageExistsError, and no reader ever sees a part of the content.
    - `write` is atomic to readers and replaces the whole object.
    - `write_if`, where `supports_conditional_write`, is atomic in the same way: of any number of racing calls that name
      one version, at most one returns. A path that is written conditionally is written in no other way.
    - listings are consistent: they show every object whose creation returned before the listing began, and no cache is
      used. Every name in them is Unicode text.

    Errors: StorageNotFoundError only when the object is absent, FormatError for names and paths that no table has, and
    StorageError for every other failure.
    """

    uri: str
    """The root as the user gave it, for messages."""
    limits: SizeLimits
    """The largest file that `read` and `read_versioned` read. Readers of a format ask it about parts of files."""
    supports_exclusive_create: bool
    supports_conditional_write: bool

    def stat(self, path: str) -> FileInfo:
        """Returns the file at `path`. Raises StorageNotFoundError."""
        ...

    def exists(self, path: str) -> bool:
        try:
            self.stat(path)
        except StorageNotFoundError:
            return False
        return True

    def list_files(self, folder: str) -> list[FileInfo]:
        """Returns the files directly in `folder`, sorted by path; empty when the folder is missing."""
        ...

    def list_names(self, folder: str) -> list[str]:
        """Returns names of the files directly in `folder`, unordered. It is cheaper than list_files on a local disk."""
        return [info.name for info in self.list_files(folder)]

    def list_folders(self, folder: str) -> list[str]:
        """Returns the paths of the folders directly in `folder`, sorted; empty when the folder is missing."""
        ...

    def list_tree(self, folder: str) -> list[FileInfo]:
        """Returns the files in and below `folder`, sorted by path: one request for a few hundred on an object store."""
        files, folders = self.list_files(folder), [folder]
        while folders:
            for below in self.list_folders(folders.pop()):
                files += self.list_files(below)
                folders.append(below)
        return by_path(files)

    def read(self, path: str) -> bytes:
        """Returns the whole content. Raises StorageNotFoundError, and SizeLimitError before it reads too much."""
        ...

    def read_range(self, path: str, span: ByteRange) -> bytes:
        """Returns at most `span.length` bytes, fewer only at the end of the file. Raises StorageNotFoundError."""
        ...

    def write(self, path: str, data: bytes) -> None:
        """Replaces or creates the object as a whole, and removes a stale `.crc` side file on local file systems."""
        ...

    def create_exclusive(self, path: str, data: bytes) -> None:
        """Creates the object. Raises StorageExistsError, without touching the object, when it exists."""
        ...

    def read_versioned(self, path: str) -> tuple[bytes, str]:
        """Returns the whole content and its version (an ETag), for `write_if`. Raises StorageNotFoundError. A version
        identifies content, so two objects of the same bytes may have the same version: a caller that relies on it
        writes bytes that were never written before.
        """
        ...

    def write_if(self, path: str, data: bytes, *, version: str | None) -> str:
        """Writes the object only if it still has `version`, or, with None, only if it is absent. Returns the new
        version. Raises StorageExistsError (None) or StorageConflictError (a version) when the condition does not hold:
        nothing was written. After any other StorageError the outcome is unknown, and the write may still happen: read
        again.
        """
        ...

    def delete(self, path: str) -> bool:
        """Removes the object (and a local `.crc` side file). Returns False when it was absent."""
        ...

    def remove(self, path: str) -> None:
        """Removes the object, which the caller wrote or has listed: where it is gone, nothing happens. On an object
        store it is one request, while `delete` asks first.
        """
        self.delete(path)

    def delete_folder(self, folder: str) -> list[str]:
        """Removes everything below `folder`, and returns the paths of the files that were there."""
        ...

    def open_input(self, path: str) -> BinaryIO:
        """Returns a seekable reader for the data path; the caller closes it. Raises StorageNotFoundError."""
        ...

    def open_output(self, path: str) -> BinaryIO:
        """Returns a writer of a new file, which is complete after close(). The caller never reuses a name."""
        ...


class LibraryStorage(Storage):
    """A storage over the file system `fs` of a library, below `root`. With `has_folders`, a file needs its folder."""

    failures: ClassVar[tuple[type[Exception], ...]]
    """The exceptions that the library raises beside OSError."""
    supports_exclusive_create = False
    supports_conditional_write = False

    def __init__(self, fs: Any, root: str, uri: str, limits: SizeLimits, *, has_folders: bool) -> None:
        self.uri = uri
        self.limits = limits
        self._fs = fs
        self._root = root.rstrip("/")
        self._has_folders = has_folders

    def create_exclusive(self, path: str, data: bytes) -> None:
        raise self._refused(path, "create a file exclusively, so it cannot carry a timeline")

    def read_versioned(self, path: str) -> tuple[bytes, str]:
        raise self._refused(path, "write conditionally")

    def write_if(self, path: str, data: bytes, *, version: str | None) -> str:
        raise self._refused(path, "write conditionally")

    def _refused(self, path: str, what: str) -> UnsupportedError:
        remedy = "keep the table on S3 or on a local file system, or use another lock provider"
        return UnsupportedError(f"{self.uri} cannot {what}", path=check_file_path(path, self.uri), remedy=remedy)

    def delete(self, path: str) -> bool:
        target = self._file(path)
        if not self.exists(path):
            return False
        try:
            with self._calls(path):
                self._remove(target)
        except StorageNotFoundError:
            return False
        return True

    @abstractmethod
    def _remove(self, target: str) -> None:
        """Removes a file with the library."""

    def _calls(self, path: str) -> AbstractContextManager[None]:
        """Returns the context of calls of the library, whose errors become those of the port."""
        return translated(path, self.uri, self.failures)

    def _reader(self, file: Any, path: str) -> BinaryIO:
        return cast(BinaryIO, GuardedInput(file, lambda _: self._calls(path)))

    def _target(self, path: str) -> str:
        return f"{self._root}/{path}" if path else self._root

    def _file(self, path: str) -> str:
        return self._target(check_file_path(path, self.uri))

    def _relative(self, target: str) -> str:
        return target[len(self._root) + 1 :]


def by_path(files: Iterable[FileInfo]) -> list[FileInfo]:
    return sorted(files, key=lambda info: info.path)
