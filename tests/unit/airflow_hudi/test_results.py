"""The members of a result that come from the job's report."""

from __future__ import annotations

import pytest

from airflow_hudi.results import instants_of, work_seconds
from hudi_core.errors import ConflictError
from hudi_core.request.results import BatchResult, InstantResult, JobResult, Result

OLD, NEW = "20260102000000000", "20260103000000000"


def done(instant: str, seconds: float = 0.0) -> InstantResult:
    return InstantResult(instant, "compaction", "completed", seconds=seconds)


@pytest.mark.parametrize(
    ("reported", "seconds"),
    [
        (Result((done(NEW, 7), done(OLD, 2.5))), 2.5),
        (Result((done(NEW, 7),)), 60.0),
        (Result((done(OLD),)), 60.0),
        (Result(), 60.0),
        (Result.of_error(ConflictError("busy")), 60.0),
        (BatchResult(()), 60.0),
        (None, 60.0),
    ],
)
def test_the_seconds_of_an_instant_are_those_that_the_job_reports_for_it(
    reported: JobResult | None, seconds: float
) -> None:
    assert work_seconds(instants_of(reported, OLD), 60.0) == seconds


def test_the_seconds_of_several_instants_are_their_sum() -> None:
    assert work_seconds([done(OLD, 1.5), done(NEW), done(OLD, 2)], 60.0) == 3.5
    assert work_seconds([done(OLD)], 60.0) == 60.0  # an archival measures none
