"""A commit that an index began with and that is rolled back before it is published: nothing takes its rows out, so the
index is built again.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hudi_core.metadata_table.initialize.indexing import Build
from hudi_core.metadata_table.initialize.target import NewPartition
from hudi_core.metadata_table.timeline import MetadataTimeline
from hudi_core.model.names import WriteToken
from hudi_core.services.indexing.build import unrecorded
from tests.support.golden_cleans import context_of
from tests.support.golden_data import GoldenCase
from tests.support.metadata_records import Table, complete_rollback


@pytest.mark.parametrize("version", ["6", "8"])
def test_it_is_behind(golden: Callable[[str, str], GoldenCase], version: str) -> None:
    table = Table(golden(version, "mor_basic").table)
    context = context_of(table.path, {})
    metadata_timeline = MetadataTimeline(context.storage, context.config)
    target = NewPartition("record_index", "20260101000000000", ("record-index-0000-0",), WriteToken(0, 1, 0), "", 1)
    build = Build(target.instant, {target.name: target}, "", frozenset())
    before = table.data.load()
    last = before.commits().instants[-1].requested_time
    complete_rollback(table, last, table.new_instant())
    now = table.data.load()
    assert unrecorded(context, build, before, now, metadata_timeline, ()) == [last]
    assert unrecorded(context, build, now, now, metadata_timeline, ()) == []
