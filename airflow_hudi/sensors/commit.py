"""Waits for a write to a table."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from airflow_hudi.conditions.completed_after import CompletedAfter
from airflow_hudi.conditions.writes import CommitCondition
from airflow_hudi.sensors.base import BaseHudiSensor


class HudiCommitSensor(BaseHudiSensor):
    """Succeeds when a write has completed; compactions and clusterings, which change no row, are none.

    XCom: `{"table", "instant", "action", "state", "completed", "operation", "partitions", "rows"}` of the write that
    completed first. `completed` is its completion time: as `completed_after` it makes the next run wait for the next
    write. On table version 6 that is the modification time of a file: writes of one such moment (a second on S3) are
    one event.

    :param table: see BaseHudiSensor, as `hudi_conn_id` and `deferrable` (templated)
    :param completed_after: only for writes that completed later, such as `{{ data_interval_end }}`, see
        completed_after.CompletedAfter; empty: any that is on the timeline (templated)
    """

    template_fields: Sequence[str] = (*BaseHudiSensor.template_fields, "completed_after")

    def __init__(self, *, completed_after: str | datetime | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.completed_after = completed_after

    def condition(self) -> CommitCondition:
        bound = CompletedAfter.of(self.completed_after)
        return CommitCondition(bound.text if bound else None)
