"""Real Hudi rolls a clustering back that we are running, or takes it over: we lose, and leave no file and no row."""

from __future__ import annotations

from pathlib import Path

import pytest

from hudi_core.errors import ConflictError
from hudi_core.model.names import CLAIMS
from hudi_core.timeline.instant import Action
from tests.faults.test_races_of_rewrites import run_beside
from tests.interop.judged import JUDGES, MOR, Judged
from tests.interop.real_hudi import RealHudi
from tests.support.golden_clusterings import SORT_COLUMNS, cluster, commit_of, new_files, plan_of_all
from tests.support.table_invariants import leftovers

pytestmark = [pytest.mark.hudi, pytest.mark.slow, pytest.mark.conformance]

WON = {"rollback": 0, "cluster": 1}
"""What Hudi's write client is asked for, whatever we are doing, and how many clusterings it then completes."""


@pytest.mark.parametrize("does", WON)
@pytest.mark.parametrize("version", JUDGES)
def test_a_clustering_at_work(request: pytest.FixtureRequest, tmp_path: Path, version: str, does: str) -> None:
    hudi: RealHudi = request.getfixturevalue(JUDGES[version])
    table = Judged.create(hudi, tmp_path / "table", MOR, version)
    table.upsert(fresh=False)
    instant = plan_of_all(table.base, {SORT_COLUMNS: "name"}, 2)
    assert instant is not None
    ours: list[Path] = []

    def meanwhile() -> None:
        ours.extend(new_files(table.base, instant))
        hudi.ask("service", base=str(table.base), name=does, instant=instant, options=table.options)

    with pytest.raises(ConflictError, match=f"has rolled {instant} back meanwhile"):
        run_beside(lambda *_: cluster(table.base, instant), meanwhile)
    assert ours
    assert not any(path.exists() for path in ours)
    assert table.times(Action.REPLACE_COMMIT, completed=False) == [instant] * WON[does]
    assert len(table.times(Action.ROLLBACK)) == 1
    if WON[does]:
        theirs = sorted(stat.name for stat in commit_of(table.base, instant).write_stats())
        assert sorted(path.name for path in new_files(table.base, instant)) == theirs
        assert cluster(table.base, instant).files_written == 0
    else:
        assert new_files(table.base, instant) == []
    assert [name for name in leftovers(table.base, instant) if not name.startswith(CLAIMS)] == []
    table.check()
    table.goes_on()
