"""A table on a local (or mounted) file system."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import re
import shutil
import stat as stat_bits
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from io import FileIO
from typing import BinaryIO, cast
from urllib.parse import unquote

from hudi_core.errors import ConfigError, FormatError, StorageConflictError, StorageError, StorageNotFoundError
from hudi_core.model.partition import check_relative_path, join
from hudi_core.model.size_limits import NO_OPTIONS, SizeLimits
from hudi_core.storage.base import ByteRange, FileInfo, Storage, by_path
from hudi_core.storage.failures import (
    GuardedInput,
    GuardedOutput,
    check_file_path,
    check_removable,
    to_storage_error,
    translated,
)

_TEMPORARY = re.compile(r"^\.airflow-hudi-[0-9a-f]{32}\.tmp$")
_NO_LINKS = frozenset({errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK})
_SPECIAL, _LOOP, _FOLDER = "a pipe, a socket or a device", "a symbolic link to itself", "a folder"
_NOT_OPENED = {errno.ENXIO: _SPECIAL, errno.ELOOP: _LOOP}
_MARKERS = ".hoodie/.temp/"
_WRITE_BUFFER = 1 << 20
_ATTEMPTS = 10


def is_file_uri(address: str) -> bool:
    return address[:5].lower() == "file:"


def followed(address: str) -> str:
    """Returns the address. For a local path that is a symbolic link, returns the path that the link leads to."""
    if address.startswith("/") or is_file_uri(address) or "://" not in address:
        path = local_path(address)
        return os.path.realpath(path) if os.path.islink(path) else address
    return address


def local_path(uri: str) -> str:
    """Returns the absolute path of a plain path or a `file:` URI, whose percent escapes are decoded. `#` and `?` are
    characters of the path, as in Hadoop's Path. Raises ConfigError for a URI of another host, for a path that no file
    system can have, and for a relative path when the working directory is gone.
    """
    if "\0" in unquote(uri):
        raise ConfigError(f"{uri!r} holds a zero byte", path=uri, remedy="correct the address of the table")
    path = uri
    if is_file_uri(uri):
        path = uri[5:]
        if path.startswith("//"):
            host, slash, path = path[2:].partition("/")
            if host not in ("", "localhost"):
                raise ConfigError(
                    f"{uri!r} names the host {host!r}", path=uri, remedy="write file:///path for a path of this machine"
                )
            path = slash + path
        path = unquote(path)
    try:
        return os.path.abspath(path)
    except FileNotFoundError as error:
        raise ConfigError(
            f"{uri!r} is below the working directory, which is gone", path=uri, remedy="give the whole path"
        ) from error


class LocalStorage(Storage):
    """A storage below a folder. Hadoop's local file system keeps a checksum of `name` in `.name.crc` and refuses a file
    that does not match it. So every change of a file removes its side file first, and listings hide side files, as
    Hadoop's do (ChecksumFileSystem).

    The content of a table is untrusted. Symbolic links below the root are refused: those that lead out of it, and those
    that give a file or a folder a second name. Pipes, sockets and devices are refused, and two names of one data file
    in a folder by hard links.
    """

    supports_exclusive_create = True
    supports_conditional_write = True

    def __init__(self, root: str | os.PathLike[str], limits: SizeLimits = NO_OPTIONS) -> None:
        self.uri = os.fspath(root)
        self.limits = limits
        self._root = local_path(self.uri)
        self._real_root = os.path.realpath(self._root)
        self._was_there = os.path.isdir(self._root)

    def stat(self, path: str) -> FileInfo:
        target = self._file(path)
        with translated(path, self.uri):
            status = os.lstat(target)
        if stat_bits.S_ISDIR(status.st_mode):
            raise StorageNotFoundError(f"not a file in {self.uri}", path=path)
        _check_mode(status.st_mode, path)
        return FileInfo(path, status.st_size, status.st_mtime)

    def list_files(self, folder: str) -> list[FileInfo]:
        files = []
        linked: dict[tuple[int, int], str] = {}
        for entry in self._entries(folder)[0]:
            if _is_hidden(entry.name):
                continue
            try:
                status = entry.stat()
            except FileNotFoundError:
                continue  # removed since the folder was read
            files.append(FileInfo(join(folder, entry.name), status.st_size, status.st_mtime))
            if status.st_nlink > 1 and not folder.startswith(".hoodie"):
                other = linked.setdefault((status.st_dev, status.st_ino), entry.name)
                if other != entry.name:
                    raise _two_names(join(folder, entry.name), other)
        return by_path(files)

    def list_names(self, folder: str) -> list[str]:
        files, _ = self._entries(folder)
        return [entry.name for entry in files if not (entry.name[0] == "." and _is_hidden(entry.name))]

    def list_folders(self, folder: str) -> list[str]:
        _, folders = self._entries(folder)
        return sorted(join(folder, entry.name) for entry in folders)

    def read(self, path: str) -> bytes:
        target = self._file(path)
        with translated(path, self.uri), _opened(target, path) as file:
            self.limits.check_file(path, os.fstat(file.fileno()).st_size)
            return file.read()

    def read_range(self, path: str, span: ByteRange) -> bytes:
        target = self._file(path)
        with translated(path, self.uri), _opened(target, path) as file:
            size = os.fstat(file.fileno()).st_size
            start = max(0, size + span.start) if span.start < 0 else span.start
            file.seek(start)
            return file.read(max(0, min(span.length, size - start)))

    def write(self, path: str, data: bytes) -> None:
        target = self._file(path)
        with translated(path, self.uri):
            try:
                _publish(target, data, os.replace, partial(self._make_folder, target, path))
            except IsADirectoryError as error:
                raise _no_file(_FOLDER, path) from error

    def create_exclusive(self, path: str, data: bytes) -> None:
        """Creates a hard link of a finished temporary file: the kernel lets one call win, and the name has the whole
        content. Raises FormatError for a folder of that name: no listing shows it, so no other process created it as
        the file.
        """
        target = self._file(path)
        if os.path.isdir(target):
            raise _no_file(_FOLDER, path)
        if os.path.lexists(target):
            raise to_storage_error(FileExistsError(path), path, self.uri)

        def link(temporary: str, target: str) -> None:
            try:
                os.link(temporary, target)
            except OSError as error:
                if error.errno not in _NO_LINKS:
                    raise
                message = f"the file system of {self.uri} has no hard links, so it cannot create a file exclusively"
                remedy = "keep the table on a file system with hard links or an object store with conditional writes"
                raise StorageError(message, path=path, remedy=remedy) from error

        with translated(path, self.uri):
            _publish(target, data, link, partial(self._make_folder, target, path))

    def read_versioned(self, path: str) -> tuple[bytes, str]:
        data = self.read(path)
        return data, _version(data)

    def write_if(self, path: str, data: bytes, *, version: str | None) -> str:
        """Compares and replaces under the kernel's lock (flock) on the folder, which ends with its process."""
        if version is None:
            self.create_exclusive(path, data)
            return _version(data)
        target = self._file(path)
        with translated(path, self.uri), _folder_lock(os.path.dirname(target), path):
            try:
                current = _version(self.read(path))
            except StorageNotFoundError:
                current = None
            if current != version:
                raise StorageConflictError(f"the file has another version in {self.uri}, or is gone", path=path)
            self.write(path, data)
        return _version(data)

    def delete(self, path: str) -> bool:
        target = self._file(path)
        with translated(path, self.uri):
            _remove(_side_file(target))
            return _remove(target)

    def delete_folder(self, folder: str) -> list[str]:
        check_removable(folder, self.uri)
        target = self._inside(folder)
        paths = (os.path.join(place, name) for place, _, names in os.walk(target) for name in names)
        removed = [os.path.relpath(path, self._root) for path in paths if not _is_hidden(os.path.basename(path))]
        with translated(folder, self.uri):
            for attempt in range(_ATTEMPTS):
                try:
                    shutil.rmtree(target)
                except OSError:
                    # Another process may remove or create files in it at the same time; what exists now is removed now.
                    if os.path.isdir(target) and attempt == _ATTEMPTS - 1:
                        raise
                if not os.path.isdir(target):
                    break
        return removed

    def open_input(self, path: str) -> BinaryIO:
        target = self._file(path)
        with translated(path, self.uri):
            file = _opened(target, path)
        return cast(BinaryIO, GuardedInput(file, lambda _: translated(path, self.uri)))

    def open_output(self, path: str) -> BinaryIO:
        target = self._file(path)
        with translated(path, self.uri):
            self._make_folder(target, path)
            _remove(_side_file(target))
            file = open(target, "xb", buffering=_WRITE_BUFFER)  # noqa: SIM115 (the caller closes it)

        def finish() -> None:
            file.flush()
            os.fsync(file.fileno())
            _sync_folder(target)

        def discard() -> None:
            file.close()
            _remove(target)

        guarded = GuardedOutput(file, lambda _: translated(path, self.uri), finish=finish, discard=discard)
        return cast(BinaryIO, guarded)

    def _file(self, path: str) -> str:
        return self._inside(check_file_path(path, self.uri))

    def _inside(self, path: str) -> str:
        """Returns the absolute path. Raises FormatError when a symbolic link is on the way."""
        if not path:
            return self._root
        target = os.path.join(self._root, path)
        if _has_link(self._root, path):
            real = os.path.realpath(target)
            if real != os.path.join(self._real_root, path):
                raise self._linked(path, real)
        return target

    def _make_folder(self, target: str, path: str) -> None:
        """Makes the folder of the file `target`, whose path below the root is `path`. A root that existed when the
        storage was opened is not made again: it went with its table. Raises StorageNotFoundError then, FormatError for
        a file on the way, FileNotFoundError when another process removes a folder on the way.
        """
        if self._was_there and not os.path.isdir(self._root):
            message = "the folder of the table is gone"
            remedy = "check the address of the table, and that its file system is mounted"
            raise StorageNotFoundError(message, path=self.uri, remedy=remedy)
        try:
            os.makedirs(os.path.dirname(target), exist_ok=True)
        except (FileExistsError, NotADirectoryError) as error:
            parent = path
            while parent := os.path.dirname(parent):
                if os.path.isfile(os.path.join(self._root, parent)):
                    raise FormatError(
                        "a file is where a folder of the table belongs", path=parent, remedy="remove or rename the file"
                    ) from error
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), target) from error

    def _linked(self, path: str, real: str) -> FormatError:
        if real != self._real_root and not real.startswith(self._real_root.rstrip(os.sep) + os.sep):
            message = f"path {path!r} leads out of the table through a symbolic link"
            remedy = "remove the link, or open the table at the place it points to"
            return FormatError(message, path=self.uri, remedy=remedy)
        return FormatError(
            f"path {path!r} is a second name of {os.path.relpath(real, self._real_root)!r} by a symbolic link: its "
            "rows would be there twice",
            path=self.uri,
            remedy="remove the link",
        )

    def _entries(self, folder: str) -> tuple[list[os.DirEntry[str]], list[os.DirEntry[str]]]:
        """Returns the files and the folders in `folder`."""
        check_relative_path(folder, source=self.uri)
        target = self._inside(folder)
        with translated(folder, self.uri):
            try:
                with os.scandir(target) as entries:
                    listed = [entry for entry in entries if entry.name.isascii() or _is_used(folder, entry.name)]
            except (FileNotFoundError, NotADirectoryError):
                return [], []
        # Most folders with many thousand entries, such as a timeline, hold files alone: their type is looked at once.
        files = [entry for entry in listed if entry.is_file(follow_symlinks=False)]
        folders = []
        for entry in listed if len(files) < len(listed) else ():
            if entry.is_dir(follow_symlinks=False):
                folders.append(entry)
            elif not entry.is_file(follow_symlinks=False):
                self._check_special(join(folder, entry.name), entry.path)
        return files, folders

    def _check_special(self, path: str, target: str) -> None:
        """Refuses what is neither a file nor a folder: if it replaced a file, a query would lose its rows."""
        try:
            mode = os.lstat(target).st_mode
        except FileNotFoundError:
            return  # removed since the folder was read
        if stat_bits.S_ISLNK(mode):
            self._inside(path)
        _check_mode(mode, path)


