"""How findings show ages and files, and their JSON."""

from __future__ import annotations

import pytest

from hudi_health.doctor.findings import KEPT, Counted, Finding, duration, each_of


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (119, "119 s"),
        (120, "2 minutes"),
        (7_199, "120 minutes"),
        (7_200, "2 hours"),
        (172_799, "48 hours"),
        (172_800, "2 days"),
    ],
)
def test_a_duration_has_the_largest_unit_of_which_there_are_two(seconds: float, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("paths", "count", "text"),
    [
        (["a"], 1, "1 file (a)"),
        (["a", "b", "c", "d", "e"], 5, "5 files (a, b, c, d, e)"),
        (["a", "b", "c", "d", "e", "f"], 6, "6 files (a, b, c, d, e and 1 more)"),
        (["a", "b", "c", "d", "e", "f"], 90, "90 files (a, b, c, d, e and 85 more)"),
    ],
)
def test_the_first_files_are_named_and_all_are_counted(paths: list[str], count: int, text: str) -> None:
    assert Counted(paths, count).named() == text


def test_a_finding_as_json() -> None:
    finding = Finding("stalled", "warning", "what", "fix", instant="001", age_seconds=1.23456, blocks=("archive",))
    assert finding.to_dict() == {
        "rule": "stalled",
        "severity": "warning",
        "what": "what",
        "fix": "fix",
        "instant": "001",
        "path": None,
        "age_seconds": 1.235,
        "owner": None,
        "blocks": ["archive"],
    }


def test_a_finding_without_an_age() -> None:
    assert Finding("r", "info", "what", "fix").to_dict()["age_seconds"] is None


def test_of_very_many_the_rest_is_counted() -> None:
    many: Counted[Finding] = Counted()
    for number in range(KEPT + 7):
        many.add(Finding("r", "error", "corrupt", "restore it", path=f"p/{number}"))
    *named, last = each_of(many, "more are corrupt", "restore them")
    assert [finding.path for finding in named] == [f"p/{number}" for number in range(KEPT)]
    assert last == Finding("r", "error", "7 more are corrupt", "restore them")
    assert [*each_of(Counted(), "more are corrupt", "restore them")] == []
