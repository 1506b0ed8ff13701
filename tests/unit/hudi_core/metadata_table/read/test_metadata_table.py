"""The metadata table against the storage it describes."""

from __future__ import annotations

import shutil
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hudi_core.codec.hfile.writer import write_hfile
from hudi_core.codec.log.blocks import LogBlock, walk
from hudi_core.config.table_config import TableConfig
from hudi_core.config.versions import V6
from hudi_core.errors import CorruptFileError, FormatError, MetadataUnavailableError
from hudi_core.metadata_table.instants import rolled_back_by
from hudi_core.metadata_table.read.metadata_table import MetadataTable
from hudi_core.metadata_table.record import ALL_PARTITIONS, FileEntry, FilesRecord, RecordType, stored_schema
from hudi_core.model.names import BaseFileName, parse_data_file
from hudi_core.storage.base import ByteRange, FileInfo
from hudi_core.storage.local import LocalStorage
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.timeline.instant import Action, Instant, State
from hudi_core.timeline.timeline import Timeline
from hudi_core.view.listing import FileListing, StorageListing
from tests.support.golden_data import GoldenCase, golden_cases, golden_root, unpack
from tests.support.metadata_cells import encode_items
from tests.support.tiers import tiered
from tests.support.views import view_of

Golden = Callable[[str, str], GoldenCase]

VERSIONS = ("6", "6-by-1.2.0", "8", "8-by-1.2.0", "9")
UNFINISHED = {
    "compaction_inflight",
    "failed_after_metadata_cow",
    "failed_after_metadata_mor",
    "failed_after_metadata_mor.after",
    "failed_inflight_cow",
    "failed_inflight_mor",
}
"""Tables with files of an instant that never completed. A rolled-back deltacommit leaves its log files: rollback
commands void them.
"""
UNSIZED = {"failed_inflight_mor.after", "rolled_back_mor"}
"""Real Hudi 0.15 lists the log files of a rolled-back deltacommit with a size of 1 (logFilesFromFailedCommit); 1.x
deletes them.
"""
TABLES = {"6": 41, "6-by-1.2.0": 8, "8": 41, "8-by-1.2.0": 8, "9": 41}
"""How many tables, before and after, have a metadata table."""


def load(table: Path, timeline: Timeline | None = None) -> tuple[LocalStorage, ActiveTimeline, MetadataTable]:
    storage = LocalStorage(table)
    config = TableConfig.load(storage)
    active = ActiveTimeline(storage, config)
    return storage, active, MetadataTable(storage, config, active.load() if timeline is None else timeline)


def unpacked(tmp_path: Path, version: str) -> Iterator[tuple[str, Path]]:
    """Every golden table of a version that lists a metadata table, and what real Hudi made of it."""
    folder = golden_root() / version
    for case in golden_cases(version):
        for name, archive in (
            (case, folder / f"{case}.zip"),
            (f"{case}.after", folder / f"{case}.expected" / "after.zip"),
        ):
            if archive.exists() and has_metadata_table(archive):
                table = unpack(archive, tmp_path / version / name)
                yield name, table
                shutil.rmtree(table)


def has_metadata_table(archive: Path) -> bool:
    with zipfile.ZipFile(archive) as zipped:
        (properties,) = (
            name for name in zipped.namelist() if name.count("/") == 2 and name.endswith("/.hoodie/hoodie.properties")
        )
        return "files" in TableConfig.parse(zipped.read(properties)).metadata_partitions


def data_files(files: list[FileInfo]) -> dict[str, int]:
    return {info.name: info.size for info in files if parse_data_file(info.name) is not None}


def written_by(storage: LocalStorage, path: str) -> set[str]:
    """The instants that wrote a data file."""
    name = parse_data_file(path.rsplit("/", 1)[-1])
    if isinstance(name, BaseFileName):
        return {name.instant}
    data = storage.read(path)
    blocks = walk(lambda start, length: data[start : start + length], len(data), path)
    return {block.instant_time or "" for block in blocks if isinstance(block, LogBlock)}


