"""Markers alone decide which tier runs a case, and the parts of a run are all of it, each test once."""

from __future__ import annotations

import pytest

from tests.support.tiers import part_of, tiered

SLOW = pytest.mark.slow


@pytest.mark.parametrize("count", [1, 2, 3, 7, 20])
def test_the_parts_are_the_whole(count: int) -> None:
    items = list(range(11))
    parts = [part_of(items, f"{number}/{count}") for number in range(1, count + 1)]
    assert [item for part in parts for item in part] == items
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


@pytest.mark.parametrize("part", ["", "0/2", "3/2", "1", "a/b", "-1/2"])
def test_no_part(part: str) -> None:
    with pytest.raises(pytest.UsageError, match="is not a number and a count"):
        part_of([1], part)


@pytest.mark.parametrize(
    ("cases", "core", "in_test"),
    [
        (["6", "8", "9"], ["9"], ["9"]),
        ([("6", "cow"), ("9", "cow"), ("9", "mor")], [("9", "mor")], [("9", "mor")]),
        ([pytest.param("6", 1, id="first"), pytest.param("6", 2, id="second")], ["first"], [("6", 1)]),
        ([True, False, None], [None], [None]),
    ],
)
def test_what_is_not_of_the_core_is_of_the_conformance(
    cases: list[object], core: list[object], in_test: list[object]
) -> None:
    sets = tiered(cases, core)
    assert [value for value in sets if not value.marks] == [value for value in sets if _value(value) in in_test]
    assert len(sets) == len(cases)
    assert {mark.name for value in sets for mark in value.marks} == {"conformance"}


def _value(case: object) -> object:
    values = case.values  # type: ignore[attr-defined]
    return values[0] if len(values) == 1 else tuple(values)


def test_other_marks_and_ids_stay() -> None:
    (one,) = tiered([pytest.param(1, id="one", marks=SLOW)], [])
    assert (one.id, [mark.name for mark in one.marks]) == ("one", ["slow", "conformance"])


def test_a_core_that_names_no_case_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"no case is .*10"):
        tiered(["6", "9"], ["9", "10"])
