"""Doctor and the probe of a store as operators, on tables of real Hudi; the job's own code runs without Spark."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowFailException

from airflow_hudi.operators.base import BaseHudiOperator
from airflow_hudi.operators.doctor import HudiDoctorOperator, HudiProbeStoreOperator
from airflow_hudi.task_fate import HudiJobFailed
from tests.support.fake_spark_submit import RENDERED, context, requests
from tests.support.golden_data import GoldenCase
from tests.support.tiers import tiered

Golden = Callable[[str, str], GoldenCase]
VERSIONS = ["6", "8", "9"]


def made(operator: type[BaseHudiOperator], table: Path, **arguments: Any) -> BaseHudiOperator:
    return operator(**{"task_id": "look", "table": str(table), "hudi_conn_id": None, **arguments})


def says(monkeypatch: pytest.MonkeyPatch, document: dict[str, Any]) -> None:
    """The job ends well with this document."""
    monkeypatch.setenv("FAKE_DOCUMENT", json.dumps({"version": 1, "document": document}))
    monkeypatch.setenv("FAKE_ACTION", 'printf "HUDI_RESULT %s\\n" "$FAKE_DOCUMENT"')


@pytest.mark.parametrize("version", tiered(VERSIONS, ["6"]))
def test_a_healthy_table(golden: Golden, submitted: Path, version: str) -> None:
    table = golden(version, "mor_compacted").table
    before = {path: path.stat().st_mtime_ns for path in table.rglob("*")}
    document = made(
        HudiDoctorOperator, table, fail_on="warning", options={"airflow_hudi.doctor.stuck_minutes": "5"}
    ).execute(context())
    assert (document["table"], document["version"], document["findings"], document["files_looked_at"]) == (
        str(table),
        int(version),
        [],
        True,
    )
    assert {path: path.stat().st_mtime_ns for path in table.rglob("*")} == before
    (request,) = requests(submitted)
    assert (request.verb, request.options) == ("doctor", {"airflow_hudi.doctor.stuck_minutes": "5"})


@pytest.mark.parametrize(
    ("version", "fail_on", "fails"),
    tiered(
        [
            ("6", "warning", True),
            ("8", "warning", True),
            ("9", "warning", True),
            ("9", "error", False),
            ("9", "", False),
            ("9", None, False),
        ],
        [("8", "warning", True), ("9", "error", False)],
    ),
)
def test_a_warning_fails_the_task_where_that_was_requested(
    golden: Golden, submitted: Path, version: str, fail_on: str | None, fails: bool
) -> None:
    table = golden(version, "failed_inflight_mor").table
    doctor, seen = made(HudiDoctorOperator, table, fail_on=fail_on), context()
    if not fails:
        (finding,) = doctor.execute(seen)["findings"]
    else:
        with pytest.raises(AirflowFailException) as caught:
            doctor.execute(seen)
        (finding,) = seen["ti"].pushed["return_value"]["findings"]
        for text in (str(table), "warning stuck_instant: ", finding["what"], finding["fix"]):
            assert text in str(caught.value)
    assert (finding["rule"], finding["severity"]) == ("stuck_instant", "warning")


def test_an_error_fails_the_task_by_default(golden: Golden, submitted: Path) -> None:
    table = golden("8", "mor_compacted").table
    (table / ".hoodie" / "timeline" / "20261120223342658_20xx.deltacommit").write_bytes(b"{}")
    with pytest.raises(AirflowFailException, match=r"error timeline_name: .* - fix: "):
        made(HudiDoctorOperator, table).execute(context())
    assert made(HudiDoctorOperator, table, fail_on=None).execute(context())["findings"][0]["rule"] == "timeline_name"


def test_what_is_for_information_fails_nothing(
    golden: Golden, submitted: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = golden("8", "mor_compacted").table
    reported = {
        "table": "s3://b/t",
        "findings": [{"rule": "store_unproven", "severity": "info", "what": "w", "fix": "f"}],
    }
    says(monkeypatch, reported)
    assert made(HudiDoctorOperator, table, fail_on="warning").execute(context()) == reported
    many = {
        "table": "s3://b/t",
        "findings": [{"rule": "r", "severity": "error", "what": f"what {number}.", "fix": "f"} for number in range(50)],
    }
    says(monkeypatch, many)
    with pytest.raises(AirflowFailException) as caught:
        made(HudiDoctorOperator, table).execute(context())
    text = str(caught.value)
    assert ("findings: 50" in text, "what 19." in text, "what 20." in text, "and 30 more" in text) == (
        True,
        True,
        False,
        True,
    )


def test_the_files_are_omitted_where_that_was_requested(golden: Golden, submitted: Path) -> None:
    document = made(HudiDoctorOperator, golden("9", "mor_compacted").table, timeline_only=True).execute(context())
    assert document["files_looked_at"] is False


@pytest.mark.parametrize("operator", tiered([HudiDoctorOperator, HudiProbeStoreOperator], [HudiDoctorOperator]))
def test_a_task_that_knows_nothing_does_not_succeed(
    golden: Golden, submitted: Path, monkeypatch: pytest.MonkeyPatch, operator: type[BaseHudiOperator]
) -> None:
    monkeypatch.setenv("FAKE_ACTION", "exit 0")
    with pytest.raises(HudiJobFailed, match="out of reach"):
        made(operator, golden("9", "mor_compacted").table).execute(context())


def test_bad_input_is_refused_for_good(tmp_path: Path, submitted: Path) -> None:
    with pytest.raises(AirflowFailException, match="fail_on is 'info'"):
        made(HudiDoctorOperator, tmp_path, fail_on="info", **RENDERED).execute(context())
    with pytest.raises(AirflowFailException, match="must_carry is 'wagon'"):
        made(HudiProbeStoreOperator, tmp_path, must_carry="wagon", **RENDERED).execute(context())
    assert requests(submitted) == []
    with pytest.raises(AirflowFailException, match="nothing is not a Hudi table"):
        made(HudiDoctorOperator, tmp_path / "nothing").execute(context())
    with pytest.raises(AirflowFailException, match="out of bounds"):
        made(HudiProbeStoreOperator, tmp_path, writers=1).execute(context())


def test_a_store_that_can_carry_all(tmp_path: Path, submitted: Path) -> None:
    bucket = tmp_path / "bucket"
    document = made(HudiProbeStoreOperator, bucket, must_carry="timeline", writers=4, rounds=3).execute(context())
    assert (document["can_carry_timeline"], document["writers"], document["creates"]["rounds"], document["uri"]) == (
        True,
        4,
        3,
        str(bucket),
    )
    assert not bucket.exists()
    (request,) = requests(submitted)
    assert (request.verb, request.writers, request.rounds) == ("probe_store", 4, 3)


@pytest.mark.parametrize(
    ("must_carry", "timeline", "lease", "fails"),
    tiered(
        [
            ("timeline", False, False, True),
            ("timeline", True, False, False),
            ("lease", True, False, True),
            ("lease", True, True, False),
            (None, False, False, False),
        ],
        [("timeline", True, False, False), ("lease", True, False, True), (None, False, False, False)],
    ),
)
def test_a_store_that_cannot(
    tmp_path: Path,
    submitted: Path,
    monkeypatch: pytest.MonkeyPatch,
    must_carry: str | None,
    timeline: bool,
    lease: bool,
    fails: bool,
) -> None:
    reported = {
        "uri": "s3://b",
        "can_carry_timeline": timeline,
        "can_carry_lease": lease,
        "problems": ["create 3: 2 of 16 writers won"],
    }
    says(monkeypatch, reported)
    probe, seen = made(HudiProbeStoreOperator, tmp_path, must_carry=must_carry), context()
    if not fails:
        assert probe.execute(seen) == reported
        return
    with pytest.raises(
        AirflowFailException, match=f"s3://b cannot carry a {must_carry}: create 3: 2 of 16 writers won"
    ):
        probe.execute(seen)
    assert seen["ti"].pushed == {"return_value": reported}
