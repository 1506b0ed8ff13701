from __future__ import annotations

import pytest

from hudi_core.model.ids import FileGroupId
from hudi_core.services.clean.kept_files import read_needed
from hudi_core.testing.memory import MemoryStorage
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.view.pending import PendingWork
from tests.support.pending_operations import Operations
from tests.support.table_configs import VERSION_9, config_of

A, B, C = (FileGroupId("p", f"{letter}-0") for letter in "abc")
BASE = "20260101000000000"


@pytest.mark.parametrize("layout", [1, 2])
def test_files_of_pending_plans_are_needed(layout: int) -> None:
    active = ActiveTimeline(MemoryStorage(), config_of(VERSION_9 if layout == 2 else None))
    operations = Operations(active)
    operations.compact("20260102000000000", A)
    operations.cluster("20260103000000000", B)
    operations.write("20260104000000000", C)
    timeline = active.load()
    needed = read_needed(active, timeline, PendingWork.read(active, timeline))
    assert needed.by_plans == {"p": frozenset(f"{group.file_id}_0-0-0_{BASE}.parquet" for group in (A, B))}
    assert needed.compacting == {A: (BASE,)}
    assert (needed.by_savepoints, needed.savepoints) == ({}, frozenset())
