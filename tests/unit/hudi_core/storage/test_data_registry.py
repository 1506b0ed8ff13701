"""Which storage tasks get."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hudi_core.errors import ConfigError
from hudi_core.storage import data_registry
from hudi_core.storage.arrow_store import ArrowStorage
from hudi_core.storage.data_registry import open_data_storage, open_deleting_storage
from hudi_core.storage.fsspec_store import FsspecStorage
from hudi_core.storage.local import LocalStorage


def test_local_files_are_deleted_directly(tmp_path: Path) -> None:
    assert isinstance(open_deleting_storage(str(tmp_path)), LocalStorage)


def test_objects_are_deleted_by_fsspec_and_read_by_arrow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Arrow would put an empty object in place of the folder, with every file that it deletes."""
    opened: list[Any] = []
    monkeypatch.setattr(
        data_registry, "open_arrow_storage", lambda uri, scheme, options: opened.append(uri) or ArrowStorage
    )
    assert isinstance(open_deleting_storage("s3://lake/t", {}), FsspecStorage)
    assert opened == []
    open_data_storage("s3://lake/t", {})
    assert opened == ["s3://lake/t"]


def test_an_executor_without_fsspec_deletes_by_arrow(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(uri: str, scheme: str, options: object) -> None:
        raise ConfigError("no storage library")

    monkeypatch.setattr(data_registry, "open_fsspec", absent)
    monkeypatch.setattr(data_registry, "open_arrow_storage", lambda uri, scheme, options: ("arrow", uri))
    assert open_deleting_storage("s3://lake/t", {}) == ("arrow", "s3://lake/t")
