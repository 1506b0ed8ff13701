"""hudictl plan: what is due, by a policy file and without."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from hudi_core.request.services import SERVICES
from tests.support.golden_data import GoldenCase
from tests.support.hudictl_runner import hudictl
from tests.support.process_zone import in_zone

Golden = Callable[[str, str], GoldenCase]
POLICY = """\
services:
  compaction: {commits: 1}
  clean: {commits: 1000}
alerts: {pending_age: 1s}
"""


def test_without_a_policy_every_service_is_answered(golden: Golden) -> None:
    table = golden("9", "mor_compaction_requested").table
    document = hudictl("plan", table, "--json").document
    due = {item["service"]: item for item in document["due"]}
    assert due.keys() | {item["service"] for item in document["not_due"]} == SERVICES.keys()
    assert set(due["compaction"]) == {"service", "why", "bytes", "file_groups"}
    assert document["alerts"] == []


def test_by_a_policy(golden: Golden, tmp_path: Path) -> None:
    table = golden("9", "mor_basic").table
    file = tmp_path / "policy.yaml"
    file.write_text(POLICY)
    document = hudictl("plan", table, "--policy", file, "--json").document
    assert [item["service"] for item in document["due"]] == ["compaction"]
    assert [item["service"] for item in document["not_due"]] == ["clean"]
    shown = hudictl("plan", table, "--policy", file).out
    lines = [line.split()[:2] for line in shown.splitlines()]
    assert lines[0] == ["service", "due"]
    assert {("compaction", "yes"), ("clean", "no")} <= {tuple(line) for line in lines}


def test_a_table_has_its_policy_by_any_of_its_names(
    golden: Golden, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = golden("9", "mor_basic").table
    file = tmp_path / "policy.yaml"
    own = "policies: {{default: , own: {{services: {{clean: }}}}}}\ntables: [{{table: {}, policy: own}}]\n"
    file.write_text(own.format(table))
    monkeypatch.chdir(table.parent)
    for name in (table, table.name, f"./{table.name}/", f"{table.parent}//{table.name}", f"file://{table}"):
        document = hudictl("plan", name, "--policy", file, "--json").document
        assert [item["service"] for kind in ("due", "not_due") for item in document[kind]] == ["clean"]
    file.write_text("policies: {one: , two: }\n")
    done = hudictl("plan", table, "--policy", file, "--json")
    assert (done.code, f"no policy is for {table}" in done.error["message"]) == (2, True)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("services: {cleans: }", "line 1: "),
        ("options:\n  hoodie.clean.commits.retained: abc", "line 2: hoodie.clean.commits.retained is 'abc'"),
        (None, "cannot be read"),
    ],
)
def test_a_wrong_file_is_bad_input(golden: Golden, tmp_path: Path, text: str | None, message: str) -> None:
    file = tmp_path / "policy.yaml"
    if text is not None:
        file.write_text(text)
    done = hudictl("plan", golden("9", "cow_basic").table, "--policy", file, "--json")
    assert done.code == 2
    assert message in done.error["message"]
    assert done.error["path"] == str(file)


@pytest.mark.parametrize("zone", ["America/Los_Angeles", "Asia/Tokyo"])
def test_a_pending_instant_of_the_year_1_is_reported(golden: Golden, tmp_path: Path, zone: str) -> None:
    table, file = golden("9", "mor_basic").table, tmp_path / "policy.yaml"
    file.write_text("services: {clean: }\nalerts: {pending_age: 2h}\n")
    for state in ("requested", "inflight"):
        (table / ".hoodie/timeline" / f"00010101000000000.deltacommit.{state}").touch()
    with in_zone(zone):
        (alert,) = hudictl("plan", table, "--policy", file, "--json").document["alerts"]
        assert alert["instant"] == "00010101000000000"
        assert hudictl("doctor", table, "--timeline-only", "--json").code == 0
