"""The sensors: each looks at a table until its condition holds, in the worker or in the triggerer."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, ClassVar

from airflow.sdk import BaseSensorOperator, PokeReturnValue, conf
from airflow.sdk.exceptions import AirflowNotFoundException, AirflowSensorTimeout, AirflowSkipException

from airflow_hudi import metrics
from airflow_hudi.arguments import REQUIRED, CheckedArguments, is_literal, own_fields
from airflow_hudi.conditions.condition import ACTIONS, STATES, Condition, InstantCondition, NoPendingCondition
from airflow_hudi.conditions.writes import ALL, ANY, CommitCondition, PartitionCondition
from airflow_hudi.hooks import HudiHook
from airflow_hudi.jobs.task_store import TaskStore
from airflow_hudi.task_fate import fails_for_good, in_words, may_pass
from airflow_hudi.timeline_reader import TimelineReader
from airflow_hudi.triggers.wait import MAX_ERRORS, HudiConditionTrigger, found_in
from hudi_core.errors import HudiError
from hudi_core.request.secrets import refuse_secret_address

if TYPE_CHECKING:
    from airflow.sdk import Context


class BaseHudiSensor(BaseSensorOperator, metaclass=CheckedArguments):
    """Succeeds when the condition of the class holds on a table. The condition's fields are arguments (templated). The
    XCom is `table` and what the condition found.

    A poke lists the timeline once, and reads from new commits what the condition needs. Where the storage fails or a
    file is damaged, which a writer may be writing, the next poke looks again. The sensor fails after wait.MAX_ERRORS
    such errors in a row. An error that no retry can repair fails the task without retries (task_fate.is_permanent).

    :param table: the table's path or URI, or its path below the connection's base path (templated)
    :param hudi_conn_id: connection of type `hudi`; None for none (templated)
    :param deferrable: wait in the triggerer and hold no worker slot; the default is `[hudi] default_deferrable`, which
        is True
    """

    table: str = REQUIRED
    hudi_conn_id: str | None = HudiHook.default_conn_name
    deferrable: bool = conf.getboolean("hudi", "default_deferrable", fallback=True)
    template_fields: Sequence[str] = ("table", "hudi_conn_id")
    ui_color = "#d9ecf2"

    waits_for: ClassVar[type[Condition]]
    _condition: Condition | None = None
    _reader: TimelineReader | None = None
    _metrics: metrics.LookMetrics  # Made together with the reader.
    _errors = 0

    def check_arguments(self) -> None:
        if is_literal(self.table):
            refuse_secret_address(self.table, what="the address of the table")
        if is_literal(*self._waited().values()):
            self.condition()

    def condition(self) -> Condition:
        """Returns the condition of the wait, made of the rendered arguments. Raises ConfigError."""
        return self.waits_for(**self._waited())

    def _waited(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in own_fields(self.waits_for)}

    def poke(self, context: Context) -> PokeReturnValue:
        if self._condition is None:
            self._condition = self.condition()
        is_new_process = self.reschedule and not self.deferrable
        store = TaskStore(context.get("task_state_store") if is_new_process else None)
        try:
            if self._reader is None:
                hook = HudiHook(self.hudi_conn_id or None)
                self._reader = hook.timeline(self.table, self._condition.action)
                self._metrics = metrics.LookMetrics(hook)
            look = self._reader.look()
            if is_new_process:
                # A new process does not know the earlier timeline, so it does not report the metadata lag.
                metrics.report_age(look)
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
            condition=self.condition().to_json(),
            hudi_conn_id=self.hudi_conn_id or None,
            poll_interval=self.poke_interval,
        )
        self.defer(trigger=trigger, method_name="execute_complete", timeout=timedelta(seconds=self.timeout))

    def resume_execution(self, next_method: str, next_kwargs: dict[str, Any] | None, context: Context) -> Any:
        try:
            return super().resume_execution(next_method, next_kwargs, context)
        except AirflowSensorTimeout as error:
            raise self._timed_out() from error

    def execute_complete(self, context: Context, event: dict[str, Any]) -> dict[str, Any]:
        return self._result(found_in(event, self.table, self.log))

    def _timed_out(self) -> AirflowSensorTimeout:
        return AirflowSensorTimeout(f"{self.table} has shown {self.condition().unmet()} for {self.timeout:.0f} s")

    def _result(self, found: dict[str, Any]) -> dict[str, Any]:
        self.log.info("Found %s", ", ".join(f"{name} {value}" for name, value in found.items() if name != "table"))
        return found


class HudiCommitSensor(BaseHudiSensor):
    """Succeeds when a write has completed. Compactions and clusterings change no row, so they are not writes.

    XCom: `{"table", "instant", "action", "state", "completed", "operation", "partitions", "rows"}` of the first write
    to complete. `completed` is its completion time: as `completed_after` of the next run, it makes that run wait for
    the next write. On table version 6 the completion time is the modification time of a file: writes with the same
    modification time (a second on S3) are one event.

    :param completed_after: only for writes that completed later, such as `{{ data_interval_end }}`, see
        condition.bound_of; empty: any write on the timeline (templated)
    """

    waits_for = CommitCondition


class HudiInstantSensor(BaseHudiSensor):
    """Succeeds when the timeline holds an instant, which is its XCom: `{"table", "instant", "action", "state"}`.

    :param action: the action to wait for, by the name on its pending files (`compaction`, `clean`…) or, for writes,
        `commit`, `deltacommit`, `replacecommit` (templated)
    :param state: `requested`, `inflight`, `completed`, or `pending` for either of the first two, because a run can
        also continue the compaction of a dead attempt (templated)
    :param instant: wait for this instant only (templated)
    :param after: only for instants later than this one; an indexing is planned before the latest write (templated)
    :param completed_after: as for HudiCommitSensor, with the state `completed` (templated)
    """

    waits_for = InstantCondition
    _argument_choices: ClassVar = {"state": STATES, "action": ACTIONS}


class HudiNoPendingSensor(BaseHudiSensor):
    """Succeeds when no instant is pending for longer than `pending_age`.

    XCom: `{"table", "pending", "oldest": {"instant", "action", "state", "age_seconds"}}`: how many instants are still
    pending, and the oldest of them or None.

    :param pending_age: seconds, a timedelta, or a text such as `90s`, `30m`, `6h` or `2d`; 0: no instant may be pending
        (templated)
    :param action: only instants of this action, by the name on its pending files; empty: of any action (templated)
    """

    waits_for = NoPendingCondition
    _argument_choices: ClassVar = {"action": ACTIONS}


class HudiPartitionSensor(BaseHudiSensor):
    """Succeeds when partitions were written. A partition that a later delete_partition removed does not count.
    Compactions and clusterings are not writes.

    XCom: `{"table", "partitions": [{"partition", "instant", "completed"}]}`: the partitions that arrived, each with the
    last write to it. `completed` is None if that write is archived and only its files show it.

    :param partitions: paths of partitions as their folders are named (`day=2026-01-02`), as a list, or as a text that
        separates them by commas or lines; the paths of a list are taken unchanged (templated)
    :param match: `all` of them, which is the default, or `any` (templated)
    :param completed_after: as for HudiCommitSensor; then only writes that are still on the timeline count (templated)
    """

    waits_for = PartitionCondition
    _argument_choices: ClassVar = {"match": (ALL, ANY)}