def _has_link(root: str, path: str) -> bool:
    """Whether a part of the path below `root` is a symbolic link. realpath would look at the folders above, too."""
    target = root
    for part in path.split("/"):
        target = f"{target}/{part}"
        try:
            if stat_bits.S_ISLNK(os.lstat(target).st_mode):
                return True
        except OSError:
            return False  # nothing is there, or below
    return False


def _is_hidden(name: str) -> bool:
    return name.startswith(".") and (name.endswith(".crc") or _TEMPORARY.match(name) is not None)


def _is_used(folder: str, name: str) -> bool:
    """Whether a listing of `folder` has `name`. It has every name in UTF-8, as all names of a table are. Hadoop leaves
    out other names, since Java cannot open them. Here, hidden ones are left out, and those below `.hoodie`, where no
    rule takes such a name. Raises FormatError for another name of a partition, a data file or a marker: its rows would
    be lost.
    """
    try:
        name.encode()
        return True
    except UnicodeEncodeError:
        if _is_hidden(name) or (f"{folder}/".startswith(".hoodie/") and not f"{folder}/".startswith(_MARKERS)):
            return False
    shown = os.fsencode(name).decode("utf-8", "backslashreplace")
    message = f"the name '{shown}' is not UTF-8"
    remedy = "rename it in UTF-8 as the table's commits have it, or remove it if the table does not need it"
    raise FormatError(message, path=join(folder, shown), remedy=remedy)


