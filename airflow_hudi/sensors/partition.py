"""Waits for partitions of a table."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from airflow_hudi.arguments import check_literal_choice, partitions_in
from airflow_hudi.conditions.completed_after import CompletedAfter
from airflow_hudi.conditions.partitions import ALL, ANY, PartitionCondition
from airflow_hudi.sensors.base import BaseHudiSensor


class HudiPartitionSensor(BaseHudiSensor):
    """Succeeds when partitions were written; a delete_partition takes one away again. Compactions and clusterings are
    no writes.

    XCom: `{"table", "partitions": [{"partition", "instant", "completed"}]}`: those that arrived, each with the last
    write to it. `completed` is None where that write is archived and was known by its files only.

    :param table: see BaseHudiSensor, as `hudi_conn_id` and `deferrable` (templated)
    :param partitions: paths of partitions as their folders are named (`day=2026-01-02`), as a list, or as a text that
        separates them by commas or lines; those of a list are taken as they are (templated)
    :param match: `all` of them, which is meant when it is empty, or `any` (templated)
    :param completed_after: only by writes that completed later and are still on the timeline, see
        completed_after.CompletedAfter; empty: at any time (templated)
    """

    template_fields: Sequence[str] = (*BaseHudiSensor.template_fields, "partitions", "match", "completed_after")

    def __init__(
        self,
        *,
        partitions: Sequence[str] | str,
        match: str = ALL,
        completed_after: str | datetime | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.partitions = partitions
        self.match = match
        self.completed_after = completed_after

    def check_arguments(self) -> None:
        super().check_arguments()
        check_literal_choice("match", self.match, (ALL, ANY))

    def condition(self) -> PartitionCondition:
        bound = CompletedAfter.of(self.completed_after)
        return PartitionCondition(partitions_in(self.partitions), self.match or ALL, bound.text if bound else None)
