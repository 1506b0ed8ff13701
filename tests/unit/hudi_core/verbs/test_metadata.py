"""The documents of `hudictl metadata create`, `update`, `drop` and `validate`."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from typing import Any

import pytest

from hudi_core.engine.local import LocalEngine
from hudi_core.errors import ConfigError
from hudi_core.table import HudiTable
from hudi_core.transaction.owner import Owner
from hudi_core.verbs.request import verb_class
from hudi_health.table import validate_metadata
from tests.support.golden_cleans import context_of
from tests.support.golden_data import GoldenCase
from tests.support.metadata_records import Table
from tests.support.table_requests import nothing_to_do, perform
from tests.support.tiers import tiered

Golden = Callable[[str, str], GoldenCase]


def performed(table: Table, verb: str, **request: Any) -> dict[str, Any]:
    context = context_of(table.path, {"spark.sql.session.timeZone": "UTC"})
    asked = verb_class(verb)(str(table.path), **request)
    return dict(json.loads(json.dumps(perform(context, asked, LocalEngine(1), Owner.current("test")).document)))


@pytest.mark.parametrize("version", ["6", "9"])
def test_a_metadata_table_comes_and_goes(golden: Golden, version: str) -> None:
    table = Table(golden(version, "mor_basic").table)
    listed = sorted(table.config.metadata_partitions)
    assert performed(table, "metadata_drop") == {"dropped": listed, "partitions": [], "columns": [], "reason": None}
    gone = {"dropped": [], "partitions": [], "columns": [], "reason": "none of them was there"}
    assert performed(table, "metadata_drop") == gone
    created = performed(table, "metadata_create", partitions=("record_index",))
    both = ["files", "record_index"]
    assert created == {"created": both, "partitions": both, "columns": [], "reason": None}
    again = {"created": [], "partitions": both, "columns": [], "reason": "all of them are there"}
    assert performed(table, "metadata_create", partitions=("record_index",)) == again
    assert performed(table, "metadata_validate")["kinds"] == both


@pytest.mark.parametrize("version", ["8", "9"])
def test_columns_initialize_the_index_or_are_added(golden: Golden, version: str) -> None:
    table = Table(golden(version, "mor_basic").table)
    performed(table, "metadata_drop")
    first = performed(table, "metadata_create", columns=("id",))
    assert (first["created"], first["columns"]) == (["column_stats", "files"], ["id"])
    second = performed(table, "metadata_create", columns=("name",))
    assert (second["created"], second["columns"], second["reason"]) == ([], ["name"], None)
    assert performed(table, "metadata_create", columns=("name",))["reason"] == "all of them are there"
    dropped = performed(table, "metadata_drop", columns=("name", "no_such"))
    assert (dropped["dropped"], dropped["columns"], dropped["reason"]) == ([], ["name"], None)
    assert performed(table, "metadata_drop", columns=("name",))["reason"] == "none of them was there"


def test_an_update_with_nothing_to_do(golden: Golden) -> None:
    table = Table(golden("9", "cow_basic").table)
    document = performed(table, "metadata_update", partitions=("files",))
    assert document == {
        "applied": [],
        "rebuilt": [],
        "widened": [],
        "incomplete": [],
        "rolled_back": [],
        "compacted": {"instants": [], "files": 0, "bytes": 0},
        "cleaned": {"instants": [], "files": 0},
        "archived": 0,
        "partitions": sorted(table.config.metadata_partitions),
    }


def test_an_update_of_a_partition_that_is_not_there_is_refused(golden: Golden) -> None:
    with pytest.raises(ConfigError, match="no partition secondary_index_none"):
        performed(Table(golden("9", "cow_basic").table), "metadata_update", partitions=("secondary_index_none",))


@pytest.mark.parametrize("version", tiered(["6", "8", "9"], ["6", "9"]))
def test_what_was_deleted_by_hand_is_created_again(golden: Golden, version: str) -> None:
    table = Table(golden(version, "mor_basic").table)
    listed = sorted(table.config.metadata_partitions)
    request = verb_class("metadata_create")(str(table.path))
    for gone in (".hoodie/metadata", ".hoodie/metadata/files"):
        shutil.rmtree(table.path / gone)
        assert nothing_to_do(context_of(table.path), request) is None
        created = performed(table, "metadata_create")
        assert created == {"created": listed, "partitions": listed, "columns": [], "reason": None}
        assert validate_metadata(HudiTable.open(str(table.path))).is_clean
    assert nothing_to_do(context_of(table.path), request) is not None


def test_an_index_that_was_deleted_by_hand_is_created_again(golden: Golden) -> None:
    table = Table(golden("9", "mor_basic").table)
    listed = sorted(table.config.metadata_partitions)
    shutil.rmtree(table.path / ".hoodie/metadata/column_stats")
    created = performed(table, "metadata_create")
    assert created == {
        "created": ["column_stats", "partition_stats"],
        "partitions": listed,
        "columns": [],
        "reason": None,
    }
    assert validate_metadata(HudiTable.open(str(table.path))).is_clean
