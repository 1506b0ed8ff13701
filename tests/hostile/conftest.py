"""The fixture of the named cases."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.hostile.refusals import HostileTable


@pytest.fixture
def hostile(tmp_path: Path) -> Callable[[str, str], HostileTable]:
    """`hostile("8", "mor_basic")`: a copy of a golden table."""
    return lambda folder, case: HostileTable(folder, case, tmp_path)
