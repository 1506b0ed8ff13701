"""Moves old instants from a table's timeline to its archive."""

from __future__ import annotations

import time
from typing import Any, ClassVar

from airflow_hudi.operators.base import DRY_RUN, BaseHudiOperator
from airflow_hudi.operators.service import MODES, REASON_OUT_OF_REACH
from airflow_hudi.results import document_of, work_seconds
from hudi_core.request.texts import check_choice
from hudi_core.verbs.run import RunRequest, ScheduleRequest

SERVICE = "archive"


class HudiArchiveOperator(BaseHudiOperator):
    """Archives instants of the timeline. The archival is planned and done at once, and a retry archives the rest. A
    task that archived, was cleared and finds nothing more succeeds, and reports what it had archived before.

    XCom: `{"table", "action", "dry_run", "instants", "first", "last", "seconds", "reason"}`: the number of archived
    instants, the oldest and the newest. With `schedule`, `dry_run` is true and these are the instants that would be
    archived.

    :param mode: `execute` and `both` archive; `schedule` reports what would be archived and writes nothing (templated)
    :param dry_run: whether the work is only reported (BaseHudiOperator.preview); may be rendered (templated)
    """

    mode: str = "both"
    dry_run: bool | str = False  # type: ignore[assignment]  # Airflow's method of this name logs, and is not called
    template_fields = ("mode", DRY_RUN, *BaseHudiOperator.template_fields)
    _argument_choices: ClassVar = {"mode": MODES}

    def serve(self) -> dict[str, Any]:
        started = time.monotonic()
        check_choice("mode", self.mode, MODES)
        requested = self.request_fields()
        if self.is_dry_run:
            return self.preview(ScheduleRequest(service=SERVICE, dry_run=True, **requested))
        before = set(self.reader.load().requested_times)
        if self.mode == "schedule":
            document = document_of(self.result_of(ScheduleRequest(service=SERVICE, **requested)))
            planned = (document.get("plan") or {}).get("instants") or []
            # A long list is replaced by its length.
            count = planned if isinstance(planned, int) else len(planned)
            gone = [] if isinstance(planned, int) else sorted({each["instant"] for each in planned})
            seconds, reason = 0.0, document.get("reason")
        else:
            result = self.result_of(RunRequest(service=SERVICE, **requested))
            gone = sorted(before - set(self.reader.load().requested_times))
            if result is not None and not result.omitted:
                # Another process may have archived some of them.
                gone = sorted({each.instant for each in result.instants})
            seconds = work_seconds(() if result is None else result.instants, 0.0)
            count, reason = len(gone), result and result.reason
        xcom = {
            "table": self.reader.storage.uri,
            "action": SERVICE,
            DRY_RUN: self.mode == "schedule",
            "instants": count,
            "first": gone[0] if gone else None,
            "last": gone[-1] if gone else None,
            "seconds": round(seconds or time.monotonic() - started, 3) if count else 0.0,
            "reason": None,
        }
        if not count:
            return self.nothing(xcom, reason or REASON_OUT_OF_REACH)
        if not xcom[DRY_RUN]:
            self.store.finish({name: xcom[name] for name in ("instants", "first", "last")})
        self.log.info("Archive: %s", xcom)
        return xcom
