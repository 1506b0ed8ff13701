"""Every index that we initialize on golden tables whose metadata table we dropped holds what real Hudi's held."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from hudi_core.engine.local import LocalEngine
from hudi_core.engine.serializer import to_text
from hudi_core.metadata_table.indexed_table import IndexedTable, load_index_definitions, put_index_definitions
from hudi_core.metadata_table.initialize.exchange import (
    files_of_all_slices,
    files_of_latest_slices,
    initialization_from_files,
    initialization_from_rows,
)
from hudi_core.metadata_table.initialize.initialize import Initialization, committed_files
from hudi_core.metadata_table.initialize.target import NewBaseFile, NewPartition
from hudi_core.metadata_table.partition_type import is_row_level
from hudi_core.metadata_table.partitions.registry import partition_type_of
from hudi_core.metadata_table.read.file_group import ROOT
from hudi_core.metadata_table.read.row_level import RecordLocation
from hudi_core.metadata_table.write.lifetime import drop_metadata_table
from hudi_core.metadata_table.write.staged_logs import Workers
from hudi_core.model.names import WriteToken, parse_base_file
from hudi_core.table import HudiTable
from hudi_core.view.file_group import FileSlice
from hudi_core.view.listing import StorageListing
from tests.support.golden_data import GoldenCase
from tests.support.metadata_records import Records, Table, comparable
from tests.support.slice_readers import spec_of
from tests.support.tiers import tiered
from tests.unit.hudi_core.metadata_table.initialize.test_initialize import creation
from tests.unit.hudi_core.metadata_table.services.test_compaction import compaction

Golden = Callable[[str, str], GoldenCase]
VERSIONS = ("6", "8", "9")
WRITER = {"spark.sql.session.timeZone": "UTC"}


class Builder:
    """Initializes the indexes of a table, with as many file groups as real Hudi's had."""

    def __init__(self, table: Table, groups: dict[str, int]) -> None:
        self.table = table
        self.groups = groups
        self.metadata_snapshot = HudiTable.open(str(table.path))
        self.definitions = load_index_definitions(table.storage, table.config)
        self.indexed = IndexedTable(table.config, self.metadata_snapshot.schema(), self.definitions, WRITER)

    def initialization(self, name: str) -> Initialization:
        if is_row_level(name):
            return self._row_level(name)
        partition_type = partition_type_of(name, self.indexed)
        data = self.table.data.load()
        committed = committed_files(StorageListing(self.table.storage), data)
        files = (
            files_of_all_slices(committed)
            if partition_type.needs.older_slices
            else files_of_latest_slices(self._slices())
        )
        found = initialization_from_files(partition_type, self.indexed, files, "0", self._workers())
        return Initialization(found.name, partition_type.file_ids(self.groups[name]), found.fill, found.definition)

    def _row_level(self, name: str) -> Initialization:
        found = self.metadata_snapshot
        spec = to_text(spec_of(found.config, found.schema(), found.timeline()))
        counts, zone = {None: self.groups[name]}, self.table.config.timezone
        return initialization_from_rows(name, self.indexed, counts, self._slices(), spec, self._workers(), zone)

    def _slices(self) -> list[FileSlice]:
        view = self.metadata_snapshot.view()
        return [item for partition in view.partitions() for item in view.latest_merged_slices(partition)]

    def _workers(self) -> Workers:
        return Workers(LocalEngine(2), 3, str(self.table.path), {})


def groups_of(table: Table) -> dict[str, int]:
    folders = [path for path in (table.path / ROOT).iterdir() if path.name != ".hoodie"]
    return {
        folder.name: len({path.name.split("_")[0].lstrip(".") for path in folder.glob(".*.log.1_0-0-0")})
        for folder in folders
    }


def timeless(records: Records) -> Records:
    """Without the instants that an index which was initialized later cannot know: those of the commits that wrote a
    filter, or brought a row.
    """
    return {
        name: {key: _timeless(value) for key, value in items.items()} for name, items in comparable(records).items()
    }


def _timeless(value: Any) -> Any:
    if isinstance(value, RecordLocation):
        return value.partition, value.file_id
    return (*value[:2], value[3]) if isinstance(value, tuple) and len(value) == 4 else value


def without_filters(items: dict[str, Any]) -> dict[str, Any]:
    """Hudi 1.2 makes the filters of expressions for as many keys as its writer's options say (see
    tests/golden).
    """
    return {key: None if isinstance(value, tuple) else value for key, value in items.items()}


@pytest.mark.slow
@pytest.mark.parametrize("case", ["mdt_all_cow", "mdt_all_mor"])
@pytest.mark.parametrize("version", VERSIONS)
def test_every_index_holds_what_real_hudis_held(golden: Golden, version: str, case: str) -> None:
    table = Table(golden(version, case).table)
    real, listed, groups = timeless(table.live()), sorted(table.config.metadata_partitions), groups_of(table)
    definitions = load_index_definitions(table.storage, table.config)
    drop_metadata_table(table.storage)
    creation(table).initialize_table()
    put_index_definitions(table.storage, table.config, [], ("column_stats", "record_index"))
    for name in listed:
        creation(table).begin(Builder(table, groups).initialization(name))
    assert sorted(table.config.metadata_partitions) == listed
    assert groups_of(table) == groups
    ours = timeless(table.live())
    for name in listed:
        if name.startswith("expr_index_"):
            # It is initialized with the latest slices, and real Hudi's was there before them.
            assert ours[name], name
            assert without_filters(ours[name]).items() <= without_filters(real[name]).items(), name
        else:
            assert ours[name] == real[name], name
    defined = load_index_definitions(table.storage, table.config)
    assert defined == definitions
    done = compaction(table).run(trigger=1)
    assert done.files >= len(listed)
    assert timeless(table.live()) == ours


@pytest.mark.parametrize("version", tiered(VERSIONS, ["6", "9"]))
def test_what_attempts_that_lost_have_written_does_not_count(golden: Golden, version: str) -> None:
    """A speculative task of the exchange has closed its base file beside the winner's."""
    table = Table(golden(version, "mdt_all_mor").table)
    real, groups = timeless(table.live()), groups_of(table)
    drop_metadata_table(table.storage)
    creation(table).initialize_table()
    initialization = Builder(table, groups).initialization("record_index")
    left: list[str] = []

    def fill(target: NewPartition) -> list[NewBaseFile]:
        written = list(initialization.fill(target))
        winner = parse_base_file(written[0].name)
        loser = f"{target.folder}/{replace(winner, token=WriteToken(99, 99, 99))}"
        table.storage.write(loser, table.storage.read(f"{target.folder}/{winner}"))
        left.append(loser)
        return written

    creation(table).begin(replace(initialization, fill=fill))
    assert [path for path in left if table.storage.exists(path)] == []
    assert left
    assert timeless(table.live())["record_index"] == real["record_index"]
