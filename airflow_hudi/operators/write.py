"""Writes the rows of Parquet files, a query or a DataFrame. Overwrites get their rows in the same ways."""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any, ClassVar

from airflow.sdk import conf
from airflow.sdk.exceptions import AirflowSensorTimeout, TaskDeferralTimeout

from airflow_hudi.arguments import is_literal
from airflow_hudi.conditions.condition import seconds_in
from airflow_hudi.hooks import is_absolute
from airflow_hudi.operators.base import DRY_RUN, BaseHudiOperator
from airflow_hudi.operators.tokens import check_literals, serve_once, token_of
from airflow_hudi.task_fate import HudiJobKilled, fails_for_good
from airflow_hudi.triggers.wait import AwaitedSource, HudiConditionTrigger, found_in
from hudi_core.errors import ConfigError
from hudi_core.timeline.actions.replacecommit import TOKEN_KEY
from hudi_core.timeline.instant import Action
from hudi_core.verbs.write import OPERATIONS, InsertOverwriteRequest, WriteRequest

if TYPE_CHECKING:
    from airflow.sdk import Context


class BaseHudiRowsOperator(BaseHudiOperator):
    """Writes rows, once for each data interval or partition of the schedule. docs/use/hudictl.md says what the files of
    a source must contain.

    The token names the work, and the commit records it. A task whose token a commit already has does nothing and
    succeeds. `nothing_to_do` is `succeed` by default.

    XCom: `{"table", "token", "instant", "operation", "partitions", "replaced_file_groups", "files_written", "records",
    "inserted", "updated", "deleted", "repeated", "engine", "reason"}`. `instant` is None and `reason` is set when there
    was nothing to do. If the work was done before, the numbers come from its commit, `repeated` is true and `reason`
    names the instant. The XCom of a dry run has `dry_run`, too, and the expected numbers, without files.

    :param source: a Parquet file, or a folder of them, which all executors can read with the table's storage options
        (templated)
    :param query: SQL that Spark answers, instead of `source` (templated)
    :param dataframe: a function that returns Spark's DataFrame of the rows, instead of `source`, as `module:function`.
        The driver calls it with the Spark session and `dataframe_args`; its module is one of `py_files` in
        `submit_kwargs`, or is installed where the driver runs (templated)
    :param dataframe_args: keyword arguments of the function; it gets numbers, True and False as texts (templated)
    :param wait_for_source: how long to wait for a `source` that does not exist yet: seconds, a timedelta, or a text
        such as `30m` or `2h`; 0: it must exist. After this time the task fails without further retries (templated)
    :param source_marker: a file in the source's folder that exists when all others do, such as `_SUCCESS`; without it
        the source is complete when two looks show the same files (templated)
    :param source_poll_interval: seconds between two looks at the source
    :param deferrable: wait in the triggerer and hold no worker slot; the default is `[hudi] default_deferrable`, or
        True
    :param token: the name of the work; a new token writes an interval again. Empty for the token of DAG, task and data
        interval (tokens.token_of, templated)
    :param dry_run: whether the work is only reported (BaseHudiOperator.preview); may be rendered (templated)
    """

    source: str = ""
    query: str = ""
    dataframe: str = ""
    dataframe_args: Mapping[str, str | float] | None = None
    wait_for_source: float | str | timedelta = 0
    source_marker: str = ""
    source_poll_interval: float = 60.0
    deferrable: bool = conf.getboolean("hudi", "default_deferrable", fallback=True)
    token: str | None = None
    dry_run: bool | str = False  # type: ignore[assignment]  # Airflow's method of this name logs, and is not called
    nothing_to_do: str = "succeed"
    template_fields = (
        *("source", "query", "dataframe", "dataframe_args", "wait_for_source", "source_marker", "token", DRY_RUN),
        *BaseHudiOperator.template_fields,
    )

    request: ClassVar[type[WriteRequest | InsertOverwriteRequest]]
    commit_actions: ClassVar[tuple[str, ...]]
    """The actions that the commits of the operator have."""

    def check_arguments(self) -> None:
        super().check_arguments()
        given = [getattr(self, name) for name in self.request.rows_fields]
        check_literals(self, *given)
        if any(given) and is_literal(*given, self.wait_for_source):
            self._check_wait()

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

    def serve(self) -> dict[str, Any]:
        return serve_once(self)

    def _wait(self, context: Context) -> None:
        """Waits for the source. Returns when the source exists, or is not needed. Raises TaskDeferred when it waits in
        the triggerer, or AirflowSensorTimeout when it waits here.
        """
        seconds = self._check_wait()
        if not seconds:
            return
        self.begin(context)
        # Raises before the wait for errors that no wait repairs, and so that no secret is shown.
        self.new_request(token=token_of(self, context))
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
        token, look = token_of(self, self.context), self.reader.look()
        commits = look.timeline.completed().of_actions(*self.commit_actions)
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


class HudiWriteOperator(BaseHudiRowsOperator):
    """Upserts, inserts or deletes the rows of Parquet files, a query or a DataFrame. BaseHudiRowsOperator describes the
    rest. Rows to delete need only the columns of keys and partitions.

    :param operation: `upsert`, `insert`, `bulk_insert` or `delete` (templated)
    :param where: a predicate in Spark's SQL, instead of a source: `delete` deletes the rows that it selects (templated)
    """

    request = WriteRequest
    commit_actions = (Action.COMMIT, Action.DELTA_COMMIT)
    _argument_choices: ClassVar = {"operation": OPERATIONS}
