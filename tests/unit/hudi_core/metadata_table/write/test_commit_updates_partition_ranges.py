from __future__ import annotations

from collections.abc import Callable

import pytest

from hudi_core.metadata_table.indexed_table import StoredTable
from hudi_core.metadata_table.timeline import MetadataTimeline
from hudi_core.metadata_table.write.commit_updates import nothing_in, range_types, widen_ranges, widening
from hudi_core.metadata_table.write.delta_writer import DeltaWriter
from hudi_core.metadata_table.write.remaining_files import RemainingFiles
from hudi_core.transaction.instant_generator import InstantClock
from tests.support.golden_data import GoldenCase
from tests.support.metadata_records import TOKEN, Table
from tests.support.stale_indexes import StaleTable

Golden = Callable[[str, str], GoldenCase]
Stale = Callable[[str], StaleTable]
PARTITIONS = ("2024-01-01", "2024-01-02")


def widen(table: Table, *partitions: str) -> tuple[str, ...]:
    timeline = MetadataTimeline(table.storage, table.config, InstantClock(table.config.timezone, sleep=lambda _: None))
    writer = DeltaWriter(timeline, TOKEN)
    indexed = StoredTable(table.storage, table.config, {})
    return widen_ranges(writer, indexed, table.config.metadata_partitions, table.data.load(), partitions)


@pytest.mark.parametrize("name", ["narrow_v8", "overtaken_v8"])
def test_ranges_are_widened_where_they_are_too_narrow(stale: Stale, name: str) -> None:
    table = stale(name).table
    before = table.live()["partition_stats"]
    assert widen(table, PARTITIONS[1]) == (PARTITIONS[1],)
    assert widen(table, *PARTITIONS) == (PARTITIONS[0],)
    assert widen(table, *PARTITIONS) == ()
    after = table.live()["partition_stats"]
    assert after.keys() == before.keys()
    for key, item in after.items():
        assert item.range.least.value <= before[key].range.least.value
        assert item.range.greatest.value >= before[key].range.greatest.value
    assert not table.data.load().requested_times & {table.metadata_timeline.load().instants[-1].requested_time}


def test_what_is_wide_enough_is_left_alone(stale: Stale) -> None:
    table = stale("behind_v9").table
    instants = table.metadata_instants()
    assert widen(table, *PARTITIONS) == ()
    assert widen(table) == ()
    assert table.metadata_instants() == instants


def test_no_effect_in_layout_1(golden: Golden) -> None:
    table = Table(golden("6", "mdt_all_mor").table)
    assert widen(table, *PARTITIONS) == ()


def test_what_a_commit_is_about_to_write_counts(stale: Stale) -> None:
    table = stale("behind_v9").table
    indexed = StoredTable(table.storage, table.config, {})
    files = RemainingFiles(table.storage, table.config, "", nothing_in(PARTITIONS))
    names = table.config.metadata_partitions
    assert list(range_types(indexed, names)) == ["partition_stats"]
    assert widening(indexed, names, "1", files).partitions == ()
