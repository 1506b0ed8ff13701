from __future__ import annotations

import pytest

from hudi_core.services.doctor.finding import Finding, duration, named_files


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(3.0, "3 s"), (119.0, "119 s"), (600.0, "10 minutes"), (7200.0, "2 hours"), (864000.0, "10 days")],
)
def test_ages_for_people(seconds: float, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("paths", "count", "text"),
    [
        (("a",), 1, "1 file (a)"),
        (("a", "b"), 2, "2 files (a, b)"),
        (tuple("abcdefg"), 7, "7 files (a, b, c, d, e and 2 more)"),
        (tuple("abcde"), 120, "120 files (a, b, c, d, e and 115 more)"),
    ],
)
def test_five_files_are_named_and_all_are_counted(paths: tuple[str, ...], count: int, text: str) -> None:
    assert named_files(paths, count) == text


def test_documents() -> None:
    finding = Finding("lock_held", "warning", "held", "wait", age_seconds=3.00049, blocks=("archival",))
    assert finding.to_dict() == {
        "rule": "lock_held",
        "severity": "warning",
        "what": "held",
        "fix": "wait",
        "instant": None,
        "path": None,
        "age_seconds": 3.0,
        "owner": None,
        "blocks": ["archival"],
    }
