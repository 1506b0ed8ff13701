"""Our rollback of a completed compaction is cut off where that has just left the completed instants: real Hudi reads,
and either of us finishes.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from hudi_core.services.rollback.verb import rollback
from hudi_core.storage.local import LocalStorage
from hudi_core.timeline.instant import Action
from tests.interop.judged import JUDGES, MOR, Judged
from tests.interop.real_hudi import RealHudi, RealHudiError
from tests.support.changed_tables import open_context
from tests.support.fault_storage import FaultPlan, FaultStorage, InjectedCrash, Operation
from tests.support.service_calls import dead_process

pytestmark = [pytest.mark.hudi, pytest.mark.slow, pytest.mark.conformance]


@pytest.fixture(scope="module", params=list(JUDGES))
def source(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Judged:
    """A merge-on-read table that ends with a compaction."""
    version = str(request.param)
    hudi: RealHudi = request.getfixturevalue(JUDGES[version])
    table = Judged.create(hudi, tmp_path_factory.mktemp("source") / "table", MOR, version)
    table.upsert()
    table.upsert(fresh=False)
    table.compact()
    return table


def cut_off(table: Judged) -> str:
    """Kills a rollback of the compaction, which it returns, once its completed file is gone."""
    (compaction,) = [item for item in table.instants() if item.pending_action == Action.COMPACTION]
    completed = open_context(table.base).active.path_of(compaction)

    def completed_file_goes(operation: Operation) -> bool:
        return operation.kind == "delete" and operation.path == completed

    storage = FaultStorage(LocalStorage(table.base), FaultPlan(when=completed_file_goes, timing="after"))
    with pytest.raises(InjectedCrash):
        rollback(open_context(table.base, storage=storage), compaction.requested_time, dead_process())
    return compaction.requested_time


@pytest.mark.parametrize("finisher", ["this engine", "real Hudi"])
def test_real_hudi_takes_it_for_a_failed_write(source: Judged, finisher: str, tmp_path: Path) -> None:
    table = source.copy(tmp_path / "table")
    compaction = cut_off(table)
    for metadata in (True, False):
        assert table.hudi.snapshot(table.base, metadata=metadata).num_rows == table.rows.num_rows
    with pytest.raises(RealHudiError, match=r"[Cc]ompaction"):
        table.hudi.ask("compact", base=str(table.base), instant=compaction, options=table.options)
    if finisher == "real Hudi":
        table.roll_back(compaction)
    else:
        rollback(open_context(table.base), compaction, dead_process())
    assert compaction not in table.times(completed=False)
    assert not [path for path in table.base.glob("*/*") if compaction in path.name]
    table.check()
    table.goes_on()
