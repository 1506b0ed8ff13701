"""A record index of each data partition, as real Hudi 1.2.0 wrote it (tests/golden/make_metadata_tables.py): caught up,
and created again.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from hudi_core.config.metadata_config import PARTITIONED_RECORD_INDEX_ENABLE, PARTITIONED_RECORD_INDEX_MINIMUM
from hudi_core.errors import UnsupportedError
from hudi_core.metadata_table.indexed_table import load_index_definitions
from hudi_core.metadata_table.read.file_group import ROOT
from hudi_core.metadata_table.read.metadata_table import MetadataTable
from hudi_core.services.metadata.index_drop import drop_metadata
from hudi_core.services.metadata.maintain import create_metadata
from hudi_core.storage.local import LocalStorage
from tests.support.fault_storage import MUTATIONS, FaultPlan, FaultStorage, InjectedCrash
from tests.support.golden_cleans import context_of
from tests.support.golden_data import open_case
from tests.support.metadata_records import Table
from tests.unit.hudi_core.metadata_table.initialize.test_exchange import timeless
from tests.unit.hudi_core.services.metadata.test_catch_up import ENGINE, OWNER, findings, forget, updated

NAME = "partitioned_v9"
INDEX = "record_index"
GROUPS = {PARTITIONED_RECORD_INDEX_MINIMUM.name: "2"}
"""As real Hudi's writer had it."""
OPTIONS = {PARTITIONED_RECORD_INDEX_ENABLE.name: "true", **GROUPS}


@pytest.fixture
def table(written: Path, tmp_path: Path) -> Table:
    return Table(Path(shutil.copytree(written / NAME, tmp_path / NAME)))


def groups(table: Table) -> set[str]:
    return {
        path.name.split("_")[0].lstrip(".")
        for path in (table.path / ROOT / INDEX).iterdir()
        if path.name.startswith((".record-", "record-"))
    }


def locations(table: Table) -> dict[str, object]:
    """By key and data partition, as keys of one partition need not differ from those of another."""
    index = MetadataTable(table.storage, table.config, table.data.load()).record_index
    return {f"{place.partition}/{key}": place.file_id for key, place in index.all()}


@pytest.mark.parametrize("count", [1, 2, 3])
def test_missing_commits_are_applied(table: Table, count: int) -> None:
    """The first one brought the data partitions, whose file groups begin with it."""
    before, real = locations(table), groups(table)
    gone = forget(table, count)
    assert groups(table) == (real if count < 3 else set())
    assert updated(table, options=GROUPS).applied == tuple(gone)
    assert locations(table) == before
    assert groups(table) == real
    assert findings(table) == []


@pytest.mark.slow
@pytest.mark.parametrize("step", [15, pytest.param(1, marks=pytest.mark.conformance)])
def test_killed_anywhere_new_file_groups_begin_again(table: Table, tmp_path: Path, step: int) -> None:
    before, real = locations(table), groups(table)
    forget(table, 3)
    number = 0
    while True:
        copy = Table(Path(shutil.copytree(table.path, tmp_path / f"killed-{number}")))
        plan = FaultPlan(kill_at=number, counts=MUTATIONS)
        try:
            updated(copy, FaultStorage(LocalStorage(copy.path), plan), GROUPS)
        except InjectedCrash:
            updated(copy, options=GROUPS)
            assert locations(copy) == before, number
            assert groups(copy) == real, number
            shutil.rmtree(copy.path)
            number += step
            continue
        break
    assert number > 12


def test_it_is_created_where_the_options_ask_for_it(table: Table) -> None:
    before, real = timeless(table.live()), groups(table)
    assert load_index_definitions(table.storage, table.config)[INDEX].is_partitioned
    listed = table.config.metadata_partitions
    drop_metadata(context_of(table.path), ["files"], OWNER)
    assert create_metadata(context_of(table.path, OPTIONS), listed, ENGINE, OWNER, 3).metadata_partitions == listed
    assert load_index_definitions(table.storage, table.config)[INDEX].is_partitioned
    assert groups(table) == real
    assert timeless(table.live())[INDEX] == before[INDEX]
    assert findings(table) == []


def test_older_table_versions_have_none(tmp_path: Path) -> None:
    path = open_case("8", "cow_basic", tmp_path).table
    with pytest.raises(UnsupportedError, match="needs table version 9"):
        create_metadata(context_of(path, OPTIONS), [INDEX], ENGINE, OWNER)
