"""Replaces the rows of partitions: by the rows of Parquet files, of a query or of a DataFrame, or by none."""

from __future__ import annotations

import hashlib
import json
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from datetime import timezone
from typing import TYPE_CHECKING, Any, ClassVar, Final

from airflow_hudi.arguments import is_literal
from airflow_hudi.jobs.job_arguments import as_texts
from airflow_hudi.jobs.run_until_completed import run_until_done
from airflow_hudi.operators.base import DRY_RUN, flag, partitions_in
from airflow_hudi.operators.verb import BaseHudiDryRunOperator
from airflow_hudi.timeline_reader import TimelineReader
from hudi_core.request.overwrites import MAX_TOKEN, DeletePartitionRequest, InsertOverwriteRequest

if TYPE_CHECKING:
    from airflow.sdk import Context

_OF_SCHEDULE: Final = ("scheduled", "backfill")
"""Airflow's types of a run that is of a data interval or partition of the schedule."""
_DOCUMENT = (
    *("instant", "operation", "partitions", "replaced_file_groups", "files_written", "records"),
    *("repeated", "engine", "reason"),
)
"""The XCom's members beside `table` and `token`, which are those of hudictl's document."""


class BaseHudiOverwriteOperator(BaseHudiDryRunOperator):
    """Replaces what partitions hold, once for each data interval or partition of the schedule.

    The token names the work. It is recorded in the commit, and a task with the token of a commit does nothing: it
    succeeds with that commit's numbers, `repeated` and a `reason`. So retries, cleared tasks and backfills that are run
    twice or side by side write their rows once. A task whose earlier try was killed takes back what is left of it.

    `nothing_to_do` is `succeed` by default.

    XCom: `{"table", "token", "instant", "operation", "partitions", "replaced_file_groups", "files_written", "records",
    "repeated", "engine", "reason"}`; `instant` is None and `reason` is set when there was nothing to do. That of a dry
    run has `dry_run`, too, and the numbers to come, without files. Where the work has been done, `repeated` is true and
    `reason` says by which instant.

    :param partitions: paths of partitions, as a list, or as a text that separates them by commas or lines. Those of a
        list are taken as they are: an empty one is the partition of a table without partition columns (templated)
    :param token: the name of the work; empty for that of DAG, task and data interval, or partition date where the run's
        schedule has partitions, or run id where it has neither or the run was not started by the schedule or a
        backfill, and of a mapped task also its index and what it writes. An interval is written again with another
        token (templated)
    """

    action: ClassVar[str]
    """What the log calls it."""
    template_fields: Sequence[str] = ("partitions", "token", *BaseHudiDryRunOperator.template_fields)

    def __init__(
        self,
        *,
        partitions: Sequence[str] | str = (),
        token: str | None = None,
        nothing_to_do: str = "succeed",
        **kwargs: Any,
    ) -> None:
        super().__init__(nothing_to_do=nothing_to_do, **kwargs)
        self.partitions = partitions
        self.token = token

    def check_arguments(self) -> None:
        """See BaseHudiOperator. What is missing may be given later, by a subclass."""
        super().check_arguments()
        if self.has_work and is_literal(self.partitions, self.token, self.dry_run):
            given = {"partitions": partitions_in(self.partitions), "token": self.token or None}
            self.overwrite_request({"table": "/", **given})

    @property
    @abstractmethod
    def has_work(self) -> bool:
        """Whether literals say what is to be written or deleted."""

    def serve(self, reader: TimelineReader, context: Context) -> dict[str, Any]:
        """Overwrites; see the class."""
        token = self.token or self._token_of(context)
        fields = {"partitions": partitions_in(self.partitions), "token": token, **self.request_fields(reader, context)}
        if self.is_dry_run:
            return {"token": token, **self.preview(reader, self.overwrite_request({**fields, DRY_RUN: True}))}
        done = run_until_done(self.new_job(reader, self.overwrite_request(fields)), self.patience)
        document = done.get("document") or {}
        result = {"table": reader.storage.uri, "token": token, **{name: document.get(name) for name in _DOCUMENT}}
        if result["reason"] is not None and not result["repeated"]:
            return self.nothing(context, lambda: result, result["reason"])
        self.log.info("%s: %s", self.action, result)
        return result

    def _token_of(self, context: Context) -> str:
        """The token of the task's work: the same in each try, and in each run of the same data interval or partition.

        A partition is what its date says: keys may leave out the hour. A run that events of assets started is other
        work each time, for the event says that there are new rows. So is a run by hand, by TriggerDagRunOperator or to
        materialize an asset: the interval that Airflow gives it is the last one that is over, whatever `ds` is.
        """
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
            # What is mapped may be in another order when the run is cleared.
            names = sorted({"table", *self.template_fields} - {"token", *BaseHudiDryRunOperator.template_fields})
            work = json.dumps([[name, getattr(self, name)] for name in names], default=str, sort_keys=True)
            mapped = f"[{ti.map_index}:{hashlib.sha256(work.encode()).hexdigest()[:16]}]"
        name = f"airflow:{ti.dag_id}/{ti.task_id}{mapped}@{interval}"
        return name if len(name) <= MAX_TOKEN else f"airflow:sha256:{hashlib.sha256(name.encode()).hexdigest()}"

    @abstractmethod
    def overwrite_request(self, fields: dict[str, Any]) -> InsertOverwriteRequest | DeletePartitionRequest:
        """The request with these fields. Raises ConfigError for what it needs and was not given."""


