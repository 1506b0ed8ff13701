"""What the ready-to-use DAGs have in common."""

from __future__ import annotations

import pytest
from airflow.sdk import CronDataIntervalTimetable

from airflow_hudi.dag_params import interval_schedule


def test_cron_text_has_intervals(monkeypatch: pytest.MonkeyPatch) -> None:
    """Airflow 3.3 makes a CronTriggerTimetable of it, whose interval is empty: `ds` would be the day that begins."""
    for text, expression in (("@daily", "0 0 * * *"), ("30 2 * * *", "30 2 * * *")):
        monkeypatch.setenv("SCHEDULE", text)
        assert interval_schedule("SCHEDULE") == CronDataIntervalTimetable(expression, timezone="UTC")


@pytest.mark.parametrize(("text", "schedule"), [("", None), ("@once", "@once"), ("@continuous", "@continuous")])
def test_what_is_no_cron_stays(monkeypatch: pytest.MonkeyPatch, text: str, schedule: str | None) -> None:
    monkeypatch.setenv("SCHEDULE", text)
    assert interval_schedule("SCHEDULE") == schedule
    monkeypatch.delenv("SCHEDULE")
    assert interval_schedule("SCHEDULE") is None