def _side_file(target: str) -> str:
    folder, name = os.path.split(target)
    return os.path.join(folder, f".{name}.crc")


def _opened(target: str, path: str) -> FileIO:
    """Opens the file without a buffer. Opening a pipe could wait for its writer, and a device may have no end."""
    try:
        handle = os.open(target, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if error.errno in _NOT_OPENED:
            raise _no_file(_NOT_OPENED[error.errno], path) from error
        raise
    try:
        mode = os.fstat(handle).st_mode
        if stat_bits.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), target)
        _check_mode(mode, path)
    except BaseException:
        os.close(handle)
        raise
    return FileIO(handle, "rb")


def _check_mode(mode: int, path: str) -> None:
    """Raises FormatError for what is neither a file nor a folder. Links to other places are refused before."""
    if stat_bits.S_ISLNK(mode):
        raise _no_file(_LOOP, path)
    if not (stat_bits.S_ISREG(mode) or stat_bits.S_ISDIR(mode)):
        raise _no_file(_SPECIAL, path)


def _two_names(path: str, other: str) -> FormatError:
    """Returns the error for a second name of a data file. Control files may have one: tools link equal content."""
    message = f"path {path!r} is a second name of {other!r} by a hard link: its rows would be there twice"
    remedy = "find out which name a commit has (`hudictl show TABLE INSTANT`), and remove the other one"
    return FormatError(message, path=path, remedy=remedy)


