"""Runs services of many tables as one job: one process beside the task, one Spark session, one result per run."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from functools import cached_property
from typing import Any, ClassVar, Final, NoReturn

from airflow.sdk.exceptions import AirflowFailException

from airflow_hudi import metrics
from airflow_hudi.arguments import check_literal_choice, is_literal, names_in, read_policies, tables_of
from airflow_hudi.jobs.rounds import ByteBudget, Rounds, has_done, is_held, shown
from airflow_hudi.operators.base import XCOM, BaseHudiOperator, listed
from airflow_hudi.results import finished_work
from airflow_hudi.task_fate import Fate, HudiInstantBusy, HudiJobFailed, fate_of
from airflow_hudi.timeline_reader import TimelineReader
from hudi_core.config.policy_file import TablePolicies
from hudi_core.errors import ConfigError
from hudi_core.request.policy import DEFAULT_SERVICES
from hudi_core.request.services import SERVICES, check_service
from hudi_core.request.texts import check_choice
from hudi_core.verbs.batch import AT_ONCE, BatchRequest, requests_of_policy
from hudi_core.verbs.run import RunRequest

_MODES: Final = ("execute", "both")
_TABLES: Final = "{{ (task.tables if task.tables is string else task.tables | join(', ')) | truncate(200) }}"
_NEVER_PENDING: Final = "an archival is never pending: mode='both' archives"
_NOTHING: Final[dict[str, Any]] = {"tables": 0, "done": 0, "nothing": 0, "failed": 0, "seconds": 0.0, "results": []}


class HudiTableServicesOperator(BaseHudiOperator):
    """Runs the pending services of one or many tables and, with mode `both`, the services that are due.

    All tables are one job (docs/use/fleets.md#many-tables). The task fails at the end when a run failed, without
    retries if every failure is bad input. A retry begins again: runs that were completed have nothing to do, and are in
    the result and the asset events of the try that succeeds. Runs that others hold are repeated for `conflict_timeout`.

    XCom, also when the task fails: `{"tables", "done", "nothing", "failed", "seconds", "results": [{"table", "service",
    "exit_code", "engine", "instants", "reason", "error"}]}`; `done`, `nothing` and `failed` count runs.

    :param tables: the tables, as a list or separated by commas, each as `table` of the other operators; empty: those of
        the policy file (templated)
    :param services: the services of each table, in this order, as a list or separated by commas; without services and
        without a policy: rollback, compaction, clean and archive (templated)
    :param policy: says when services are due, in which order and within which bounds: the path of a YAML file on the
        machine where the task runs, or one policy as a dict (docs/use/fleets.md, templated)
    :param mode: `execute` runs pending services; `both` also plans services that are due, and archives (templated)
    :param max_minutes: minutes after which the task starts nothing more, whatever policies allow (templated)
    :param max_bytes: bytes, or a size such as `50GiB`, that compactions, log compactions and clusterings of all tables
        may rewrite in total; each run has a share. After these bytes the task starts only failed runs and other
        services (jobs.rounds, templated)
    :param map_index_template: the label of a mapped task, by default its tables
    :param at_once: the number of tables to work on at the same time; they share the engine's processors and memory
    """

    tables: Sequence[str] | str = ()
    services: Sequence[str] | str | None = None
    policy: str | Mapping[str, Any] | None = None
    mode: str = "both"
    max_minutes: int | str | None = None
    max_bytes: int | str | None = None
    at_once: int = AT_ONCE
    map_index_template: str | None = _TABLES
    table: str = ""
    no_arguments: ClassVar[frozenset[str]] = frozenset({"table"})
    """Arguments that this operator does not take. default_args may contain them for other tasks."""
    template_fields = (
        *("tables", "services", "policy", "mode", "max_minutes", "max_bytes"),
        *(name for name in BaseHudiOperator.template_fields if name != "table"),
    )

    def check_arguments(self) -> None:
        """Checks the literals (see BaseHudiOperator). A policy file is read only when the task runs."""
        super().check_arguments()
        if self.map_index_template == _TABLES:
            self.map_index_template = None  # For a mapped task, Airflow takes the template from the default.
        check_literal_choice("mode", self.mode, _MODES)
        if is_literal(self.max_minutes):
            self._starts_until(datetime.now(timezone.utc))
        if is_literal(self.max_bytes):
            ByteBudget.of(self.max_bytes)
        if self.policy and is_literal(self.services, self.mode):
            self._check_policy_alone()
        elif self.services and is_literal(self.services):
            self._services()
        if isinstance(self.policy, Mapping) and is_literal(self.policy):
            read_policies(self.policy)

    def new_reader(self) -> TimelineReader:
        """Returns a reader of the first table; see BaseHudiOperator."""
        self.table = self.tables_of_work[0]
        return super().new_reader()

    def serve(self) -> dict[str, Any]:
        started = time.monotonic()
        requests, budget = self._requests(), ByteBudget.of(self.max_bytes)
        self.log.info("%d runs on %d tables", len(requests), len({item.table for item in requests}))
        rounds = Rounds(requests, budget, self.store)
        results = rounds.run(lambda part: self.new_job(BatchRequest(part, at_once=self.at_once)), self.patience)
        if not results:
            reason = "these are quiet hours of every table" if self.policy else _NEVER_PENDING
            return self.nothing(_NOTHING, reason)
        for result in results:
            say = self.log.error if result["exit_code"] else self.log.info
            say("%s %s: %s", result["service"], result["table"], shown(result))
        failed = [result for result in results if result["exit_code"]]
        done = [result for result in results if has_done(result) and not result["exit_code"]]
        measured = sum(instant.get("seconds") or 0.0 for result in done for instant in result["instants"])
        xcom = {
            "tables": len({result["table"] for result in results}),
            "done": len(done),
            "nothing": len(results) - len(done) - len(failed),
            "failed": len(failed),
            "seconds": round(measured or time.monotonic() - started, 3) if done else 0.0,
            "results": results,
        }
        if failed:
            self._fail(xcom, failed)
        if not done:
            self.store.forget()
            services = ", ".join(dict.fromkeys(str(result["service"]) for result in results))
            return self.nothing(xcom, f"none of {xcom['tables']} tables has work for {services}")
        self.store.finish({})
        return xcom

    def _requests(self) -> list[RunRequest]:
        check_choice("mode", self.mode, _MODES)
        now = datetime.now(timezone.utc)
        self.store.after = began = self.store.after or str(int(1000 * now.timestamp()))
        ends = self._starts_until(now)
        fields = {**self.request_fields(), "starts_until": ends, "began_ms": int(began)}
        if self.policy:
            return self._requests_by_policy(fields, now)
        services = self._services()
        plans = self.mode == "both"
        requests = []
        for table in self.tables_of_work:
            for service in services:
                given = {**fields, "table": self.hook.table_uri(table), "service": service}
                if service != "archive":
                    requests.append(RunRequest(**given, all_pending=True, schedule=plans))
                elif plans:
                    requests.append(RunRequest(**given))
        return requests

    def _starts_until(self, now: datetime) -> int | None:
        """Returns the end of `max_minutes`, in seconds since the epoch, or None without it. Raises ConfigError."""
        text = "" if self.max_minutes is None else str(self.max_minutes).strip()
        if not text:
            return None
        if not text.isdecimal() or not int(text):
            raise ConfigError(f"max_minutes is {self.max_minutes!r}", remedy="a whole number of minutes, or nothing")
        return int(now.timestamp()) + 60 * int(text)

    def _requests_by_policy(self, fields: Mapping[str, Any], now: datetime) -> list[RunRequest]:
        """Returns the requests of the tables that are not in their quiet hours."""
        self._check_policy_alone()
        shared = {name: value for name, value in fields.items() if name != "table"}
        requests: list[RunRequest] = []
        for table in self.tables_of_work:
            address = self.hook.table_uri(table)
            policy = self._policies.of(address)
            quiet = policy.quiet(now)
            if quiet is None:
                ends = [end for end in (fields["starts_until"], policy.quiet_from(now)) if end is not None]
                given = {**shared, "starts_until": min(ends, default=None)}
                requests += requests_of_policy(policy, address, **given)
            else:
                self.log.info("%s is left alone in its quiet hours: %s", table, quiet)
        return requests

    def _services(self) -> Sequence[str]:
        """Returns the services of every table. Raises ConfigError without any, UnsupportedError for an unknown one."""
        services = DEFAULT_SERVICES if self.services is None else names_in(self.services)
        if not services:
            raise ConfigError("no service is named", remedy=f"some of {', '.join(SERVICES)}")
        for service in services:
            check_service(service)
        return services

    def _check_policy_alone(self) -> None:
        if names_in(self.services or ()) or self.mode != "both":
            raise ConfigError(
                "a policy names the services, and when they are due", remedy="leave out services and mode"
            )

    @property
    def tables_of_work(self) -> Sequence[str]:
        """The tables, each once. Raises ConfigError if there is none."""
        return tables_of(names_in(self.tables), self._policies if self.policy else None)

    @cached_property
    def _policies(self) -> TablePolicies:
        return read_policies(self.policy or {})

    def _fail(self, xcom: Mapping[str, Any], failed: Sequence[Mapping[str, Any]]) -> NoReturn:
        self.context["ti"].xcom_push(key=XCOM, value=xcom)
        self.works = list(finished_work(xcom))
        metrics.report_work(self.works)
        lines = [f"{result['service']} {result['table']}: {shown(result)}" for result in failed]
        if all(map(is_held, failed)):
            first = f"others have held {len(failed)} of the runs for longer than this task may wait"
            raise HudiInstantBusy(listed(first, lines), remedy="a retry waits again")
        message = listed(f"{len(failed)} of {len(xcom['results'])} runs failed", lines)
        if all(fate_of(result["exit_code"]) is Fate.FAILS_FOR_GOOD for result in failed):
            raise AirflowFailException(message)
        raise HudiJobFailed(message)
