"""Whole files are read by one range, which some object stores refuse for an empty object."""

from __future__ import annotations

from typing import Any

import pytest
from fsspec.implementations.memory import MemoryFileSystem

from hudi_core.errors import SizeLimitError, StorageError, StorageNotFoundError
from hudi_core.model.size_limits import Limit, SizeLimits
from hudi_core.storage.fsspec_store import FsspecStorage


class RangeError(Exception):
    """No OSError, as of gcsfs."""


class Strict(MemoryFileSystem):
    cachable = False
    asked: list[tuple[Any, Any]] = []  # noqa: RUF012  (fsspec makes the instances)

    def cat_file(self, path: str, start: Any = None, end: Any = None, **more: Any) -> bytes:
        self.asked.append((start, end))
        if self.info(path)["size"] == 0 or "broken" in path:
            raise RangeError(path)
        data: bytes = super().cat_file(path, start=start, end=end, **more)
        return data


def test_it_is_one_request() -> None:
    fs = Strict()
    storage = FsspecStorage(fs, "/limits", "x", SizeLimits({Limit.CLAIM: 4}))
    for name, data in (("empty", b""), ("whole", b"1234"), ("large", b"12345"), ("broken", b"1")):
        fs.pipe_file(f"/limits/.hoodie/.heartbeat/{name}", data)
    Strict.asked.clear()
    assert storage.read(".hoodie/.heartbeat/whole") == b"1234"
    assert Strict.asked == [(0, 5)]
    assert storage.read(".hoodie/.heartbeat/empty") == b""
    with pytest.raises(SizeLimitError, match="5 bytes"):
        storage.read(".hoodie/.heartbeat/large")
    with pytest.raises(StorageError, match="RangeError"):
        storage.read(".hoodie/.heartbeat/broken")
    with pytest.raises(StorageNotFoundError):
        storage.read(".hoodie/.heartbeat/none")
