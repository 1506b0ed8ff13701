"""Waits for an instant on a table's timeline: a compaction that a writer planned, or one that is completed."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from airflow_hudi.arguments import check_literal_choice
from airflow_hudi.conditions.completed_after import CompletedAfter
from airflow_hudi.conditions.instant import ACTIONS, PENDING, STATES, InstantCondition
from airflow_hudi.sensors.base import BaseHudiSensor


class HudiInstantSensor(BaseHudiSensor):
    """Succeeds when the timeline holds an instant, which is its XCom: `{"table", "instant", "action", "state"}`.

    :param table: see BaseHudiSensor, as `hudi_conn_id` and `deferrable` (templated)
    :param action: the action to wait for, by the name on its pending files (`compaction`, `clean`…) or, for writes,
        `commit`, `deltacommit`, `replacecommit` (templated)
    :param state: `requested`, `inflight`, `completed`, or `pending` for either of the first two: a compaction of a dead
        attempt is worth running, too (templated)
    :param instant: wait for this instant only (templated)
    :param after: only for instants later than this one; an indexing is planned before the latest write (templated)
    :param completed_after: with the state `completed`: only for instants that completed later, see
        completed_after.CompletedAfter (templated)
    """

    template_fields: Sequence[str] = (
        *BaseHudiSensor.template_fields,
        *("action", "state", "instant", "after", "completed_after"),
    )

    def __init__(
        self,
        *,
        action: str = "compaction",
        state: str = PENDING,
        instant: str | None = None,
        after: str | None = None,
        completed_after: str | datetime | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.action = action
        self.state = state
        self.instant = instant
        self.after = after
        self.completed_after = completed_after

    def check_arguments(self) -> None:
        super().check_arguments()
        check_literal_choice("state", self.state, STATES)
        check_literal_choice("action", self.action, ACTIONS)

    def condition(self) -> InstantCondition:
        bound = CompletedAfter.of(self.completed_after)
        return InstantCondition(
            self.action, self.state, self.instant or None, self.after or None, bound.text if bound else None
        )
