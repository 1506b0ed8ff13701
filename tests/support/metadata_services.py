"""Metadata tables with instants and file slices for their table services."""

from __future__ import annotations

from collections.abc import Callable

from hudi_core.config.services.retention_config import ArchiveConfig
from hudi_core.metadata_table.read.file_group import ROOT
from hudi_core.metadata_table.records.file_statistics import FileChanges
from hudi_core.metadata_table.timeline import MetadataTimeline
from hudi_core.model.names import parse_data_file
from hudi_core.storage.base import Storage
from hudi_core.timeline.instant import Action, Instant, State
from hudi_core.transaction.instant_generator import InstantClock
from tests.support.golden_data import GoldenCase
from tests.support.metadata_records import Table, complete_clean
from tests.unit.hudi_core.metadata_table.services.test_compaction import compaction

Golden = Callable[[str, str], GoldenCase]
VERSIONS = ("6", "8", "9")
SMALL = ArchiveConfig(keep_min=2, keep_max=3)


def clock(table: Table) -> InstantClock:
    """Which does not wait."""
    return InstantClock(table.config.timezone, sleep=lambda seconds: None)


def metadata_timeline_of(table: Table, storage: Storage | None = None) -> MetadataTimeline:
    return MetadataTimeline(storage or table.storage, table.config, clock(table))


def publish_cleans(table: Table, times: int) -> None:
    """Some cleans of the data table that deleted nothing."""
    for _ in range(times):
        latest = max(
            item.completed_at[:17]
            for timeline in (table.data.load(), table.metadata_timeline.load())
            for item in timeline
        )
        instant = f"{int(latest[:17]) + 1}"
        table.data.create_requested(instant, Action.CLEAN, b"plan")
        table.publisher().publish_deletes(instant, FileChanges())
        complete_clean(table, instant)


def many_slices(golden: Golden, version: str) -> Table:
    """A metadata table that was compacted several times, with deltacommits after the last compaction."""
    table = Table(golden(version, "mdt_all_mor_compacted").table)
    for _ in range(2):
        publish_cleans(table, 1)
        compaction(table).run(trigger=1)
    publish_cleans(table, 3)
    return table


def data_files(table: Table) -> int:
    return sum(1 for path in (table.path / ROOT).glob("*/*") if parse_data_file(path.name) is not None)


def delta_commits(count: int) -> list[Instant]:
    """Completed ones at the instants 1, 2, …"""
    times = [f"{number:017d}" for number in range(1, count + 1)]
    return [Instant(time, Action.DELTA_COMMIT, State.COMPLETED, f"{time}5", Action.DELTA_COMMIT) for time in times]
