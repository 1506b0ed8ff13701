"""Waits until nothing on a table's timeline is pending for too long."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from airflow_hudi.arguments import check_literal_choice
from airflow_hudi.conditions.condition import NoPendingCondition, seconds_in
from airflow_hudi.conditions.instant import ACTIONS
from airflow_hudi.sensors.base import BaseHudiSensor


class HudiNoPendingSensor(BaseHudiSensor):
    """Succeeds when no instant is pending for longer than `pending_age`.

    XCom: `{"table", "pending", "oldest": {"instant", "action", "state", "age_seconds"}}`: how many instants are still
    pending, none of them for too long, and the oldest of them or None.

    :param table: see BaseHudiSensor, as `hudi_conn_id` and `deferrable` (templated)
    :param pending_age: how long an instant may be pending: seconds, a timedelta, or a text such as `90s`, `30m`, `6h`
        or `2d`; with 0 none may be (templated)
    :param action: only instants of this action, by the name on its pending files; empty: of any (templated)
    """

    template_fields: Sequence[str] = (*BaseHudiSensor.template_fields, "pending_age", "action")

    def __init__(self, *, pending_age: float | str | timedelta = 0, action: str | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.pending_age = pending_age
        self.action = action

    def check_arguments(self) -> None:
        super().check_arguments()
        check_literal_choice("action", self.action, ACTIONS)

    def condition(self) -> NoPendingCondition:
        return NoPendingCondition(seconds_in(self.pending_age), self.action or "")
