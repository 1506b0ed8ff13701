"""Verbs on one instant: savepoints, the restore to a commit, and verbs that free a table of plans and dead owners."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from airflow_hudi.conditions.condition import newest_time
from airflow_hudi.operators.base import DRY_RUN, BaseHudiOperator
from airflow_hudi.results import document_of
from airflow_hudi.timeline_reader import TimelineReader
from hudi_core.errors import ConfigError
from hudi_core.request.texts import check_choice
from hudi_core.timeline.instant import Action
from hudi_core.timeline.pending_plans import read_restore_plan
from hudi_core.timeline.timeline import Timeline
from hudi_core.verbs.instants import (
    RestoreRequest,
    SavepointCreateRequest,
    SavepointDeleteRequest,
    TakeoverRequest,
    UnscheduleRequest,
)
from hudi_core.verbs.request import InstantRequest

SAVEPOINT_ACTIONS = ("create", "delete")
_EARLIER = "an earlier try of this task completed the restore"


class BaseHudiVerbOperator(BaseHudiOperator):
    """Runs a verb on one instant of a table. `nothing_to_do` is `succeed` by default: a retry may find the work done.

    :param instant: the instant (templated)
    """

    instant: str | None = None
    nothing_to_do: str = "succeed"
    template_fields = ("instant", *BaseHudiOperator.template_fields)

    def required_instant(self) -> str:
        if not self.instant:
            raise ConfigError(f"{type(self).__name__} was given no instant", remedy="set instant=")
        return self.instant

    def perform(
        self,
        request: InstantRequest | RestoreRequest | SavepointCreateRequest,
        *,
        is_done: Callable[[], bool] | None = None,
    ) -> dict[str, Any]:
        """Runs the verb and returns its document, or `{}` if none came. Refused input may mean that the work is done:
        an earlier try started the same verb, and the timeline shows (`is_done`) that it was completed.
        """
        instant = request.instant or ""
        started = self.store.instant == instant
        self.store.instant = instant
        try:
            result = self.result_of(request)
        except ConfigError as error:
            if not started or is_done is None or not is_done():
                raise
            self.log.info("An earlier try of this task did it already: %s", error)
            result = None
        self.store.forget()
        return document_of(result)

    def perform_shown(self, said: str, is_done: Callable[[Timeline, str], bool]) -> dict[str, Any]:
        """Runs the class's verb at the required instant, and returns the XCom. The log shows the XCom after `said`.
        `is_done` says whether a timeline shows that the verb was completed at the instant.
        """
        instant, request = self.required_instant(), self.new_request()
        if getattr(request, DRY_RUN, False):
            return self.preview(request)
        document = self.perform(request, is_done=lambda: is_done(self.reader.load(), instant))
        xcom = {"table": self.reader.storage.uri, "instant": instant, **document}
        self.log.info("%s: %s", said, xcom)
        return xcom


class HudiUnscheduleOperator(BaseHudiVerbOperator):
    """Drops a pending plan that will not be run, with the files that attempts to run it wrote.

    XCom: `{"table", "instant", "action", "dry_run", "removed": {"files", "bytes", "instants"}, "unblocks", "reason"}`;
    `reason` says why there was nothing to drop.

    :param instant: the plan to drop (templated)
    :param dry_run: whether the work is only reported (BaseHudiOperator.preview); may be rendered (templated)
    """

    request = UnscheduleRequest

    def serve(self) -> dict[str, Any]:
        return self.perform_shown("Dropped", lambda timeline, instant: not timeline.contains(instant))


class HudiTakeoverOperator(BaseHudiVerbOperator):
    """Frees a pending instant whose owner is dead. It deletes the files of the owner's attempt, so that the next run
    starts at once.

    While the owner may be alive, the verb is refused as a conflict, and the task waits. XCom: `{"table", "instant",
    "action", "state", "previous_owner", "removed": {"files", "bytes", "instants"}, "unblocks", "after_the_run", "next",
    "reason"}`: the work in `unblocks` may proceed now, that in `after_the_run` once the instant is run or dropped;
    `reason` says why there was nothing to free.

    :param instant: the instant to free (templated)
    """

    request = TakeoverRequest

    def serve(self) -> dict[str, Any]:
        return self.perform_shown("Freed", _is_completed)


class HudiSavepointOperator(BaseHudiVerbOperator):
    """Creates or deletes a savepoint. An existing savepoint is kept, and a retry uses the commit that the task chose.

    XCom: `{"table", "instant", "by", "at_ms", "comment", "files", "existed", "deleted"}`.

    :param action: `create` or `delete` (templated)
    :param instant: the commit; with `create` empty for the newest one (templated)
    :param comment: the reason for the savepoint, with `create` (templated)
    """

    action: str = "create"
    comment: str = ""
    template_fields = ("action", "comment", *BaseHudiVerbOperator.template_fields)
    _argument_choices: ClassVar = {"action": SAVEPOINT_ACTIONS}

    def serve(self) -> dict[str, Any]:
        check_choice("action", self.action, SAVEPOINT_ACTIONS)
        reader, fields = self.reader, self.request_fields()
        if self.action == "create":
            instant = self.instant or self.store.instant or _newest(reader)
            document = self.perform(SavepointCreateRequest(instant=instant, comment=self.comment, **fields))
        else:
            instant = self.required_instant()
            delete = SavepointDeleteRequest(instant=instant, **fields)
            document = self.perform(delete, is_done=lambda: reader.load().find(instant, Action.SAVEPOINT) is None)
        shown = {name: value for name, value in document.items() if name != "removed"}
        xcom = {"table": reader.storage.uri, "instant": instant, "deleted": self.action == "delete", **shown}
        self.log.info("Savepoint: %s", xcom)
        return xcom


class HudiRestoreOperator(BaseHudiVerbOperator):
    """Removes everything that was written after a completed commit. The commit needs no savepoint.

    Stop all writers of the table first. A retry finishes the restore that was started, under the same instant. A retry
    that finds the restore completed removes nothing more, because writers may be at work again. XCom: `{"table",
    "instant", "target", "removed": {"files", "bytes", "instants"}, "dropped_indexes", "reason"}`; `instant` is the
    restore's own; `removed` is null if an earlier try completed the restore; `dropped_indexes` are the partitions of
    the metadata table that this try dropped because they cannot be restored. The XCom of a dry run has `restorable`,
    too: every commit, and the reason if it cannot be restored.

    :param instant: the commit to restore to; empty in a dry run to list the commits that can be restored (templated)
    :param dry_run: as for HudiUnscheduleOperator (templated)
    """

    request = RestoreRequest
    ui_color = "#f2d9d9"

    def serve(self) -> dict[str, Any]:
        if self.is_dry_run:
            return self.preview(self.new_request())
        target, reader, store = self.required_instant(), self.reader, self.store
        xcom: dict[str, Any] = dict.fromkeys(("instant", "removed", "reason"))
        xcom |= {"table": reader.storage.uri, "target": target, "dropped_indexes": []}
        if store.after is None:
            store.after = _before_restore(reader)
        elif (done := _restored(reader, target, store.after)) is not None:
            store.forget()
            self.log.info("An earlier try of this task completed restore %s to %s", done, target)
            return {**xcom, "instant": done, "reason": _EARLIER}
        xcom |= self.perform(self.new_request())
        if xcom["dropped_indexes"]:
            self.log.warning("The restore dropped indexes: %s", ", ".join(xcom["dropped_indexes"]))
        return self.nothing(xcom, xcom["reason"]) if xcom["reason"] is not None else xcom


def _is_completed(timeline: Timeline, instant: str) -> bool:
    return any(each.requested_time == instant and each.action != Action.SAVEPOINT for each in timeline.completed())


def _newest(reader: TimelineReader) -> str:
    newest = reader.load().commits().last()
    if newest is None:
        remedy = "a savepoint keeps the files of a commit"
        raise ConfigError("the table has no completed commit", path=reader.storage.uri, remedy=remedy)
    return newest.requested_time


def _before_restore(reader: TimelineReader) -> str:
    """Returns the time after which a completed restore is this task's: the newest time of the timeline, or the newest
    before a pending restore, which the task would finish.
    """
    timeline = reader.load()
    pending = timeline.pending().of_actions(Action.RESTORE).last()
    return newest_time(timeline, before=None if pending is None else pending.requested_time)


def _restored(reader: TimelineReader, target: str, after: str) -> str | None:
    """Returns the newest completed restore to `target` that was requested later than `after`. Raises FormatError."""
    restores = (instant.requested_time for instant in reader.load().completed().of_actions(Action.RESTORE))
    to_target = (
        time for time in restores if time > after and read_restore_plan(reader.active(), time).target == target
    )
    return max(to_target, default=None)
