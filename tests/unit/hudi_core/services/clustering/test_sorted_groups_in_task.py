"""A group that one task sorts becomes what an exchange makes of it, and the same file groups in every attempt."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from hudi_core.engine.local import LocalEngine
from hudi_core.engine.protocol import TaskAttempt
from hudi_core.errors import ExecutionError
from hudi_core.services.clustering import sorted_groups, units
from hudi_core.services.clustering.job import clustering_action
from hudi_core.services.clustering.sorted_groups import GroupUnit, SortUnit, sort_group
from hudi_core.timeline.actions.replacecommit import ClusteringGroup, ClusteringPlan, encode_clustering_plan
from tests.support.golden_clusterings import LAYOUT, SORT_COLUMNS, cluster, new_files, plan_of_all, slice_of
from tests.support.golden_compactions import context_of
from tests.support.golden_data import GoldenCase
from tests.support.table_invariants import assert_metadata_true
from tests.support.tiers import tiered

Golden = Callable[[str, str], GoldenCase]


class Remote(LocalEngine):
    """An engine that says that its executors are elsewhere. `asked` are the units of its tasks, each of which it runs
    `attempts` times; `file_ids` are those of each attempt at a group.
    """

    is_remote = True

    def __init__(self, attempts: int = 1) -> None:
        super().__init__(1)
        self.attempts = attempts
        self.asked: list[Any] = []
        self.file_ids: list[list[list[str]]] = []

    def run(self, task: Any, units: Sequence[Any], *, run_epoch: int, progress: Any = None) -> list[Any]:
        self.asked += units
        attempts = range(self.attempts)
        tries = [[TaskAttempt(index, run_epoch, number) for number in attempts] for index in range(len(units))]
        done = [[task(unit, attempt) for attempt in some] for unit, some in zip(units, tries, strict=True)]
        if task is sort_group:
            self.file_ids += [[[file.stat.file_id for file in one.files] for one in each] for each in done]
        return [each[-1] for each in done]

    def exchange(self, produce: Any, units: Sequence[Any], *given: Any, **more: Any) -> list[Any]:
        self.asked += units
        return super().exchange(produce, units, *given, **more)


def plan_of_one(table: Path, params: dict[str, str], outputs: int) -> str:
    """Requests a clustering of one partition."""
    context = context_of(table)
    timeline = context.active.load()
    view = context.view(timeline)
    slices = tuple(slice_of(item) for item in view.latest_slices(view.partitions()[0]))
    plan = ClusteringPlan((ClusteringGroup(slices, outputs),), strategy_params=params, preserves_metadata=True)
    instant, action = context.new_instant(timeline), clustering_action(context.active.layout)
    context.active.create_requested(instant, action, encode_clustering_plan(plan, lambda path: f"{table}/{path}"))
    return instant


def order_of(table: Path, instant: str) -> list[tuple[str, list[str]]]:
    """The keys of each new file in their order, by partition."""
    return sorted(
        (path.parent.name, pq.ParquetFile(path).read(["_hoodie_record_key"]).column(0).to_pylist())
        for path in new_files(table, instant)
    )


@pytest.mark.parametrize(
    ("layout", "outputs"),
    tiered(
        [("linear", 1), ("linear", 3), ("z-order", 2), ("hilbert", (1 << 31) - 1)],
        [("linear", 1), ("hilbert", (1 << 31) - 1)],
    ),
)
def test_it_writes_what_an_exchange_writes(golden: Golden, tmp_path: Path, layout: str, outputs: int) -> None:
    table = golden("9", "mdt_all_mor").table
    instant = plan_of_one(table, {SORT_COLUMNS: "name,qty", LAYOUT: layout}, outputs)
    other = Path(shutil.copytree(table, tmp_path / "other" / table.name))
    engine = Remote()
    cluster(table, instant, engine=engine)
    cluster(other, instant)
    assert any(isinstance(unit, GroupUnit) for unit in engine.asked)
    assert order_of(table, instant) == order_of(other, instant)
    assert_metadata_true(table)


def test_rows_that_are_stamped_are_numbered_once(golden: Golden) -> None:
    """One task writes several files: their sequence numbers go on."""
    table = golden("9", "mdt_all_mor").table
    instant = plan_of_all(table, {SORT_COLUMNS: "name"}, 3, preserves=False)
    assert instant is not None
    cluster(table, instant, engine=Remote())
    files = new_files(table, instant)
    assert len(files) > len({path.parent for path in files})
    numbers = [
        number for path in files for number in pq.ParquetFile(path).read(["_hoodie_commit_seqno"]).column(0).to_pylist()
    ]
    assert len(numbers) == len(set(numbers)) > 0


def test_large_groups_are_exchanged(golden: Golden, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside small ones, which are not."""
    table = golden("9", "mdt_all_mor").table
    instant = plan_of_all(table, {SORT_COLUMNS: "name"}, 2)
    assert instant is not None
    context = context_of(table)
    view = context.view(context.active.load())
    sizes = {
        partition: sum(file.size for item in view.latest_slices(partition) for file in item.data_files)
        for partition in view.partitions()
    }
    monkeypatch.setattr(units, "MOST_BYTES", min(sizes.values()))
    engine = Remote()
    cluster(table, instant, engine=engine)
    taken = {unit.slices[0].partition for unit in engine.asked if isinstance(unit, GroupUnit)}
    exchanged = {item.partition for unit in engine.asked if isinstance(unit, SortUnit) for item in unit.slices}
    assert taken
    assert exchanged == {*sizes} - taken != set()
    assert {path.parent.name for path in new_files(table, instant)} == {*sizes}
    assert_metadata_true(table)


def test_every_attempt_writes_the_same_file_groups(golden: Golden) -> None:
    table = golden("9", "mdt_all_mor").table
    instant = plan_of_all(table, {SORT_COLUMNS: "name"}, 2)
    assert instant is not None
    engine = Remote(attempts=2)
    cluster(table, instant, engine=engine)
    assert engine.file_ids
    assert all(first == second and len(set(first)) == len(first) for first, second in engine.file_ids)
    assert max(len(first) for first, _ in engine.file_ids) > 1
    assert len(new_files(table, instant)) == sum(len(first) for first, _ in engine.file_ids)


def test_a_folder_of_temporary_files_that_cannot_be_made(
    golden: Golden, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = golden("9", "mdt_all_mor").table
    instant = plan_of_all(table, {SORT_COLUMNS: "name"})
    assert instant is not None
    folder = tmp_path / "gone"
    made = tempfile.TemporaryDirectory

    def in_gone(*, prefix: str, **given: Any) -> Any:
        return made(prefix=prefix, dir=folder, **given)

    monkeypatch.setattr(sorted_groups.tempfile, "TemporaryDirectory", in_gone)
    with pytest.raises(ExecutionError, match="gone") as caught:
        cluster(table, instant, engine=Remote())
    assert "TMPDIR" in str(caught.value.remedy)
    assert new_files(table, instant) == []
