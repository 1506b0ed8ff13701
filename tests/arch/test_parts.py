"""The parts of a sweep are all of it, each test once."""

from __future__ import annotations

import pytest

from tests.support.suite_parts import part_of


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
