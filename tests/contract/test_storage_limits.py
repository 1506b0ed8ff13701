"""A file above the limit of its kind is refused before it is read, on every storage."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import fsspec
import pytest
from pyarrow import fs as arrow_fs

from hudi_core.errors import SizeLimitError
from hudi_core.model.size_limits import Limit, SizeLimits
from hudi_core.storage.arrow_store import ArrowStorage, open_data_storage
from hudi_core.storage.base import Storage
from hudi_core.storage.fsspec_store import FsspecStorage
from hudi_core.storage.local import LocalStorage
from hudi_core.storage.registry import open_storage
from tests.contract.s3_server import s3_server
from tests.support.memory_storage import MemoryStorage

LIMITS = SizeLimits({Limit.CLAIM: 4})
GIVEN = {"airflow_hudi.limit.claim.bytes": "4"}
PATH = ".hoodie/lock"


def storages(folder: Path) -> Iterator[Storage]:
    memory = MemoryStorage()
    memory.limits = LIMITS
    yield memory
    yield LocalStorage(folder / "local", LIMITS)
    yield open_storage(str(folder / "opened"), GIVEN)
    yield open_data_storage(str(folder / "data"), GIVEN)
    yield FsspecStorage(fsspec.filesystem("file"), str(folder / "fsspec"), "file", LIMITS)
    yield ArrowStorage(arrow_fs.LocalFileSystem(), str(folder / "arrow"), "arrow", LIMITS)


def check(storage: Storage) -> None:
    for path, size in ((PATH, 4), (".hoodie/.heartbeat/1", 0), ("other", 5)):
        with storage.open_output(path) as file:
            file.write(bytes(size))
        assert storage.read(path) == bytes(size)
    path = ".hoodie/.heartbeat/2"
    with storage.open_output(path) as file:
        file.write(bytes(500))
    for read in (storage.read, *([storage.read_versioned] if storage.supports_conditional_write else [])):
        with pytest.raises(SizeLimitError, match=r"500 bytes, more than the 4 .*limit\.claim\.bytes") as caught:
            read(path)
        assert caught.value.path == path


def test_local_storages(tmp_path: Path) -> None:
    for storage in storages(tmp_path):
        check(storage)


@pytest.mark.slow
def test_s3() -> None:
    with s3_server() as server:
        for open_it, name in ((open_storage, "control"), (open_data_storage, "data")):
            check(open_it(f"s3://bucket/{name}", {**server.options, **GIVEN}))
