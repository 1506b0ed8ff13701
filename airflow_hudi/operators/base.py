"""The base class of this provider's operators. It runs jobs on a table, waits for others, and stops on request."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

from airflow.sdk import BaseOperator
from airflow.sdk import conf as airflow_conf
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from airflow_hudi import lineage, metrics
from airflow_hudi.arguments import (
    REQUIRED,
    CheckedArguments,
    as_texts,
    check_literal_choice,
    flag,
    is_literal,
    literals,
    verb_values,
)
from airflow_hudi.assets import describe_events
from airflow_hudi.hooks import HudiHook
from airflow_hudi.jobs.engine_job import EngineJob
from airflow_hudi.jobs.spark_job import JobSettings, check_spark_arguments
from airflow_hudi.jobs.task_store import TaskStore
from airflow_hudi.jobs.waiting import Patience, run_until_done
from airflow_hudi.links import HudiSparkLink, HudiTableLink
from airflow_hudi.metrics import LookMetrics, is_measured
from airflow_hudi.results import FinishedWork, document_of, finished_work
from airflow_hudi.task_fate import HudiJobFailed, fails_for_good
from airflow_hudi.timeline_reader import TimelineReader
from hudi_core.config.engine_config import ENGINES, SPARK
from hudi_core.config.options import check_options
from hudi_core.errors import HudiError
from hudi_core.request.results import Result
from hudi_core.request.secrets import refuse_secret_address, refuse_secrets
from hudi_core.request.texts import check_choice
from hudi_core.verbs.batch import JobRequest, requests_of
from hudi_core.verbs.request import Request

if TYPE_CHECKING:
    from airflow.sdk import Context

    from hudi_core.storage.base import Storage

NOTHING_TO_DO = ("skip", "succeed")
MOST_LISTED = 20
XCOM = "return_value"
DRY_RUN = "dry_run"
"""The member of a result that is true if nothing was done."""


class BaseHudiOperator(BaseOperator, metaclass=CheckedArguments):
    """Runs Spark jobs on one table. A subclass needs only a verb as its `request`: the verb's fields are arguments, and
    the XCom is `table` and the document of hudictl. An error that no retry can repair (task_fate.is_permanent) fails
    the task without retries.

    :param table: the table's path or URI, or its path below the connection's base path (templated)
    :param hudi_conn_id: connection of type `hudi`; None for none (templated)
    :param spark_conn_id: connection of the Spark provider (templated)
    :param nothing_to_do: `skip` or `succeed` when there is nothing to do; the XCom then has `reason`. A task that did
        something, was cleared and finds nothing more succeeds with both
    :param engine: `spark`, `auto` (the local engine beside the task for small plans, Spark for others) or `local`; the
        default is the connection's, then `[hudi] engine`, which is spark (templated)
    :param options: options of the job by Hudi's own names, no secrets; here and in `storage_options`, `conf` and
        `env_vars` a value may be a number, True or False, which become texts (templated)
    :param storage_options: options of the job's storage library, in addition to the connection's, no secrets
        (templated)
    :param storage_options_file: JSON file on the driver's machine with secret storage options (templated)
    :param conf: Spark properties (templated)
    :param env_vars: environment of the driver (templated)
    :param submit_kwargs: further arguments of SparkSubmitHook, such as `archives`, `keytab` (templated)
    :param kill_grace_seconds: seconds that a stopped job may take to end before it is killed
    :param spark_log: whether the task's log has Spark's own lines at INFO; the default is `[hudi] spark_log`, or False
    :param conflict_poll_interval: seconds between two checks while another process is at work
    :param conflict_takeover_after: seconds without a sign of life of that process after which the job runs again; the
        job itself then checks whether the process is dead
    :param conflict_timeout: seconds to wait for another process in total
    """

    table: str = REQUIRED
    hudi_conn_id: str | None = HudiHook.default_conn_name
    spark_conn_id: str = "spark_default"
    nothing_to_do: str = "skip"
    engine: str | None = None
    options: Mapping[str, str | float] | None = None
    storage_options: Mapping[str, str | float] | None = None
    storage_options_file: str | None = None
    conf: Mapping[str, str | float] | None = None
    env_vars: Mapping[str, str | float] | None = None
    submit_kwargs: dict[str, Any] | None = None
    kill_grace_seconds: int = 20
    spark_log: bool | None = None
    conflict_poll_interval: float = 15.0
    conflict_takeover_after: float = 180.0
    conflict_timeout: float = 7200.0

    template_fields: Sequence[str] = (
        *("table", "hudi_conn_id", "spark_conn_id", "engine", "options"),
        *("storage_options", "storage_options_file", "conf", "env_vars", "submit_kwargs"),
    )
    template_fields_renderers = {"options": "json", "storage_options": "json", "conf": "json", "submit_kwargs": "json"}  # noqa: RUF012 (Airflow's own form)
    ui_color = "#c7e3ea"
    operator_extra_links = (HudiTableLink(), HudiSparkLink())

    request: ClassVar[type[Request]]
    """The verb of the class, if it has one."""
    context: Context
    """Airflow's context of this try. `reader` and `store` belong to this try, too."""
    reader: TimelineReader
    store: TaskStore
    _job: EngineJob | None = None
    _killed = False

    def check_arguments(self) -> None:
        check_choice("nothing_to_do", self.nothing_to_do, NOTHING_TO_DO)
        if DRY_RUN in self.template_fields and is_literal(getattr(self, DRY_RUN)):
            flag(getattr(self, DRY_RUN), name=DRY_RUN)
        check_literal_choice("engine", self.engine, ENGINES)
        if is_literal(self.table):
            refuse_secret_address(self.table, what="the address of the table")
        options = as_texts(literals(self.options), where="options")
        refuse_secrets(options, where="options")
        check_options(options)
        refuse_secrets(as_texts(literals(self.storage_options), where="storage_options"), where="storage_options")
        as_texts(literals(self.env_vars), where="env_vars")
        check_spark_arguments(as_texts(literals(self.conf), where="conf"), self.submit_kwargs or {})
        verb_values(self._verb, self, literals_only=True)

    @cached_property
    def works(self) -> list[FinishedWork]:
        """The work that the task has completed."""
        return []

    @cached_property
    def hook(self) -> HudiHook:
        return HudiHook(self.hudi_conn_id or None)

    def execute(self, context: Context) -> dict[str, Any]:
        return self.serve_and_report(context)

    def serve_and_report(self, context: Context) -> dict[str, Any]:
        """Does the work of `execute`, also after a task was deferred, where Airflow warns of a call of `execute`."""
        with fails_for_good(self.log):
            check_choice("nothing_to_do", self.nothing_to_do, NOTHING_TO_DO)
            self.begin(context)
            result = self.serve()
        if result.get(DRY_RUN):
            # An event of an outlet would start DAGs that read the table, although it did not change.
            self.outlets = []
            return result
        self.works = list(finished_work(result, getattr(self, "service", None)))
        self._report()
        return result

    def begin(self, context: Context) -> None:
        """Begins a try. It makes a reader of the table, and does not read the table yet."""
        self.context, self.reader, self.store = context, self.new_reader(), TaskStore(context.get("task_state_store"))

    def _report(self) -> None:
        """Reports the work by asset events and metrics. The work is done, so a table that cannot be read does not fail
        the task.
        """
        metrics.report_work(self.works)
        look_of = cache(lambda uri: self.hook.timeline(uri).look())
        describe_events(self.outlets, self.context.get("outlet_events"), self.works, look_of)
        for table in self.tables_of_work if is_measured() else ():
            try:
                LookMetrics(self.hook).report(look_of(self.hook.table_uri(table)))
            except HudiError:
                self.log.warning("The work is done, and the metrics of %s are not complete", table, exc_info=True)

    @property
    def tables_of_work(self) -> Sequence[str]:
        """The tables that the task works on: `table`, or none for a verb that needs no table."""
        return (self.table,) if self._verb.needs_table else ()

    @property
    def _verb(self) -> type[Request]:
        """The verb of the class, or Request if the class has none. `request` of a user's subclass may be something
        else.
        """
        request = getattr(type(self), "request", None)
        return request if isinstance(request, type) else Request

    @property
    def tracking_url(self) -> str | None:
        """The address of the task's application in the cluster manager; None without an application."""
        return None if self._job is None else self._job.tracking_url

    def get_openlineage_facets_on_complete(self, task_instance: Any) -> Any:
        return lineage.lineage_of(self.works, *self.lineage_sources())

    def lineage_sources(self) -> tuple[str | None, str | None]:
        """Returns the address and the query that the task's rows come from; None for a source that it does not have."""
        return None, None

    def new_reader(self) -> TimelineReader:
        return self.hook.timeline(self.table)

    def serve(self) -> dict[str, Any]:
        """Does the work and returns the XCom. A retry may call it again: the verb finds the work of the earlier try."""
        request = self.new_request()
        if getattr(request, DRY_RUN, False):
            return self.preview(request)
        xcom = {"table": self.reader.storage.uri, **self.report(request)}
        if xcom.get("reason") is not None:
            return self.nothing(xcom, xcom["reason"])
        self.log.info("%s: %s", request.verb, xcom)
        return xcom

    def on_kill(self) -> None:
        """Stops the job, wherever it runs, and starts no other job. The timeline keeps what a retry needs to resume."""
        self._killed = True
        if self._job is not None:
            self._job.stop()

    @property
    def patience(self) -> Patience:
        return Patience(self.conflict_poll_interval, self.conflict_takeover_after, self.conflict_timeout)

    def request_fields(self) -> dict[str, Any]:
        ti, storage_options = self.context["ti"], as_texts(self.storage_options, where="storage_options")
        return {
            "table": self.reader.storage.uri,
            "owner": f"airflow:{ti.dag_id}/{ti.task_id}/{ti.run_id}/{ti.map_index}#{ti.try_number}",
            "run_id": ti.run_id,
            "options": as_texts(self.options, where="options"),
            "storage_options": {**self.hook.storage_options, **storage_options},
            "storage_options_file": self.storage_options_file or None,
        }

    def new_request(self, **others: Any) -> Any:
        """Returns the request of the class's verb by the arguments; `others` override them. Raises ConfigError."""
        return self.request(**{**self.request_fields(), **verb_values(self.request, self), **others})

    def new_job(self, job: JobRequest, *, looks: bool = True) -> EngineJob:
        """Returns a job on the table, which on_kill stops. `looks` says whether the job first looks for work."""
        settings = JobSettings(
            as_texts(self.env_vars, where="env_vars"),
            self.kill_grace_seconds,
            lambda: self._credentials_of(job),
            self.engine or self.hook.engine or airflow_conf.get("hudi", "engine", fallback=SPARK),
            self.spark_conn_id,
            as_texts(self.conf, where="conf"),
            self.submit_kwargs or {},
            airflow_conf.getboolean("hudi", "spark_log", fallback=False) if self.spark_log is None else self.spark_log,
            self._storage_of,
        )
        self._job = EngineJob(job, settings, self.log, looks=looks)
        if self._killed:
            self._job.stop()
        return self._job

    def _credentials_of(self, job: JobRequest) -> dict[str, str]:
        """Returns the credentials of the first table that has some. All tables of a connection have the same
        credentials, except local tables, which have none.
        """
        return next(filter(None, (self.hook.credentials(request.table) for request in requests_of(job))), {})

    def _storage_of(self, table: str) -> Storage:
        """Returns the storage of a table, where a job in the cluster puts its result."""
        return self.reader.storage if table == self.reader.storage.uri else self.hook.storage(table)

    def result_of(self, request: Request, *, enough: Callable[[], bool] = lambda: False) -> Result | None:
        return run_until_done(self.new_job(request), self.patience, enough=enough)

    def report(self, request: Request) -> dict[str, Any]:
        """Runs a request and returns its document. Raises HudiJobFailed if it was not received: the task needs it."""
        document = document_of(self.result_of(request))
        if document:
            return document
        said = "the job ended well and its result is out of reach"
        raise HudiJobFailed(said, path=self.reader.storage.uri, remedy="see the driver's log")

    def preview(self, request: Request) -> dict[str, Any]:
        """Runs a dry run and returns its XCom: `table`, `dry_run` (true), and hudictl's document with the plan or the
        `reason`. The task succeeds, and leaves no event, metrics, lineage or state. Raises the errors of `report`.
        """
        xcom = {"table": self.reader.storage.uri, **self.report(request), DRY_RUN: True}
        self.log.info("Nothing is written: %s", xcom)
        return xcom

    def fail(self, document: dict[str, Any], message: str) -> NoReturn:
        """Sets the XCom and raises AirflowFailException, because a retry would find the same."""
        self.context["ti"].xcom_push(key=XCOM, value=document)
        raise AirflowFailException(message)

    @property
    def is_dry_run(self) -> bool:
        """Whether the work is only reported. Raises ConfigError if the argument is neither true nor false."""
        return flag(getattr(self, DRY_RUN), name=DRY_RUN)

    def nothing(self, xcom: dict[str, Any], reason: str) -> dict[str, Any]:
        """Returns the XCom of a task with nothing to do, or skips the task. A task that succeeded before and was
        cleared succeeds again, and reports the work that it had done (TaskStore.finish).
        """
        done = self.store.done
        if done is not None:
            self.log.info("Nothing to do: %s; this task has done its work before: %s", reason, done)
            return {**xcom, **done, "reason": reason}
        self.log.info("Nothing to do: %s", reason)
        if self.nothing_to_do == "skip":
            raise AirflowSkipException(f"Nothing to do: {reason}")
        return {**xcom, "reason": reason}


def listed(first: str, lines: Sequence[str], count: int | None = None) -> str:
    """Returns a message of the first lines and the number of omitted ones. `count` is the number of all lines."""
    more = (len(lines) if count is None else count) - min(len(lines), MOST_LISTED)
    return "\n".join([first, *lines[:MOST_LISTED], *([f"and {more} more"] if more else [])])
