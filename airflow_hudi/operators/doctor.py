"""Looks at a table, or at the storage below it, and fails the task when something is wrong."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow_hudi.arguments import check_literal_choice
from airflow_hudi.operators.base import BaseHudiOperator
from airflow_hudi.operators.verb import fail, report
from airflow_hudi.timeline_reader import TimelineReader
from hudi_core.request.texts import check_choice
from hudi_core.verbs.examine import DoctorRequest, ProbeStoreRequest

if TYPE_CHECKING:
    from airflow.sdk import Context

SEVERITIES = ("error", "warning", "info")
"""The worst first."""
FAIL_ON = SEVERITIES[:2]
CARRIES = ("timeline", "lease")
_MOST_LISTED = 20


class HudiDoctorOperator(BaseHudiOperator):
    """Examines a table, its writers' options, clocks, lock, storage, and the wheels of driver and executors.

    Nothing is written. XCom: the document of `hudictl doctor` with `executors`, also when the task fails because of
    findings: `{"table", "name", "version", "findings": [{"rule", "severity", "what", "fix", …}], "writer_options",
    "clock", "lock", "store", "wheels", "executors", …}`.

    :param fail_on: `error` fails the task, without retries, when there is a finding of that severity; `warning` when
        there is one of either; None or empty never does. Findings are in the log in any case (templated)
    :param timeline_only: do not list the data files: orphans and a wrong metadata table are not found
    """

    template_fields: Sequence[str] = ("fail_on", *BaseHudiOperator.template_fields)

    def __init__(self, *, fail_on: str | None = "error", timeline_only: bool = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.fail_on = fail_on
        self.timeline_only = timeline_only

    def check_arguments(self) -> None:
        super().check_arguments()
        check_literal_choice("fail_on", self.fail_on, FAIL_ON)

    def serve(self, reader: TimelineReader, context: Context) -> dict[str, Any]:
        if self.fail_on:
            check_choice("fail_on", self.fail_on, FAIL_ON)
        request = DoctorRequest(timeline_only=self.timeline_only, **self.request_fields(reader, context))
        document = report(self, reader, request)
        findings = document["findings"]
        for finding in findings:
            write = self.log.info if finding["severity"] == "info" else self.log.warning
            write("%s", _reported(finding))
        self.log.info("%s: %d findings", document["table"], len(findings))
        bad = [
            finding
            for finding in findings
            if self.fail_on and SEVERITIES.index(finding["severity"]) <= SEVERITIES.index(self.fail_on)
        ]
        if bad:
            more = [f"and {len(bad) - _MOST_LISTED} more"] if len(bad) > _MOST_LISTED else []
            lines = [f"{document['table']}: findings: {len(bad)}", *map(_reported, bad[:_MOST_LISTED]), *more]
            fail(context, document, "\n".join(lines))
        return document


class HudiProbeStoreOperator(BaseHudiOperator):
    """Races writers on a storage: can it carry a timeline, and a storage lease?

    The races run on the driver, in a folder of their own. XCom: the document of `hudictl probe-store`, also when the
    task fails because of it: `{"can_carry_timeline", "can_carry_lease", "writers", "creates", "replaces", "problems",
    "clock_ahead_seconds", "uri"}`.

    :param table: any folder of the storage, a table or not, as a path or URI, or below the connection's base path
        (templated)
    :param must_carry: `timeline` fails the task, without retries, when the storage cannot carry one, `lease` when it
        cannot carry that; None or empty never does (templated)
    :param writers: how many race for one object, 2 to 256
    :param rounds: races of each kind, 1 to 100000
    """

    template_fields: Sequence[str] = ("must_carry", *BaseHudiOperator.template_fields)

    def __init__(
        self, *, must_carry: str | None = "timeline", writers: int = 16, rounds: int = 60, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.must_carry = must_carry
        self.writers = writers
        self.rounds = rounds

    def check_arguments(self) -> None:
        super().check_arguments()
        check_literal_choice("must_carry", self.must_carry, CARRIES)

    @property
    def tables_of_work(self) -> Sequence[str]:
        """See BaseHudiOperator: a folder need not be a table."""
        return ()

    def serve(self, reader: TimelineReader, context: Context) -> dict[str, Any]:
        if self.must_carry:
            check_choice("must_carry", self.must_carry, CARRIES)
        requested = self.request_fields(reader, context)
        document = report(self, reader, ProbeStoreRequest(writers=self.writers, rounds=self.rounds, **requested))
        self.log.info("Probe: %s", document)
        if self.must_carry and not document[f"can_carry_{self.must_carry}"]:
            problems = "; ".join(document["problems"]) or "see the races' counts in the XCom"
            fail(
                context,
                document,
                f"{document['uri']} cannot carry a {self.must_carry}: {problems}; keep tables that are written to "
                "elsewhere",
            )
        return document


def _reported(finding: dict[str, Any]) -> str:
    """A finding in one line, with its fix."""
    return f"{finding['severity']} {finding['rule']}: {finding['what']} - fix: {finding['fix']}"