@pytest.mark.slow
@pytest.mark.parametrize("version", tiered(VERSIONS, ["6", "9"]))
def test_the_metadata_table_lists_what_the_storage_lists(tmp_path: Path, version: str) -> None:
    """Names and sizes are equal; the storage holds more only where an instant never completed, and those files are that
    instant's.
    """
    seen, unfinished, unsized = 0, set(), set()
    for case, table in unpacked(tmp_path, version):
        storage, active, reader = load(table)
        listing, truth = reader, StorageListing(storage)
        assert listing.partitions() == truth.partitions(), case
        timeline = active.load()
        never = {*timeline.pending().requested_times}
        for rollback in timeline.completed().of_actions(Action.ROLLBACK):
            never.update(rolled_back_by(active, rollback))
        for partition in truth.partitions():
            mine, theirs = data_files(listing.files(partition)), data_files(truth.files(partition))
            assert mine.keys() <= theirs.keys(), case
            for extra in theirs.keys() - mine.keys():
                assert written_by(storage, f"{partition}/{extra}") <= never, (case, extra)
                unfinished.add(case)
            if any(mine[name] != theirs[name] for name in mine):
                assert {mine[name] for name in mine if mine[name] != theirs[name]} == {1}
                unsized.add(case)
        if case not in unfinished | unsized:
            view, direct = view_of(active, listing), view_of(active, truth)
            for partition in view.partitions():
                assert view.latest_merged_slices(partition) == direct.latest_merged_slices(partition), case
                assert view.latest_slices(partition) == direct.latest_slices(partition), case
                assert view.latest_base_files(partition) == direct.latest_base_files(partition), case
        seen += 1
    assert seen == TABLES[version]
    assert unfinished <= UNFINISHED
    assert unsized == (UNSIZED if version == "6" else set())


@pytest.mark.parametrize("case", ["failed_after_metadata_cow", "failed_after_metadata_mor"])
@pytest.mark.parametrize("version", ["6", "8", "9"])
def test_an_instant_counts_once_its_data_action_completes(golden: Golden, version: str, case: str) -> None:
    """The metadata table completed the instant, the data table did not: only the data timeline decides."""
    table = golden(version, case).table
    storage, active, reader = load(table)
    timeline = active.load()
    (instant,) = timeline.pending()
    before = {partition: reader.list_files(partition) for partition in reader.partitions()}
    completed = Timeline(
        [*timeline.completed(), Instant(instant.requested_time, instant.action, State.COMPLETED, "20990101000000000")]
    )
    _, _, later = load(table, completed)
    for partition, files in before.items():
        added = later.list_files(partition).keys() - files.keys()
        assert added
        assert set().union(*(written_by(storage, f"{partition}/{name}") for name in added)) == {instant.requested_time}


