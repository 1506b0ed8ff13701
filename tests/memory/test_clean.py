"""The driver's memory of a clean grows with the files to delete, not with those of the table."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

MIB = 1 << 20
FIXED = 24 * MIB
"""One partition's files and slices, and what the allocator keeps back."""
PLANNING, RUNNING = 420, 560
"""Bytes for each file to delete: its name, its path in the plan; its name in the units, the metadata and the record of
the completion.
"""


def run(partitions: int, files: int, slices: int, kept: int) -> dict[str, Any]:
    """The probe's answer."""
    probe = Path(__file__).with_name("clean_probe.py")
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    arguments = [str(number) for number in (partitions, files, slices, kept)]
    done = subprocess.run(
        [sys.executable, str(probe), *arguments], capture_output=True, text=True, check=True, timeout=900, env=env
    )
    answer: dict[str, Any] = json.loads(done.stdout)
    assert answer["files"] == partitions * files
    assert answer["planned"] == answer["deleted"] == partitions * (files // slices) * (slices - kept)
    return answer


def assert_bounded(answer: dict[str, Any]) -> None:
    assert answer["planning"] < FIXED + PLANNING * answer["planned"]
    assert answer["running"] < FIXED + RUNNING * answer["planned"]


def test_the_files_that_stay_take_no_memory() -> None:
    """100,000 files, a tenth of them to delete."""
    assert_bounded(run(100, 1000, 10, 9))


@pytest.mark.conformance
def test_memory_follows_the_files_to_delete() -> None:
    few, many = run(100, 1000, 10, 9), run(100, 1000, 10, 1)
    assert_bounded(many)
    assert many["planning"] > 3 * few["planning"], "the measurement sees what is in memory"


@pytest.mark.parametrize(
    ("partitions", "kept"),
    [
        pytest.param(300, 9, marks=pytest.mark.conformance),
        pytest.param(1000, 9, marks=pytest.mark.soak),
        pytest.param(1000, 1, marks=pytest.mark.soak),
    ],
)
def test_the_bound_holds_for_larger_tables(partitions: int, kept: int) -> None:
    """300,000 files, a tenth of them to delete; and a million, with a tenth and nine tenths."""
    assert_bounded(run(partitions, 1000, 10, kept))
