"""The deltacommit of a build beats, so that writers that are LAZY in the metadata table do not roll it back (Hudi 1.2,
HoodieMetadataWriteUtils).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from hudi_core.metadata_table.initialize import indexing
from hudi_core.metadata_table.initialize.indexing import BuildHeartbeat, IndexBuild, heartbeat_path
from hudi_core.metadata_table.read.file_group import ROOT
from hudi_core.storage.local import LocalStorage
from hudi_core.timeline.active import ActiveTimeline
from tests.support.golden_data import GoldenCase
from tests.support.metadata_records import Table
from tests.unit.hudi_core.services.indexing.test_job import planned, run

Golden = Callable[[str, str], GoldenCase]
VERSIONS = ("6", "8", "9")
FOLDER = ".hoodie/metadata/.hoodie/.heartbeat"


def beating(table: Path) -> set[str]:
    """The instants of the metadata table with a heartbeat."""
    return {path.name for path in table.joinpath(FOLDER).glob("*") if path.suffix != ".crc"}


def pending(table: Path) -> set[str]:
    """The instants that are pending on the metadata table's timeline."""
    storage = LocalStorage(table)
    return {item.requested_time for item in ActiveTimeline(storage, Table(table).config, ROOT).load().pending()}


@pytest.mark.parametrize("version", VERSIONS)
def test_a_pending_build_has_a_heartbeat_and_a_completed_one_has_none(
    golden: Golden, monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    """In version 6 there is none pending, as no name keeps writers of both lines from rolling it back."""
    table = golden(version, "indexing_requested").table
    fill: Callable[..., object] = IndexBuild.fill
    seen: list[tuple[set[str], set[str]]] = []

    def filled(self: IndexBuild, *arguments: object) -> object:
        seen.append((beating(table), pending(table)))
        return fill(self, *arguments)

    monkeypatch.setattr(IndexBuild, "fill", filled)
    assert run(table, planned(table)) == "completed"
    assert seen
    assert all(alive == waiting and len(alive) == (version != "6") for alive, waiting in seen), seen
    assert beating(table) == set()


@pytest.mark.parametrize("version", ["8", "9"])
def test_a_build_that_fails_beats_no_more(golden: Golden, monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    table = golden(version, "indexing_requested").table
    instant = planned(table)

    def fails(*_: object) -> object:
        assert beating(table) == pending(table) != set()
        raise OSError("the executor is gone")

    with monkeypatch.context() as patch:
        patch.setattr(IndexBuild, "fill", fails)
        with pytest.raises(OSError, match="executor"):
            run(table, instant)
    assert beating(table) == set()
    (left,) = pending(table)
    LocalStorage(table).write(heartbeat_path(left), b"")  # as of a process that was killed
    assert run(table, instant) == "completed"
    assert beating(table) == set()


def test_it_beats_again_and_again_for_one_instant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(indexing, "INTERVAL_SECONDS", 0.01)
    path = tmp_path / heartbeat_path("20240101000000000")
    with BuildHeartbeat(LocalStorage(tmp_path)) as alive:
        alive.begin("20240101000000000")
        first = path.stat().st_mtime_ns
        deadline = time.monotonic() + 30
        while path.stat().st_mtime_ns == first:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        alive.begin("20240101000000001")
        assert beating(tmp_path) == {"20240101000000001"}
    assert beating(tmp_path) == set()
