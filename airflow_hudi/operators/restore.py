"""Takes a table back to an earlier commit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_hudi.operators.verb import BaseHudiVerbOperator
from airflow_hudi.timeline_reader import TimelineReader
from hudi_core.request.requests import RestoreRequest

if TYPE_CHECKING:
    from airflow.sdk import Context


class HudiRestoreOperator(BaseHudiVerbOperator):
    """Removes all that was written after a completed commit, savepointed or not.

    Stop all writers of the table first. A retry finishes the restore that was started, under its own instant. XCom:
    `{"table", "instant", "target", "removed": {"files", "bytes", "instants"}, "reason"}`; `instant` is the restore's
    own.

    :param instant: the commit to restore to (templated)
    """

    ui_color = "#f2d9d9"

    def serve(self, reader: TimelineReader, context: Context) -> dict[str, Any]:
        """Restores; see the class."""
        target = self.required_instant()
        request = RestoreRequest(instant=target, **self.request_fields(reader, context))
        document = self.perform(reader, context, request)
        result = {
            "table": reader.storage.uri,
            "instant": None,
            "target": target,
            "removed": None,
            "reason": None,
            **document,
        }
        return self.nothing(context, lambda: result, result["reason"]) if result["reason"] is not None else result