class HudiInsertOverwriteOperator(BaseHudiOverwriteOperator):
    """Replaces partitions by the rows of Parquet files, of a query or of a DataFrame: those that the rows belong to,
    `partitions`, or all.

    Token, retries and XCom: see BaseHudiOverwriteOperator. What the files must hold: docs/hudictl.md, insert-overwrite.

    :param source: a Parquet file, or a folder of them, which all executors can read with the storage options of the
        table (templated)
    :param query: SQL that Spark answers, instead of `source` (templated)
    :param dataframe: a function that returns Spark's DataFrame of the rows, instead of `source`, as `module:function`.
        The driver imports it and calls it with the Spark session and `dataframe_args`; its module is one of `py_files`
        in `submit_kwargs`, or is installed where the driver runs (templated)
    :param dataframe_args: keyword arguments of the function; it gets numbers, True and False as texts
        (templated)
    :param whole_table: all partitions are replaced; a value that is rendered may be `true` or `false` (templated)
    """

    action = "insert_overwrite"
    template_fields: Sequence[str] = (
        "source",
        "query",
        "dataframe",
        "dataframe_args",
        "whole_table",
        *BaseHudiOverwriteOperator.template_fields,
    )

    def __init__(
        self,
        *,
        source: str = "",
        query: str = "",
        dataframe: str = "",
        dataframe_args: Mapping[str, str | float] | None = None,
        whole_table: bool | str = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.dataframe = dataframe
        self.dataframe_args = dataframe_args
        self.source = source
        self.query = query
        self.whole_table = whole_table

    @property
    def has_work(self) -> bool:
        """See BaseHudiOverwriteOperator."""
        given = (self.source, self.query, self.dataframe)
        return any(given) and is_literal(*given, self.dataframe_args, self.whole_table)

    def lineage_sources(self) -> tuple[str | None, str | None]:
        """See BaseHudiOperator."""
        return self.source or None, self.query or None

    def overwrite_request(self, fields: dict[str, Any]) -> InsertOverwriteRequest:
        """See BaseHudiOverwriteOperator."""
        return InsertOverwriteRequest(
            source=self.source,
            query=self.query,
            dataframe=self.dataframe,
            dataframe_args=as_texts(self.dataframe_args, where="dataframe_args"),
            whole_table=flag(self.whole_table, name="whole_table"),
            **fields,
        )


class HudiDeletePartitionOperator(BaseHudiOverwriteOperator):
    """Replaces `partitions` by nothing: queries find no row of them, and their files go by a later clean.

    Token, retries and XCom: see BaseHudiOverwriteOperator. A partition that the table does not have is bad input.
    """

    action = "delete_partition"

    @property
    def has_work(self) -> bool:
        """See BaseHudiOverwriteOperator."""
        return bool(self.partitions)

    def overwrite_request(self, fields: dict[str, Any]) -> DeletePartitionRequest:
        """See BaseHudiOverwriteOperator."""
        return DeletePartitionRequest(**fields)
