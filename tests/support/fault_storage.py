"""Faults on any storage: a process that is killed at one operation, or an operation that fails."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import BinaryIO, Literal, cast

from hudi_core.errors import StorageError
from hudi_core.storage.base import ByteRange, FileInfo, Storage
from hudi_core.storage.failures import GuardedInput, GuardedOutput

MUTATIONS = frozenset(
    {
        "write",
        "create_exclusive",
        "write_if",
        "delete",
        "remove",
        "delete_folder",
        "open_output",
        "output.write",
        "output.close",
        "output.discard",
    }
)
"""The operations that change the storage; between two of them a kill cannot leave different states."""


class InjectedCrash(BaseException):
    """The process was "killed" here. Not an Exception, so that no handler of errors survives it."""


@dataclass(frozen=True, slots=True)
class Operation:
    """One call on the storage or on a stream that it opened (`input.read`, `output.write`, `output.close`, …)."""

    kind: str
    path: str


class FaultPlan:
    """Decides which operation fails, and keeps the log of all of them.

    The fault is at counted operation number `kill_at` (from 0), or at the first for which `when` is true. Counted are
    the operations in `counts`, by default all. `timing` is whether the operation took place (`after`) or not
    (`before`). Without `error` the fault is a kill: it raises InjectedCrash, and so does every later operation of any
    thread, since a dead process does nothing more (no lock release, no clean-up on the way out). With `error` the one
    operation raises what `error` makes, and later ones succeed.
    """

    def __init__(
        self,
        *,
        kill_at: int | None = None,
        when: Callable[[Operation], bool] | None = None,
        timing: Literal["before", "after"] = "before",
        counts: frozenset[str] | None = None,
        error: Callable[[Operation], Exception] | None = None,
    ) -> None:
        self.operations: list[Operation] = []
        self.counted = 0
        self.fired: Operation | None = None
        self.crashed = False
        self._kill_at = kill_at
        self._when = when
        self._after = timing == "after"
        self._counts = counts
        self._error = error
        self._lock = threading.Lock()
        self._open: list[BinaryIO] = []

    def mutations(self) -> list[Operation]:
        """The operations so far that changed the storage or tried to."""
        return [operation for operation in self.operations if operation.kind in MUTATIONS]

    @contextmanager
    def step(self, kind: str, path: str) -> Iterator[None]:
        """Runs one operation under the plan."""
        operation = Operation(kind, path)
        with self._lock:
            if self.crashed:
                raise InjectedCrash(f"{kind} {path}: the process is dead since {self.fired}")
            hit = self._hits(operation)
            self.operations.append(operation)
        if hit and not self._after:
            self._fire(operation)
        try:
            yield
        finally:
            if hit and self._after:
                self._fire(operation)
        if self.crashed:
            raise InjectedCrash(f"{kind} {path}: the process died during it, at {self.fired}")

    def keep(self, stream: BinaryIO) -> None:
        """Keeps a stream from being finalised: its finaliser would publish what a killed process never published."""
        self._open.append(stream)

    def _hits(self, operation: Operation) -> bool:
        if self._counts is not None and operation.kind not in self._counts:
            return False
        number = self.counted
        self.counted += 1
        if self.fired is not None:
            return False
        if number == self._kill_at or (self._when is not None and self._when(operation)):
            self.fired = operation
            return True
        return False

    def _fire(self, operation: Operation) -> None:
        if self._error is not None:
            raise self._error(operation)
        self.crashed = True
        raise InjectedCrash(f"{operation.kind} {operation.path}")


class FaultStorage:
    """Any storage under a fault plan.

    Every call, and every read, write and close of a stream, is one operation of the plan.
    """

    def __init__(self, inner: Storage, plan: FaultPlan) -> None:
        self.inner = inner
        self.plan = plan
        self.uri = inner.uri
        self.limits = inner.limits
        self.supports_exclusive_create = inner.supports_exclusive_create
        self.supports_conditional_write = inner.supports_conditional_write

    def stat(self, path: str) -> FileInfo:
        with self.plan.step("stat", path):
            return self.inner.stat(path)

    def exists(self, path: str) -> bool:
        with self.plan.step("exists", path):
            return self.inner.exists(path)

    def list_files(self, folder: str) -> list[FileInfo]:
        with self.plan.step("list_files", folder):
            return self.inner.list_files(folder)

    def list_names(self, folder: str) -> list[str]:
        with self.plan.step("list_names", folder):
            return self.inner.list_names(folder)

    def list_tree(self, folder: str) -> list[FileInfo]:
        with self.plan.step("list_tree", folder):
            return self.inner.list_tree(folder)

    def list_folders(self, folder: str) -> list[str]:
        with self.plan.step("list_folders", folder):
            return self.inner.list_folders(folder)

    def read(self, path: str) -> bytes:
        with self.plan.step("read", path):
            return self.inner.read(path)

    def read_range(self, path: str, span: ByteRange) -> bytes:
        with self.plan.step("read_range", path):
            return self.inner.read_range(path, span)

    def write(self, path: str, data: bytes) -> None:
        with self.plan.step("write", path):
            self.inner.write(path, data)

    def create_exclusive(self, path: str, data: bytes) -> None:
        with self.plan.step("create_exclusive", path):
            self.inner.create_exclusive(path, data)

    def read_versioned(self, path: str) -> tuple[bytes, str]:
        with self.plan.step("read_versioned", path):
            return self.inner.read_versioned(path)

    def write_if(self, path: str, data: bytes, *, version: str | None) -> str:
        with self.plan.step("write_if", path):
            return self.inner.write_if(path, data, version=version)

    def delete(self, path: str) -> bool:
        with self.plan.step("delete", path):
            return self.inner.delete(path)

    def remove(self, path: str) -> None:
        with self.plan.step("remove", path):
            self.inner.remove(path)

    def delete_folder(self, folder: str) -> list[str]:
        """File by file, each an operation of its own: no storage removes a folder atomically."""
        if not folder:
            raise StorageError("refused to delete the root of the storage", path=self.uri)
        removed = self._files_below(folder)
        for path in removed:
            with self.plan.step("delete", path):
                self.inner.delete(path)
        with self.plan.step("delete_folder", folder):
            return [*removed, *self.inner.delete_folder(folder)]

    def open_input(self, path: str) -> BinaryIO:
        with self.plan.step("open_input", path):
            stream = self.inner.open_input(path)
        return cast(BinaryIO, GuardedInput(stream, lambda call: self.plan.step(f"input.{call}", path)))

    def open_output(self, path: str) -> BinaryIO:
        with self.plan.step("open_output", path):
            stream = self.inner.open_output(path)
            self.plan.keep(stream)

        def discard() -> None:
            # The inner stream's own exit from a failed `with` block; it is not passed the error.
            stream.__exit__(StorageError, StorageError("discarded", path=path), None)

        return cast(
            BinaryIO, GuardedOutput(stream, lambda call: self.plan.step(f"output.{call}", path), discard=discard)
        )

    def _files_below(self, folder: str) -> list[str]:
        found = [info.path for info in self.inner.list_files(folder)]
        for below in self.inner.list_folders(folder):
            found += self._files_below(below)
        return found
