from __future__ import annotations

import pytest

from hudi_core.metadata_table.partition_type import is_row_level
from hudi_core.metadata_table.read.file_group import ROOT
from hudi_core.storage.local import LocalStorage
from tests.support.fault_storage import FaultPlan, FaultStorage, InjectedCrash
from tests.support.metadata_records import (
    Table,
)
from tests.unit.hudi_core.services.metadata.test_catch_up import (
    REBUILDS,
    Golden,
    commits_of,
    findings,
    forget_these,
    updated,
)


@pytest.mark.slow
def test_a_killed_rebuild_leaves_nothing_stale(golden: Golden) -> None:
    """The indexes are not listed any more; the next update builds them, whatever its options."""
    table = Table(golden("9", "mdt_all_mor").table)
    rows = {name for name in table.config.metadata_partitions if is_row_level(name)}
    forget_these(table, commits_of(table)[-2:-1])
    plan = FaultPlan(
        when=lambda operation: (
            operation.path.startswith(f"{ROOT}/record_index/") and operation.kind == "create_exclusive"
        )
    )
    with pytest.raises(InjectedCrash):
        updated(table, FaultStorage(LocalStorage(table.path), plan), REBUILDS)
    assert table.config.metadata_partitions.isdisjoint(rows)
    assert findings(table) == []
    done = updated(table)
    assert (done.applied, set(done.rebuilt)) == ((), rows)
    assert table.config.metadata_partitions >= rows
    assert findings(table) == []
