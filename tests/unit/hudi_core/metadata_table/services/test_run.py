"""The metadata table's own cleans, archivals and rollbacks: they change nothing of what it holds, wherever they are
killed.
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from hudi_core.config.archive_config import ArchiveConfig
from hudi_core.errors import ConfigError
from hudi_core.metadata_table.file_changes import FileChanges
from hudi_core.metadata_table.read.file_group import ROOT
from hudi_core.metadata_table.services.archival import Archived
from hudi_core.metadata_table.services.run import COMPACTION_TRIGGER, Upkeep, keep_up
from hudi_core.metadata_table.timeline import MetadataTimeline
from hudi_core.model.names import parse_data_file
from hudi_core.storage.base import Storage
from hudi_core.timeline.instant import Action, Instant, State
from hudi_core.transaction.instant_generator import InstantClock
from tests.support.fault_storage import MUTATIONS, FaultPlan, FaultStorage, InjectedCrash
from tests.support.golden_data import GoldenCase
from tests.support.metadata_records import TOKEN, Table, complete_clean
from tests.unit.hudi_core.metadata_table.services.test_compaction import compaction, held

Golden = Callable[[str, str], GoldenCase]
VERSIONS = ("6", "8", "9")
SMALL = ArchiveConfig(keep_min=2, keep_max=3)


def clock(table: Table) -> InstantClock:
    return InstantClock(table.config.timezone, sleep=lambda seconds: None)


def own_of(table: Table, storage: Storage | None = None) -> MetadataTimeline:
    return MetadataTimeline(storage or table.storage, table.config, clock(table))


def tell(table: Table, times: int) -> None:
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
    """A metadata table that was compacted some times, and told of some actions since."""
    table = Table(golden(version, "mdt_all_mor_compacted").table)
    for _ in range(2):
        tell(table, 1)
        compaction(table).run(trigger=1)
    tell(table, 3)
    return table


def data_files(table: Table) -> int:
    return sum(1 for path in (table.path / ROOT).glob("*/*") if parse_data_file(path.name) is not None)


def initialized(count: int) -> list[Instant]:
    times = [f"{number:017d}" for number in range(1, count + 1)]
    return [Instant(time, Action.DELTA_COMMIT, State.COMPLETED, f"{time}5", Action.DELTA_COMMIT) for time in times]


def cleans_in(found: Archived | list[Instant]) -> int:
    assert isinstance(found, list)
    return sum(1 for item in found if item.action == Action.CLEAN)


def upkeep(table: Table, trigger: str, storage: Storage | None = None) -> Upkeep:
    options = {
        "hoodie.keep.min.commits": "2",
        "hoodie.keep.max.commits": "3",
        "hoodie.clean.commits.retained": "1",
        COMPACTION_TRIGGER.name: trigger,
    }
    return keep_up(storage or table.storage, table.config, TOKEN, options, lambda: None, clock(table))


@pytest.mark.slow
@pytest.mark.parametrize("version", VERSIONS)
def test_all_of_it_killed_anywhere(golden: Golden, version: str, tmp_path: Path) -> None:
    source = many_slices(golden, version)
    # Every thirteenth place to die at, most of them between two deletions; test_begin_and_compact_faults dies at each
    # of its own.
    expected = held(source)
    number = 0
    while True:
        table = Table(shutil.copytree(source.path, tmp_path / str(number)))
        plan = FaultPlan(kill_at=number, counts=MUTATIONS)
        with contextlib.suppress(InjectedCrash):
            upkeep(table, "2", FaultStorage(table.storage, plan))
        assert held(table) == expected, number
        done = upkeep(table, "2")
        assert held(table) == expected, (number, done)
        assert not table.metadata_timeline.load().pending().instants
        shutil.rmtree(table.path)
        if not plan.crashed:
            break
        number += 13
    assert number > 21


def test_options_are_checked_first(golden: Golden) -> None:
    table = Table(golden("8", "mor_basic").table)
    names = table.metadata_timeline.names()
    with pytest.raises(ConfigError, match="commits is"):
        upkeep(table, "none")
    assert table.metadata_timeline.names() == names
    assert "deltacommits since" in upkeep(table, "1000").compacted.reason
