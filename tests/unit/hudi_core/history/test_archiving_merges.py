"""A merge of archive files that Hudi 0.15 did not finish: rolled back, finished or refused, wherever it was cut off."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hudi_core.codec.avro.container import write_container
from hudi_core.errors import CorruptFileError, FormatError
from hudi_core.history.archiving import finish_merge
from hudi_core.history.log_archive import MERGE_PLAN, LogArchive
from hudi_core.storage.base import Storage
from hudi_core.timeline.instant import Instant
from tests.support.fault_storage import MUTATIONS, FaultPlan, FaultStorage, InjectedCrash
from tests.support.golden_archives import archive
from tests.support.golden_data import open_case
from tests.support.golden_timelines import load_table
from tests.support.memory_storage import MemoryStorage
from tests.unit.hudi_core.history.test_log_archive import MERGE_SCHEMA

FOLDER = ".hoodie/archived"
NAMES = [f".commits_.archive.{number}_1-0-1" for number in (1, 2, 3)]
MERGED = ".commits_.archive.4_1-0-1"
BASE = "file:/warehouse/of/another/writer/.hoodie/archived"


def write_plan(storage: Storage, candidates: list[str], merged: str = MERGED) -> None:
    datum: dict[str, Any] = {"version": 1, "candidate": candidates, "mergedArchiveFileName": merged}
    storage.write(f"{FOLDER}/{MERGE_PLAN}", write_container(MERGE_SCHEMA, [datum]))


def merging(*, merged: bool, cut: int = 0, gone: int = 0) -> MemoryStorage:
    """A golden archive in the middle of the merge of its three files."""
    storage = load_table("archived_timeline_cow", "6")
    write_plan(storage, [f"{BASE}/{name}" for name in NAMES])
    whole = b"".join(storage.read(f"{FOLDER}/{name}") for name in NAMES)
    if merged:
        storage.write(f"{FOLDER}/{MERGED}", whole[: len(whole) - cut])
    for name in NAMES[:gone]:
        storage.delete(f"{FOLDER}/{name}")
    return storage


def held(storage: Storage) -> list[Instant]:
    return LogArchive(storage, FOLDER).instants()


def names(storage: Storage) -> list[str]:
    return [name for name in sorted(info.name for info in storage.list_files(FOLDER)) if not name.endswith(".crc")]


ALL = held(load_table("archived_timeline_cow", "6"))


def test_nothing_to_end() -> None:
    assert finish_merge(load_table("archived_timeline_cow", "6"), FOLDER) is False


@pytest.mark.parametrize("cut", [0, 1, 100_000])
def test_rolled_back_while_all_files_are_there(cut: int) -> None:
    storage = merging(merged=True, cut=cut)
    assert finish_merge(storage, FOLDER) is True
    assert names(storage) == NAMES
    assert held(storage) == ALL
    storage = merging(merged=False)
    assert finish_merge(storage, FOLDER) is True
    assert names(storage) == NAMES


@pytest.mark.parametrize("gone", [1, 2, 3])
def test_ended_when_files_are_deleted_already(gone: int) -> None:
    storage = merging(merged=True, gone=gone)
    assert finish_merge(storage, FOLDER) is True
    assert names(storage) == [MERGED]
    assert held(storage) == ALL


@pytest.mark.parametrize("cut", [1, 4_000, 100_000])
def test_refused_when_files_are_gone_and_the_merged_one_is_not_whole(cut: int) -> None:
    storage = merging(merged=True, cut=cut, gone=1)
    before = names(storage)
    with pytest.raises(CorruptFileError, match="corrupt block") as caught:
        finish_merge(storage, FOLDER)
    assert caught.value.path == f"{FOLDER}/{MERGED}"
    assert names(storage) == before


def test_refused_when_files_are_gone_and_there_is_no_merged_one() -> None:
    """Hudi deletes the plan here, and with it the last trace of the loss."""
    storage = merging(merged=False, gone=1)
    with pytest.raises(CorruptFileError, match=r"which should hold their content, is missing .*restore"):
        finish_merge(storage, FOLDER)
    assert MERGE_PLAN in names(storage)


@pytest.mark.parametrize("data", [b"", b"Obj\x01 cut"])
def test_a_plan_that_was_not_written_to_its_end_goes(data: bytes) -> None:
    storage = load_table("archived_timeline_cow", "6")
    storage.write(f"{FOLDER}/{MERGE_PLAN}", data)
    assert finish_merge(storage, FOLDER) is True
    assert names(storage) == NAMES


@pytest.mark.parametrize(
    "bad", ["../../2024-01-01/data.parquet", "hoodie.properties", "", f"{BASE}/.commits_.archive.4_1-0-1"]
)
def test_a_plan_that_names_anything_else_is_refused(bad: str) -> None:
    storage = load_table("archived_timeline_cow", "6")
    write_plan(storage, [f"{BASE}/{NAMES[0]}", bad])
    before = names(storage)
    with pytest.raises(FormatError):
        finish_merge(storage, FOLDER)
    assert names(storage) == before


@pytest.mark.parametrize("gone", [0, 1])
def test_killed_while_it_ends_the_merge(gone: int) -> None:
    for number in range(6):
        for timing in ("before", "after"):
            storage = merging(merged=True, gone=gone)
            plan = FaultPlan(kill_at=number, timing=timing, counts=MUTATIONS)
            try:
                finish_merge(FaultStorage(storage, plan), FOLDER)
            except InjectedCrash:
                assert held(storage) == ALL
                finish_merge(storage, FOLDER)
            assert held(storage) == ALL
            assert MERGE_PLAN not in names(storage)


def test_an_archival_ends_the_merge_first(tmp_path: Path) -> None:
    table = open_case("6", "archived_timeline_cow", tmp_path).table
    folder = table / FOLDER
    whole = b"".join((folder / name).read_bytes() for name in NAMES)
    (folder / MERGED).write_bytes(whole)
    (folder / NAMES[0]).unlink()
    (folder / MERGE_PLAN).write_bytes(
        write_container(MERGE_SCHEMA, [{"version": 1, "candidate": NAMES, "mergedArchiveFileName": MERGED}])
    )
    assert archive(table)
    assert sorted(path.name for path in folder.iterdir() if path.suffix != ".crc") == [
        MERGED,
        ".commits_.archive.5_1-0-1",
    ]
