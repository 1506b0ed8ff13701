"""The members of a result that come from the job's report."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_hudi.results import seconds_of, work_seconds

OLD, NEW = "20260102000000000", "20260103000000000"


@pytest.mark.parametrize(
    ("reported", "seconds"),
    [
        ({"instants": [{"instant": NEW, "seconds": 7}, {"instant": OLD, "seconds": 2.5}]}, 2.5),
        ({"instants": [{"instant": NEW, "seconds": 7}]}, 60.0),
        ({"instants": [{"instant": OLD}]}, 60.0),
        ({"instants": [{"instant": OLD, "seconds": "2.5"}]}, 60.0),
        ({"instants": []}, 60.0),
        ({"error": {"type": "ConflictError"}}, 60.0),
        (None, 60.0),
    ],
)
def test_the_seconds_of_an_instant_are_those_that_the_job_reports_for_it(
    reported: dict[str, Any] | None, seconds: float
) -> None:
    assert seconds_of(reported, OLD, 60.0) == seconds


def test_the_seconds_of_several_instants_are_their_sum() -> None:
    assert work_seconds([{"seconds": 1.5}, {"seconds": 0.0}, {"seconds": 2}], 60.0) == 3.5
    assert work_seconds([{"seconds": 0.0}, {}], 60.0) == 60.0  # an archival measures none
