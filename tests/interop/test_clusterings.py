"""Real Hudi judges clusterings that we ran: rows, metadata table, filters through every index, and what it writes
next.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from hudi_core.filegroup.write.buckets import BUCKETS_FOLDER
from hudi_core.table import HudiTable
from hudi_core.timeline.instant import Action, State
from tests.faults.test_clustering_faults import run_killed
from tests.interop.changes import user_columns
from tests.interop.fully_indexed_golden_table import WITH_INDEXES, Served
from tests.interop.judged import EVERY_JUDGE, JUDGES, KEEP_ONE, KINDS, MOR, Judged
from tests.interop.real_hudi import RealHudi
from tests.support.damaged_files import tree
from tests.support.fault_storage import MUTATIONS, FaultPlan, InjectedCrash
from tests.support.golden_clusterings import LAYOUT, SORT_COLUMNS, cluster, plan_of_all
from tests.support.golden_data import GoldenCase
from tests.support.hudictl_runner import hudictl
from tests.support.rows import assert_same_rows
from tests.support.table_invariants import read_rows

pytestmark = [pytest.mark.hudi, pytest.mark.slow, pytest.mark.conformance]

Golden = Callable[[str, str], GoldenCase]
ORDERS = {
    "none": {},
    "linear": {SORT_COLUMNS: "name"},
    "z-order": {SORT_COLUMNS: "qty,name", LAYOUT: "z-order"},
    "hilbert": {SORT_COLUMNS: "ts,qty", LAYOUT: "hilbert"},
}
ARCHIVES = {
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
    "hoodie.cleaner.commits.retained": "1",
    "hoodie.metadata.compact.max.delta.commits": "2",
}
CLASSES = "org.apache.hudi.client.clustering"
BUCKETS = {
    "hoodie.index.type": "BUCKET",
    "hoodie.index.bucket.engine": "CONSISTENT_HASHING",
    "hoodie.bucket.index.num.buckets": "2",
    "hoodie.bucket.index.min.num.buckets": "1",
    "hoodie.bucket.index.max.num.buckets": "8",
    "hoodie.clustering.plan.strategy.class": f"{CLASSES}.plan.strategy.SparkConsistentBucketClusteringPlanStrategy",
    "hoodie.clustering.execution.strategy.class": (
        f"{CLASSES}.run.strategy.SparkConsistentBucketClusteringExecutionStrategy"
    ),
    "hoodie.clustering.updates.strategy": f"{CLASSES}.update.strategy.SparkConsistentBucketDuplicateUpdateStrategy",
}
"""Buckets that a clustering splits and merges."""
SPLITS = {"hoodie.parquet.max.file.size": "1000"}
"""Every bucket is too large."""


@pytest.mark.parametrize("order", list(ORDERS))
@pytest.mark.parametrize(("version", "name"), WITH_INDEXES)
def test_every_index_leads_to_the_new_file_groups(
    golden: Golden, request: pytest.FixtureRequest, version: str, name: str, order: str
) -> None:
    """Real Hudi answers by the indexes what a scan answers, finds by them the rows that it changes, deletes, compacts
    and cleans the file groups that were replaced.
    """
    hudi: RealHudi = request.getfixturevalue(EVERY_JUDGE[version])
    table = Served.of(hudi, golden(version, name))
    replaced = set(table.groups().values())
    instant = plan_of_all(table.base, ORDERS[order], 2)
    cluster(table.base, instant)
    assert not replaced & set(table.groups().values())
    table.judge()
    table.go_on()


@pytest.mark.parametrize("order", list(ORDERS))
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("version", list(JUDGES))
def test_real_hudi_clusters_on_top(
    request: pytest.FixtureRequest, tmp_path: Path, version: str, kind: str, order: str
) -> None:
    """Its own clustering takes our file groups; ours takes its, with log files in them; both clean."""
    hudi: RealHudi = request.getfixturevalue(JUDGES[version])
    table = Judged.create(hudi, tmp_path / "table", kind, version)
    table.upsert()
    table.upsert(fresh=False)
    params = {name: value.replace("qty", "amount") for name, value in ORDERS[order].items()}
    for _ in range(2):
        cluster(table.base, plan_of_all(table.base, params, 2))
        table.check()
        table.upsert(fresh=False)
        hudi.ask("service", base=str(table.base), name="cluster", options=table.options)
        table.check()
        table.upsert()
    assert len(table.instants(Action.REPLACE_COMMIT)) == 4
    table.goes_on()
    assert table.is_mor == (kind == MOR)


@pytest.mark.parametrize("version", list(JUDGES))
def test_real_hudi_runs_a_plan_of_which_we_died(request: pytest.FixtureRequest, tmp_path: Path, version: str) -> None:
    """The inflight file that a dead run leaves names file groups, and Hudi's is empty, as ours behind the commit: it
    rolls the dead run back, runs the plan, and archives what we and it clustered.
    """
    hudi: RealHudi = request.getfixturevalue(JUDGES[version])
    table = Judged.create(hudi, tmp_path / "table", MOR, version, ARCHIVES)
    table.upsert()
    table.upsert(fresh=False)
    first = plan_of_all(table.base, ORDERS["linear"])
    assert first is not None
    cluster(table.base, first)
    (inflight,) = (path for path in table.base.rglob(f"{first}.*.inflight") if "metadata" not in path.parts)
    assert inflight.read_bytes() == b""
    table.upsert()
    second = plan_of_all(table.base, ORDERS["linear"])
    assert second is not None
    plan = FaultPlan(when=lambda item: item.path.endswith(".parquet"), timing="after", counts=MUTATIONS)
    with pytest.raises(InjectedCrash):
        run_killed(table.base, second, plan)
    (pending,) = (item for item in table.instants(completed=False) if not item.is_completed)
    assert (pending.requested_time, pending.state) == (second, State.INFLIGHT)
    assert list(table.base.rglob(f"*_{second}.parquet"))
    for metadata in (True, False):
        assert_same_rows(user_columns(hudi.snapshot(table.base, metadata=metadata)), table.rows)
    hudi.ask("service", base=str(table.base), name="cluster", instant=second, options=table.options)
    table.check()
    assert {first, second} <= set(table.times(Action.REPLACE_COMMIT))
    for _ in range(4):
        table.upsert(fresh=False)
    table.compact()
    table.clean(KEEP_ONE)
    hudi.ask("service", base=str(table.base), name="archive", options=table.options)
    assert not {first, second} & set(table.times(Action.REPLACE_COMMIT))
    table.goes_on()


@pytest.mark.parametrize("version", ["6", "9"])
def test_a_plan_that_resizes_buckets_is_left_to_hudi(
    request: pytest.FixtureRequest, tmp_path: Path, version: str
) -> None:
    """With what a writer put into the new buckets meanwhile, which is nowhere else once the plan was run."""
    hudi: RealHudi = request.getfixturevalue(JUDGES[version])
    table = Judged.create(hudi, tmp_path / "table", MOR, version, BUCKETS)
    instant = hudi.ask("service", base=str(table.base), name="schedule_clustering", options={**table.options, **SPLITS})
    assert instant is not None
    table.upsert(fresh=False)
    groups, files = len([*HudiTable.open(str(table.base)).files()]), tree(table.base)
    for which in ((), ("--instant", instant), ("--schedule",)):
        done = hudictl("run", "clustering", table.base, "--engine", "local", "--json", *which)
        assert (done.code, done.error["type"], done.error["path"]) == (2, "UnsupportedError", BUCKETS_FOLDER)
        assert "buckets by consistent hashing" in done.error["message"]
        assert "let Hudi run it" in done.error["remedy"]
    freed = hudictl("takeover", table.base, instant, "--json").document
    assert freed["removed"]["files"] == 0
    assert "let Hudi's own clustering do so" in freed["next"]
    dropped = hudictl("unschedule", table.base, instant, "--json")
    assert (dropped.code, dropped.error["remedy"]) == (1, "let Hudi run it")
    assert tree(table.base) == files
    hudi.ask("service", base=str(table.base), name="cluster", instant=instant, options=table.options)
    assert table.times(Action.REPLACE_COMMIT) == [instant]
    assert len([*HudiTable.open(str(table.base)).files()]) == 2 * groups
    for metadata in ("on", "off"):
        ours = read_rows(table.base, metadata)
        assert_same_rows(user_columns(ours), table.rows)
        assert_same_rows(hudi.snapshot(table.base, metadata=metadata == "on"), ours)
