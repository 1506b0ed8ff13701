"""Keeps a commit's files until its savepoint is deleted, and takes a table back to an earlier commit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow_hudi.arguments import check_literal_choice
from airflow_hudi.conditions.instant import newest_time
from airflow_hudi.operators.base import DRY_RUN
from airflow_hudi.operators.verb import BaseHudiVerbOperator, preview
from airflow_hudi.timeline_reader import TimelineReader
from hudi_core.errors import ConfigError
from hudi_core.request.texts import check_choice
from hudi_core.timeline.instant import Action
from hudi_core.timeline.pending_plans import read_restore_plan
from hudi_core.verbs.instants import RestoreRequest, SavepointCreateRequest, SavepointDeleteRequest

if TYPE_CHECKING:
    from airflow.sdk import Context

ACTIONS = ("create", "delete")
_EARLIER = "an earlier try of this task completed the restore"


class HudiSavepointOperator(BaseHudiVerbOperator):
    """Creates or deletes a savepoint.

    Retries are harmless: an existing savepoint is kept, and the task keeps to the commit that it chose.

    XCom: `{"table", "instant", "by", "at_ms", "comment", "files", "existed", "deleted"}`.

    :param action: `create` or `delete` (templated)
    :param instant: the commit; with `create` empty for the newest one (templated)
    :param comment: why it is kept, with `create` (templated)
    """

    template_fields: Sequence[str] = ("action", "comment", *BaseHudiVerbOperator.template_fields)

    def __init__(self, *, action: str = "create", comment: str = "", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.action = action
        self.comment = comment

    def check_arguments(self) -> None:
        super().check_arguments()
        check_literal_choice("action", self.action, ACTIONS)

    def serve(self, reader: TimelineReader, context: Context) -> dict[str, Any]:
        check_choice("action", self.action, ACTIONS)
        fields = self.request_fields(reader, context)
        if self.action == "create":
            instant = self.instant or self.store(context).instant or _newest(reader)
            create = SavepointCreateRequest(instant=instant, comment=self.comment, **fields)
            document = self.perform(reader, context, create)
        else:
            instant = self.required_instant()
            delete = SavepointDeleteRequest(instant=instant, **fields)
            document = self.perform(reader, context, delete, is_done=lambda: not _is_kept(reader, instant))
        shown = {key: value for key, value in document.items() if key != "removed"}
        result = {"table": reader.storage.uri, "instant": instant, "deleted": self.action == "delete", **shown}
        self.log.info("Savepoint: %s", result)
        return result


class HudiRestoreOperator(BaseHudiVerbOperator):
    """Removes all that was written after a completed commit, savepointed or not.

    Stop all writers of the table first. A retry finishes the restore that was started, under its own instant, and one
    that finds it completed removes nothing more: writers may be at work again. XCom: `{"table", "instant", "target",
    "removed": {"files", "bytes", "instants"}, "dropped_indexes", "reason"}`; `instant` is the restore's own, `removed`
    is null where an earlier try completed it; `dropped_indexes` are the partitions of the metadata table that this try
    dropped, as they cannot go back. That of a dry run has `restorable`, too: every commit, and why it cannot be
    restored.

    :param instant: the commit to restore to; empty in a dry run to list those that can be restored (templated)
    :param dry_run: whether the work is only reported (verb.preview); a value that is rendered may be `true` or `false`
        (templated)
    """

    template_fields: Sequence[str] = (DRY_RUN, *BaseHudiVerbOperator.template_fields)
    ui_color = "#f2d9d9"

    def __init__(self, *, dry_run: bool | str = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.dry_run = dry_run

    def serve(self, reader: TimelineReader, context: Context) -> dict[str, Any]:
        if self.is_dry_run:
            fields = self.request_fields(reader, context)
            return preview(self, reader, RestoreRequest(instant=self.instant or None, dry_run=True, **fields))
        target, store = self.required_instant(), self.store(context)
        result: dict[str, Any] = dict.fromkeys(("instant", "removed", "reason"))
        result |= {"table": reader.storage.uri, "target": target}
        if store.after is None:
            store.plan_after(_before_restore(reader))
        elif (done := _restored(reader, target, store.after)) is not None:
            store.forget()
            self.log.info("An earlier try of this task completed restore %s to %s", done, target)
            return {**result, "dropped_indexes": [], "instant": done, "reason": _EARLIER}
        request = RestoreRequest(instant=target, **self.request_fields(reader, context))
        result |= {"dropped_indexes": [], **self.perform(reader, context, request)}
        if result["dropped_indexes"]:
            self.log.warning("The restore dropped indexes: %s", ", ".join(result["dropped_indexes"]))
        return self.nothing(context, lambda: result, result["reason"]) if result["reason"] is not None else result


def _before_restore(reader: TimelineReader) -> str:
    """The newest time on the timeline, before which no restore is that a try of the task completes: a pending one would
    be finished by it.
    """
    timeline = reader.load()
    pending = timeline.pending().of_actions(Action.RESTORE).last()
    return newest_time(timeline, before=None if pending is None else pending.requested_time)


def _restored(reader: TimelineReader, target: str, after: str) -> str | None:
    """The newest restore to `target` that is completed and was requested later than `after`. Raises FormatError."""
    found = [
        item.requested_time
        for item in reader.load().completed().of_actions(Action.RESTORE)
        if item.requested_time > after and read_restore_plan(reader.active(), item.requested_time).target == target
    ]
    return max(found, default=None)


def _newest(reader: TimelineReader) -> str:
    newest = reader.load().commits().last()
    if newest is None:
        raise ConfigError(
            "the table has no completed commit",
            path=reader.storage.uri,
            remedy="a savepoint keeps the files of a commit",
        )
    return newest.requested_time


def _is_kept(reader: TimelineReader, instant: str) -> bool:
    return reader.load().find(instant, Action.SAVEPOINT) is not None
