"""Clusterings that we plan: real Hudi plans the same on the same table and options, runs ours, and goes on."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from random import randbytes

import pyarrow as pa
import pytest

from hudi_core.config.services.clustering_config import SORT_COLUMNS
from hudi_core.services.clustering.planner import ClusteringService
from hudi_core.timeline.actions.replacecommit import ClusteringGroup, ClusteringPlan
from hudi_core.timeline.instant import Action
from hudi_core.timeline.pending_plans import read_clustering_plans
from hudi_core.transaction.owner import Owner
from tests.interop.judged import JUDGES, MOR, Judged
from tests.interop.real_hudi import RealHudi
from tests.support.golden_compactions import context_of

pytestmark = [pytest.mark.hudi, pytest.mark.conformance]

PLAN = "hoodie.clustering.plan.strategy"
CLASSES = "org.apache.hudi.client.clustering.plan.strategy"
MODE = "hoodie.clustering.plan.partition.filter.mode"
DAYS = tuple(f"2024/01/0{day}" for day in range(1, 6))
SIZES = {"small": "24000", "group": "60000"}


def plan(**options: str) -> dict[str, str]:
    names = {
        "small": f"{PLAN}.small.file.limit",
        "group": f"{PLAN}.max.bytes.per.group",
        "groups": f"{PLAN}.max.num.groups",
        "target": f"{PLAN}.target.file.max.bytes",
        "single": f"{PLAN}.single.group.clustering.enabled",
        "sort": SORT_COLUMNS.name,
        "mode": MODE,
        "lookback": f"{PLAN}.daybased.lookback.partitions",
        "skip": f"{PLAN}.daybased.skipfromlatest.partitions",
        "begin": f"{PLAN}.cluster.begin.partition",
        "end": f"{PLAN}.cluster.end.partition",
        "regex": f"{PLAN}.partition.regex.pattern",
        "selected": f"{PLAN}.partition.selected",
        "by": f"{PLAN}.file.slices.sort.by",
        "full": "hoodie.parquet.max.file.size",
    }
    found = {names[name]: value for name, value in options.items() if name != "strategy"}
    return {**found, f"{PLAN}.class": f"{CLASSES}.{options['strategy']}"} if "strategy" in options else found


def counted(flag: str, name: str, commits: int) -> dict[str, str]:
    return {f"hoodie.clustering.{flag}": "true", f"hoodie.clustering.{name}.max.commits": str(commits)}


CASES: dict[str, dict[str, str]] = {
    "the default": {},
    "sorted": plan(sort="name, amount"),
    "small files": plan(small="700000"),
    "small files, none": plan(small="1"),
    "groups by bytes": plan(group="900000", target="400000"),
    "groups by bytes, no single ones": plan(group="900000", target="400000", single="false"),
    "no single ones": plan(group="950000", single="false"),
    "single ones alone": plan(group="300000", single="false"),
    "no single ones, sorted": plan(group="300000", single="false", sort="name"),
    "recent days": plan(mode="RECENT_DAYS"),
    "recent days but the last": plan(mode="RECENT_DAYS", lookback="0", skip="1"),
    "recent days, few groups": plan(mode="RECENT_DAYS", lookback="0", group="300000", groups="4"),
    "recent days by the old name": plan(strategy="SparkRecentDaysClusteringPlanStrategy", lookback="3"),
    "from one to another": plan(mode="SELECTED_PARTITIONS", begin=DAYS[1], end=DAYS[3]),
    "from one": plan(strategy="SparkSelectedPartitionsClusteringPlanStrategy", begin=DAYS[3]),
    "by expression": plan(regex=".*/0[24]"),
    "by expression, none": plan(regex="0[24]"),
    "by name": plan(selected=f"{DAYS[4]},{DAYS[0]}"),
    "by name within a range": plan(selected=f"{DAYS[4]},{DAYS[0]}", mode="SELECTED_PARTITIONS", end=DAYS[1]),
    "single files": plan(strategy="SparkSingleFileSortPlanStrategy", sort="name"),
    "files that are full": plan(small="0", full="1000"),
    "inline, due": counted("inline", "inline", 4),
    "inline, not due": counted("inline", "inline", 99),
    "background, due": counted("async.enabled", "async", 4),
    "background, not due": counted("async.enabled", "async", 99),
    "planned inline": counted("schedule.inline", "async", 99),
    "uncounted": {"hoodie.clustering.inline.max.commits": "99", "hoodie.clustering.async.max.commits": "99"},
}
SINCE_1_2: dict[str, dict[str, str]] = {
    "by age": plan(by="INSTANT_TIME,SIZE", group="900000"),
    "copied": plan(strategy="SparkStreamCopyClusteringPlanStrategy", group="900000", single="false"),
}
"""Earlier releases pass over the option, or have no such class."""


def rows(ids: range, days: tuple[str, ...], size: int) -> pa.Table:
    places = [(day, number) for day in days for number in ids]
    return pa.table(
        {
            "id": [f"key-{day}-{number:04d}" for day, number in places],
            "dt": [day for day, _ in places],
            "ts": pa.array([1_000 + size for _ in places], pa.int64()),
            "name": [f"{number} {randbytes(size).hex()}" for _, number in places],
            "amount": [number / 4 for _, number in places],
        }
    )


@dataclass(frozen=True)
class Subject:
    """A table of five days with three to five file groups each, all of other sizes, some with log files."""

    version: str
    table: Judged


@pytest.fixture(scope="module", params=JUDGES)
def subject(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Subject:
    hudi: RealHudi = request.getfixturevalue(JUDGES[request.param])
    base = tmp_path_factory.mktemp("planned") / "table"
    no_small = {"hoodie.parquet.small.file.limit": "0"}
    table = Judged.create(hudi, base, MOR, request.param, rows=rows(range(10), DAYS, 9_000))
    for turn in range(1, 5):
        table.write(rows(range(10 * turn, 10 * turn + 3 + turn), DAYS[max(0, turn - 2) :], 3_000 * turn), no_small)
    table.write(rows(range(2), DAYS[1:4], 500), no_small)
    table.write(rows(range(12, 14), DAYS[2:], 700), no_small)
    table.rows = table.hudi.snapshot(base, metadata=False).select(table.rows.column_names)
    return Subject(request.param, table)


def taken_away(table: Judged, instant: str) -> ClusteringPlan:
    """The plan at `instant`, which is there no more."""
    context = context_of(table.base)
    found = read_clustering_plans(context.active, context.active.load())[instant]
    for path in (table.base / context.active.folder).glob(f"{instant}.*"):
        path.unlink()
    return found


def planned_by_hudi(table: Judged, options: dict[str, str]) -> ClusteringPlan | None:
    chosen = {**table.options, **options}
    instant = table.hudi.ask("service", base=str(table.base), name="schedule_clustering", options=chosen)
    return None if instant is None else taken_away(table, instant)


def planned_by_us(table: Judged, options: dict[str, str]) -> ClusteringPlan | None:
    done = ClusteringService().schedule(context_of(table.base, options), Owner.current("test"), dry_run=False)
    if done.instant is None:
        assert done.reason
        return None
    return taken_away(table, done.instant)


def groups(found: ClusteringPlan | None, *, in_order: bool, single_files: bool) -> list[ClusteringGroup] | None:
    """In the plan's order or, where Hudi has that of a hash map, by partition, and by file where each is a group."""
    if found is None or (in_order and not single_files):
        return found and list(found.groups)
    return sorted(
        found.groups,
        key=lambda group: (group.slices[0].partition, group.slices[0].file_id if single_files else ""),
    )


