"""What others begin while catch-up, or the addition of a column, is at work."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hudi_core.errors import ConflictError, UnsupportedError
from hudi_core.services.context import TableContext
from hudi_core.services.metadata import column_statistics
from hudi_core.services.metadata.column_statistics import ColumnStatisticsReader
from hudi_core.services.metadata.columns import drop_columns
from hudi_core.services.metadata.initialization import Snapshot
from hudi_core.timeline.instant import Action
from hudi_core.transaction.instant_generator import InstantClock
from tests.support.golden_data import GoldenCase
from tests.support.metadata_records import Table
from tests.unit.hudi_core.services.metadata.test_catch_up import forget, update
from tests.unit.hudi_core.services.metadata.test_columns import OWNER, add, context

Golden = Callable[[str, str], GoldenCase]


def test_nothing_is_written_beside_an_indexer(golden: Golden) -> None:
    """Real Hudi's takes a deltacommit of the instant for proof that its index was updated."""
    table = Table(golden("8", "mor_basic").table)
    forget(table, 1)
    indexing = table.new_instant()
    table.data.create_requested(indexing, Action.INDEXING, b"")
    table.data.to_inflight(indexing, Action.INDEXING)
    names = table.metadata_timeline.names()
    with pytest.raises(ConflictError, match=f"indexing {indexing} is building"):
        update(table)
    assert table.metadata_timeline.names() == names


def test_a_write_that_starts_while_the_last_files_are_read_is_newer(
    golden: Golden, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its tight ranges of whole partitions come on top of those that are written of the column."""
    table = Table(golden("8", "mdt_all_mor").table)
    drop_columns(context(table), ["qty"], OWNER)
    before = table.metadata_timeline.load().requested_times
    initialized: list[str] = []
    read = ColumnStatisticsReader.read

    def beside(self: ColumnStatisticsReader, of: TableContext, snapshot: Snapshot) -> int:
        found = read(self, of, snapshot)
        initialized.append(InstantClock(table.config.timezone, sleep=lambda seconds: None).next(table.data.load()))
        return found

    monkeypatch.setattr(ColumnStatisticsReader, "read", beside)
    add(table, "qty")
    (recorded,) = table.metadata_timeline.load().requested_times - before
    assert recorded < initialized[-1]


def test_a_range_that_no_record_holds_is_refused(golden: Golden, monkeypatch: pytest.MonkeyPatch) -> None:
    """That of a decimal with more digits than decimal(30, 15), say."""
    table = Table(golden("8", "mdt_all_mor").table)
    drop_columns(context(table), ["qty"], OWNER)
    monkeypatch.setattr(column_statistics, "partition_record", lambda *_, **__: None)
    with pytest.raises(UnsupportedError, match=r"the range of qty in the partition '.*' is not known"):
        add(table, "qty")
