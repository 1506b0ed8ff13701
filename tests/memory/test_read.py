"""Reading a file group takes memory by its log records' keys and the budget, not by its size.

`make test` reads 500,000 rows, `make soak` 5 million (AIRFLOW_HUDI_READ_ROWS).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.support.large_file_group import make_group

ROWS = int(os.environ.get("AIRFLOW_HUDI_READ_ROWS", "500000"))
MIB = 1 << 20
BUDGET = 32 * MIB
FIXED = 176 * MIB
"""The budget, an eighth of it of base rows twice, pieces of a log block, a row group of Parquet, and what allocators
keep back.
"""
PER_LOG_RECORD = 200
"""Bytes for each log record: its key (twice while they are encoded), ordering value, place and kind, and hash tables of
the keys.
"""


def run(folder: Path, budget: int) -> dict[str, Any]:
    """The answer of big_group as a program."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "POLARS_MAX_THREADS": "1"}
    command = [sys.executable, "-m", "tests.support.large_file_group", str(folder), str(budget)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=600, env=env)
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def test_a_large_file_group_is_read_within_the_bound(tmp_path: Path) -> None:
    expected = make_group(tmp_path, ROWS)
    answer = run(tmp_path, BUDGET)
    assert {name: answer[name] for name in expected} == expected
    assert answer["peak"] < FIXED + PER_LOG_RECORD * expected["changed"]
