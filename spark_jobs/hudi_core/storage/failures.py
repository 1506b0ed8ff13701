"""Turns the failures of operating systems and storage clients into the errors of the storage port. Every call on file
objects of the data path passes a guard, which does so or injects faults. A storage's root is never deleted.
"""

from __future__ import annotations

import errno
import io
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from types import TracebackType
from typing import Any, BinaryIO, cast

from hudi_core.errors import (
    CredentialsMissingError,
    FormatError,
    HudiError,
    StorageError,
    StorageExistsError,
    StorageNotFoundError,
)
from hudi_core.model.partition import check_relative_path

_ABSENT = (FileNotFoundError, NotADirectoryError, IsADirectoryError)
"""A path below a file, or the path of a folder, holds no file: the object is absent."""

_NOT_WRITTEN = {
    errno.EROFS: ("the file system is mounted read-only", "mount it writable, or run this where it is"),
    errno.ENOSPC: ("no space is left on the device", "make room on it, and run again"),
    errno.EDQUOT: ("the disk quota is used up", "raise the quota or make room, and run again"),
    errno.EFBIG: ("a file is larger than the system lets this process write", "raise its limit (`ulimit -f`)"),
}
"""Faults of a disk, and not of the access to it, with their remedies."""

LIBRARY_FAILURES = (Exception,)
"""The exceptions of the library of a scheme: botocore alone has hundreds of classes that are no OSError."""

_NO_CREDENTIALS = frozenset(
    ("NoCredentialsError", "PartialCredentialsError", "DefaultCredentialsError", "CredentialUnavailableError")
)
"""Names of errors of botocore, google-auth and azure-identity: a process has no credentials."""

_BUSY_CODES = frozenset(("429", "500", "502", "503", "504", "InternalError", "RequestTimeout"))
_BUSY_TEXTS = ("SlowDown", "ServiceUnavailable", "SLOW_DOWN", "SERVICE_UNAVAILABLE", "HTTP status 503", "Throttling")
"""Signs in an error's code or text that S3, GCS or Azure takes no more requests for now."""


def check_file_path(path: str, uri: str) -> str:
    """Returns `path` when it is of a file below the root `uri`. Raises FormatError, or StorageError for the root."""
    check_relative_path(path, source=uri)
    if not path:
        raise StorageError("the root of the storage is not a file", path=uri)
    return path


def check_removable(folder: str, uri: str) -> None:
    """Raises FormatError for a path that leaves the root `uri`, StorageError for the root itself."""
    if not folder:
        raise StorageError("refused to delete the root of the storage", path=uri)
    check_relative_path(folder, source=uri)


def service_code(error: BaseException | None) -> str | None:
    """Returns the S3 error code of a failure or its cause (`PreconditionFailed`, …)."""
    responses = (getattr(failure, "response", None) for failure in _with_causes(error))
    response = next((response for response in responses if isinstance(response, dict)), {})
    return cast("str | None", response.get("Error", {}).get("Code"))


def _with_causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__


def _is_busy(error: BaseException, path: str, uri: str) -> bool:
    """Whether a service answered that it is busy or failed for now. The table's own names in the text do not count."""
    codes = (service_code(error), *(getattr(error, name, None) for name in ("code", "status", "status_code")))
    text = str(error).replace(uri, "").replace(path, "") if path else str(error).replace(uri, "")
    return any(str(code) in _BUSY_CODES for code in codes) or any(
        sign in text or sign == service_code(error) for sign in _BUSY_TEXTS
    )


def missing_bucket(path: str, uri: str) -> StorageError:
    """Returns the error for a missing bucket, which does not mean that a file is absent."""
    remedy = "check the address of the table and the endpoint"
    return StorageError(f"the bucket of {uri} does not exist", path=path, remedy=remedy)


