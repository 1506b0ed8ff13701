"""Replaces the rows of partitions by the rows of Parquet files, a query or a DataFrame, or deletes them."""

from __future__ import annotations

import hashlib
import json
import time
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from datetime import timedelta, timezone
from typing import TYPE_CHECKING, Any, Final

from airflow.sdk import conf
from airflow.sdk.exceptions import AirflowSensorTimeout, TaskDeferralTimeout

from airflow_hudi.arguments import is_literal, verb_values
from airflow_hudi.conditions.condition import seconds_in
from airflow_hudi.hooks import is_absolute
from airflow_hudi.operators.base import DRY_RUN, BaseHudiOperator
from airflow_hudi.results import document_of
from airflow_hudi.task_fate import HudiJobKilled, fails_for_good
from airflow_hudi.triggers.wait import AwaitedSource, HudiConditionTrigger, found_in
from hudi_core.errors import ConfigError
from hudi_core.timeline.actions.replacecommit import TOKEN_KEY
from hudi_core.timeline.instant import Action
from hudi_core.verbs.overwrite import MAX_TOKEN, DeletePartitionRequest, InsertOverwriteRequest

if TYPE_CHECKING:
    from airflow.sdk import Context

_OF_SCHEDULE: Final = ("scheduled", "backfill")
"""Airflow's types of runs that belong to a data interval or partition of the schedule."""
_DOCUMENT = ("instant", "operation", "partitions", "replaced_file_groups", "files_written", "records")
"""The members of hudictl's document that the XCom always has. It always has `repeated`, `engine` and `reason`, too."""


class BaseHudiOverwriteOperator(BaseHudiOperator):
    """Replaces the rows of partitions, once for each data interval or partition of the schedule.

    The token names the work, and the commit records it. A task whose token a commit already has does nothing and
    succeeds. `nothing_to_do` is `succeed` by default.

    XCom: `{"table", "token", "instant", "operation", "partitions", "replaced_file_groups", "files_written", "records",
    "repeated", "engine", "reason"}`. `instant` is None and `reason` is set when there was nothing to do. If the work
    was done before, the numbers come from its commit, `repeated` is true and `reason` names the instant. The XCom of a
    dry run has `dry_run`, too, and the expected numbers, without files.

    :param partitions: paths of partitions, as a list, or as a text that separates them by commas or lines. The paths of
        a list are taken unchanged: an empty one is the partition of a table without partition columns (templated)
    :param token: the name of the work; a new token writes an interval again. Empty for the token of DAG, task and data
        interval (token_of, templated)
    :param dry_run: whether the work is only reported (BaseHudiOperator.preview); may be rendered (templated)
    """

    partitions: Sequence[str] | str = ()
    token: str | None = None
    dry_run: bool | str = False  # type: ignore[assignment]  # Airflow's method of this name logs, and is not called
    nothing_to_do: str = "succeed"
    template_fields = ("partitions", "token", DRY_RUN, *BaseHudiOperator.template_fields)

    def check_arguments(self) -> None:
        """Checks the literals (see BaseHudiOperator). A subclass may give a missing argument later."""
        super().check_arguments()
        if self.has_work and is_literal(self.partitions, self.token, self.dry_run):
            self.request(table="/", **verb_values(self.request, self))

    @property
    @abstractmethod
    def has_work(self) -> bool:
        """Whether literal arguments say what to write or delete."""

    def serve(self) -> dict[str, Any]:
        request = self.request_of()
        if request.dry_run:
            return {"token": request.token, **self.preview(request)}
        document = document_of(self.result_of(request))
        members = (*_DOCUMENT, "repeated", "engine", "reason")
        xcom = {
            "table": self.reader.storage.uri,
            "token": request.token,
            **{name: document.get(name) for name in members},
        }
        if xcom["reason"] is not None and not xcom["repeated"]:
            return self.nothing(xcom, xcom["reason"])
        self.log.info("%s: %s", request.verb, xcom)
        return xcom

    def request_of(self) -> Any:
        """Returns the request of this task. Raises ConfigError for arguments that are invalid or hold a secret."""
        return self.new_request(token=self.token_of(self.context))

    def token_of(self, context: Context) -> str:
        """Returns `token`, or a token of the task and its work: the same in each try, and in each run of one data
        interval or partition. The partition's date names it, because partition keys may omit the hour. Each run by
        asset events is new work, because they say that there are new rows. Each run by hand, by TriggerDagRunOperator
        or to materialize an asset is new work, too: Airflow gives it the last interval that is over, whatever `ds` is.
        """
        if self.token:
            return self.token
        ti, run = context["ti"], context.get("dag_run")
        start, end = context.get("data_interval_start"), context.get("data_interval_end")
        if run is not None and run.run_type not in _OF_SCHEDULE:
            interval = ti.run_id
        elif run is not None and run.partition_date is not None:
            interval = run.partition_date.astimezone(timezone.utc).isoformat()
        else:
            interval = ti.run_id if start is None or end is None else f"{start.isoformat()}/{end.isoformat()}"
        mapped = ""
        if ti.map_index is not None and ti.map_index >= 0:
            # The mapped values may be in another order when the run is cleared.
            names = sorted({"table", *self.template_fields} - {"token", DRY_RUN, *BaseHudiOperator.template_fields})
            work = json.dumps([[name, getattr(self, name)] for name in names], default=str, sort_keys=True)
            mapped = f"[{ti.map_index}:{hashlib.sha256(work.encode()).hexdigest()[:16]}]"
        name = f"airflow:{ti.dag_id}/{ti.task_id}{mapped}@{interval}"
        return name if len(name) <= MAX_TOKEN else f"airflow:sha256:{hashlib.sha256(name.encode()).hexdigest()}"


