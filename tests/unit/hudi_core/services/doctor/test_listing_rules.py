from __future__ import annotations

from dataclasses import replace

import pytest

from hudi_core.services.doctor.finding import Finding
from hudi_core.services.doctor.listing_rules import listings
from hudi_core.services.doctor.observations import ListingObservations, WrongSize
from tests.unit.hudi_core.services.doctor.test_rules import HEALTHY


def found(observed: ListingObservations) -> list[Finding]:
    return list(listings(replace(HEALTHY, listings=observed)))


def test_lists_that_agree_are_no_finding() -> None:
    assert found(ListingObservations()) == []


@pytest.mark.parametrize(
    ("observed", "rule", "severity"),
    [
        (ListingObservations(problem="cut"), "metadata_unreadable", "error"),
        (ListingObservations(unlisted=("p/a",), unlisted_count=1), "metadata_unlisted", "error"),
        (ListingObservations(missing=("p/a",), missing_count=1), "metadata_missing_file", "warning"),
        (
            ListingObservations(wrong_size=(WrongSize("p/a", 3, 2),), wrong_size_count=1),
            "metadata_wrong_size",
            "error",
        ),
    ],
)
def test_each_difference_is_a_finding(observed: ListingObservations, rule: str, severity: str) -> None:
    (finding,) = found(observed)
    assert (finding.rule, finding.severity) == (rule, severity)
    assert finding.path == (None if rule == "metadata_unreadable" else "p/a")


def test_some_paths_are_shown_and_all_are_counted() -> None:
    paths = tuple(f"p/{letter}" for letter in "abcdefg")
    (finding,) = found(ListingObservations(missing=paths, missing_count=120))
    assert "120 files (p/a, p/b, p/c, p/d, p/e and 115 more)" in finding.what
