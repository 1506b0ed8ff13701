"""Our process dies in the middle of a compaction, or of rolling one back; real Hudi 0.15 reads the table as it is and
takes over.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from hudi_core.transaction.owner import Owner
from tests.faults.test_compaction_faults import POINTS, SOURCES, Table, Timing, run, run_killed, under
from tests.interop.real_hudi import RealHudi, RealHudiError
from tests.support.fault_storage import FaultPlan, InjectedCrash, Operation
from tests.support.rows import assert_same_rows
from tests.support.table_invariants import has_metadata_table, pending_instants
from tests.support.tiers import tiered

pytestmark = [pytest.mark.hudi, pytest.mark.slow]

ROLLBACK_POINTS: dict[str, tuple[Callable[[Operation], bool], Timing]] = {
    "rollback requested": (under(".hoodie/", ending=".rollback.requested"), "after"),
    "rollback inflight": (under(".hoodie/", ending=".rollback.inflight"), "after"),
    "first base file deleted": (under("2024-", "delete"), "after"),
    "empty deltacommit inflight": (under(".hoodie/metadata/.hoodie/", ending=".deltacommit.inflight"), "after"),
    "empty deltacommit completed": (under(".hoodie/metadata/.hoodie/", ending=".deltacommit"), "after"),
    "metadata rollback inflight": (under(".hoodie/metadata/.hoodie/", ending="006.rollback.inflight"), "after"),
    "command block written": (under(".hoodie/metadata/files/", ending="_1-0-1"), "after"),
    "deltacommit removed": (under(".hoodie/metadata/.hoodie/", "delete", ".deltacommit.requested"), "after"),
    "metadata rollback completed": (under(".hoodie/metadata/.hoodie/", ending="006.rollback"), "after"),
    "rollback completed": (under(".hoodie/2", ending=".rollback"), "after"),
}

NEEDS_TWO_RUNS = {"metadata rollback inflight", "command block written"}
"""Here Hudi 0.15 trips over itself, as it does after a death of its own: it finishes the metadata table's pending
rollback first, and then does not find the deltacommit that it still means to roll back
(HoodieBackedTableMetadataWriter.update). Its next run goes through.
"""


def killed(table: Table, when: Callable[[Operation], bool], timing: Timing, path: Path) -> Path:
    table.copy(path)
    plan = FaultPlan(when=when, timing=timing)
    with pytest.raises(InjectedCrash):
        run_killed(path, plan)
    assert plan.fired is not None
    return path


def assert_hudi_sees(hudi: RealHudi, path: Path, table: Table) -> None:
    for metadata in (True, False):
        assert_same_rows(hudi.snapshot(path, metadata=metadata), table.rows)


def assert_hudi_finds_nothing_wrong(hudi: RealHudi, path: Path) -> None:
    assert has_metadata_table(path)
    answer = hudi.ask("validate_metadata", base=str(path))
    assert answer["wrong"] == []
    assert answer["files"] >= 3


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Table:
    return Table(SOURCES["metadata table"](tmp_path_factory.mktemp("source")))


@pytest.fixture(scope="module")
def failed(tmp_path_factory: pytest.TempPathFactory) -> Table:
    return Table(SOURCES["attempt of real Hudi to roll back"](tmp_path_factory.mktemp("source")))


@pytest.mark.parametrize("point", tiered(POINTS, ["first base file written"]))
def test_real_hudi_takes_a_compaction_over(point: str, fresh: Table, hudi_0_15: RealHudi, tmp_path: Path) -> None:
    path = killed(fresh, *POINTS[point], tmp_path / "table")
    assert_hudi_sees(hudi_0_15, path, fresh)
    if not (path / ".hoodie" / f"{fresh.instant}.commit").exists():
        hudi_0_15.ask("compact", base=str(path), instant=fresh.instant)
    assert_hudi_sees(hudi_0_15, path, fresh)
    assert_hudi_finds_nothing_wrong(hudi_0_15, path)


@pytest.mark.conformance
@pytest.mark.parametrize("point", ROLLBACK_POINTS)
def test_real_hudi_takes_a_rollback_over(point: str, failed: Table, hudi_0_15: RealHudi, tmp_path: Path) -> None:
    path = killed(failed, *ROLLBACK_POINTS[point], tmp_path / "table")
    assert_hudi_sees(hudi_0_15, path, failed)
    if point in NEEDS_TWO_RUNS:
        with pytest.raises(RealHudiError, match="Failed to rollback deltacommit"):
            hudi_0_15.ask("compact", base=str(path), instant=failed.instant)
    hudi_0_15.ask("compact", base=str(path), instant=failed.instant)
    assert_hudi_sees(hudi_0_15, path, failed)
    assert_hudi_finds_nothing_wrong(hudi_0_15, path)


@pytest.mark.conformance
@pytest.mark.parametrize("point", [*POINTS, *ROLLBACK_POINTS])
def test_real_hudi_accepts_what_our_own_next_run_makes_of_it(
    point: str, fresh: Table, failed: Table, hudi_0_15: RealHudi, tmp_path: Path
) -> None:
    table = fresh if point in POINTS else failed
    path = killed(table, *{**POINTS, **ROLLBACK_POINTS}[point], tmp_path / "table")
    run(path, Owner.current("another process"), instant=table.instant)
    assert pending_instants(path) <= table.pending - {(".hoodie", table.instant)}
    assert_hudi_sees(hudi_0_15, path, table)
    assert_hudi_finds_nothing_wrong(hudi_0_15, path)
