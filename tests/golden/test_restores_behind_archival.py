"""A restore that rolls a compaction of the metadata table back, of commits that the table has archived since."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from hudi_core.services.restore.candidates import restorable_instants
from hudi_core.services.restore.verb import restore
from hudi_core.table import HudiTable
from tests.support.changed_tables import an_owner, open_context
from tests.support.rows import assert_same_rows
from tests.support.table_invariants import assert_metadata_true, has_metadata_table, read_rows


def test_no_index_lacks_what_was_archived(reported: Callable[[str], Path], caplog: pytest.LogCaptureFixture) -> None:
    """Real Hudi made the table; the files of 20261128133550654 exist, and that commit is archived."""
    table = reported("restore_statistics_v6")
    target = "20261128133559662"
    then = HudiTable.open(str(table)).read(as_of=target, metadata="off")
    rows = pa.Table.from_batches(list(then.batches), then.schema)
    restore(open_context(table), target, an_owner())
    assert_same_rows(read_rows(table), rows)
    assert_metadata_true(table)
    assert not has_metadata_table(table)
    assert "the table has archived 20261128133550654" in caplog.text


def test_what_is_on_the_timeline_stays_indexed(reported: Callable[[str], Path]) -> None:
    table = reported("restore_statistics_v6")
    target = max(item.instant for item in restorable_instants(open_context(table)) if item.reason is None)
    restore(open_context(table), target, an_owner())
    assert has_metadata_table(table)
    assert_metadata_true(table)
