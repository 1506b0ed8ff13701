"""Waits for the rows of an overwrite."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from airflow.triggers.base import TriggerEvent

from airflow_hudi.hooks import HudiHook
from airflow_hudi.triggers.wait import AwaitedSource, HudiConditionTrigger
from hudi_core.errors import StorageError, StorageNotFoundError
from hudi_core.storage.base import FileInfo
from hudi_core.storage.local import LocalStorage


def trigger_on(source: str, marker: str = "", conn_id: str | None = None, **arguments: Any) -> HudiConditionTrigger:
    condition = AwaitedSource(source, marker, conn_id).to_json()
    return HudiConditionTrigger(
        table=source, condition=condition, hudi_conn_id=conn_id, poll_interval=0.01, **arguments
    )


async def first_event(source: Path, marker: str = "", **arguments: Any) -> TriggerEvent:
    trigger = trigger_on(str(source), marker, **arguments)
    return await asyncio.wait_for(anext(trigger.run()), timeout=20)


def test_what_counts_as_a_source_that_is_there(tmp_path: Path) -> None:
    def there(address: Path, marker: str = "") -> bool:
        return AwaitedSource(f"{address}/" if marker else str(address), marker, None).is_there()

    folder, link = tmp_path / "rows", tmp_path / "link"
    link.symlink_to(folder / "a.parquet")
    assert not there(folder)
    (folder / "_temporary").mkdir(parents=True)
    (folder / "_temporary" / "a.parquet").touch()
    (folder / "_SUCCESS").touch()
    (folder / ".a.crc").touch()
    (folder / "_a.parquet").touch()
    (folder / "a.parquet._COPYING_").touch()
    assert not there(folder), "files that an overwrite does not read"
    assert not there(folder / "a.parquet")
    assert not there(link)
    (folder / "a.parquet").touch()
    assert there(folder)
    assert there(folder / "a.parquet")
    assert there(link)
    assert there(folder, "_SUCCESS")
    assert not there(folder, "_DONE")


def test_a_bucket_is_no_file(monkeypatch: pytest.MonkeyPatch) -> None:
    names: list[str] = []
    monkeypatch.setattr(HudiHook, "storage", lambda _, address: Named(address, names))
    assert not AwaitedSource("s3://lake", "", None).is_there()
    assert not AwaitedSource("s3://lake/rows", "", None).is_there()
    assert names == ["s3://lake", "s3://lake/rows", "s3://lake"]


class Named:
    """An empty storage that tells its address."""

    def __init__(self, address: str, names: list[str]) -> None:
        names.append(address)

    def list_files(self, folder: str) -> list[FileInfo]:
        return []

    def stat(self, path: str) -> FileInfo:
        raise StorageNotFoundError("no such file")


async def test_fires_once_the_source_is_there(tmp_path: Path) -> None:
    waiting = asyncio.create_task(first_event(tmp_path / "rows", marker="_SUCCESS"))
    (tmp_path / "rows").mkdir()
    (tmp_path / "rows" / "a.parquet").touch()
    await asyncio.sleep(0.1)
    assert not waiting.done()
    (tmp_path / "rows" / "_SUCCESS").touch()
    assert (await waiting).payload == {"status": "success", "table": str(tmp_path / "rows")}


@pytest.mark.parametrize("name", ["rows", "rows/a.parquet"])
def test_what_is_being_copied_has_not_arrived(tmp_path: Path, name: str) -> None:
    """A wait ends when two looks in a row show the same."""
    awaited = AwaitedSource(str(tmp_path / name), "", None)
    assert awaited.check() is None
    (tmp_path / "rows").mkdir()
    for rows in (b"one", b"one, two"):
        (tmp_path / "rows" / "a.parquet").write_bytes(rows)
        assert awaited.check() is None
    if name == "rows":
        (tmp_path / "rows" / "b.parquet._COPYING_").touch()
        assert awaited.check() is None
        (tmp_path / "rows" / "b.parquet._COPYING_").rename(tmp_path / "rows" / "b.parquet")
        assert awaited.check() is None
    assert awaited.check() == {}
    (tmp_path / "rows" / "_SUCCESS").touch()
    assert AwaitedSource(str(tmp_path / "rows"), "_SUCCESS", None).check() == {}


async def test_storage_that_fails_is_looked_at_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[str] = []

    def down(self: LocalStorage, folder: str) -> list[FileInfo]:
        looks.append(self.uri)
        raise StorageError("slow down")

    monkeypatch.setattr(LocalStorage, "list_files", down)
    event = await first_event(tmp_path / "rows", max_errors=3)
    assert event.payload == {
        "status": "error",
        "table": str(tmp_path / "rows"),
        "message": "slow down",
        "is_permanent": False,
    }
    assert looks == [str(tmp_path / "rows")] * 3


async def test_what_no_wait_can_mend_is_an_event_at_once(tmp_path: Path) -> None:
    trigger = trigger_on("s3://b/rows", conn_id="nowhere")
    event = await asyncio.wait_for(anext(trigger.run()), timeout=20)
    assert (event.payload["status"], event.payload["is_permanent"]) == ("error", True)
