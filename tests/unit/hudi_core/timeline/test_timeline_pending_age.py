"""Which instants are pending for too long."""

from __future__ import annotations

from datetime import datetime, timezone

import pytest

from hudi_core.timeline.instant import Action, Instant, State
from hudi_core.timeline.timeline import LONG_AGO, Timeline, age_shown, pending_longer_than, seconds_since
from tests.support.process_zone import in_zone


def test_ages_are_those_of_the_requested_times() -> None:
    old = Instant("20261125100000000", Action.COMPACTION, State.REQUESTED)
    young = Instant("20261125115900000", Action.CLEAN, State.INFLIGHT)
    done = Instant("20261125090000000", Action.DELTA_COMMIT, State.COMPLETED, "20261125090001000")
    timeline, noon = Timeline([done, old, young]), datetime(2026, 11, 25, 12, tzinfo=timezone.utc)
    assert list(pending_longer_than(timeline, 60, noon, "UTC")) == [(old, 7200)]
    assert list(pending_longer_than(timeline, 59, noon, "UTC")) == [(old, 7200), (young, 60)]
    assert age_shown(young, 60) == "clean 20261125115900000 is inflight for 60 s"


def test_a_time_that_is_no_date_is_long_ago() -> None:
    """As that of a bootstrap (HoodieTimeline.FULL_BOOTSTRAP_INSTANT_TS)."""
    undated = Instant("00000000000002", Action.DELTA_COMMIT, State.INFLIGHT)
    young = Instant("20261125115900000", Action.CLEAN, State.INFLIGHT)
    noon = datetime(2026, 11, 25, 12, tzinfo=timezone.utc)
    century = 36_500 * 86_400
    assert list(pending_longer_than(Timeline([undated, young]), century, noon, "UTC")) == [(undated, LONG_AGO)]
    assert age_shown(undated, LONG_AGO) == "deltacommit 00000000000002 is inflight for long: its time is no date"


@pytest.mark.parametrize("zone", ["UTC", "America/Los_Angeles", "Asia/Tokyo"])
def test_a_time_that_this_zone_does_not_have_is_no_date(zone: str) -> None:
    with in_zone(zone):
        noon = datetime(2026, 11, 25, 12, tzinfo=timezone.utc)
        assert seconds_since("00010101000000000", noon, "LOCAL") == LONG_AGO
        assert seconds_since("20261125115900000", noon, "UTC") == 60
