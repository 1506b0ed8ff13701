"""Which tests a run of the suite takes.

Of the cases of one test `make test` runs a share, and `make soak` the others. A long sweep is run in parts: `pytest
--part 2/4` runs the second quarter of what was chosen, in order, so that fixtures of a module are shared.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from hashlib import sha256
from typing import Final, TypeVar

import pytest

T = TypeVar("T")
SHARES: Final = {
    "": 1,
    "tests/contract/": 4,
    "tests/faults/": 4,
    "tests/golden/": 4,
    "tests/golden/test_reads.py": 1,
    "tests/hostile/": 4,
    "tests/interop/": 3,
    "tests/interop/test_services.py": 1,
    "tests/unit/airflow_hudi/": 3,
    "tests/unit/hudi_core/index/": 3,
    "tests/unit/hudi_core/metadata_table/": 3,
    "tests/unit/hudi_core/query/": 3,
    "tests/unit/hudi_core/services/": 3,
    "tests/unit/hudi_health/": 3,
}
"""One of how many cases of a test `make test` runs, by the longest beginning of its path.

More than one in the folders whose tests take long, and whose cases are tables, versions and moments at which the same
holds.
"""


def share_of(path: str) -> int:
    """One of how many cases of a test in the file `path` belongs to `make test`."""
    return SHARES[max((known for known in SHARES if path.startswith(known)), key=len)]


def in_share(cases: Sequence[str], share: int) -> frozenset[str]:
    """One of each `share` of these cases, rounded up: by a hash of their names, so that neither the order of the
    parameters nor a new case decides which versions and tables are among them.
    """
    return frozenset(sorted(cases, key=lambda case: sha256(case.encode()).digest())[: -(-len(cases) // share)])


def leave_cases_to_soak(items: Sequence[pytest.Item]) -> None:
    """Marks soak what is not in the share of its test. What is marked soak already is no case of `make test`."""
    cases: dict[str, dict[str, pytest.Item]] = defaultdict(dict)
    for item in items:
        if item.get_closest_marker("soak") is None:
            cases[item.nodeid.partition("[")[0]][item.nodeid] = item
    for name, found in cases.items():
        kept = in_share(list(found), share_of(name))
        for case in found.keys() - kept:
            found[case].add_marker(pytest.mark.soak)


def part_of(items: Sequence[T], part: str) -> Sequence[T]:
    """`part` is `number/count`, from 1 on. Raises UsageError for another text."""
    match = re.fullmatch(r"(\d+)/(\d+)", part)
    number, count = (int(match[1]), int(match[2])) if match else (0, 0)
    if not 1 <= number <= count:
        raise pytest.UsageError(f"--part {part} is not a number and a count, as in 2/4")
    return items[len(items) * (number - 1) // count : len(items) * number // count]
