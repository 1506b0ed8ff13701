"""Runs a compaction that a writer planned, as a Spark job, and believes the timeline about its success."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from airflow_hudi.hooks.hudi import HudiHook
from airflow_hudi.operators.attempts import InstantWatch, Patience, run_until_completed
from airflow_hudi.operators.job import SparkJob, SparkSettings
from airflow_hudi.results import completed_result, nothing_result
from airflow_hudi.timeline_reader import TimelineReader
from hudi_core.errors import EXIT_BAD_INPUT, HudiError
from hudi_core.request.model import RunRequest
from hudi_core.timeline.instant import Action, Instant

if TYPE_CHECKING:
    from airflow.sdk import Context

_STORE_KEY = "hudi_compaction_instant"


class HudiCompactionOperator(BaseOperator):
    """Compacts at one pending instant of a table.

    The instant is the job's name: a retry, after whatever kill, runs the same one, finds it completed, or takes it over. When somebody
    else is running it, the task waits for them (see the `conflict_*` arguments). Input that no retry can mend (not a Hudi table, a corrupt
    file, an unsupported feature) fails the task without further retries.

    XCom: `{"table", "instant", "action", "state", "files_written", "bytes_written", "records", "seconds", "already_completed"}`.

    :param table: the table's path or URI, or its path below the connection's base path (templated)
    :param instant: the instant to compact at; empty for the oldest pending one (templated)
    :param hudi_conn_id: connection of type `hudi`; None for none (templated)
    :param spark_conn_id: connection of the Spark provider (templated)
    :param nothing_pending: `skip` or `succeed` when no compaction is pending
    :param options: options of the job by Hudi's own names, no secrets (templated)
    :param storage_options: options of the job's storage library beside the connection's, no secrets (templated)
    :param storage_options_file: JSON file on the driver's machine with storage options that are secret (templated)
    :param metadata: `auto`, `on` or `off`: whether the job reads the metadata table
    :param allow_corrupt_log_blocks: compact file slices with corrupt log blocks, too; what is in those blocks is lost
    :param conf: Spark properties (templated)
    :param env_vars: environment of the driver (templated)
    :param submit_kwargs: further arguments of SparkSubmitHook, such as `archives`, `keytab`, `num_executors` (templated)
    :param kill_grace_seconds: how long a stopped job may take to end before it is killed
    :param conflict_poll_interval: seconds between two looks while somebody else runs the instant
    :param conflict_takeover_after: seconds without a sign of their life after which the job is run again; it checks for itself
    :param conflict_timeout: seconds to wait for somebody else in all
    """

    template_fields: Sequence[str] = (
        "table",
        "instant",
        "hudi_conn_id",
        "spark_conn_id",
        "options",
        "storage_options",
        "storage_options_file",
        "conf",
        "env_vars",
        "submit_kwargs",
    )
    template_fields_renderers = {"options": "json", "storage_options": "json", "conf": "json", "submit_kwargs": "json"}  # noqa: RUF012 (Airflow's own form)
    ui_color = "#c7e3ea"

    def __init__(
        self,
        *,
        table: str,
        instant: str | None = None,
        hudi_conn_id: str | None = HudiHook.default_conn_name,
        spark_conn_id: str = "spark_default",
        nothing_pending: str = "skip",
        options: dict[str, str] | None = None,
        storage_options: dict[str, str] | None = None,
        storage_options_file: str | None = None,
        metadata: str = "auto",
        allow_corrupt_log_blocks: bool = False,
        conf: dict[str, str] | None = None,
        env_vars: dict[str, str] | None = None,
        submit_kwargs: dict[str, Any] | None = None,
        kill_grace_seconds: int = 20,
        conflict_poll_interval: float = 15.0,
        conflict_takeover_after: float = 180.0,
        conflict_timeout: float = 7200.0,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if nothing_pending not in ("skip", "succeed"):
            raise ValueError(f"nothing_pending is {nothing_pending!r}, not 'skip' or 'succeed'")
        self.table = table
        self.instant = instant
        self.hudi_conn_id = hudi_conn_id
        self.spark_conn_id = spark_conn_id
        self.nothing_pending = nothing_pending
        self.options = options
        self.storage_options = storage_options
        self.storage_options_file = storage_options_file
        self.metadata = metadata
        self.allow_corrupt_log_blocks = allow_corrupt_log_blocks
        self.conf = conf
        self.env_vars = env_vars
        self.submit_kwargs = submit_kwargs
        self.kill_grace_seconds = kill_grace_seconds
        self.conflict_poll_interval = conflict_poll_interval
        self.conflict_takeover_after = conflict_takeover_after
        self.conflict_timeout = conflict_timeout
        self._job: SparkJob | None = None

    @cached_property
    def hook(self) -> HudiHook:
        """The hook of `hudi_conn_id`."""
        return HudiHook(self.hudi_conn_id or None)

    def execute(self, context: Context) -> dict[str, Any]:
        """Runs the compaction; see the class."""
        try:
            return self._compact(context)
        except HudiError as error:
            if error.exit_code == EXIT_BAD_INPUT:
                raise AirflowFailException(str(error)) from error
            raise

    def on_kill(self) -> None:
        """Stops the Spark job: the timeline keeps what a retry needs to take the instant over."""
        if self._job is not None:
            self._job.stop()

    def _compact(self, context: Context) -> dict[str, Any]:
        started = time.monotonic()
        reader = self.hook.timeline(self.table)
        instant = self._choose(reader, context)
        if instant is None:
            return self._nothing(reader)
        if instant.is_completed:
            self.log.info("Compaction %s is completed already", instant.requested_time)
            return self._finish(reader, instant, context, started, already_completed=True)
        self.log.info("Compaction %s is %s; running it", instant.requested_time, instant.state.value)
        self._job = self._make_job(reader, instant, context)
        patience = Patience(self.conflict_poll_interval, self.conflict_takeover_after, self.conflict_timeout)
        completed = run_until_completed(self._job, InstantWatch(reader, instant.requested_time, Action.COMPACTION), patience)
        return self._finish(reader, completed, context, started, already_completed=False)

    def _choose(self, reader: TimelineReader, context: Context) -> Instant | None:
        """The instant that was asked for, or that an earlier try of this task had begun, or the oldest pending one."""
        timeline = reader.load()
        if self.instant:
            return InstantWatch(reader, self.instant, Action.COMPACTION).look()
        store = context.get("task_state_store")
        begun = store.get(_STORE_KEY) if store is not None else None
        chosen = timeline.find(str(begun), Action.COMPACTION) if begun else None
        if chosen is None:
            chosen = timeline.pending_compactions().first()
        if chosen is not None and store is not None:
            store.set(_STORE_KEY, chosen.requested_time)
        return chosen

    def _nothing(self, reader: TimelineReader) -> dict[str, Any]:
        message = f"{reader.storage.uri} has no pending compaction"
        if self.nothing_pending == "skip":
            raise AirflowSkipException(message)
        self.log.info(message)
        return nothing_result(reader.storage.uri)

    def _finish(self, reader: TimelineReader, instant: Instant, context: Context, started: float, *, already_completed: bool) -> dict[str, Any]:
        result = completed_result(reader, instant, seconds=time.monotonic() - started, already_completed=already_completed)
        store = context.get("task_state_store")
        if not self.instant and store is not None:
            # Clearing the task means "compact again", not "say again what you did".
            store.delete(_STORE_KEY)
        self.log.info("Compaction %s is completed: %s", instant.requested_time, result)
        return result

    def _make_job(self, reader: TimelineReader, instant: Instant, context: Context) -> SparkJob:
        ti = context["ti"]
        owner = f"airflow:{ti.dag_id}/{ti.task_id}/{ti.run_id}/{ti.map_index}#{ti.try_number}"
        settings = SparkSettings(self.spark_conn_id, self.conf or {}, self.env_vars or {}, self.submit_kwargs or {}, self.kill_grace_seconds)
        request = RunRequest(
            table=reader.storage.uri,
            service=Action.COMPACTION,
            instant=instant.requested_time,
            owner=owner,
            options=self.options or {},
            storage_options={**self.hook.storage_options, **(self.storage_options or {})},
            storage_options_file=self.storage_options_file or None,
            metadata=self.metadata,
            allow_corrupt_log_blocks=self.allow_corrupt_log_blocks,
        )
        return SparkJob(request, settings, os.environ)