def _no_file(what: str, path: str) -> FormatError:
    message = f"{what} is no file of a table"
    return FormatError(message, path=path, remedy="remove it, and restore the file from a copy if there was one")


def _remove(target: str) -> bool:
    with suppress(FileNotFoundError, NotADirectoryError, IsADirectoryError):
        os.unlink(target)
        return True
    return False


def _publish(target: str, data: bytes, give_name: Callable[[str, str], None], make_folder: Callable[[], None]) -> None:
    """Writes a temporary file, and gives it the name when `data` is on the disk. Retries when the folder vanished."""
    folder = os.path.dirname(target)
    for attempt in range(_ATTEMPTS):
        temporary = os.path.join(folder, f".airflow-hudi-{uuid.uuid4().hex}.tmp")
        try:
            make_folder()
            with open(temporary, "xb") as file:
                file.write(data)
                file.flush()
                if data:
                    os.fsync(file.fileno())
            _remove(_side_file(target))
            give_name(temporary, target)
            _sync_folder(target)
            return
        except FileNotFoundError:
            if attempt == _ATTEMPTS - 1:
                raise
        finally:
            _remove(temporary)


def _version(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@contextmanager
def _folder_lock(folder: str, path: str) -> Iterator[None]:
    """Lets one thread of one process into `folder` at a time. Raises StorageConflictError when the folder is absent."""
    try:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise StorageConflictError("the file is gone", path=path) from error
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
        except OSError as error:
            message = f"the file system cannot lock a folder ({error}), so it cannot write conditionally"
            remedy = "use the file-system lock or ZooKeeper for this table"
            raise StorageError(message, path=path, remedy=remedy) from error
        yield
    finally:
        os.close(handle)


def _sync_folder(target: str) -> None:
    """Makes the name of `target` survive a power failure."""
    handle = os.open(os.path.dirname(target), os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
