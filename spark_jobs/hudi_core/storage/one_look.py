"""One look at a table for one step of a run: what the step needs of timelines and properties is requested once.

A step lies between two moments at which the protocol needs the table as it is now: after a claim, under the table lock,
before a completed file is put, after the work of an engine (docs/decisions/0027). Within `one_look`, a thread lists
each folder of the table's metadata once, and reads each of its small files once. Its own changes count. Claims,
heartbeats, locks and markers are always looked up.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import field
from typing import Any, Final, ParamSpec, TypeVar, cast

from hudi_core.errors import StorageNotFoundError
from hudi_core.frozen import dataclass
from hudi_core.storage.base import FileInfo, Storage
from hudi_core.storage.recorded_changes import RecordingStorage

P = ParamSpec("P")
T = TypeVar("T")

_METADATA: Final = ".hoodie"
_ALWAYS_FRESH: Final = (".hoodie/.airflow_hudi", ".hoodie/.heartbeat", ".hoodie/.locks", ".hoodie/.temp")
"""Folders by which processes see each other. Their content is never remembered."""
_MOST_REMEMBERED: Final = 16_384
"""The most folders and files that one look remembers. Further ones are requested each time they are needed."""
_FINAL: Final = re.compile(r"/\d+_\d+\.[a-z]+$")
"""Completed files of a timeline with their completion time, which nobody writes again. A plan is not among them: it may
be dropped, and its instant requested again with other work.
"""
_PLAN: Final = re.compile(r"/\d+\.[a-z]+\.requested$")
_MOST_FINAL: Final = 256
_MOST_BYTES: Final = 128 << 10
"""The most bytes of one remembered file. Files that are not written again then take 32 MiB at most."""
_UNKNOWN: Final = object()
_FILES, _NAMES, _FOLDERS, _CONTENT = "files", "names", "folders", "content"


@dataclass(slots=True, eq=False)
class _Look:
    """What one thread has seen since its look began: answers by the request's kind and path."""

    seen: dict[tuple[str, str], Any] = field(default_factory=dict)
    changes: int = 0
    """How often something was forgotten or changed. The answer to a request that was under way then is not kept."""

    def forget(self) -> None:
        self.changes += 1
        self.seen.clear()

    def change(self, path: str, *, is_there: bool | None) -> None:
        """Takes a change of a file into account. `is_there` is None when the outcome of the change is not known."""
        self.changes += 1
        folder, _, name = path.rpartition("/")
        self.seen.pop((_CONTENT, path), None)
        self.seen.pop((_FILES, folder), None)
        if is_there is None:
            self.seen.pop((_NAMES, folder), None)
        elif (_NAMES, folder) in self.seen:
            names = self.seen[_NAMES, folder]
            (names.add if is_there else names.discard)(name)
        while folder:
            folder = folder.rpartition("/")[0]
            self.seen.pop((_FOLDERS, folder), None)

    def once(self, kind: str, path: str, load: Callable[[], T], keep: Callable[[T], bool] = lambda _: True) -> T:
        """Returns the answer that was seen, else that of `load`, which is remembered when `keep` is true of it."""
        answer = self.seen.get((kind, path), _UNKNOWN)
        if answer is _UNKNOWN:
            changes, answer = self.changes, load()
            if keep(answer) and self.changes == changes and len(self.seen) < _MOST_REMEMBERED:
                self.seen[kind, path] = answer
        return cast("T", answer)


