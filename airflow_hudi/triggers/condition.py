"""Waits in the triggerer until a condition of airflow_hudi.conditions holds on a table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from airflow_hudi.conditions.condition import Condition, condition_of
from airflow_hudi.hooks.hudi import HudiHook
from airflow_hudi.timeline_reader import Look
from airflow_hudi.triggers.shared_timeline import SharedTimeline
from airflow_hudi.triggers.wait import BaseWaitTrigger
from hudi_core.timeline.timeline import Timeline


class HudiConditionTrigger(BaseWaitTrigger):
    """Fires once when the condition holds, or when it can no longer be checked; see BaseWaitTrigger.

    A look is one listing, in a thread. Triggers of one table share their looks, and what a look shows is judged only
    where the timeline has changed (shared_timeline.SharedTimeline).

    :param table: the table, as HudiHook.table_uri takes it
    :param condition: condition.condition_json of what is waited for
    :param hudi_conn_id: connection of type `hudi`, or None
    """

    def __init__(
        self,
        *,
        table: str,
        condition: Mapping[str, Any],
        hudi_conn_id: str | None = HudiHook.default_conn_name,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.table = table
        self.condition = condition
        self.hudi_conn_id = hudi_conn_id
        self._waited: tuple[Condition, SharedTimeline] | None = None
        self._seen: Timeline | None = None

    @property
    def arguments(self) -> dict[str, Any]:
        return {"table": self.table, "condition": dict(self.condition), "hudi_conn_id": self.hudi_conn_id}

    @property
    def named(self) -> dict[str, str]:
        return {"table": self.table}

    async def look(self, is_due: Callable[[], bool]) -> tuple[Mapping[str, Any] | None, str]:
        if self._waited is None:
            # Not where the trigger is made: an error there would end the triggerer.
            condition = condition_of(self.condition)
            self._waited = condition, SharedTimeline.of(self.table, self.hudi_conn_id, condition.action)
        condition, table = self._waited
        look, says = await table.look(self.poll_interval), is_due()
        found: tuple[Mapping[str, Any] | None, str] = (None, "")
        if look.timeline is not self._seen or says:
            found = await table.in_thread(_check, condition, look, says)
        self._seen = look.timeline
        return found

    def until_next(self) -> float:
        """See BaseWaitTrigger: triggers of one table fall into step."""
        return self.poll_interval if self._waited is None else self._waited[1].until_next(self.poll_interval)


def _check(condition: Condition, look: Look, says: bool) -> tuple[dict[str, Any] | None, str]:
    """What was found, or what the wait says where that is due."""
    found = condition.check(look)
    return found, condition.waiting(look) if found is None and says else ""
