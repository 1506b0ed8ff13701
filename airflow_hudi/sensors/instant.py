"""Waits for an instant on a table's timeline: a compaction that a writer planned, or one that is completed."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseSensorOperator, PokeReturnValue, conf
from airflow.sdk.exceptions import AirflowSensorTimeout

from airflow_hudi.exceptions import HudiSensorFailed
from airflow_hudi.hooks.hudi import HudiHook
from airflow_hudi.instant_condition import PENDING, InstantCondition
from airflow_hudi.timeline_reader import TimelineReader
from airflow_hudi.triggers.instant import HudiInstantTrigger, instant_event, not_yet

if TYPE_CHECKING:
    from airflow.sdk import Context


class HudiInstantSensor(BaseSensorOperator):
    """Succeeds when the timeline holds an instant, which is its XCom: `{"table", "instant", "action", "state"}`.

    :param table: the table's path or URI, or its path below the connection's base path (templated)
    :param action: the action to wait for, by the name on its pending files (`compaction`, `clean`…) or, for writes,
        `commit`, `deltacommit`, `replacecommit` (templated)
    :param state: `requested`, `inflight`, `completed`, or `pending` for either of the first two: a compaction of a dead
        attempt is worth running, too (templated)
    :param instant: wait for this instant only (templated)
    :param after: only for instants later than this one; an indexing is planned before the latest write (templated)
    :param hudi_conn_id: connection of type `hudi`; None for none (templated)
    :param deferrable: wait in the triggerer and hold no worker slot; the default is `[hudi] default_deferrable`, which
        is True
    """

    template_fields: Sequence[str] = ("table", "action", "state", "instant", "after", "hudi_conn_id")
    ui_color = "#d9ecf2"

    def __init__(
        self,
        *,
        table: str,
        action: str = "compaction",
        state: str = PENDING,
        instant: str | None = None,
        after: str | None = None,
        hudi_conn_id: str | None = HudiHook.default_conn_name,
        deferrable: bool = conf.getboolean("hudi", "default_deferrable", fallback=True),
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.table = table
        self.action = action
        self.state = state
        self.instant = instant
        self.after = after
        self.hudi_conn_id = hudi_conn_id
        self.deferrable = deferrable
        self._reader: TimelineReader | None = None

    def poke(self, context: Context) -> PokeReturnValue:
        """One look at the timeline. Raises HudiError."""
        if self._reader is None:
            self._reader = HudiHook(self.hudi_conn_id or None).timeline(self.table, self.action)
        timeline = self._reader.load()
        found = self._condition().find(timeline)
        if found is None:
            self.log.info("%s", not_yet(self._reader, self._condition(), timeline))
            return PokeReturnValue(is_done=False)
        return PokeReturnValue(is_done=True, xcom_value=self._result(instant_event(self.table, found)))

    def execute(self, context: Context) -> Any:
        """Looks once, then waits in the triggerer, or here when not deferrable."""
        if not self.deferrable:
            try:
                return super().execute(context)
            except AirflowSensorTimeout as error:
                raise self._timed_out() from error
        looked = self.poke(context)
        if looked.is_done:
            return looked.xcom_value
        condition = self._condition()
        trigger = HudiInstantTrigger(
            table=self.table,
            action=condition.action,
            state=condition.state,
            instant=condition.instant,
            after=condition.after,
            hudi_conn_id=self.hudi_conn_id or None,
            poll_interval=self.poke_interval,
        )
        self.defer(trigger=trigger, method_name="execute_complete", timeout=timedelta(seconds=self.timeout))

    def resume_execution(self, next_method: str, next_kwargs: dict[str, Any] | None, context: Context) -> Any:
        """See BaseSensorOperator; a wait in the triggerer that took too long is named."""
        try:
            return super().resume_execution(next_method, next_kwargs, context)
        except AirflowSensorTimeout as error:
            raise self._timed_out() from error

    def _timed_out(self) -> AirflowSensorTimeout:
        return AirflowSensorTimeout(
            f"{self.table} has shown no {self._condition().describe()} for {self.timeout:.0f} s"
        )

    def execute_complete(self, context: Context, event: dict[str, Any]) -> dict[str, Any]:
        """Where the task resumes after its trigger fired. Raises HudiSensorFailed when the trigger met an error."""
        if event.get("status") != "success":
            raise HudiSensorFailed(str(event.get("message", "the trigger fired without saying why")), path=self.table)
        return self._result(event)

    def _condition(self) -> InstantCondition:
        return InstantCondition(self.action, self.state, self.instant or None, self.after or None)

    def _result(self, event: dict[str, Any]) -> dict[str, Any]:
        result = {key: value for key, value in event.items() if key != "status"}
        self.log.info("Found %s %s %s", result["state"], result["action"], result["instant"])
        return result