def shape(found: list[ClusteringGroup] | None) -> list[tuple[str, int, int]] | None:
    """Short, for a message that shows all."""
    return found and [(group.slices[0].partition, len(group.slices), group.outputs) for group in found]


def same_plans(subject: Subject, options: dict[str, str], folder: Path) -> ClusteringPlan | None:
    """Both plans, compared; ours."""
    table = subject.table.copy(folder / "table")
    ours, theirs = planned_by_us(table, options), planned_by_hudi(table, options)
    in_order = subject.version == "9" or "RECENT_DAYS" in options.get(MODE, "") or "selected" in "".join(options)
    single_files = "SingleFile" in options.get(f"{PLAN}.class", "")
    mine, real = (groups(found, in_order=in_order, single_files=single_files) for found in (ours, theirs))
    assert shape(mine) == shape(real)
    assert mine == real
    if ours is not None and theirs is not None:
        assert ours.strategy_class == theirs.strategy_class
        assert ours.strategy_params.items() >= theirs.strategy_params.items()
        assert theirs.strategy_params.get(SORT_COLUMNS.name) == ours.strategy_params.get(SORT_COLUMNS.name)
        assert ours.preserves_metadata == theirs.preserves_metadata
        # Where each file is a group, Hudi names every partition, though nothing of it is left.
        assert single_files or {*(theirs.missing_partitions or ())} <= {*(ours.missing_partitions or ())}
    return ours