def to_storage_error(error: Exception, path: str, uri: str) -> HudiError:
    """Returns the error of the port for a failure of the layer below. `path` is relative to `uri`."""
    if isinstance(error, HudiError):
        return error
    if service_code(error) == "NoSuchBucket":
        return missing_bucket(path, uri)
    if any(type(failure).__name__ in _NO_CREDENTIALS for failure in _with_causes(error)):
        return CredentialsMissingError(f"this process has no credentials for {uri}: {error}", path=path)
    if isinstance(error, _ABSENT):
        return StorageNotFoundError(f"no such file in {uri}", path=path)
    if isinstance(error, FileExistsError):
        return StorageExistsError(
            f"the file exists already in {uri}",
            path=path,
            remedy="another process made it at the same moment: run again; if that fails as well, look what is there",
        )
    if isinstance(error, PermissionError):
        return StorageError(
            f"access denied in {uri}: {error}", path=path, remedy="check the permissions or credentials of this process"
        )
    if _is_busy(error, path, uri):
        return StorageError(
            f"the storage of {uri} is overloaded or out of service for now: {error}",
            path=path,
            remedy="run again in some minutes, with fewer processes at once where that fails as well",
        )
    if isinstance(error, OSError) and error.errno == errno.ENAMETOOLONG:
        message = f"a name is longer than {uri} allows"
        return FormatError(message, path=path, remedy="find out what wrote this name, or correct the address")
    if isinstance(error, OSError) and error.errno in _NOT_WRITTEN:
        what, remedy = _NOT_WRITTEN[error.errno]
        return StorageError(f"{what} in {uri}: {error}", path=path, remedy=remedy)
    return StorageError(
        f"{type(error).__name__} in {uri}: {error}",
        path=path,
        remedy="check the address of the table, and that its storage can be reached with these credentials; run again",
    )


@contextmanager
def translated(path: str, uri: str, extra: tuple[type[Exception], ...] = ()) -> Iterator[None]:
    """Runs a call of the layer below. Raises its OSError (and the types in `extra`) as the error of the port."""
    client = sys.modules.get("botocore.exceptions")  # the client of S3 raises types that are no OSError
    kinds: tuple[type[Exception], ...] = (OSError, *extra, *(() if client is None else (client.BotoCoreError,)))
    try:
        yield
    except HudiError:
        raise
    except kinds as error:
        raise to_storage_error(error, path, uri) from error


Guard = Callable[[str], AbstractContextManager[Any]]
"""Makes the context in which one call (`read`, `write`, `close`) runs."""


class GuardedInput(io.RawIOBase):
    """A seekable reader over `inner`; closing it closes `inner`."""

    def __init__(self, inner: Any, guard: Guard) -> None:
        super().__init__()
        self._inner: BinaryIO = inner
        self._guard = guard

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        return self._inner.seek(offset, whence)

    def tell(self) -> int:
        return self._inner.tell()

    def read(self, size: int | None = -1, /) -> bytes:
        """Returns exactly `size` bytes unless the file ends; without a size, all that is left."""
        with self._guard("read"):
            if size is None or size < 0:
                return self._inner.read()
            data = self._inner.read(size)
            if len(data) == size or not data:
                return data
            parts = [data]
            missing = size - len(data)
            while missing and (data := self._inner.read(missing)):
                parts.append(data)
                missing -= len(data)
            return b"".join(parts)

    def readall(self) -> bytes:
        return self.read()

    def readinto(self, target: Any, /) -> int:
        view = memoryview(target).cast("B")
        data = self.read(len(view))
        view[: len(data)] = data
        return len(data)

    def close(self) -> None:
        if not self.closed:
            try:
                with self._guard("close"):
                    self._inner.close()
            finally:
                super().close()


class GuardedOutput(io.RawIOBase):
    """A writer over `inner`. `finish` runs before it is closed, in the same guarded call. A `with` block that ends in
    an error runs `discard` instead (where the storage can), so that a half-written object is not published.
    """

    def __init__(
        self,
        inner: Any,
        guard: Guard,
        *,
        finish: Callable[[], None] | None = None,
        discard: Callable[[], None] | None = None,
    ) -> None:
        super().__init__()
        self._inner = inner
        self._guard = guard
        self._finish = finish
        self._discard = discard
        self._position = 0

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def __del__(self) -> None:
        """Does nothing: the garbage collector must not publish an unclosed file, as IOBase's finaliser would."""

    def write(self, data: Any, /) -> int:
        """Writes all of `data` (any buffer)."""
        with self._guard("write"):
            self._inner.write(data)
        size = memoryview(data).nbytes
        self._position += size
        return size

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None:
        if kind is None or self._discard is None:
            self.close()
        elif not self.closed:
            try:
                with self._guard("discard"):
                    self._discard()
            finally:
                super().close()

    def close(self) -> None:
        if self.closed:
            return
        try:
            with self._guard("close"):
                try:
                    if self._finish is not None:
                        self._finish()
                finally:
                    self._inner.close()
        finally:
            super().close()
