"""What an archival holds in memory follows a round of instants, not the timeline."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

MIB = 1 << 20
BOUND = 176 * MIB
"""A round of 16 MiB of state files about four times over, a row group of a merge, and what the allocators keep back."""
LISTED = 1500
"""Bytes for each instant: its files in the listing, the instant, its result."""


def run(version: str, count: int, size: int) -> dict[str, Any]:
    """The probe's answer: `count` commits of `size` bytes."""
    probe = Path(__file__).with_name("archive_probe.py")
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, str(probe), version, str(count), str(size)],
        capture_output=True,
        text=True,
        check=True,
        timeout=900,
        env=env,
    )
    answer: dict[str, Any] = json.loads(done.stdout)
    assert (answer["archived"], answer["kept"], answer["history"]) == (count - 20, 20, count - 20)
    assert answer["peak"] < BOUND + LISTED * count
    return answer


@pytest.mark.conformance
@pytest.mark.parametrize("version", ["6", "9"])
def test_wide_commits_are_held_a_round_at_a_time(version: str) -> None:
    few, many = run(version, 300, 200_000), run(version, 900, 200_000)
    assert many["peak"] < few["peak"] + 48 * MIB, "60 MB of commits, and 180 MB"
    assert few["peak"] > 16 * MIB, "the measurement sees what is in memory"


@pytest.mark.parametrize(
    "version",
    [
        pytest.param("6", marks=pytest.mark.soak),
        pytest.param("8", marks=pytest.mark.soak),
        pytest.param("9", marks=pytest.mark.conformance),
    ],
)
def test_ten_thousand_instants(version: str) -> None:
    run(version, 10_000, 4_000)
