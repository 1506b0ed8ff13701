"""Which partitions of the metadata table began when a commit was complete."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hudi_core.metadata_table.read.file_group import ROOT
from hudi_core.metadata_table.timeline import MetadataTimeline
from hudi_core.metadata_table.write.restore_reach import initialized_since
from tests.support.golden_data import GoldenCase
from tests.support.metadata_records import Table

Golden = Callable[[str, str], GoldenCase]


def initialized(table: Table) -> dict[str, frozenset[str]]:
    """What began since each commit of the table."""
    metadata_timeline = MetadataTimeline(table.storage, table.config)
    return {
        item.requested_time: initialized_since(table.storage, table.config, metadata_timeline, item)
        for item in table.data.load().commits()
    }


@pytest.mark.parametrize("version", ["6", "8", "9"])
@pytest.mark.parametrize("case", ["mdt_all_cow", "mdt_all_mor", "mdt_record_index_lookup"])
def test_what_began_with_the_table_holds_every_commit(golden: Golden, version: str, case: str) -> None:
    """All but the indexes that CREATE INDEX made behind the first commit, which their base files hold."""
    table = Table(golden(version, case).table)
    first, *others = initialized(table).values()
    assert first == {
        name for name in table.config.metadata_partitions if name.startswith(("expr_index_", "secondary_index_"))
    }
    assert set(others) == {frozenset()}


@pytest.mark.parametrize("version", ["8", "9"])
def test_an_index_that_is_being_built_began_after_all(golden: Golden, version: str) -> None:
    """Its deltacommit is pending: what it holds is not known."""
    table = Table(golden(version, "mdt_all_cow").table)
    metadata_timeline = table.metadata_timeline
    (made,) = table.path.joinpath(metadata_timeline.folder).glob("00000000000000002_*.deltacommit")
    made.unlink()
    assert set(initialized(table).values()) >= {frozenset({"bloom_filters"})}


def test_version_6_tells_by_the_instant_that_a_partition_began_at(golden: Golden) -> None:
    table = Table(golden("6", "mdt_all_cow").table)
    *_, before, last = table.data.load().commits().instants
    for path in sorted(table.path.joinpath(ROOT, "record_index").iterdir()):
        if "_00000000000000" in path.name:
            stem = next(part for part in path.name.split("_") if part.startswith("00000000000000"))[:17]
            path.rename(path.with_name(path.name.replace(stem, f"{before.requested_time}010")))
    found = initialized(table)
    assert found[before.requested_time] == {"record_index"}
    assert found[last.requested_time] == frozenset()


def test_a_folder_without_files_blocks_no_writer(golden: Golden) -> None:
    table = Table(golden("9", "mdt_all_cow").table)
    for path in table.path.joinpath(ROOT, "record_index").iterdir():
        path.unlink()
    assert set(initialized(table).values()) >= {frozenset()}
