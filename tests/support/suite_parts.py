"""A long sweep in parts: `pytest --part 2/4` runs the second quarter of what was chosen, in order, so that fixtures of
a module are shared.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TypeVar

import pytest

T = TypeVar("T")


def part_of(items: Sequence[T], part: str) -> Sequence[T]:
    """`part` is `number/count`, from 1 on. Raises UsageError for another text."""
    match = re.fullmatch(r"(\d+)/(\d+)", part)
    number, count = (int(match[1]), int(match[2])) if match else (0, 0)
    if not 1 <= number <= count:
        raise pytest.UsageError(f"--part {part} is not a number and a count, as in 2/4")
    return items[len(items) * (number - 1) // count : len(items) * number // count]
