"""Delta debugging over steps that are numbers."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.torture.minimise import minimised


@pytest.mark.parametrize("needed", [{3}, {0, 29}, {4, 5, 6}, {1, 9, 17, 28}, set()])
def test_what_the_failure_needs_is_left(needed: set[int]) -> None:
    tries = []

    def fails(kept: Sequence[int]) -> bool:
        tries.append(kept)
        return needed <= set(kept)

    assert minimised(range(30), fails, lambda: True) == sorted(needed)
    assert len(tries) < 120


def test_no_step_can_be_left_out_of_the_result() -> None:
    """Also where steps need each other: here an even number of them fails."""

    def fails(kept: Sequence[int]) -> bool:
        return len(kept) % 2 == 0 and 7 in kept

    left = minimised(range(30), fails, lambda: True)
    assert fails(left)
    assert not any(fails([step for step in left if step != other]) for other in left)


def test_it_ends_when_the_time_is_up() -> None:
    tries: list[Sequence[int]] = []

    def fails(kept: Sequence[int]) -> bool:
        tries.append(kept)
        return 3 in kept

    assert len(minimised(range(30), fails, lambda: len(tries) < 2)) < 30
    assert len(tries) == 2
