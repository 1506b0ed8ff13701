"""Lookups by readers whose properties are older than the drop or the resize of a row-level index: none of them takes
half an index for a whole one.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import pyarrow as pa
import pytest

from hudi_core.config.table_config import METADATA, update_properties
from hudi_core.engine.local import LocalEngine
from hudi_core.errors import CorruptFileError
from hudi_core.expr.bind import bind
from hudi_core.expr.sql import parse_predicate
from hudi_core.index.key_lookups import groups_of_keys, groups_of_values
from hudi_core.metadata_table.read.file_group import ROOT
from hudi_core.metadata_table.read.metadata_table import MetadataTable
from hudi_core.model.names import FileGroupId
from hudi_core.services.indexing.planner import IndexingService
from hudi_core.table import HudiTable
from hudi_core.transaction.owner import Owner
from tests.support.damaged_tables import DamagedTable
from tests.support.golden_cleans import context_of
from tests.support.golden_data import GoldenCase
from tests.support.metadata_records import Table
from tests.support.tiers import tiered

Golden = Callable[[str, str], GoldenCase]
VERSIONS = ("6", "8", "9")


def metadata_of(table: Table) -> MetadataTable:
    return MetadataTable(table.storage, table.config, table.data.load())


def current_of(table: Table) -> frozenset[FileGroupId]:
    return frozenset(item.file_group for item in HudiTable.open(str(table.path)).files(metadata="off"))


def keys_of(table: Table) -> list[str]:
    return sorted(table.live()["record_index"])


def delisted(table: Table, name: str) -> None:
    update_properties(table.storage, {METADATA.name: ",".join(sorted(table.config.metadata_partitions - {name}))})


def take_groups(table: Table, name: str, numbers: Callable[[int], bool]) -> int:
    """Deletes the files of some file groups of an index, one after the other, as a process that drops it does."""
    gone = 0
    for path in (table.path / ROOT / name).iterdir():
        found = re.search(r"-(\d{4})-\d+_", path.name)
        if found is not None and numbers(int(found[1])):
            path.unlink()
            gone += 1
    return gone


@pytest.mark.parametrize("version", VERSIONS)
def test_an_incomplete_index_is_not_used(golden: Golden, version: str) -> None:
    table = Table(golden(version, "mdt_record_index_lookup").table)
    keys, metadata = keys_of(table), metadata_of(table)
    every = groups_of_keys(metadata_of(table), keys, current_of(table))
    assert every
    delisted(table, "record_index")
    assert take_groups(table, "record_index", lambda number: number >= 4)
    found = metadata.record_locations(keys)
    assert len(found) < len(keys), "by the hashes over four file groups"
    assert groups_of_keys(metadata, keys, current_of(table)) is None
    assert groups_of_keys(metadata_of(table), keys, current_of(table)) is None


@pytest.mark.parametrize("version", tiered(VERSIONS, ["6", "9"]))
def test_nor_is_one_that_came_back_meanwhile(golden: Golden, version: str) -> None:
    table = Table(golden(version, "mdt_record_index_lookup").table)
    keys, metadata = keys_of(table), metadata_of(table)
    options = {"hoodie.metadata.record.index.enable": "true", "airflow_hudi.indexing.file_groups": "3"}
    context = context_of(table.path, options)
    planned = IndexingService().schedule(context, Owner.current("test"), dry_run=False).instant
    assert planned is not None
    kept = {path: path.read_bytes() for path in (table.path / ROOT / "record_index").iterdir()}
    take_groups(table, "record_index", lambda number: number >= 3)
    assert len(metadata.record_locations(keys)) < len(keys)
    for path, data in kept.items():
        path.write_bytes(data)
    IndexingService().run(context, planned, LocalEngine(1), Owner.current("test"), None)
    assert "record_index" in table.config.metadata_partitions
    assert groups_of_keys(metadata, keys, current_of(table)) is None, "three file groups, and three again"
    assert groups_of_keys(metadata_of(table), keys, current_of(table))


@pytest.mark.parametrize("version", VERSIONS)
def test_one_whose_files_go_during_a_lookup_fails_no_query(golden: Golden, version: str) -> None:
    table = Table(golden(version, "mdt_record_index_lookup").table)
    keys, metadata = keys_of(table), metadata_of(table)
    metadata.record_locations(keys[:1])
    delisted(table, "record_index")
    table.storage.delete_folder(f"{ROOT}/record_index")
    assert groups_of_keys(metadata, keys, current_of(table)) is None


@pytest.mark.parametrize("version", VERSIONS)
def test_a_listed_index_that_lacks_a_file_group_is_damaged(golden: Golden, version: str) -> None:
    table = Table(golden(version, "mdt_record_index_lookup").table)
    keys = keys_of(table)
    assert take_groups(table, "record_index", lambda number: number == 0)
    with pytest.raises(CorruptFileError, match="number 0 is not there"):
        groups_of_keys(metadata_of(table), keys, current_of(table))


@pytest.mark.parametrize("version", ["8", "9"])
def test_an_incomplete_secondary_index_is_not_used(golden: Golden, version: str) -> None:
    table = Table(golden(version, "mdt_all_mor").table)
    name = "secondary_index_idx_name"
    metadata, opened = metadata_of(table), HudiTable.open(str(table.path))
    some = next(row["name"] for batch in opened.read("snapshot").batches for row in batch.to_pylist() if row["name"])
    bound = bind(parse_predicate(f"name = '{some}'"), pa.schema([("name", pa.string())]))
    assert groups_of_values(metadata_of(table), bound, (), current_of(table))
    delisted(table, name)
    assert take_groups(table, name, lambda number: number > 0)
    assert groups_of_values(metadata, bound, (), current_of(table)) is None


def test_a_current_index_is_used(golden: Golden) -> None:
    """Also when commits came since: their files are news."""
    table = Table(golden("8", "mdt_record_index_lookup").table)
    keys, metadata = keys_of(table), metadata_of(table)
    every = groups_of_keys(metadata, keys, current_of(table))
    (table.path / ROOT / "record_index" / f".record-index-0000-0_{table.new_instant()}.log.1_9-9-9").write_bytes(b"")
    assert groups_of_keys(metadata, keys, current_of(table)) == every


@pytest.mark.parametrize("version", VERSIONS)
def test_a_location_that_is_no_file_group_is_not_believed(golden: Golden, version: str) -> None:
    """0.15.0 leaves such behind an insert_overwrite by rows of Spark: it records the file groups of another attempt."""
    table = Table(golden(version, "mdt_record_index_lookup").table)
    row = next(row for batch in HudiTable.open(str(table.path)).read().batches for row in batch.to_pylist())
    key, keys = row["_hoodie_record_key"], [row["_hoodie_record_key"]]
    assert groups_of_keys(metadata_of(table), keys, current_of(table))
    damaged = DamagedTable(table.path)
    datum = damaged.raw("record_index")[key]
    location = datum["recordIndexMetadata"]
    lost = {**datum, "recordIndexMetadata": {**location, "fileIdLowBits": location["fileIdLowBits"] ^ 1}}
    damaged.write({"record_index": [(key, lost)]})
    assert metadata_of(table).record_locations(keys)
    assert groups_of_keys(metadata_of(table), keys, current_of(table)) is None
    found = HudiTable.open(str(table.path)).read(where=f"_hoodie_record_key = '{key}'").batches
    assert [item for batch in found for item in batch.to_pylist()] == [row]
