"""Moves old instants from a table's timeline to its archive."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow_hudi.arguments import check_literal_choice
from airflow_hudi.jobs.run_until_completed import run_until_done
from airflow_hudi.operators.base import DRY_RUN
from airflow_hudi.operators.service import MODES, REASON_OUT_OF_REACH
from airflow_hudi.operators.verb import BaseHudiDryRunOperator
from airflow_hudi.results import document_of, work_seconds
from airflow_hudi.timeline_reader import TimelineReader
from hudi_core.request.choices import check_choice
from hudi_core.verbs.run import RunRequest
from hudi_core.verbs.schedule import ScheduleRequest

if TYPE_CHECKING:
    from airflow.sdk import Context

SERVICE = "archive"


class HudiArchiveOperator(BaseHudiDryRunOperator):
    """Archives instants of the timeline.

    An archival leaves no instant of its own: it is planned and done at once, and a retry archives the rest. A task that
    archived, was cleared and finds nothing more succeeds with what it had archived.

    XCom: `{"table", "action", "dry_run", "instants", "first", "last", "seconds", "reason"}`: the number of archived
    instants, or with `schedule`, where `dry_run` is true, of those that would be, and the oldest and the newest of
    them.

    :param mode: `execute` and `both` archive; `schedule` reports what would be archived and writes nothing (templated)
    """

    template_fields: Sequence[str] = ("mode", *BaseHudiDryRunOperator.template_fields)

    def __init__(self, *, mode: str = "both", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.mode = mode

    def check_arguments(self) -> None:
        """See BaseHudiOperator."""
        super().check_arguments()
        check_literal_choice("mode", self.mode, MODES)

    def serve(self, reader: TimelineReader, context: Context) -> dict[str, Any]:
        """Archives; see the class."""
        started = time.monotonic()
        check_choice("mode", self.mode, MODES)
        requested = self.request_fields(reader, context)
        if self.is_dry_run:
            return self.preview(reader, ScheduleRequest(service=SERVICE, dry_run=True, **requested))
        before = set(reader.load().requested_times)
        if self.mode == "schedule":
            done = run_until_done(self.new_job(reader, ScheduleRequest(service=SERVICE, **requested)), self.patience)
            document = document_of(done)
            reported = (document.get("plan") or {}).get("instants") or []
            # A long list is replaced by its length.
            count, gone = (
                (reported, [])
                if isinstance(reported, int)
                else (len(reported), sorted({item["instant"] for item in reported}))
            )
            reason = document.get("reason")
        else:
            done = run_until_done(self.new_job(reader, RunRequest(service=SERVICE, **requested)), self.patience)
            gone = sorted(before - set(reader.load().requested_times))
            if done is not None and not done.omitted:
                # Another process may have archived some of them.
                gone = sorted({item.instant for item in done.instants})
            count, reason = len(gone), done and done.reason
        instants = () if done is None else done.instants
        result = {
            "table": reader.storage.uri,
            "action": SERVICE,
            DRY_RUN: self.mode == "schedule",
            "instants": count,
            "first": gone[0] if gone else None,
            "last": gone[-1] if gone else None,
            "seconds": round(work_seconds(instants, time.monotonic() - started), 3) if count else 0.0,
            "reason": None,
        }
        if not count:
            return self.nothing(context, lambda: result, reason or REASON_OUT_OF_REACH)
        if not result[DRY_RUN]:
            self.store(context).finish({name: result[name] for name in ("instants", "first", "last")})
        self.log.info("Archive: %s", result)
        return result
