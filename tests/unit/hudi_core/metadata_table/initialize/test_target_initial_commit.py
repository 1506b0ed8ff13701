from __future__ import annotations

import pytest

from hudi_core.errors import ExecutionError
from hudi_core.metadata_table.initialize.initialize import Initialization
from hudi_core.metadata_table.initialize.target import NewBaseFile, NewPartition
from hudi_core.metadata_table.partitions.protocol import numbered_file_ids
from hudi_core.metadata_table.read.file_group import ROOT
from hudi_core.metadata_table.write.lifetime import drop_metadata_table, drop_partitions
from hudi_core.timeline.instant import Action
from tests.support.metadata_records import Table
from tests.unit.hudi_core.metadata_table.initialize.test_initialize import VERSIONS, Golden, creation, filters


def test_a_task_that_reports_another_file_is_refused(golden: Golden) -> None:
    table = Table(golden("8", "cow_basic").table)
    drop_metadata_table(table.storage)
    creation(table).initialize_table()

    def fill(target: NewPartition) -> list[NewBaseFile]:
        return [NewBaseFile("bloom-filters-0009-0", f"x_{target.instant}.hfile", 1, 1)]

    with pytest.raises(ExecutionError, match="bloom_filters"):
        creation(table).begin(Initialization("bloom_filters", numbered_file_ids("bloom-filters-", 2), fill))
    assert "bloom_filters" not in table.config.metadata_partitions


@pytest.mark.parametrize("version", VERSIONS)
def test_what_a_dead_attempt_or_a_dropped_index_left_does_not_count(golden: Golden, version: str) -> None:
    table = Table(golden(version, "cow_basic").table)
    drop_metadata_table(table.storage)
    creation(table).initialize_table()
    creation(table).begin(filters(table, count=2))
    config = drop_partitions(table.storage, table.config, ["bloom_filters"])
    stale = table.path / ROOT / "bloom_filters" / ".bloom-filters-0007-0_00000000000000009.log.1_0-0-0"
    stale.parent.mkdir()
    stale.write_bytes(b"stale")
    dead = f"{'0' * 14}777"
    table.metadata_timeline.create_requested(dead, Action.DELTA_COMMIT)
    config = creation(table).begin(filters(table, count=4))
    assert "bloom_filters" in config.metadata_partitions
    assert not stale.exists()
    assert table.metadata_timeline.load().find(dead, Action.DELTA_COMMIT) is None
    assert len(list((table.path / ROOT / "bloom_filters").glob(".bloom-filters-*"))) == 4
