"""What each commit wrote, by its write stats; a commit that cannot be read is missing."""

from __future__ import annotations

import logging
from collections.abc import Callable

import pytest

from hudi_core.timeline.actions.commit import CommitTotals, commit_totals
from tests.support.changed_tables import open_context
from tests.support.golden_data import GoldenCase

Golden = Callable[[str, str], GoldenCase]


@pytest.mark.parametrize("version", ["6", "8", "9"])
def test_totals_are_the_sums_of_write_stats(golden: Golden, version: str) -> None:
    active = open_context(golden(version, "mor_basic").table).active
    timeline = active.load()
    totals = commit_totals(timeline, active.read_commit)
    assert list(totals) == list(timeline.commits())
    for instant, found in totals.items():
        stats = list(active.read_commit(instant).write_stats())
        rows = sum(stat.num_writes + stat.num_deletes for stat in stats)
        assert found == CommitTotals(found.operation, rows, sum(stat.total_write_bytes for stat in stats))
        assert found.operation is not None
        assert found.rows > 0


def test_a_damaged_commit_and_one_that_is_gone_are_missing(golden: Golden, caplog: pytest.LogCaptureFixture) -> None:
    table = golden("9", "mor_basic").table
    active = open_context(table).active
    timeline = active.load()
    damaged, gone, *others = timeline.commits()
    (table / active.path_of(damaged)).write_bytes(b"{no commit}")
    (table / active.path_of(gone)).unlink()
    with caplog.at_level(logging.WARNING, "hudi_core"):
        assert list(commit_totals(timeline, active.read_commit)) == others
    assert f"what {damaged.action} {damaged.requested_time} wrote is unknown" in caplog.text