class OneLookStorage(RecordingStorage):
    """A storage of one table that remembers answers during a look. Threads may share it; each has its own looks."""

    def __init__(self, inner: Storage) -> None:
        super().__init__(inner)
        self._thread = threading.local()
        self._looks: list[_Look] = []
        """The looks of all threads: a change by one thread counts for the others."""
        self._looks_guard = threading.Lock()
        self._seen_changes = 0
        self._final: dict[str, tuple[FileInfo | None, Any]] = {}
        """The results from files that are not written again, by path, with the file as it was listed."""

    @contextmanager
    def one_look(self, *, goes_on: bool = False) -> Iterator[None]:
        """Begins a look of this thread; `goes_on` continues the present one. Then the outer look begins again."""
        outer, look = self._look(), _Look()
        if goes_on and outer is not None:
            yield
            return
        self._thread.look = look
        with self._looks_guard:
            self._looks.append(look)
        try:
            yield
        finally:
            with self._looks_guard:
                self._looks.remove(look)
            self._thread.look = outer
            self.look_again()

    @contextmanager
    def no_look(self) -> Iterator[None]:
        """Sends every request of this thread to the storage meanwhile."""
        outer, self._thread.look = self._look(), None
        try:
            yield
        finally:
            self._thread.look = outer
            self.look_again()

    def in_this_look(self, function: Callable[P, T]) -> Callable[P, T]:
        """Returns the function for another thread, which shares the look of this one meanwhile."""
        look = self._look()

        def sharing(*arguments: P.args, **named: P.kwargs) -> T:
            outer, self._thread.look = self._look(), look
            try:
                return function(*arguments, **named)
            finally:
                self._thread.look = outer

        return sharing

    def look_again(self) -> None:
        """Forgets what this thread has seen, so that it sees the table as it is now."""
        look = self._look()
        if look is not None:
            look.forget()

    def once(self, path: str, load: Callable[[], T], keep: Callable[[T], bool]) -> T:
        """Returns what `load` makes of the file `path`. The file is read once a look, if `keep` is true of the result.
        The completed file of an instant whose name has the completion time is never written again: it is remembered as
        long as the storage exists.
        """
        look = self._look_at(path)
        if look is None:
            return load()
        if (final := self._final.get(path)) is not None:
            return cast("T", final[1])
        value = look.once(_CONTENT, path, load, keep)
        if (_CONTENT, path) in look.seen and _FINAL.search(path):
            self._keep(path, None, value)
        return value

    def content_of(self, info: FileInfo, load: Callable[[], bytes]) -> bytes:
        """Returns what `load` reads of a metadata table's data file, once while its listed size and time stay."""
        if self._look_at(info.path) is None:
            return load()
        listed, content = self._final.get(info.path, (None, b""))
        if listed != info:
            changes, content = self._seen_changes, load()
            if is_small(len(content)) and self._seen_changes == changes:
                self._keep(info.path, info, content)
        return cast("bytes", content)

    def _keep(self, path: str, listed: FileInfo | None, value: Any) -> None:
        if path in self._final or len(self._final) < _MOST_FINAL:
            self._final[path] = listed, value

    def list_files(self, folder: str) -> list[FileInfo]:
        look = self._look_at(folder)
        if look is None:
            return super().list_files(folder)
        files = look.once(_FILES, folder, lambda: super(OneLookStorage, self).list_files(folder))
        if (_FILES, folder) in look.seen:
            look.seen[_NAMES, folder] = {info.name for info in files}  # a look does not go back to older names
        return list(files)

    def list_names(self, folder: str) -> list[str]:
        look = self._look_at(folder)
        if look is None:
            return super().list_names(folder)
        return list(look.once(_NAMES, folder, lambda: set(super(OneLookStorage, self).list_names(folder))))

    def list_folders(self, folder: str) -> list[str]:
        look = self._look_at(folder)
        if look is None:
            return super().list_folders(folder)
        return list(look.once(_FOLDERS, folder, lambda: super(OneLookStorage, self).list_folders(folder)))

    def read(self, path: str) -> bytes:
        try:
            return super().read(path)
        except StorageNotFoundError:
            folder, _, name = path.rpartition("/")
            look = self._look()
            if look is not None and name in look.seen.get((_NAMES, folder), ()):
                look.forget()  # it was archived or rolled back since it was listed
            raise

    def create_exclusive(self, path: str, data: bytes) -> None:
        super().create_exclusive(path, data)
        look = self._look_at(path)
        if look is None or not data or not is_small(len(data)):
            return
        if _FINAL.search(path):
            self._keep(path, None, data)
        elif _PLAN.search(path):
            look.seen[_CONTENT, path] = data

    def delete_folder(self, folder: str) -> list[str]:
        try:
            return super().delete_folder(folder)
        finally:
            self._seen_changes += 1
            for path in list(self._final):  # a copy: other threads may add to it
                if path.startswith(f"{folder}/"):
                    self._final.pop(path, None)
            for look in self._all_looks():
                look.forget()

    def _look(self) -> _Look | None:
        return getattr(self._thread, "look", None)

    def _look_at(self, path: str) -> _Look | None:
        """Returns the look of this thread if it remembers what is at `path`, else None."""
        return self._look() if path.startswith(_METADATA) and not path.startswith(_ALWAYS_FRESH) else None

    def _all_looks(self) -> list[_Look]:
        with self._looks_guard:
            return list(self._looks)

    @contextmanager
    def _changing(self, path: str, *, is_there: bool = True) -> Iterator[None]:
        known: bool | None = None
        try:
            with super()._changing(path, is_there=is_there):
                yield
            known = is_there
        finally:
            self._seen_changes += 1
            self._final.pop(path, None)
            for look in self._all_looks():
                look.change(path, is_there=known)


def one_look(storage: Storage, *, goes_on: bool = False) -> AbstractContextManager[None]:
    """Begins a look (OneLookStorage.one_look). This function and those below remember nothing with another storage."""
    return storage.one_look(goes_on=goes_on) if isinstance(storage, OneLookStorage) else nullcontext()


def no_look(storage: Storage) -> AbstractContextManager[None]:
    return storage.no_look() if isinstance(storage, OneLookStorage) else nullcontext()


def look_again(storage: Storage) -> None:
    """Makes this thread see the table as it is now, when the protocol needs that."""
    if isinstance(storage, OneLookStorage):
        storage.look_again()


def is_looking(storage: Storage) -> bool:
    """Whether this thread remembers what it requests now."""
    return isinstance(storage, OneLookStorage) and storage._look() is not None


def in_this_look(storage: Storage, function: Callable[P, T]) -> Callable[P, T]:
    return storage.in_this_look(function) if isinstance(storage, OneLookStorage) else function


def once(storage: Storage, path: str, load: Callable[[], T], keep: Callable[[T], bool] = lambda _: True) -> T:
    return storage.once(path, load, keep) if isinstance(storage, OneLookStorage) else load()


def content_of(storage: Storage, info: FileInfo, load: Callable[[], bytes]) -> bytes:
    return storage.content_of(info, load) if isinstance(storage, OneLookStorage) else load()


def is_small(size: int) -> bool:
    """Whether the content of a file of so many bytes may be remembered."""
    return size <= _MOST_BYTES