class HudiInsertOverwriteOperator(BaseHudiOverwriteOperator):
    """Replaces partitions by the rows of Parquet files, a query or a DataFrame: the partitions of the rows,
    `partitions`, or all. BaseHudiOverwriteOperator describes the rest. docs/use/hudictl.md says what the files must
    contain.

    :param source: a Parquet file, or a folder of them, which all executors can read with the table's storage options
        (templated)
    :param query: SQL that Spark answers, instead of `source` (templated)
    :param dataframe: a function that returns Spark's DataFrame of the rows, instead of `source`, as `module:function`.
        The driver calls it with the Spark session and `dataframe_args`; its module is one of `py_files` in
        `submit_kwargs`, or is installed where the driver runs (templated)
    :param dataframe_args: keyword arguments of the function; it gets numbers, True and False as texts (templated)
    :param whole_table: whether all partitions are replaced; may be rendered (templated)
    :param wait_for_source: how long to wait for a `source` that does not exist yet: seconds, a timedelta, or a text
        such as `30m` or `2h`; 0: it must exist. After this time the task fails without further retries (templated)
    :param source_marker: a file in the source's folder that exists when all others do, such as `_SUCCESS`; without it
        the source is complete when two looks show the same files (templated)
    :param source_poll_interval: seconds between two looks at the source
    :param deferrable: wait in the triggerer and hold no worker slot; the default is `[hudi] default_deferrable`, or
        True
    """

    request = InsertOverwriteRequest
    source: str = ""
    query: str = ""
    dataframe: str = ""
    dataframe_args: Mapping[str, str | float] | None = None
    whole_table: bool | str = False
    wait_for_source: float | str | timedelta = 0
    source_marker: str = ""
    source_poll_interval: float = 60.0
    deferrable: bool = conf.getboolean("hudi", "default_deferrable", fallback=True)
    template_fields = (
        *("source", "query", "dataframe", "dataframe_args", "whole_table", "wait_for_source", "source_marker"),
        *BaseHudiOverwriteOperator.template_fields,
    )

    def check_arguments(self) -> None:
        super().check_arguments()
        if is_literal(self.wait_for_source, self.source) and self.has_work:
            self._check_wait()

    @property
    def has_work(self) -> bool:
        given = (self.source, self.query, self.dataframe)
        return any(given) and is_literal(*given, self.dataframe_args, self.whole_table)

    def execute(self, context: Context) -> dict[str, Any]:
        with fails_for_good(self.log):
            self._wait(context)
        return self.serve_and_report(context)

    def execute_complete(self, context: Context, event: dict[str, Any]) -> dict[str, Any]:
        found_in(event, self.source, self.log)
        self.log.info("%s is there", self.source)
        return self.serve_and_report(context)

    def resume_execution(self, next_method: str, next_kwargs: dict[str, Any] | None, context: Context) -> Any:
        try:
            return super().resume_execution(next_method, next_kwargs, context)
        except TaskDeferralTimeout as error:
            raise self._timed_out() from error

    def _wait(self, context: Context) -> None:
        """Waits for the source. Returns when the source exists, or is not needed. Raises TaskDeferred when it waits in
        the triggerer, or AirflowSensorTimeout when it waits here.
        """
        seconds = self._check_wait()
        if not seconds:
            return
        self.begin(context)
        self.request_of()  # Raises before the wait for errors that no wait repairs, and so that no secret is shown.
        if self._awaited.is_there() or self._is_done():
            return
        self.log.info("%s is not there yet; this task waits for it for up to %d s", self.source, seconds)
        if self.deferrable:
            trigger = HudiConditionTrigger(
                table=self.source,
                condition=self._awaited.to_json(),
                hudi_conn_id=self.hudi_conn_id or None,
                poll_interval=self.source_poll_interval,
            )
            self.defer(trigger=trigger, method_name="execute_complete", timeout=timedelta(seconds=seconds))
        awaited, end = self._awaited, time.monotonic() + seconds
        while awaited.check() is None:
            if time.monotonic() >= end:
                raise self._timed_out()
            time.sleep(min(self.source_poll_interval, max(0.0, end - time.monotonic())))
            if self._killed:
                raise HudiJobKilled("stopped while waiting for its source")

    def _is_done(self) -> bool:
        """Returns whether a commit on the timeline has the token. The job then reports this, and needs no source."""
        token, look = self.token_of(self.context), self.reader.look()
        commits = look.timeline.completed().of_actions(Action.REPLACE_COMMIT)
        found = (look.read_commit(item) for item in reversed(commits.instants))
        return any(commit is not None and commit.extra_metadata.get(TOKEN_KEY) == token for commit in found)

    def _check_wait(self) -> int:
        """Returns the seconds of the wait; 0 for no wait. Raises ConfigError."""
        seconds = 0 if self.wait_for_source in (None, "") else seconds_in(self.wait_for_source)
        if seconds and not is_absolute(self.source.rstrip("/")):
            raise ConfigError(
                "wait_for_source is of a source, by its absolute path or URI",
                remedy="give one, or put a sensor before the task",
            )
        return seconds

    @property
    def _awaited(self) -> AwaitedSource:
        return AwaitedSource(self.source, self.source_marker, self.hudi_conn_id or None)

    def _timed_out(self) -> AirflowSensorTimeout:
        said = (
            f"the source {self.source} has not arrived: {self._awaited.unmet()} after a wait of {self._check_wait()} s"
        )
        return AirflowSensorTimeout(said)

    def lineage_sources(self) -> tuple[str | None, str | None]:
        return self.source or None, self.query or None


class HudiDeletePartitionOperator(BaseHudiOverwriteOperator):
    """Deletes all rows of `partitions`: queries find no rows there, and a later clean deletes the files. Token, retries
    and XCom are those of BaseHudiOverwriteOperator. A partition that the table does not have is bad input.
    """

    request = DeletePartitionRequest

    @property
    def has_work(self) -> bool:
        return bool(self.partitions)
