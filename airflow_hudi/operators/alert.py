"""Reports instants of many tables that are pending for too long."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator
from airflow.sdk.exceptions import AirflowFailException

from airflow_hudi.arguments import REQUIRED, CheckedArguments, is_literal, names_in, read_policies, tables_of
from airflow_hudi.hooks import HudiHook
from airflow_hudi.metrics import LookMetrics, is_measured
from airflow_hudi.operators.base import XCOM
from airflow_hudi.results import pending_named
from airflow_hudi.task_fate import HudiTableUnreadable, fails_for_good, is_permanent
from hudi_core.errors import HudiError
from hudi_core.timeline.timeline import age_shown, pending_longer_than

if TYPE_CHECKING:
    from airflow.sdk import Context


class HudiAlertOperator(BaseOperator, metaclass=CheckedArguments):
    """Fails without retries when an instant of a table is pending for longer than `alerts: {pending_age: …}` of the
    table's policy, outside of its quiet hours. So the tool that reports failed tasks reports it. If a table cannot be
    read, the task fails after it has looked at all tables. It retries if there is no alert and a retry may help.

    XCom: `{"alerts": [{"table", "instant", "action", "state", "age_seconds"}], "errors": [{"table", "error"}]}`, also
    when the task fails.

    :param policy: the path of a YAML file, or one policy as a dict (templated)
    :param tables: the tables, as a list or separated by commas; empty: those of the file (templated)
    :param hudi_conn_id: connection of type `hudi`; None for none (templated)
    """

    policy: str | Mapping[str, Any] = REQUIRED
    tables: Sequence[str] | str = ()
    hudi_conn_id: str | None = HudiHook.default_conn_name
    template_fields = ("tables", "policy", "hudi_conn_id")
    ui_color = "#c7e3ea"

    def check_arguments(self) -> None:
        """Raises ConfigError for a mistake in a literal policy. A policy file is read only when the task runs."""
        if isinstance(self.policy, Mapping) and is_literal(self.policy):
            read_policies(self.policy)

    def execute(self, context: Context) -> dict[str, Any]:
        with fails_for_good(self.log):
            return self._look(context)

    def _look(self, context: Context) -> dict[str, Any]:
        policies = read_policies(self.policy)
        tables = tables_of(names_in(self.tables), policies)
        hook, measured = HudiHook(self.hudi_conn_id or None), is_measured()
        alerts: list[dict[str, Any]] = []
        lines: list[str] = []
        errors: dict[str, HudiError] = {}
        for table in tables:
            try:
                policy = policies.of(hook.table_uri(table))
                most = policy.pending_age
                if most is None and not measured:
                    continue
                look = hook.timeline(table).look()
                if measured:
                    LookMetrics(hook).report(look)
                late = [] if most is None else [*pending_longer_than(look.timeline, most, look.at, look.zone)]
            except HudiError as error:
                errors[table] = error
                continue
            for instant, age in late:
                if policy.is_overdue(age, look.at):
                    alerts.append({"table": table, **pending_named(instant, age)})
                    lines.append(f"{table}: {age_shown(instant, age)}, longer than {most} s")
        failures = [{"table": table, "error": str(error)} for table, error in errors.items()]
        result = {"alerts": alerts, "errors": failures}
        if lines or errors:
            context["ti"].xcom_push(key=XCOM, value=result)
            message = "\n".join([*lines, *(f"{table}: {error}" for table, error in errors.items())])
            if lines or all(map(is_permanent, errors.values())):
                raise AirflowFailException(message)
            raise HudiTableUnreadable(message)
        self.log.info("No instant of %d tables is pending for too long", len(tables))
        return result
