"""Two writes to one partition, of which the later one completes first: the range that it records is above that of the
other, and lacks its rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_core.engine.local import LocalEngine
from hudi_core.metadata_table.instants import PREFIX
from hudi_core.metadata_table.read import completeness
from hudi_core.metadata_table.read.metadata_table import MetadataTable
from hudi_core.services.metadata.maintain import update_metadata
from hudi_core.table import HudiTable
from hudi_core.timeline.actions.write_stats import WriteStat
from hudi_core.timeline.instant import Action, Instant, State
from hudi_core.transaction.owner import Owner
from tests.support.golden_archives import archive_these
from tests.support.golden_cleans import context_of
from tests.support.golden_data import GoldenCase
from tests.support.metadata_records import Table
from tests.support.tiers import tiered
from tests.unit.hudi_core.services.compaction.test_job_partition_range import PARTITION, record

Golden = Callable[[str, str], GoldenCase]
Stats = Mapping[str, tuple[WriteStat, ...]]
NEVER = {"hoodie.metadata.compact.max.delta.commits": "1000", "spark.sql.session.timeZone": "UTC"}


def stats_of(table: Table, partition: str) -> Stats:
    """What a commit of the table says of its files in a partition."""
    for item in table.data.load().commits():
        stats = table.data.read_commit(item).partition_to_write_stats.get(partition)
        if stats:
            return {partition: stats}
    raise LookupError(partition)


def overlapping(table: Table, first: Stats, second: Stats) -> tuple[str, str]:
    """Two writes; the second one completes first, and records that no quantity is above -1."""
    early = table.new_instant()
    late = str(int(early) + 1)
    for instant in (early, late):
        table.data.create_requested(instant, Action.DELTA_COMMIT, b"")
        table.data.to_inflight(instant, Action.DELTA_COMMIT)
    record(table, late, -1, second)
    record(table, early, 10**6, first)
    return early, late


def listed(table: Table) -> list[str]:
    """The partitions of the rows that a query for quantities finds."""
    batches = HudiTable.open(str(table.path)).read(where="qty >= 0", metadata="on").batches
    return sorted({name for batch in batches for name in batch.column("_hoodie_partition_path").to_pylist()})


def metadata_of(table: Table) -> MetadataTable:
    return MetadataTable(table.storage, table.config, table.data.load())


@pytest.mark.parametrize("version", tiered(["8", "9"], ["9"]))
def test_the_partition_is_read_and_an_update_widens_its_range(golden: Golden, version: str) -> None:
    table = Table(golden(version, "mdt_all_cow").table)
    assert not metadata_of(table).may_have_narrow_ranges
    stats = stats_of(table, PARTITION)
    overlapping(table, stats, stats)
    assert metadata_of(table).may_have_narrow_ranges
    assert PARTITION in listed(table)
    context = context_of(table.path, NEVER)
    assert update_metadata(context, LocalEngine(1), Owner.current("test"), 3).widened == (PARTITION,)
    assert f"{PREFIX}partition_stats" in table.config.raw
    assert not metadata_of(table).may_have_narrow_ranges
    assert PARTITION in listed(table)
    assert update_metadata(context, LocalEngine(1), Owner.current("test"), 4).widened == ()


def test_writes_to_different_partitions_hide_nothing(golden: Golden) -> None:
    table = Table(golden("9", "mdt_all_cow").table)
    overlapping(table, stats_of(table, "2024-01-02"), stats_of(table, PARTITION))
    assert not metadata_of(table).may_have_narrow_ranges
    assert PARTITION not in listed(table), "the range of this test is used"


def test_they_may_be_archived(golden: Golden) -> None:
    table = Table(golden("9", "mdt_all_cow").table)
    stats = stats_of(table, PARTITION)
    pair = overlapping(table, stats, stats)
    archive_these(table.path, [item for item in table.data.load().completed() if item.requested_time in pair])
    assert not set(pair) & table.data.load().requested_times
    assert metadata_of(table).may_have_narrow_ranges


def test_of_many_it_is_not_known(golden: Golden, monkeypatch: pytest.MonkeyPatch) -> None:
    table = Table(golden("9", "mdt_all_cow").table)
    overlapping(table, stats_of(table, "2024-01-02"), stats_of(table, PARTITION))
    monkeypatch.setattr(completeness, "_COMPARED", 0)
    assert metadata_of(table).may_have_narrow_ranges


def test_a_rewrite_may_be_overtaken_by_any_number_of_commits(golden: Golden, monkeypatch: pytest.MonkeyPatch) -> None:
    """It brings no new values. The control: another write that is overtaken by as many."""
    table = Table(golden("9", "mdt_all_cow").table)
    stats, early = stats_of(table, PARTITION), table.new_instant()
    instants = [str(int(early) + number) for number in range(4)]
    for instant in instants:
        table.data.create_requested(instant, Action.DELTA_COMMIT, b"")
        table.data.to_inflight(instant, Action.DELTA_COMMIT)
    for instant in reversed(instants):
        record(table, instant, -1, stats)
    monkeypatch.setattr(completeness, "_COMPARED", 2)
    assert metadata_of(table).may_have_narrow_ranges
    operations = {table.data.read_commit(item).operation_type for item in table.data.load().commits()}
    monkeypatch.setattr(completeness, "_COMPARED", 64)
    monkeypatch.setattr(completeness, "REWRITES", operations)
    assert not metadata_of(table).may_have_narrow_ranges


def test_a_query_needs_no_file_of_the_archive(golden: Golden) -> None:
    """An archiver may have removed it behind the manifest that names it."""
    table = Table(golden("9", "mdt_all_cow").table)
    first = next(iter(table.data.load().commits()))
    archive_these(table.path, [first])
    for file in (table.path / ".hoodie" / "timeline" / "history").glob("*.parquet"):
        file.unlink()
    assert metadata_of(table).may_have_narrow_ranges
    assert PARTITION in listed(table)


@given(st.lists(st.tuples(st.integers(100, 150), st.integers(0, 20)), max_size=20, unique_by=lambda pair: pair[0]))
def test_a_commit_is_overtaken_by_later_ones_that_completed_first(spans: list[tuple[int, int]]) -> None:
    commits = [
        Instant(str(begin), Action.DELTA_COMMIT, State.COMPLETED, str(begin + length)) for begin, length in spans
    ]
    expected = {}
    for late in commits:
        found = {
            early
            for early in commits
            if late.requested_time < early.requested_time and early.completed_at < late.completed_at
        }
        if found:
            expected[late] = found
    assert {late: set(found) for late, found in completeness._overtaken(commits)} == expected


def test_version_6_merges_in_the_order_of_writing(golden: Golden) -> None:
    """But writers of Hudi 0.15 do not know the ranges of partitions: no query may rely on those of 1.0.2."""
    metadata = metadata_of(Table(golden("6", "mdt_all_cow").table))
    assert not metadata.completeness.has_overtaken_ranges
    assert metadata.may_have_narrow_ranges
