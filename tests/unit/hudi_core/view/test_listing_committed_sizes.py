"""A data file that lost bytes is not listed in a metadata table."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hudi_core.engine.local import LocalEngine
from hudi_core.metadata_table.write.lifetime import drop_metadata_table
from hudi_core.services.metadata.maintain import create_metadata, update_metadata
from hudi_core.storage.base import FileInfo
from hudi_core.storage.local import LocalStorage
from hudi_core.timeline.actions.commit import CommitMetadata
from hudi_core.timeline.actions.write_stats import WriteStat
from hudi_core.timeline.instant import Instant, State
from hudi_core.timeline.timeline import Timeline
from hudi_core.transaction.owner import Owner
from hudi_core.view.listing import CommittedSizes, CutFileError
from tests.support.golden_cleans import context_of
from tests.support.golden_data import GoldenCase

Golden = Callable[[str, str], GoldenCase]
OWNER = Owner.current("test")
ENGINE = LocalEngine(1)


def newest(table: Path, pattern: str) -> Path:
    """The data file of the latest instant."""
    files = [path for path in table.glob(f"*/{pattern}") if path.suffix != ".crc"]
    return max(files, key=lambda path: path.name.rpartition("_")[2])


def cut(path: Path, size: int) -> None:
    with path.open("r+b") as file:
        file.truncate(size)


@pytest.mark.parametrize("version", ["6", "8", "9"])
@pytest.mark.parametrize("left", [0, 100])
def test_a_cut_base_file_is_not_listed(golden: Golden, version: str, left: int) -> None:
    table = golden(version, "cow_basic").table
    file = newest(table, "*.parquet")
    cut(file, left)
    drop_metadata_table(LocalStorage(table))
    properties = (table / ".hoodie/hoodie.properties").read_bytes()
    with pytest.raises(CutFileError, match=f"but it has {left}") as caught:
        create_metadata(context_of(table), (), ENGINE, OWNER)
    assert (caught.value.path, caught.value.exit_code) == (str(file.relative_to(table)), 2)
    assert "restore the file from a copy" in str(caught.value)
    assert (table / ".hoodie/hoodie.properties").read_bytes() == properties
    assert not (table / ".hoodie/metadata").exists()
    file.unlink()
    assert create_metadata(context_of(table), (), ENGINE, OWNER).metadata_partitions == {"files"}


@pytest.mark.parametrize("version", ["6", "9"])
def test_a_cut_log_file_is_not_listed(golden: Golden, version: str) -> None:
    """In version 6 by what the last of its commits appended."""
    table = golden(version, "mor_basic").table
    drop_metadata_table(LocalStorage(table))
    file = newest(table, ".*.log.*")
    cut(file, file.stat().st_size - 1)
    with pytest.raises(CutFileError) as caught:
        create_metadata(context_of(table), (), ENGINE, OWNER)
    assert caught.value.path == str(file.relative_to(table))


def without_its_record(table: Path, commit: str) -> None:
    """As a writer leaves it that runs without the metadata table."""
    for path in (table / ".hoodie/metadata/.hoodie").rglob(f"{commit}*.deltacommit*"):
        path.unlink()


@pytest.mark.parametrize("version", ["6", "9"])
def test_an_update_lists_no_cut_file(golden: Golden, version: str) -> None:
    table = golden(version, "cow_basic").table
    file = newest(table, "*.parquet")
    without_its_record(table, context_of(table).active.load().commits().instants[-1].requested_time)
    cut(file, 100)
    with pytest.raises(CutFileError, match="but it has 100") as caught:
        update_metadata(context_of(table), ENGINE, OWNER)
    assert caught.value.path == str(file.relative_to(table))


@pytest.mark.parametrize("version", ["6", "9"])
def test_a_restore_drops_a_metadata_table_that_would_list_a_cut_file(golden: Golden, version: str) -> None:
    table = golden(version, "cow_basic").table
    timeline = context_of(table).active.load()
    *_, lost, last = (item.requested_time for item in timeline.commits())
    without_its_record(table, lost)
    cut(newest(table, f"*_{lost}.parquet"), 100)
    publisher = context_of(table).metadata_publisher()
    assert publisher is not None
    restored = publisher.restore(last, context_of(table).new_instant(timeline))
    assert restored.metadata_partitions == frozenset()
    assert not (table / ".hoodie/metadata").exists()


class Archive:
    """An archive with one commit, of a file."""

    def __init__(self, path: str) -> None:
        self._path = path

    def commit(self, requested_time: str) -> CommitMetadata | None:
        if requested_time != "20240101000000000":
            return None
        stat = WriteStat("f-0", self._path, "p", "null", 1, 0, 0, 1, 900, 900)
        return CommitMetadata({"p": (stat,)})


def wrote_nothing(instant: Instant) -> CommitMetadata:
    return CommitMetadata()


def archived(path: str) -> Callable[[], Any]:
    return lambda: Archive(path)


def test_of_archived_commits_an_empty_base_file_is_known() -> None:
    """The name of a file before the timeline counts as committed, unless the archive knows the commit otherwise."""
    late = Instant("20250101000000000", "commit", State.COMPLETED)
    timeline = Timeline([late])
    empty = FileInfo("p/f-0_0-1-2_20240101000000000.parquet", 0, 0.0)
    unknown = FileInfo("p/f-0_0-1-2_20230101000000000.parquet", 0, 0.0)
    by_commit = CommittedSizes(timeline, wrote_nothing, archived(empty.path))
    assert by_commit.cut(empty) == "commit 20240101000000000, which is archived, wrote this file, but it has no bytes"
    assert by_commit.cut(unknown) is not None
    assert by_commit.cut(FileInfo(empty.path, 1, 0.0)) is None, "more is not known"
    assert by_commit.cut(FileInfo("p/f-0_0-1-2_20250101000000000.parquet", 0, 0.0)) is None, "a leftover of an attempt"
    assert by_commit.cut(FileInfo("p/.f-0_20240101000000000.log.1_0-1-2", 0, 0.0)) is None
    assert CommittedSizes(timeline, wrote_nothing, archived("p/other")).cut(empty) is None
