"""Jobs without a plan, which may be run again: a verb on an instant; reports and dry runs, which change nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from airflow.sdk.exceptions import AirflowFailException

from airflow_hudi.arguments import is_literal
from airflow_hudi.exceptions import HudiJobFailed
from airflow_hudi.jobs.run_until_completed import run_until_done
from airflow_hudi.operators.base import DRY_RUN, XCOM, BaseHudiOperator, flag
from airflow_hudi.results import document_of
from airflow_hudi.timeline_reader import TimelineReader
from hudi_core.errors import ConfigError
from hudi_core.verbs.request import InstantRequest, Request
from hudi_core.verbs.savepoint import SavepointCreateRequest
from hudi_core.verbs.undo import RestoreRequest

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
            done = run_until_done(self.new_job(reader, request), self.patience)
        except ConfigError as error:
            if not started or is_done is None or not is_done():
                raise
            self.log.info("An earlier try of this task did it already: %s", error)
            done = None
        store.forget()
        return document_of(done)


class BaseHudiReportOperator(BaseHudiOperator):
    """Runs a job whose document is the task's XCom, also when the task fails because of what is in it."""

    def report(self, reader: TimelineReader, request: Request) -> dict[str, Any]:
        """The document of the request.

        Raises HudiJobFailed when it was not received: a task without a report must not succeed.
        """
        document = document_of(run_until_done(self.new_job(reader, request), self.patience))
        if not document:
            raise HudiJobFailed(
                "the job ended well and its result is out of reach",
                path=reader.storage.uri,
                remedy="see the driver's log",
            )
        return document

    def fail(self, context: Context, document: dict[str, Any], message: str) -> NoReturn:
        """Fails the task for good, with its XCom: a retry would find the same. Raises AirflowFailException."""
        context["ti"].xcom_push(key=XCOM, value=document)
        raise AirflowFailException(message)


class BaseHudiDryRunOperator(BaseHudiReportOperator):
    """An operator that can report what it would do.

    The XCom of a dry run is `table`, `dry_run`, which is true, and the document of hudictl with `--dry-run`: the plan,
    or what would go, or the `reason` why there is nothing to do. The task succeeds in either case. It writes nothing,
    has no asset event, no metrics and no lineage, and keeps nothing for another try.

    :param dry_run: whether the work is only reported; a value that is rendered may be `true` or `false` (templated)
    """

    template_fields: Sequence[str] = (DRY_RUN, *BaseHudiOperator.template_fields)
    # A method of Airflow's base class has this name. It logs the template fields, and Airflow does not call it.
    dry_run: bool | str  # type: ignore[assignment]

    def __init__(self, *, dry_run: bool | str = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.dry_run = dry_run

    def check_arguments(self) -> None:
        """See BaseHudiOperator."""
        super().check_arguments()
        if is_literal(self.dry_run):
            flag(self.dry_run, name=DRY_RUN)

    @property
    def is_dry_run(self) -> bool:
        """Whether the work is only reported. Raises ConfigError for what is neither true nor false."""
        return flag(self.dry_run, name=DRY_RUN)

    def preview(self, reader: TimelineReader, request: Request) -> dict[str, Any]:
        """The XCom of a dry run. Errors as `report`."""
        result = {"table": reader.storage.uri, **self.report(reader, request), DRY_RUN: True}
        self.log.info("Nothing is written: %s", result)
        return result
