"""Where benchmarks keep the tables that they make once, and how they work on copies of them."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")
Seen = TypeVar("Seen")


def cache() -> Path:
    """Where the tables are kept between runs."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "airflow-hudi" / "benchmarks"


def on_a_copy(table: Path, work: Callable[[Path], T], look: Callable[[Path], Seen]) -> tuple[T, Seen]:
    """Runs `work` on a fresh copy; returns its result and what `look` sees in the copy afterwards."""
    scratch = Path(tempfile.mkdtemp(dir=cache()))
    try:
        copy = scratch / "table"
        shutil.copytree(table, copy)
        result = work(copy)
        return result, look(copy)
    finally:
        shutil.rmtree(scratch)
