"""A metadata table that we initialize, against that of real Hudi for the same table: listing, properties, file groups,
first commits.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hudi_core.config.properties import parse_properties
from hudi_core.config.table_config import METADATA, TableConfig
from hudi_core.errors import ConflictError, LockError, MetadataUnavailableError
from hudi_core.metadata_table.indexed_table import load_index_definitions, render_index_definitions
from hudi_core.metadata_table.initialize.initialize import Initialization, MetadataCreation
from hudi_core.metadata_table.initialize.target import NewBaseFile, NewPartition
from hudi_core.metadata_table.partitions.protocol import numbered_file_ids
from hudi_core.metadata_table.read.file_group import ROOT
from hudi_core.metadata_table.read.metadata_table import MetadataTable
from hudi_core.metadata_table.write.lifetime import drop_metadata_table
from hudi_core.storage.base import Storage
from hudi_core.timeline.instant import Action, State
from hudi_core.transaction.instant_generator import InstantClock
from tests.support.golden_data import GoldenCase, golden_cases, golden_root
from tests.support.metadata_records import TOKEN, Table
from tests.support.tiers import tiered

Golden = Callable[[str, str], GoldenCase]
VERSIONS = ("6", "8", "9")
WRONG_SIZES = ("6", "rolled_back_mor")
PENDING = ("failed_after_metadata_mor", "mor_compaction_requested", "clean_requested_cow")
PROPERTIES = f"{ROOT}/.hoodie/hoodie.properties"
Listing = dict[str, dict[str, int]]


def creation(
    table: Table, storage: Storage | None = None, guard: Callable[[], None] = lambda: None
) -> MetadataCreation:
    """Whose clock does not wait."""
    clock = InstantClock(table.config.timezone, sleep=lambda seconds: None)
    return MetadataCreation(storage or table.storage, TOKEN, clock, guard)


def lost_after(calls: int) -> Callable[[], None]:
    """The check of a lock that is lost after so many calls."""
    left = iter(range(calls))

    def guard() -> None:
        if next(left, None) is None:
            raise LockError("lost")

    return guard


def listing_of(table: Table) -> Listing:
    found = MetadataTable(table.storage, table.config, table.data.load())
    return {partition: found.list_files(partition) for partition in found.partitions()}


def metadata_file(table: Table, pattern: str) -> Path:
    """The one file of the metadata table that a pattern matches."""
    (found,) = (table.path / ROOT).glob(pattern)
    return found


def with_metadata_table() -> list[tuple[str, str]]:
    """Version and case of every golden table whose properties list a metadata table."""
    found = []
    for folder in (*VERSIONS, "6-by-1.2.0", "8-by-1.2.0"):
        for case in golden_cases(folder):
            with zipfile.ZipFile(golden_root() / folder / f"{case}.zip") as zipped:
                (name,) = (
                    entry
                    for entry in zipped.namelist()
                    if entry.endswith("/.hoodie/hoodie.properties") and "/metadata/" not in entry
                )
                listed = METADATA.read(parse_properties(zipped.read(name), path=name), path=name)
            found += [(folder, case)] if "files" in listed else []
    return found


WITH_METADATA_TABLE = with_metadata_table()
CORE = [
    ("6", "mdt_all_mor"),
    ("8", "mdt_all_cow"),
    *(table for table in WITH_METADATA_TABLE if table[0] in ("6-by-1.2.0", "8-by-1.2.0", "9")),
]


@pytest.mark.parametrize(("version", "case"), tiered(WITH_METADATA_TABLE, CORE))
def test_the_listing_is_that_of_real_hudi(golden: Golden, version: str, case: str) -> None:
    table = Table(golden(version, case).table)
    real = listing_of(table)
    real_properties = parse_properties(table.storage.read(PROPERTIES), path=PROPERTIES)
    drop_metadata_table(table.storage)
    pending = {item.action for item in table.data.load().pending()} - {Action.INDEXING}
    if pending and table.config.features.metadata_needs_rest:
        with pytest.raises(ConflictError, match="pending"):
            creation(table).initialize_table()
        return
    config = creation(table).initialize_table()
    assert config.metadata_partitions == {"files"} == table.config.metadata_partitions
    if (version, case) != WRONG_SIZES:
        assert listing_of(table) == real
    if version != "6-by-1.2.0":  # Hudi 1.x gives such tables properties of both versions
        assert parse_properties(table.storage.read(PROPERTIES), path=PROPERTIES) == real_properties
    before = table.metadata_timeline.names()
    assert creation(table).initialize_table() == config
    assert table.metadata_timeline.names() == before, "done already"


@pytest.mark.parametrize(
    ("case", "command"),
    [
        ("failed_after_metadata_mor", "rollback TABLE"),
        ("mor_compaction_requested", "run compaction TABLE"),
        ("log_compaction_requested", "run log_compaction TABLE"),
        ("clustering_requested_cow", "run clustering TABLE"),
        ("clean_requested_cow", "run clean TABLE"),
    ],
)
def test_version_6_begins_none_while_something_is_pending(golden: Golden, case: str, command: str) -> None:
    """The remedy is the command for what is pending."""
    table = Table(golden("6", case).table)
    (pending,) = table.data.load().pending().requested_times
    drop_metadata_table(table.storage)
    before = sorted(path for path in table.path.rglob("*") if path.is_file())
    with pytest.raises(ConflictError, match=pending) as caught:
        creation(table).initialize_table()
    assert f"`hudictl {command} --instant {pending}`" in str(caught.value.remedy)
    assert sorted(path for path in table.path.rglob("*") if path.is_file()) == before


def test_version_6_begins_none_before_a_restore_is_finished(golden: Golden) -> None:
    table = Table(golden("6", "cow_basic").table)
    drop_metadata_table(table.storage)
    restore = table.new_instant()
    table.data.create_requested(restore, Action.RESTORE, b"plan")
    with pytest.raises(ConflictError, match=restore) as caught:
        creation(table).initialize_table()
    assert "finished with `hudictl restore TABLE --instant T`" in str(caught.value.remedy)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_commit_with_an_unfinished_savepoint_is_listed(golden: Golden, version: str) -> None:
    """Real Hudi leaves its files out; in version 6 it initializes nothing."""
    table = Table(golden(version, "cow_basic").table)
    real = listing_of(table)
    drop_metadata_table(table.storage)
    table.data.to_inflight(table.data.load().commits().instants[-1].requested_time, Action.SAVEPOINT)
    creation(table).initialize_table()
    assert listing_of(table) == real


def without_docs(schema: Any) -> Any:
    if isinstance(schema, list):
        return [without_docs(item) for item in schema]
    if isinstance(schema, dict):
        return {name: without_docs(item) for name, item in schema.items() if name != "doc"}
    return schema


@pytest.mark.parametrize("version", VERSIONS)
def test_the_first_commit_says_what_real_hudi_says(golden: Golden, version: str) -> None:
    real, table = Table(golden(version, "mdt_all_mor").table), Table(golden(version, "mdt_all_mor").table)
    drop_metadata_table(table.storage)
    creation(table).initialize_table()
    mine, theirs = (
        (found.metadata_timeline, found.metadata_timeline.load().commits().instants[0]) for found in (table, real)
    )
    content = mine[0].read_of(mine[1])
    expected = theirs[0].read_of(theirs[1])
    schema, real_schema = (json.loads(found.pop("extraMetadata")["schema"]) for found in (content, expected))
    assert schema == without_docs(real_schema)
    (stat,), (real_stat,) = content["partitionToWriteStats"]["files"], expected["partitionToWriteStats"]["files"]
    for item in (stat, real_stat):
        item["path"] = item["path"].partition("_")[0]
        item["fileSizeInBytes"] = item["totalWriteBytes"] = item["runtimeStats"] = None
    assert stat["numWrites"] == stat["numInserts"] == 1 + len(listing_of(table))
    stat["numWrites"] = stat["numInserts"] = 1  # real Hudi began on an empty table
    assert content == expected
    for state in (State.REQUESTED, State.INFLIGHT):
        assert mine[0].read_any(mine[1].requested_time, Action.DELTA_COMMIT, state) == {}


@pytest.mark.parametrize("version", VERSIONS)
def test_another_partition_begins_under_the_next_instant(golden: Golden, version: str) -> None:
    table = Table(golden(version, "cow_basic").table)
    drop_metadata_table(table.storage)
    with pytest.raises(MetadataUnavailableError):
        creation(table).begin(filters(table, count=3))
    creation(table).initialize_table()
    config = creation(table).begin(filters(table, count=3))
    assert config.metadata_partitions == {"files", "bloom_filters"}
    assert METADATA.read(config.raw, path="") == ("bloom_filters", "files")
    first, second = (item.requested_time for item in table.metadata_timeline.load().commits())
    assert int(second) == int(first) + 1
    groups = sorted((table.path / ROOT / "bloom_filters").glob(".bloom-filters-*.log.1_0-0-0"))
    assert [path.stat().st_size for path in groups] == [63 + len(second)] * 3
    found = MetadataTable(table.storage, config, table.data.load())
    (partition, files), *_ = sorted(listing_of(table).items())
    names = [name for name in files if name.endswith(".parquet")]
    assert not found.bloom_filters(partition, names)
    assert found.expression_blooms("bloom_filters", partition, ["x"]) == {}


def filters(table: Table, *, count: int) -> Initialization:
    """A partition of deleted filters: records that any reader passes over."""
    datum = {"type": 4, "BloomFilterMetadata": {"type": "", "timestamp": "0", "bloomFilter": b"", "isDeleted": True}}
    records = [(f"key{number}", datum) for number in range(20)]
    return Initialization(
        "bloom_filters", numbered_file_ids("bloom-filters-", count), lambda target: target.write(table.storage, records)
    )


@pytest.mark.parametrize("calls", range(3))
@pytest.mark.parametrize("version", tiered(VERSIONS, ["6", "9"]))
def test_nothing_is_listed_behind_a_lost_lock(golden: Golden, version: str, calls: int) -> None:
    table = Table(golden(version, "cow_basic").table)
    drop_metadata_table(table.storage)
    with pytest.raises(LockError):
        creation(table, guard=lost_after(calls)).initialize_table()
    assert table.config.metadata_partitions == frozenset()
    creation(table).initialize_table()
    with pytest.raises(LockError):
        creation(table, guard=lost_after(calls)).begin(filters(table, count=3))
    assert table.config.metadata_partitions == {"files"}
    assert creation(table).begin(filters(table, count=3)).metadata_partitions == {"files", "bloom_filters"}
    assert len(table.records()["bloom_filters"]) == 20


@pytest.mark.parametrize("version", VERSIONS)
def test_nothing_is_listed_that_lacks_what_another_writer_completed(golden: Golden, version: str) -> None:
    """One that does without the lock."""
    table = Table(golden(version, "cow_basic").table)
    drop_metadata_table(table.storage)
    creation(table).initialize_table()
    before, last = table.data.load(), table.data.load().commits().last()
    assert last is not None
    initialization = filters(table, count=3)

    def fill(target: NewPartition) -> list[NewBaseFile]:
        instant = table.new_instant()
        table.data.create_requested(instant, Action.COMMIT)
        table.data.to_inflight(instant, Action.COMMIT)
        table.data.complete(instant, Action.COMMIT, table.data.read_details(last), table.later(instant))
        return list(initialization.fill(target))

    with pytest.raises(ConflictError, match="lacks it"):
        creation(table).begin(replace(initialization, fill=fill))
    with pytest.raises(ConflictError, match="lacks it"):
        creation(table).begin(initialization, before)
    assert table.config.metadata_partitions == {"files"}
    assert creation(table).begin(initialization).metadata_partitions == {"files", "bloom_filters"}


def test_definitions_are_written_as_real_hudi_writes_them(golden: Golden) -> None:
    table = Table(golden("9", "mdt_all_mor").table)
    real = table.path.joinpath(".hoodie/.index_defs/index.json").read_bytes()
    assert render_index_definitions(load_index_definitions(table.storage, table.config)) == real


def test_definitions_of_hudi_1_0_get_the_version_that_1_2_asks_for(golden: Golden) -> None:
    table = Table(golden("8", "mdt_all_mor").table)
    real = json.loads(table.path.joinpath(".hoodie/.index_defs/index.json").read_bytes())["indexDefinitions"]
    written = json.loads(render_index_definitions(load_index_definitions(table.storage, table.config)))[
        "indexDefinitions"
    ]
    assert written == {name: {**item, "version": "V1"} for name, item in real.items()}
    assert "expr_index_idx_day" in written


def test_readers_find_the_rows_by_what_we_began(golden: Golden) -> None:
    table = Table(golden("9", "non_partitioned_mor").table)
    assert "files" not in table.config.metadata_partitions
    config: TableConfig = creation(table).initialize_table()
    listing = MetadataTable(table.storage, config, table.data.load())
    assert listing.partitions() == [""]
    on_disk = {
        path.name: path.stat().st_size
        for path in table.path.iterdir()
        if path.name.endswith(".parquet") or ".log." in path.name
    }
    assert {info.name: info.size for info in listing.files("") if not info.name.endswith(".crc")} == {
        name: size for name, size in on_disk.items() if not name.endswith(".crc")
    }


@pytest.mark.parametrize("case", PENDING)
@pytest.mark.parametrize("version", ["8", "9"])
def test_files_of_pending_instants_stay_out(golden: Golden, version: str, case: str) -> None:
    table = Table(golden(version, case).table)
    real = listing_of(table)
    drop_metadata_table(table.storage)
    creation(table).initialize_table()
    assert listing_of(table) == real


def test_real_hudi_lists_one_byte_where_a_rolled_back_log_has_its_size(golden: Golden) -> None:
    """The one difference of the golden tables: what Hudi 0.15's rollback says of the log files that the failed commit
    had written.
    """
    table = Table(golden(*WRONG_SIZES).table)
    real = listing_of(table)
    drop_metadata_table(table.storage)
    creation(table).initialize_table()
    ours = listing_of(table)
    assert {partition: set(files) for partition, files in ours.items()} == {
        partition: set(files) for partition, files in real.items()
    }
    wrong = {
        (partition, name)
        for partition, files in real.items()
        for name, size in files.items()
        if ours[partition][name] != size
    }
    assert {real[partition][name] for partition, name in wrong} == {1}
    assert all(
        (table.path / partition / name).stat().st_size == size
        for partition, files in ours.items()
        for name, size in files.items()
    )
