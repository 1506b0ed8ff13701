from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from hudi_health.doctor.examine import examine
from hudi_health.doctor.findings import Finding
from tests.golden.test_time_labels import COW, MOR, served
from tests.support.golden_cleans import context_of


def found(table: Path, *, files: bool = True) -> list[Finding]:
    return [item for item in examine(context_of(table), files=files).findings if item.rule == "time_label"]


@pytest.mark.parametrize(("name", "columns"), [(COW, "e"), (MOR[0], "a, e, l, m, n"), (MOR[-1], "a, e, l, m, n")])
def test_files_with_another_label(reported: Callable[[str], Path], name: str, columns: str) -> None:
    table = reported(name)
    (finding,) = found(table)
    assert finding.severity == "warning"
    assert f"label {columns} otherwise" in finding.what
    assert finding.path is not None
    assert (table / finding.path).is_file()
    assert found(table, files=False) == []


def test_a_clustering_gives_the_right_label(reported: Callable[[str], Path]) -> None:
    table = reported(COW)
    served(table, "clustering")
    assert found(table) == []
