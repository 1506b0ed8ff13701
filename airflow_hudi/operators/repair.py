"""Frees what a plan that is not run, or a dead owner, blocks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow_hudi.operators.base import DRY_RUN
from airflow_hudi.operators.verb import BaseHudiVerbOperator, preview
from airflow_hudi.timeline_reader import TimelineReader
from hudi_core.timeline.instant import Action
from hudi_core.verbs.instants import TakeoverRequest, UnscheduleRequest

if TYPE_CHECKING:
    from airflow.sdk import Context


class HudiUnscheduleOperator(BaseHudiVerbOperator):
    """Drops a pending plan that will not be run, with the files of attempts at it.

    XCom: `{"table", "instant", "action", "dry_run", "removed": {"files", "bytes", "instants"}, "unblocks", "reason"}`;
    `reason` says why there was nothing to drop.

    :param instant: the plan to drop (templated)
    :param dry_run: whether the work is only reported (verb.preview); a value that is rendered may be `true` or `false`
        (templated)
    """

    template_fields: Sequence[str] = (DRY_RUN, *BaseHudiVerbOperator.template_fields)

    def __init__(self, *, dry_run: bool | str = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.dry_run = dry_run

    def serve(self, reader: TimelineReader, context: Context) -> dict[str, Any]:
        instant = self.required_instant()
        fields = self.request_fields(reader, context)
        request = UnscheduleRequest(instant=instant, dry_run=self.is_dry_run, **fields)
        if request.dry_run:
            return preview(self, reader, request)
        document = self.perform(reader, context, request, is_done=lambda: not reader.load().contains(instant))
        result = {"table": reader.storage.uri, "instant": instant, **document}
        self.log.info("Dropped: %s", result)
        return result


class HudiTakeoverOperator(BaseHudiVerbOperator):
    """Frees a pending instant whose owner is dead: files of its attempt are deleted, and the next run starts at once.

    Refused as a conflict, which is waited out, while the owner may be alive. XCom: `{"table", "instant", "action",
    "state", "previous_owner", "removed": {"files", "bytes", "instants"}, "unblocks", "after_the_run", "next",
    "reason"}`: `unblocks` may proceed now, `after_the_run` once the instant is run or dropped; `reason` says why there
    was nothing to free.

    :param instant: the instant to free (templated)
    """

    def serve(self, reader: TimelineReader, context: Context) -> dict[str, Any]:
        instant = self.required_instant()
        request = TakeoverRequest(instant=instant, **self.request_fields(reader, context))
        document = self.perform(reader, context, request, is_done=lambda: _is_completed(reader, instant))
        result = {"table": reader.storage.uri, "instant": instant, **document}
        self.log.info("Freed: %s", result)
        return result


def _is_completed(reader: TimelineReader, instant: str) -> bool:
    return any(
        item.is_completed and item.requested_time == instant and item.action != Action.SAVEPOINT
        for item in reader.load()
    )