@pytest.mark.parametrize("case", CASES)
def test_the_plan_is_the_one_that_real_hudi_makes(subject: Subject, case: str, tmp_path: Path) -> None:
    ours = same_plans(subject, CASES[case], tmp_path)
    nothing = {"planned inline": ("8", "9"), "single ones alone": ("9",), "files that are full": tuple(JUDGES)}
    is_none = "not due" in case or "none" in case or subject.version in nothing.get(case, ())
    assert (ours is None) == is_none


def test_by_the_hour_the_partitions_are_those_that_real_hudi_takes(subject: Subject, tmp_path: Path) -> None:
    """More partitions than a day has hours, so that each hour has one; asked again where it ended meanwhile."""
    days = tuple(f"2024/01/{day:02d}" for day in range(1, 28))
    table = Judged.create(subject.table.hudi, tmp_path / "table", MOR, subject.version, rows=rows(range(2), days, 100))
    options = plan(mode="DAY_ROLLING")
    for _ in range(2):
        hour = datetime.now(timezone.utc).hour
        ours, theirs = planned_by_us(table, options), planned_by_hudi(table, options)
        if datetime.now(timezone.utc).hour == hour:
            break
    assert ours is not None
    assert theirs is not None
    assert [item.partition for item in ours.slices] == [item.partition for item in theirs.slices]
    assert [item.partition for item in ours.slices] == [*days[hour::24]]


@pytest.mark.parametrize("case", SINCE_1_2)
def test_the_plan_is_the_one_that_hudi_1_2_makes(subject: Subject, case: str, tmp_path: Path) -> None:
    if subject.version != "9":
        assert planned_by_us(subject.table.copy(tmp_path / "table"), SINCE_1_2[case]) is not None
        return
    assert same_plans(subject, SINCE_1_2[case], tmp_path) is not None


def test_real_hudi_runs_what_we_planned_and_goes_on(subject: Subject, tmp_path: Path) -> None:
    table = subject.table.copy(tmp_path / "table")
    sort = {SORT_COLUMNS.name: "name", f"{PLAN}.max.bytes.per.group": "900000"}
    planned = table.run("schedule", service="clustering", options=sort).document
    assert planned is not None
    table.hudi.ask("service", base=str(table.base), name="cluster", instant=planned["instant"], options=table.options)
    assert table.times(Action.REPLACE_COMMIT) == [planned["instant"]]
    table.check()
    table.goes_on()


def test_partitions_that_our_plan_left_out_are_in_real_hudis_next(subject: Subject, tmp_path: Path) -> None:
    table = subject.table.copy(tmp_path / "table")
    (done,) = table.run("run", service="clustering", schedule=True, options=plan(groups="1")).instants
    assert done.files_written == 1
    theirs = planned_by_hudi(table, {})
    assert theirs is not None
    left = {item.partition for item in theirs.slices}
    assert len(left - {DAYS[0]}) == len(DAYS) - 1
