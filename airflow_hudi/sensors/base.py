"""The base of this provider's sensors: looks at a table until a condition holds, here or in the triggerer."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from airflow.sdk import BaseSensorOperator, PokeReturnValue, conf
from airflow.sdk.exceptions import AirflowNotFoundException, AirflowSensorTimeout, AirflowSkipException

from airflow_hudi import look_metrics
from airflow_hudi.arguments import CheckedArguments, is_literal
from airflow_hudi.conditions.condition import Condition, condition_json
from airflow_hudi.hooks.hudi import HudiHook
from airflow_hudi.jobs.task_store import TaskStore
from airflow_hudi.task_fate import fails_for_good, in_words, may_pass
from airflow_hudi.timeline_reader import TimelineReader
from airflow_hudi.triggers.condition import HudiConditionTrigger
from airflow_hudi.triggers.wait import MAX_ERRORS, found_in
from hudi_core.errors import HudiError
from hudi_core.request.secrets import refuse_secret_address

if TYPE_CHECKING:
    from airflow.sdk import Context


_WHERE: Final = ("table", "hudi_conn_id")
"""The arguments of every sensor; the others are those of its condition."""


class BaseHudiSensor(BaseSensorOperator, metaclass=CheckedArguments):
    """Succeeds when a condition holds on a table. Its XCom is `table` and what the condition found.

    A poke is one listing of the timeline, and reads what the condition needs of commits that are new. Storage that
    fails, and a damaged file, which a writer may be at, are looked at again at the next one, up to wait.MAX_ERRORS
    times in a row. What no retry can repair fails the task without further ones (task_fate.is_permanent).

    :param table: the table's path or URI, or its path below the connection's base path (templated)
    :param hudi_conn_id: connection of type `hudi`; None for none (templated)
    :param deferrable: wait in the triggerer and hold no worker slot; the default is `[hudi] default_deferrable`, which
        is True
    """

    template_fields: Sequence[str] = _WHERE
    ui_color = "#d9ecf2"

    def __init__(
        self,
        *,
        table: str,
        hudi_conn_id: str | None = HudiHook.default_conn_name,
        deferrable: bool = conf.getboolean("hudi", "default_deferrable", fallback=True),
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.table = table
        self.hudi_conn_id = hudi_conn_id
        self.deferrable = deferrable
        self._condition: Condition | None = None
        self._reader: TimelineReader | None = None
        self._metrics: look_metrics.LookMetrics  # made with the reader
        self._errors = 0

    def check_arguments(self) -> None:
        """Raises ConfigError for arguments that are literals and mean nothing; see airflow_hudi.arguments."""
        if is_literal(self.table):
            refuse_secret_address(self.table, what="the address of the table")
        if is_literal(*(getattr(self, name) for name in self.template_fields if name not in _WHERE)):
            self.condition()

    @abstractmethod
    def condition(self) -> Condition:
        """What is waited for, by the arguments as they are rendered. Raises ConfigError."""

    def poke(self, context: Context) -> PokeReturnValue:
        """One look at the table. Raises HudiError where another one does not help."""
        if self._condition is None:
            self._condition = self.condition()
        is_new_process = self.reschedule and not self.deferrable
        store = TaskStore(context.get("task_state_store") if is_new_process else None)
        try:
            if self._reader is None:
                hook = HudiHook(self.hudi_conn_id or None)
                self._reader = hook.timeline(self.table, self._condition.action)
                self._metrics = look_metrics.LookMetrics(hook)
            look = self._reader.look()
            if is_new_process:
                # It does not know what the timeline was like before.
                look_metrics.report_age(look)
            else:
                self._metrics.report(look)
            found = self._condition.check(look)
        except HudiError as error:
            self._reader = None
            self._errors = (self._errors or store.errors) + 1
            is_last = self._errors >= MAX_ERRORS or not may_pass(error)
            store.keep_errors(0 if is_last else self._errors)
            if is_last:
                raise
            self.log.warning("Looking at %s failed: %s", self.table, in_words(error))
            return PokeReturnValue(is_done=False)
        self._errors = 0
        store.keep_errors(0)
        if found is None:
            self.log.info("%s", self._condition.waiting(look))
            return PokeReturnValue(is_done=False)
        return PokeReturnValue(is_done=True, xcom_value=self._result({"table": self.table, **found}))

    def execute(self, context: Context) -> Any:
        """Looks once, then waits in the triggerer, or here when not deferrable."""
        try:
            if not self.deferrable:
                return super().execute(context)
            looked = self.poke(context)
        except AirflowSensorTimeout as error:
            raise self._timed_out() from error
        except (HudiError, AirflowNotFoundException) as error:
            if self.soft_fail or self.never_fail:
                raise AirflowSkipException(f"skipped, as soft_fail or never_fail says: {error}") from error
            if may_pass(error):
                raise
            with fails_for_good(self.log):
                raise
        if looked.is_done:
            return looked.xcom_value
        trigger = HudiConditionTrigger(
            table=self.table,
            condition=condition_json(self.condition()),
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

    def execute_complete(self, context: Context, event: dict[str, Any]) -> dict[str, Any]:
        """Where the task resumes after its trigger fired. Raises as wait.found_in."""
        return self._result(found_in(event, self.table, self.log))

    def _timed_out(self) -> AirflowSensorTimeout:
        return AirflowSensorTimeout(f"{self.table} has shown {self.condition().unmet()} for {self.timeout:.0f} s")

    def _result(self, found: dict[str, Any]) -> dict[str, Any]:
        self.log.info("Found %s", ", ".join(f"{name} {value}" for name, value in found.items() if name != "table"))
        return found
