"""Looks at a table, or at the storage below it, and fails the task when something is wrong."""

from __future__ import annotations

from typing import Any, ClassVar

from airflow_hudi.operators.base import BaseHudiOperator, listed
from hudi_core.request.texts import check_choice
from hudi_health.verbs import DoctorRequest, ProbeStoreRequest

SEVERITIES = ("error", "warning", "info")
FAIL_ON = SEVERITIES[:2]
CARRIES = ("timeline", "lease")


class HudiDoctorOperator(BaseHudiOperator):
    """Examines a table, its writers' options, clocks, lock, storage, and the wheels of driver and executors.

    Nothing is written. XCom: the document of `hudictl doctor` with `executors`, also when the task fails because of
    findings: `{"table", "name", "version", "findings": [{"rule", "severity", "what", "fix", …}], "writer_options",
    "clock", "lock", "store", "wheels", "executors", …}`.

    :param fail_on: `error` fails the task, without retries, on a finding of the severity error; `warning` on a finding
        of the severity error or warning; None or empty never. Findings are always in the log (templated)
    :param timeline_only: do not list the data files: orphans and a wrong metadata table are not found (templated)
    """

    request = DoctorRequest
    fail_on: str | None = "error"
    template_fields = ("fail_on", "timeline_only", *BaseHudiOperator.template_fields)
    _argument_choices: ClassVar = {"fail_on": FAIL_ON}

    def serve(self) -> dict[str, Any]:
        if self.fail_on:
            check_choice("fail_on", self.fail_on, FAIL_ON)
        document = self.report(self.new_request())
        findings = document["findings"]
        for finding in findings:
            write = self.log.info if finding["severity"] == "info" else self.log.warning
            write("%s", _reported(finding))
        self.log.info("%s: %d findings", document["table"], len(findings))
        if self.fail_on:
            severe = SEVERITIES[: SEVERITIES.index(self.fail_on) + 1]
            bad = [_reported(finding) for finding in findings if finding["severity"] in severe]
            if bad:
                self.fail(document, listed(f"{document['table']}: findings: {len(bad)}", bad))
        return document


class HudiProbeStoreOperator(BaseHudiOperator):
    """Finds out whether a storage can carry a timeline and a storage lease. It races writers on the driver, in their
    own folder of the storage.

    XCom, also when the task fails because of it: the document of `hudictl probe-store`: `{"can_carry_timeline",
    "can_carry_lease", "writers", "creates", "replaces", "problems", "clock_ahead_seconds", "uri"}`.

    :param table: any folder of the storage, as a path or URI, or below the connection's base path (templated)
    :param must_carry: `timeline` or `lease`: the task fails, without retries, when the storage cannot carry it; None or
        empty: never (templated)
    :param writers: the number of writers that race for one object, 2 to 256 (templated)
    :param rounds: the number of races of each kind, 1 to 100000 (templated)
    """

    request = ProbeStoreRequest
    must_carry: str | None = "timeline"
    template_fields = ("must_carry", "writers", "rounds", *BaseHudiOperator.template_fields)
    _argument_choices: ClassVar = {"must_carry": CARRIES}

    def serve(self) -> dict[str, Any]:
        if self.must_carry:
            check_choice("must_carry", self.must_carry, CARRIES)
        document = self.report(self.new_request())
        self.log.info("Probe: %s", document)
        if self.must_carry and not document[f"can_carry_{self.must_carry}"]:
            problems = "; ".join(document["problems"]) or "see the races' counts in the XCom"
            said = f"{document['uri']} cannot carry a {self.must_carry}: {problems}"
            self.fail(document, f"{said}; keep tables that are written to elsewhere")
        return document


def _reported(finding: dict[str, Any]) -> str:
    return f"{finding['severity']} {finding['rule']}: {finding['what']} - fix: {finding['fix']}"
