from __future__ import annotations

import inspect

import pytest

from hudi_core.storage.arrow_store import ArrowStorage
from hudi_core.storage.base import FileInfo, Storage
from hudi_core.storage.fsspec_store import FsspecStorage
from hudi_core.storage.local import LocalStorage
from tests.support.fault_storage import FaultStorage
from tests.support.memory_storage import MemoryStorage

VERBS = [name for name, value in vars(Storage).items() if not name.startswith("_") and callable(value)]


@pytest.mark.parametrize("storage", [LocalStorage, FsspecStorage, ArrowStorage, MemoryStorage, FaultStorage])
@pytest.mark.parametrize("verb", VERBS)
def test_every_storage_has_every_verb(storage: type, verb: str) -> None:
    def parameters(of: type) -> list[str]:
        return list(inspect.signature(getattr(of, verb)).parameters)

    assert parameters(storage) == parameters(Storage)


def test_the_name_of_a_file() -> None:
    assert [FileInfo(path, 0, 0.0).name for path in ("a/b/c", "c")] == ["c", "c"]
