"""Files of the metadata table that its timeline names and that are gone."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from hudi_core.config.table_config import TableConfig
from hudi_core.errors import CorruptFileError, StorageNotFoundError
from hudi_core.metadata_table.read.file_group import merged_slices
from hudi_core.metadata_table.read.snapshot import MetadataTableSnapshot
from hudi_core.metadata_table.read.whole_files import refuse_missing
from hudi_core.metadata_table.records.files import FilesRules
from hudi_core.storage.base import FileInfo
from hudi_core.storage.local import LocalStorage
from hudi_core.timeline.actions.write_stats import WrittenFile
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.timeline.instant import Action, Instant, State
from hudi_core.timeline.timeline import Timeline
from tests.support.golden_data import GoldenCase

Golden = Callable[[str, str], GoldenCase]
FOLDER = ".hoodie/metadata/files"
INIT = "00000000000000000"
INIT_BASE = f"f-0_0-0-0_{INIT}.hfile"
INIT_LOG = f".f-0_{INIT}.log.1_0-0-0"
T1, T2, T3 = "20260101000000001", "20260101000000002", "20260101000000003"
BASE_3 = f"f-0_0-0-0_{T3}.hfile"
INDEXED = "20260101000000012"
INDEXED_LOG = f".f-0_{INDEXED}.log.1_0-0-0"
EMPTY = (INIT_LOG, INDEXED_LOG)
"""The log files with which file groups are initialized: 80 bytes."""


def done(time: str, action: str = Action.DELTA_COMMIT, completed: str | None = None) -> Instant:
    return Instant(time, action, State.COMPLETED, completed or time, action)


def log(time: str) -> str:
    return f".f-0_{time}.log.1_0-0-0"


TIMELINE = (done(INIT, completed="20260101000000000"), done(T1), done(T2))
WRITTEN = {INIT: [INIT_BASE], T1: [log(T1)], T2: [log(T2)], T3: [BASE_3]}


def check(
    names: Iterable[str], timeline: Iterable[Instant] = TIMELINE, written: dict[str, list[str]] = WRITTEN
) -> list[str]:
    """The instants whose commits were read."""
    requested: list[str] = []

    def stats_of(commit: Instant) -> list[WrittenFile]:
        requested.append(commit.requested_time)
        if commit.requested_time not in written:
            raise StorageNotFoundError("archived", path=commit.requested_time)
        return [WrittenFile("f-0", f"files/{name}", 0) for name in written[commit.requested_time]]

    files = [FileInfo(f"{FOLDER}/{name}", 80 if name in EMPTY else 9000, 1.0) for name in names]
    whole = Timeline(timeline)
    refuse_missing(FOLDER, files, merged_slices(FOLDER, files, whole, 2), whole, (), stats_of)
    return requested


def test_a_whole_partition_costs_no_request() -> None:
    assert check([INIT_LOG, INIT_BASE, log(T1), log(T2)]) == []


@pytest.mark.parametrize("gone", [INIT_BASE, log(T1), log(T2)])
def test_a_file_that_is_gone(gone: str) -> None:
    with pytest.raises(CorruptFileError, match="is not there") as caught:
        check(name for name in (INIT_LOG, INIT_BASE, log(T1), log(T2)) if name != gone)
    assert caught.value.path == f"{FOLDER}/{gone}"
    assert "without its metadata table" in str(caught.value.remedy)


def test_what_a_compaction_merged_may_be_gone() -> None:
    assert check([BASE_3], [*TIMELINE, done(T3, Action.COMMIT)]) == []


def test_a_compactions_base_file_is_named_before_the_logs_that_it_merged() -> None:
    with pytest.raises(CorruptFileError) as caught:
        check([log("20260101000000004")], [*TIMELINE, done(T3, Action.COMMIT), done("20260101000000004")])
    assert caught.value.path == f"{FOLDER}/{BASE_3}"


def test_an_older_base_file_does_not_stand_in_for_the_newest() -> None:
    with pytest.raises(CorruptFileError) as caught:
        check([INIT_LOG, INIT_BASE, log(T1), log(T2)], [*TIMELINE, done(T3, Action.COMMIT)])
    assert caught.value.path == f"{FOLDER}/{BASE_3}"


def test_a_commit_that_wrote_nothing_here_or_that_is_archived_by_now() -> None:
    names = [INIT_LOG, INIT_BASE, log(T1)]
    assert check(names, written={T2: []}) == [T2]
    assert check(names, written={}) == [T2]


def test_files_from_before_the_partition_was_rebuilt() -> None:
    again = "00000000000000001"
    timeline = [*TIMELINE, done(again, completed=T3)]
    assert check([f".f-0_{again}.log.1_0-0-0"], timeline, {**WRITTEN, again: []}) == [again]


@pytest.mark.parametrize("made", [[INDEXED_LOG], [INDEXED_LOG, f"f-0_0-0-0_{INDEXED}.hfile"]])
def test_files_from_before_an_indexing_rebuilt_the_partition(made: list[str]) -> None:
    """What was recorded between its request and its end may be in its base files, as where it was not recorded and the
    partition was built twice.
    """
    later = "20260101000000014"
    timeline = [
        TIMELINE[0],
        done(T1, completed=f"{INDEXED[:-1]}3"),
        done(INDEXED, completed=later),
        done(later, completed=f"{later[:-1]}5"),
    ]
    written = {**WRITTEN, INDEXED: made, later: [log(later)]}
    assert check([*made, log(later)], timeline, written) == []
    with pytest.raises(CorruptFileError) as caught:
        check(made, timeline, written)
    assert caught.value.path == f"{FOLDER}/{log(later)}"


def test_names_of_an_upgraded_table_prove_nothing() -> None:
    assert check([INIT_LOG, INIT_BASE], [TIMELINE[0], replace(done(T1), is_legacy=True)]) == []


def metadata_snapshot(table: Path) -> MetadataTableSnapshot:
    storage = LocalStorage(str(table))
    config = TableConfig.load(storage)
    return MetadataTableSnapshot(storage, config, ActiveTimeline(storage, config).load())


@pytest.mark.parametrize("version", ["8", "9"])
@pytest.mark.parametrize(
    "pattern", ["files/files-*.hfile", "column_stats/col-stats-0001-0*.hfile", "files/.files-*.log.*"]
)
def test_the_newest_file_of_a_real_table(golden: Golden, version: str, pattern: str) -> None:
    table = golden(version, "mdt_all_mor_compacted").table
    for name in metadata_snapshot(table).config.metadata_partitions:
        metadata_snapshot(table).groups(name, FilesRules())
    victim = max(
        (table / ".hoodie" / "metadata").glob(pattern),
        key=lambda path: path.name.split("_")[2 if path.suffix == ".hfile" else 1],
    )
    victim.unlink()
    with pytest.raises(CorruptFileError) as caught:
        metadata_snapshot(table).groups(victim.parent.name, FilesRules())
    assert caught.value.path == str(victim.relative_to(table))


@pytest.mark.parametrize("version", ["8", "9"])
def test_all_logs_of_one_commit_in_an_index(golden: Golden, version: str) -> None:
    table = golden(version, "mdt_all_mor_compacted").table
    folder = table / ".hoodie" / "metadata" / "column_stats"
    last = max(path.name.split("_")[1].split(".")[0] for path in folder.glob(".col-stats*.log.*"))
    one, other = sorted(folder.glob(f".col-stats-*_{last}.log.*"))
    one.unlink()
    metadata_snapshot(table).groups("column_stats", FilesRules())
    other.unlink()
    with pytest.raises(CorruptFileError) as caught:
        metadata_snapshot(table).groups("column_stats", FilesRules())
    assert caught.value.path == str(one.relative_to(table))
