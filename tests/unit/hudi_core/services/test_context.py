"""A table as services see it: its metadata table, clock, lock and claims."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import version as installed_version

import pytest

from hudi_core.errors import ConflictError
from hudi_core.metadata_table.partition_type import FILES_PARTITION
from hudi_core.services.context import provenance
from hudi_core.transaction.claim_file import current_claim
from hudi_core.transaction.owner import Owner
from tests.support.changed_tables import an_owner, leftovers, open_context
from tests.support.golden_cleans import without_metadata_table
from tests.support.golden_data import GoldenCase

Golden = Callable[[str, str], GoldenCase]
VERSIONS = ["6", "8", "9"]
INSTANT = "20300101000000000"


@pytest.mark.parametrize("version", VERSIONS)
def test_a_table_with_a_metadata_table_publishes_there(golden: Golden, version: str) -> None:
    table = golden(version, "cow_basic").table
    context = open_context(table)
    assert context.has_metadata_table
    assert context.metadata_publisher() is not None
    without = open_context(without_metadata_table(table))
    assert not without.has_metadata_table
    assert without.metadata_publisher() is None


def test_reloaded_has_the_properties_of_now(golden: Golden) -> None:
    table = golden("9", "cow_basic").table
    context = open_context(table, {"a": "b"})
    without_metadata_table(table)
    assert FILES_PARTITION in context.config.metadata_partitions
    reloaded = context.reloaded()
    assert not reloaded.has_metadata_table
    assert (reloaded.uri, reloaded.options, reloaded.active) == (context.uri, context.options, context.active)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_new_instant_is_after_the_timeline(golden: Golden, version: str) -> None:
    context = open_context(golden(version, "mor_basic").table)
    timeline = context.active.load()
    with context.lock(an_owner()):
        fresh = context.new_instant(timeline)
    assert len(fresh) == 17
    assert fresh > max(item.requested_time for item in timeline)
    assert fresh > max(item.completed_at for item in timeline if item.is_completed)


def test_the_lock_is_taken_on_entry_and_let_go(golden: Golden) -> None:
    table = golden("9", "cow_basic").table
    lock = open_context(table).lock(an_owner())
    assert leftovers(table) == []
    with lock:
        assert leftovers(table) != []
    assert leftovers(table) == []


def test_one_owner_claims_an_instant(golden: Golden) -> None:
    context = open_context(golden("9", "cow_basic").table)
    with context.claim(INSTANT, an_owner()):
        assert current_claim(context.storage, INSTANT) is not None
        with pytest.raises(ConflictError):
            context.claim(INSTANT, an_owner())


def test_the_version_is_that_of_the_distribution() -> None:
    assert provenance(Owner.current("x", "run-7"))["airflow_hudi.version"] == installed_version("airflow-hudi-engine")


def test_owner_and_run_are_named() -> None:
    owner = Owner.current("airflow:d/t/r", "manual__2026")
    made = provenance(owner)
    assert made["airflow_hudi.run_id"] == "manual__2026"
    assert made["airflow_hudi.owner"].startswith("airflow:d/t/r (process ")


def test_a_run_without_a_name_gets_an_id_of_its_own() -> None:
    assert Owner.current().run_id != Owner.current().run_id