class CountingStorage(LocalStorage):
    """Notes what is read."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.ranges: list[tuple[str, int, int]] = []
        self.whole: list[str] = []

    def read_range(self, path: str, span: ByteRange) -> bytes:
        self.ranges.append((path, span.start, span.length))
        return super().read_range(path, span)

    def read(self, path: str) -> bytes:
        self.whole.append(path)
        return super().read(path)


@pytest.mark.parametrize("version", ["6", "8", "9"])
def test_a_partition_costs_one_block_of_the_base_file(golden: Golden, version: str) -> None:
    table = golden(version, "mdt_all_mor_compacted").table
    storage = CountingStorage(table)
    config = TableConfig.load(storage)
    timeline = ActiveTimeline(storage, config).load()
    reader = MetadataTable(storage, config, timeline)
    partition, *_ = reader.partitions()
    storage.ranges.clear()
    storage.whole.clear()
    assert reader.list_files(partition)
    assert not storage.whole
    assert len(storage.ranges) <= 1


def test_a_table_without_partitions_has_the_empty_one(golden: Golden) -> None:
    _, _, reader = load(golden("6", "non_partitioned_cow").table)
    assert reader.partitions() == [""]
    assert reader.list_files("")
    assert reader.list_files("absent") == {}


def test_a_missing_metadata_table_is_no_damaged_one(golden: Golden) -> None:
    _, _, reader = load(golden("6", "mdt_disabled").table)
    for query in (reader.partitions, reader.check_available):
        with pytest.raises(MetadataUnavailableError, match="does not name") as caught:
            query()
        assert caught.value.path == ".hoodie/hoodie.properties"
    table = golden("6", "cow_basic").table
    for path in (table / ".hoodie" / "metadata" / ".hoodie").glob("*.deltacommit"):
        path.unlink()
    with pytest.raises(MetadataUnavailableError, match="no completed instant"):
        load(table)[2].partitions()
    shutil.rmtree(table / ".hoodie" / "metadata")
    with pytest.raises(MetadataUnavailableError, match="cannot be read"):
        load(table)[2].check_available()


def replace_base_file(table: Path, *records: FilesRecord) -> str:
    """Puts other records into the table's base HFile and takes the log files away, also out of its commits.

    Returns the file's path.
    """
    folder = table / ".hoodie" / "metadata" / "files"
    for log in folder.glob(".*.log.*"):
        log.unlink()
    for commit in (table / ".hoodie" / "metadata" / ".hoodie").glob("*.deltacommit"):
        commit.write_text("{}")
    (base,) = folder.glob("*.hfile")
    base.write_bytes(write_hfile(encode_items(records), schema=stored_schema(V6)))
    return f".hoodie/metadata/files/{base.name}"


@pytest.mark.parametrize("name", ["../x", "a/b", "", "..", "/x", "a\nb"])
def test_file_names_that_leave_the_partition_are_refused(golden: Golden, name: str) -> None:
    table = golden("6", "cow_basic").table
    replace_base_file(table, FilesRecord("p", RecordType.FILES, {name: FileEntry(3)}))
    with pytest.raises(FormatError):
        load(table)[2].list_files("p")


@pytest.mark.parametrize("partition", ["../x", "a//b", "/x", ".hoodie/metadata", "a/.."])
def test_partitions_that_leave_the_table_are_refused(golden: Golden, partition: str) -> None:
    table = golden("6", "cow_basic").table
    replace_base_file(table, FilesRecord(ALL_PARTITIONS, RecordType.PARTITIONS, {partition: FileEntry(0)}))
    with pytest.raises(FormatError):
        load(table)[2].partitions()


def test_a_damaged_base_file_is_named(golden: Golden) -> None:
    table = golden("6", "cow_basic").table
    path = replace_base_file(table, FilesRecord("p", RecordType.FILES, {"f": FileEntry(3)}))
    assert load(table)[2].list_files("p") == {"f": 3}
    whole = (table / path).read_bytes()
    (table / path).write_bytes(whole[:-1])
    with pytest.raises(CorruptFileError) as caught:
        load(table)[2].list_files("p")
    assert caught.value.path == path


def test_deleted_partitions_are_gone(golden: Golden) -> None:
    table = golden("6", "cow_basic").table
    replace_base_file(
        table,
        FilesRecord(ALL_PARTITIONS, RecordType.PARTITIONS, {"a": FileEntry(0), "b": FileEntry(0, is_deleted=True)}),
    )
    assert load(table)[2].partitions() == ["a"]


def test_files_are_sorted_and_carry_their_sizes(golden: Callable[[str, str], GoldenCase]) -> None:
    storage = LocalStorage(golden("6", "multilevel_encoded").table)
    config = TableConfig.load(storage)
    listing: FileListing = MetadataTable(storage, config, ActiveTimeline(storage, config).load())
    assert len(listing.partitions()) > 1
    for partition in listing.partitions():
        files = listing.files(partition)
        assert [info.path for info in files] == sorted(info.path for info in files)
        assert files == [FileInfo(info.path, storage.stat(info.path).size, 0.0) for info in files]
    assert listing.files("absent") == []
