"""Row-level indexes are updated from plain arguments, whatever the commit is."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hudi_core.engine.local import LocalEngine
from hudi_core.engine.serializer import to_text
from hudi_core.metadata_table.indexed_table import StoredTable
from hudi_core.metadata_table.partitions.row_level import SliceChange
from hudi_core.metadata_table.row_updates import RowUpdates
from hudi_core.metadata_table.timeline import MetadataTimeline
from hudi_core.metadata_table.write.staged_logs import Workers
from tests.support.golden_cleans import context_of
from tests.support.golden_data import GoldenCase
from tests.support.metadata_records import Table
from tests.support.slice_readers import spec_of

Golden = Callable[[str, str], GoldenCase]
INDEXES = ("record_index", "secondary_index_idx_name")


@pytest.mark.parametrize("version", ["8", "9"])
def test_a_replaced_and_a_new_file_group(golden: Golden, version: str) -> None:
    path = golden(version, "mdt_all_cow").table
    table, context = Table(path), context_of(path)
    timeline = context.active.load()
    indexed = StoredTable(table.storage, table.config, {})
    view = context.view(timeline)
    (first, *_) = view.latest_merged_slices("2024-01-01")
    (second, *_) = view.latest_merged_slices("2024-01-02")
    instant = table.new_instant()
    spec = to_text(spec_of(table.config, indexed.schema, timeline))
    updates = RowUpdates(
        table.storage,
        indexed,
        MetadataTimeline(table.storage, table.config),
        Workers(LocalEngine(1), 1, str(path), {}),
        "UTC",
    )
    changes = [SliceChange(first, None, instant), SliceChange(None, second, instant)]
    staged = updates.stage(instant, "INSERT_OVERWRITE", INDEXES, changes, spec, timeline)
    assert sorted(staged) == list(INDEXES)
    deleted = {name: sum(item.deletions for item in logs) for name, logs in staged.items()}
    written = {name: sum(item.records for item in logs) for name, logs in staged.items()}
    assert len({*deleted.values()}) == 1
    assert len({*written.values()}) == 1
    assert min(*deleted.values(), *written.values()) > 0
    assert all(table.storage.exists(item.path) for logs in staged.values() for item in logs)
    assert updates.stage(instant, "COMPACT", INDEXES, changes, spec, timeline) == {}
