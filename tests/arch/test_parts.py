"""The parts of a sweep are all of it, each test once; `make test` has a share of the cases of each test."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.suite_parts import SHARES, in_share, part_of, share_of


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


def test_each_test_has_a_case_in_make_test() -> None:
    cases = [f"tests/faults/test_a.py::test_b[{number}]" for number in range(10)]
    assert [len(in_share(cases, share)) for share in (1, 2, 3, 4, 20)] == [10, 5, 4, 3, 1]
    assert in_share(cases[::-1], 4) == in_share(cases, 4) < frozenset(cases)
    assert in_share(cases[:1], 4) == {cases[0]}


def test_a_new_case_takes_the_place_of_one_at_most() -> None:
    cases = [f"test_b[{number}]" for number in range(40)]
    for case in cases:
        before = in_share([other for other in cases if other != case], 4)
        assert len(before - in_share(cases, 4)) <= 1


def test_shares_go_by_the_longest_path() -> None:
    assert share_of("tests/golden/test_cdc.py::test_a") == 4
    assert share_of("tests/golden/test_reads.py::test_rows_are_those_of_real_hudi") == 1
    assert share_of("tests/unit/hudi_core/codec/test_a.py::test_b") == 1
    root = Path(__file__).parents[2]
    assert [path for path in SHARES if not (root / path).exists()] == []
