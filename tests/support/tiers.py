"""Which tier runs a case of a test, and the parts of a long run.

Markers decide, and nothing else. `make test` runs every case without a marker of a tier. `make conformance` runs these
and the cases that are marked conformance: further tables, versions and moments at which the same holds. `make soak`
runs what is marked soak: sweeps and races of hours. A long run goes in parts: `pytest --part 2/4` runs the second
quarter of the chosen tests, in order, so that tests of a module share their fixtures.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from typing import Any, TypeVar

import pytest
from _pytest.mark import ParameterSet

T = TypeVar("T")


def tiered(cases: Iterable[Any], core: Collection[Any]) -> list[ParameterSet]:
    """The cases of a test, each marked conformance unless it is in `core`, which `make test` runs.

    A case is a value, a tuple of values for several arguments, or a `pytest.param`. `core` names a case by its value,
    by its tuple, or by its id. Raises ValueError where `core` names no case.
    """
    sets = [case if isinstance(case, ParameterSet) else _as_set(case) for case in cases]
    names = [{name for name in core if name in _names(case)} for case in sets]
    unknown = set(core).difference(*names)
    if unknown:
        raise ValueError(f"no case is {sorted(map(str, unknown))}")
    return [
        case if named else pytest.param(*case.values, id=case.id, marks=[*case.marks, pytest.mark.conformance])
        for case, named in zip(sets, names, strict=True)
    ]


def _as_set(case: Any) -> ParameterSet:
    return pytest.param(*case) if isinstance(case, tuple) else pytest.param(case)


def _names(case: ParameterSet) -> list[Any]:
    value = case.values[0] if len(case.values) == 1 else tuple(case.values)
    return [value] if case.id is None else [value, case.id]


def part_of(items: Sequence[T], part: str) -> Sequence[T]:
    """`part` is `number/count`, from 1 on. Raises UsageError for another text."""
    match = re.fullmatch(r"(\d+)/(\d+)", part)
    number, count = (int(match[1]), int(match[2])) if match else (0, 0)
    if not 1 <= number <= count:
        raise pytest.UsageError(f"--part {part} is not a number and a count, as in 2/4")
    return items[len(items) * (number - 1) // count : len(items) * number // count]
