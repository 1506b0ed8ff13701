"""Jobs without a plan, which may be run again: a verb on an instant; reports and dry runs, which change nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from airflow.sdk.exceptions import AirflowFailException

from airflow_hudi.exceptions import HudiJobFailed
from airflow_hudi.operators.base import DRY_RUN, XCOM, BaseHudiOperator
from airflow_hudi.results import document_of
from airflow_hudi.timeline_reader import TimelineReader
from hudi_core.errors import ConfigError
from hudi_core.verbs.instants import RestoreRequest, SavepointCreateRequest
from hudi_core.verbs.request import InstantRequest, Request

if TYPE_CHECKING:
    from airflow.sdk import Context


class BaseHudiVerbOperator(BaseHudiOperator):
    """Runs a verb on one instant of a table.

    `nothing_to_do` is `succeed` by default, since a retry may find its work done.

    :param instant: the instant (templated)
    """

    template_fields: Sequence[str] = ("instant", *BaseHudiOperator.template_fields)

    def __init__(self, *, instant: str | None = None, nothing_to_do: str = "succeed", **kwargs: Any) -> None:
        super().__init__(nothing_to_do=nothing_to_do, **kwargs)
        self.instant = instant

    def required_instant(self) -> str:
        """The instant. Raises ConfigError when it is empty."""
        if not self.instant:
            raise ConfigError(f"{type(self).__name__} was given no instant", remedy="set instant=")
        return self.instant

    def perform(
        self,
        reader: TimelineReader,
        context: Context,
        request: InstantRequest | RestoreRequest | SavepointCreateRequest,
        *,
        is_done: Callable[[], bool] | None = None,
    ) -> dict[str, Any]:
        """The document of the verb (as hudictl prints it), `{}` when it was not received.

        Where the job refuses its input, an earlier try of this task started the same, and the timeline shows
        (`is_done`) that it was completed, the work is done.
        """
        store, instant = self.store(context), request.instant or ""
        started = store.instant == instant
        store.begin(instant)
        try:
            result = self.result_of(reader, request)
        except ConfigError as error:
            if not started or is_done is None or not is_done():
                raise
            self.log.info("An earlier try of this task did it already: %s", error)
            result = None
        store.forget()
        return document_of(result)


def report(operator: BaseHudiOperator, reader: TimelineReader, request: Request) -> dict[str, Any]:
    """The document of a request, which is the XCom of its task.

    Raises HudiJobFailed when it was not received: a task without a report must not succeed.
    """
    document = document_of(operator.result_of(reader, request))
    if not document:
        raise HudiJobFailed(
            "the job ended well and its result is out of reach",
            path=reader.storage.uri,
            remedy="see the driver's log",
        )
    return document


def preview(operator: BaseHudiOperator, reader: TimelineReader, request: Request) -> dict[str, Any]:
    """The XCom of a dry run: `table`, `dry_run`, which is true, and the document of hudictl with `--dry-run`: the plan,
    or what would go, or the `reason` why there is nothing to do. The task succeeds in either case. It writes nothing,
    has no asset event, no metrics and no lineage, and keeps nothing for another try. Errors as `report`.
    """
    xcom = {"table": reader.storage.uri, **report(operator, reader, request), DRY_RUN: True}
    operator.log.info("Nothing is written: %s", xcom)
    return xcom


def fail(context: Context, document: dict[str, Any], message: str) -> NoReturn:
    """Fails the task for good, with its XCom: a retry would find the same. Raises AirflowFailException."""
    context["ti"].xcom_push(key=XCOM, value=document)
    raise AirflowFailException(message)
