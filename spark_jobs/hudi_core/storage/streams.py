"""File objects of the data path: every call on them passes a guard, which translates errors or injects faults."""

from __future__ import annotations

import io
from collections.abc import Callable
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any, BinaryIO

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
        """Exactly `size` bytes unless the file ends; all that is left without a size."""
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
        """Nothing: the garbage collector must not publish a file that was not closed, as IOBase's finaliser would."""

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
