"""A commit that was left out and is the first on the active timeline: before it, it was not there, though all others are newer than it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from hudi_core.metadata_table.kinds.indexed_table import IndexedTable
from hudi_core.metadata_table.own import OwnTimeline
from hudi_core.services.local_engine import LocalEngine
from hudi_core.services.metadata.row_changes import RowChanges
from hudi_core.timeline.query import Timeline
from hudi_core.view.listing import StorageListing
from tests.golden_data import GoldenCase
from tests.unit.hudi_core.metadata_table.whole_table import Table
from tests.unit.hudi_core.services.clean.golden_cleans import context_of


@pytest.mark.parametrize("version", ["8", "9"])
def test_its_files_are_no_old_ones(golden: Callable[[str, str], GoldenCase], version: str) -> None:
    table = Table(golden(version, "mor_basic").table)
    context = context_of(table.path, {})
    first, second = table.data.load().commits().instants[:2]
    assert first.completion_time is not None
    # The second one was requested later, and completed before the first.
    timeline = Timeline([first, replace(second, completion_time=str(int(first.completion_time) - 1))])
    own = OwnTimeline(context.storage, context.config)
    changes = RowChanges(context, IndexedTable(context.config, {}, {}, {}, None), own, StorageListing(context.storage), LocalEngine(1), 1)
    metadata = table.data.read_commit(first)
    found = changes._changes(timeline, first, metadata)
    written = {stat.path.rpartition("/")[2] for stat in metadata.write_stats()}
    assert written
    assert not written.intersection(file.name for change in found if change.before is not None for file in change.before.files)
    assert written <= {file.name for change in found if change.after is not None for file in change.after.files}
