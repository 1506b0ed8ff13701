"""doctor and probe-store, as scripts and as people see them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from rich.text import Text

from hudi_cli.doctor_commands import report_lines
from hudi_core.storage import registry
from hudi_core.storage.local import LocalStorage
from tests.contract.racing import CheckThenPut
from tests.support.golden_data import GoldenCase
from tests.support.hudictl_runner import hudictl
from tests.support.table_files import contents

Golden = Callable[[str, str], GoldenCase]
QUICK = ("--writers", "8", "--rounds", "5")


@pytest.mark.parametrize("version", ["6", "8", "9"])
def test_the_document_of_the_doctor(golden: Golden, version: str) -> None:
    table = golden(version, "failed_inflight_mor").table
    before = contents(table)
    done = hudictl("doctor", table, "--json")
    assert done.code == 0
    document = done.document
    assert sorted(document) == [
        *(
            "clock",
            "executors",
            "files_looked_at",
            "findings",
            "lock",
            "name",
            "store",
            "table",
            "version",
            "wheels",
            "writer_options",
        ),
    ]
    (finding,) = document["findings"]
    assert sorted(finding) == ["age_seconds", "blocks", "fix", "instant", "owner", "path", "rule", "severity", "what"]
    assert (finding["rule"], document["version"], document["files_looked_at"]) == ("stuck_instant", int(version), True)
    assert [option["name"] for option in document["writer_options"]] == [
        "hoodie.cleaner.policy.failed.writes",
        "hoodie.write.concurrency.mode",
        "hoodie.write.lock.provider",
    ]
    assert {wheel["name"] for wheel in document["wheels"]} == {"pyarrow", "numpy", "polars", "isal"}
    assert (document["store"]["exclusive_create"], document["lock"]["holder"]) == (True, None)
    assert contents(table) == before


def test_the_doctor_for_people(golden: Golden) -> None:
    table = golden("9", "failed_inflight_mor").table
    done = hudictl("doctor", table)
    assert (done.code, done.err) == (0, "")
    for text in (
        ": 1 finding\n",
        "warning stuck_instant",
        "  holds back  archival of later instants",
        "  fix  ",
        "  .hoodie/lock: free",
    ):
        assert text in done.out


def test_the_doctors_lines_fit_80_columns_and_cut_no_word(golden: Golden) -> None:
    table = golden("9", "failed_inflight_mor").table
    document = hudictl("doctor", table, "--json").document
    lines = list(report_lines(document, 80))
    words = " ".join(lines).split()
    for finding in document["findings"]:
        assert set(finding["what"].split()) <= set(words)
    plain = [Text.from_markup(line).plain for line in lines]
    assert [line for line in plain if len(line) > 80 and len(line.split()[-1]) < 60] == []
    assert "hoodie.write.lock.provider=" in "".join(plain)


def test_the_doctor_takes_the_options_of_the_writers(golden: Golden) -> None:
    table = golden("9", "mor_compacted").table
    document = hudictl(
        "doctor", table, "--timeline-only", "--option", "hoodie.cleaner.policy.failed.writes=EAGER", "--json"
    ).document
    assert [finding["rule"] for finding in document["findings"]] == ["failed_writes_policy"]
    assert document["files_looked_at"] is False
    assert hudictl("doctor", table, "--option", "airflow_hudi.doctor.stuck_minutes=soon", "--json").code == 2


def test_the_doctor_of_no_table(tmp_path: Path) -> None:
    done = hudictl("doctor", tmp_path, "--json")
    assert (done.code, done.error["type"]) == (2, "ConfigError")


@pytest.mark.parametrize("version", [None, "6"])
def test_a_local_disk_passes_and_is_left_as_it_was(golden: Golden, tmp_path: Path, version: str | None) -> None:
    folder = tmp_path / "bare" if version is None else golden(version, "mor_basic").table
    folder.mkdir(exist_ok=True)
    before = contents(folder)
    done = hudictl("probe-store", folder, *QUICK, "--json")
    assert done.code == 0
    document = done.document
    assert (document["can_carry_timeline"], document["can_carry_lease"], document["problems"]) == (True, True, [])
    assert (document["writers"], document["creates"]["rounds"], document["replaces"]["several_winners"]) == (8, 5, 0)
    assert document["clock_ahead_seconds"] == pytest.approx(0.0, abs=1.0)
    assert contents(folder) == before
    assert [path.name for path in folder.glob(".airflow*")] == []
    assert "can carry a timeline: yes" in hudictl("probe-store", folder, *QUICK).out


def test_a_storage_without_conditional_puts_is_not_raced() -> None:
    """fsspec's memory has no exclusive create; MemoryStorage, which has, is judged in storage/test_probe.py."""
    done = hudictl("probe-store", "memory://probed", *QUICK, "--json")
    assert (done.code, done.document["can_carry_timeline"], done.document["creates"]) == (1, False, None)
    assert done.document["problems"] == [
        "the storage offers no exclusive create",
        "the storage offers no conditional write",
    ]


def test_a_store_that_looks_first_and_writes_then_is_found_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "open_storage", lambda uri, options: CheckThenPut(LocalStorage(uri)))
    done = hudictl("probe-store", tmp_path, *QUICK, "--json")
    assert (done.code, done.document["can_carry_timeline"], done.document["can_carry_lease"]) == (1, False, False)
    assert done.document["creates"]["several_winners"] > 0
    people = hudictl("probe-store", tmp_path, *QUICK)
    assert (people.code, "can carry a timeline: no" in people.out, "writers won" in people.out) == (1, True, True)
    assert list(tmp_path.iterdir()) == []


def test_a_store_that_cannot_be_reached(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("no folder")
    done = hudictl("probe-store", file, "--json")
    assert (done.code, done.error["type"]) == (2, "StorageNotFoundError")


@pytest.mark.parametrize("requested", [("--writers", "1"), ("--rounds", "0")])
def test_numbers_out_of_bounds(requested: tuple[str, str], tmp_path: Path) -> None:
    assert hudictl("probe-store", tmp_path, *requested, "--json").code == 2
