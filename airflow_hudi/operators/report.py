"""A job that reports and changes nothing: its document is the task's result, whether the task succeeds or fails."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from airflow.sdk.exceptions import AirflowFailException

from airflow_hudi.exceptions import HudiJobFailed
from airflow_hudi.jobs.run_until_completed import run_until_done
from airflow_hudi.operators.base import BaseHudiOperator
from airflow_hudi.timeline_reader import TimelineReader
from hudi_core.request.requests import Request

if TYPE_CHECKING:
    from airflow.sdk import Context

_XCOM = "return_value"


class BaseHudiReportOperator(BaseHudiOperator):
    """Runs a job whose document is the task's XCom, also when the task fails because of what is in it."""

    def report(self, reader: TimelineReader, request: Request) -> dict[str, Any]:
        """The document of the request.

        Raises HudiJobFailed when it was not received: a task without a report must not succeed.
        """
        done = run_until_done(self.new_job(reader, request), self.patience)
        document = done.get("document")
        if not document:
            raise HudiJobFailed(
                "the job ended well and its result is out of reach",
                path=reader.storage.uri,
                remedy="see the driver's log",
            )
        return dict(document)

    def fail(self, context: Context, document: dict[str, Any], message: str) -> NoReturn:
        """Fails the task for good, with its XCom: a retry would find the same. Raises AirflowFailException."""
        context["ti"].xcom_push(key=_XCOM, value=document)
        raise AirflowFailException(message)
