"""An indexing is killed after each change of the storage, and its plan is dropped instead of run again, by a process
that is killed after each change, too.

What is listed has all its records at every moment, and what is not listed leaves nothing: readers skip files by listed
statistics, and Hudi's writers tag by a listed record index. Above all between the publication of the index and the
decision to complete the action (hudi_core.transaction.commit). `make test` kills around the publication on some
versions, `make conformance` on the others; all changes are in `make soak`.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from hudi_core.config.table_config import METADATA, PROPERTIES, update_properties
from hudi_core.errors import ConflictError
from hudi_core.metadata_table.read.file_group import ROOT
from hudi_core.services.context import TableContext
from hudi_core.services.indexing.build import group_counts
from hudi_core.services.metadata.index_drop import abandon_builds, drop_metadata
from hudi_core.services.takeover import takeover
from hudi_core.services.unschedule import unschedule
from hudi_core.storage.local import LocalStorage
from hudi_core.timeline.instant import Action
from hudi_core.transaction.claim_file import current_claim
from hudi_core.transaction.owner import Owner
from tests.faults.test_clean_faults import leftovers
from tests.faults.test_indexing_faults import Case, differences, run_act, schedule
from tests.support.fault_storage import MUTATIONS, FaultPlan, FaultStorage, InjectedCrash, Operation
from tests.support.golden_cleans import context_of
from tests.support.golden_data import open_case
from tests.support.metadata_records import Records, Table, comparable
from tests.support.rows import assert_same_rows
from tests.support.service_calls import dead_process
from tests.support.table_invariants import read_rows
from tests.support.tiers import tiered

VERSIONS = ("6", "8", "9")
STATISTICS = ("column_stats", "bloom_filters")
ROWS = ("record_index",)
SWITCHES = {
    "column_stats": "hoodie.metadata.index.column.stats.enable",
    "bloom_filters": "hoodie.metadata.index.bloom.filter.enable",
    "record_index": "hoodie.metadata.record.index.enable",
}
ME = Owner.current("a tester")
STEP = 24
"""How many changes `make test` and `make conformance` go on from one kill to the next."""


@dataclass(frozen=True)
class Planned:
    """A table with a plan to build `names`, and what the indexes hold when it is run."""

    source: Path
    names: tuple[str, ...]
    instant: str
    operations: Sequence[Operation]
    records: Records

    @property
    def options(self) -> dict[str, str]:
        return {SWITCHES[name]: "true" for name in self.names}

    @property
    def case(self) -> Case:
        return Case(self.source, run_act(self.instant, self.options))

    @property
    def published(self) -> int:
        """The number of the first change behind the base files."""
        return 1 + max(number for number, operation in enumerate(self.operations) if operation.path.endswith(".hfile"))

    def killed(self, target: Path, number: int) -> Path:
        """A copy of the table whose indexing died after a change."""
        path, case = Path(shutil.copytree(self.source, target, symlinks=True)), self.case
        with pytest.raises(InjectedCrash):
            case.do(path, dead_process(), FaultPlan(kill_at=number, timing="after", counts=MUTATIONS))
        return path

    @property
    def listed(self) -> int:
        """The number of the change that lists the indexes."""
        return max(
            number
            for number, operation in enumerate(self.operations)
            if operation.path == PROPERTIES and number >= self.published
        )

    def published_of(self, target: Path) -> Path:
        """A copy of the table whose indexing died right after the index was listed."""
        path = self.killed(target, self.listed)
        assert set(self.names) <= Table(path).config.metadata_partitions
        assert Table(path).data.load().pending().contains(self.instant)
        return path

    def check(self, path: Path) -> None:
        """What is listed is complete; what is not is nothing to a reader."""
        table = Table(path)
        records = comparable(table.live())
        for name in table.config.metadata_partitions.intersection(self.names):
            assert records[name] == self.records[name] != {}, name
        assert differences(path) == []

    def check_dropped(self, path: Path) -> None:
        """The plan is gone: each index is complete, or removed altogether, and can be planned again."""
        table = Table(path)
        self.check(path)
        assert not table.data.load().pending().contains(self.instant)
        assert table.config.metadata_partitions_inflight == frozenset()
        assert not table.metadata_timeline.load().pending().contains(self.instant)
        for name in set(self.names) - table.config.metadata_partitions:
            assert not (path / ROOT / name).exists()
        assert leftovers(path) == []

    def check_built_again(self, path: Path) -> None:
        if not set(self.names) <= Table(path).config.metadata_partitions:
            run_act(schedule(path, self.options), self.options)(path, LocalStorage(path), ME)
        assert set(self.names) <= Table(path).config.metadata_partitions
        table = Table(path)
        assert {name: len(table.live()[name]) for name in self.names} == {
            name: len(self.records[name]) for name in self.names
        }
        assert differences(path) == []


def planned(version: str, names: Sequence[str], scratch: Path) -> Planned:
    scratch.mkdir()
    table = open_case(version, "mor_basic", scratch).table
    drop_metadata(context_of(table), Table(table).config.metadata_partitions - {"files"}, ME)
    options = {SWITCHES[name]: "true" for name in names}
    instant, counting = schedule(table, options), FaultPlan(counts=MUTATIONS)
    path = Path(shutil.copytree(table, scratch / "undisturbed", symlinks=True))
    Case(table, run_act(instant, options)).do(path, ME, counting)
    records = comparable(Table(path).live())
    return Planned(table, tuple(names), instant, counting.mutations(), records)


def drop_plan(context: TableContext, instant: str, owner: Owner) -> None:
    """Unschedules what is not completed, and has not been dropped; an earlier decision to complete it comes first."""
    found = context.active.load().find(instant, Action.INDEXING)
    if found is not None and found.is_completed:
        run_act(instant, {})(Path(context.uri), LocalStorage(context.uri), owner)
    elif found is not None or current_claim(context.storage, instant) is not None:
        try:
            unschedule(context, instant, owner)
        except ConflictError:
            if not context.active.load().completed().contains(instant):
                raise
            drop_plan(context, instant, owner)


@pytest.fixture(params=[STATISTICS, ROWS], ids=["statistics", "rows"])
def names(request: pytest.FixtureRequest) -> tuple[str, ...]:
    return request.param  # type: ignore[no-any-return]


def killed_twice(case: Planned, tmp_path: Path, number: int, step: int = 1) -> Iterator[Path]:
    """Tables whose indexing died after a change, each unscheduled by a process that died after another one."""
    first, counting = case.killed(tmp_path / f"killed-{number}", number), FaultPlan(counts=MUTATIONS)
    whole = Path(shutil.copytree(first, tmp_path / f"{number}-whole", symlinks=True))
    drop_plan(context_of(whole, storage=FaultStorage(LocalStorage(whole), counting)), case.instant, ME)
    yield whole
    shutil.rmtree(whole)
    for again in range(0, counting.counted, step):
        path = Path(shutil.copytree(first, tmp_path / f"{number}-{again}", symlinks=True))
        plan = FaultPlan(kill_at=again, timing="after", counts=MUTATIONS)
        with pytest.raises(InjectedCrash):
            drop_plan(context_of(path, storage=FaultStorage(LocalStorage(path), plan)), case.instant, dead_process())
        case.check(path)
        drop_plan(context_of(path), case.instant, ME)
        yield path
        shutil.rmtree(path)
    shutil.rmtree(first)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("version", "names"),
    tiered(
        [("6", STATISTICS), ("8", STATISTICS), ("9", STATISTICS), ("8", ROWS), ("9", ROWS)],
        [("6", STATISTICS), ("9", ROWS)],
    ),
)
def test_a_plan_is_dropped_around_the_publication(version: str, names: tuple[str, ...], tmp_path: Path) -> None:
    """Removed altogether before the indexes are listed, and complete from then on."""
    case = planned(version, names, tmp_path / "source")
    for number in (case.listed - 1, case.listed):
        path = case.killed(tmp_path / f"killed-{number}", number)
        case.check(path)
        takeover(context_of(path), case.instant, ME)
        drop_plan(context_of(path), case.instant, ME)
        case.check_dropped(path)
        assert (set(names) <= Table(path).config.metadata_partitions) == (number == case.listed)
    again = unschedule(context_of(path), case.instant, ME)
    assert again.reason is not None
    assert again.removed.instants == ()


@pytest.mark.soak
@pytest.mark.parametrize("version", VERSIONS)
def test_a_plan_is_dropped_after_every_change(version: str, names: tuple[str, ...], tmp_path: Path) -> None:
    case = planned(version, names, tmp_path / "source")
    rows = read_rows(case.source)
    for number in range(len(case.operations)):
        path = case.killed(tmp_path / "killed", number)
        drop_plan(context_of(path), case.instant, ME)
        case.check_dropped(path)
        assert_same_rows(read_rows(path, "on"), rows)
        case.check_built_again(path)
        shutil.rmtree(path)


@pytest.mark.soak
@pytest.mark.parametrize("version", VERSIONS)
def test_the_drop_is_killed_after_every_change(version: str, names: tuple[str, ...], tmp_path: Path) -> None:
    case = planned(version, names, tmp_path / "source")
    for number in range(case.published - 1, len(case.operations)):
        for path in killed_twice(case, tmp_path, number):
            case.check_dropped(path)


@pytest.mark.slow
def test_the_drop_of_a_listed_index_is_killed(tmp_path: Path) -> None:
    case = planned("9", ROWS, tmp_path / "source")
    for path in killed_twice(case, tmp_path, case.listed, 6):
        case.check_dropped(path)
        assert set(ROWS) <= Table(path).config.metadata_partitions


MIXED = ("column_stats", "record_index")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("version", "dropped", "step"),
    [
        *tiered(
            [
                pytest.param(version, dropped, STEP, id=f"{version}-{dropped}-some")
                for version in VERSIONS
                for dropped in MIXED
            ],
            ["8-record_index-some"],
        ),
        *(
            pytest.param(version, dropped, 1, id=f"{version}-{dropped}-all", marks=pytest.mark.soak)
            for version in VERSIONS
            for dropped in MIXED
        ),
    ],
)
def test_one_index_of_a_published_plan_is_dropped(version: str, dropped: str, step: int, tmp_path: Path) -> None:
    """The other one keeps the deltacommit that its files are of, also when the drop is killed after each change."""
    case = planned(version, MIXED, tmp_path / "source")
    (kept,) = set(MIXED) - {dropped}
    published, counting = case.published_of(tmp_path / "published"), FaultPlan(counts=MUTATIONS)
    whole = Path(shutil.copytree(published, tmp_path / "whole", symlinks=True))
    drop_metadata(context_of(whole, storage=FaultStorage(LocalStorage(whole), counting)), [dropped], ME)
    ends = [whole]
    for number in range(0, counting.counted, step):
        path = Path(shutil.copytree(published, tmp_path / f"killed-{number}", symlinks=True))
        plan = FaultPlan(kill_at=number, timing="after", counts=MUTATIONS)
        with pytest.raises(InjectedCrash):
            drop_metadata(context_of(path, storage=FaultStorage(LocalStorage(path), plan)), [dropped], dead_process())
        case.check(path)
        drop_metadata(context_of(path), [dropped], ME)
        ends.append(path)
    for path in ends:
        table = Table(path)
        case.check(path)
        assert table.config.metadata_partitions.intersection(MIXED) == {kept}
        assert not table.data.load().contains(case.instant)
        assert not (path / ROOT / dropped).exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("version", "step"),
    [
        *tiered([pytest.param(version, STEP, id=f"{version}-some") for version in VERSIONS], ["9-some"]),
        *(pytest.param(version, 1, id=f"{version}-all", marks=pytest.mark.soak) for version in VERSIONS),
    ],
)
def test_a_published_plan_of_which_an_index_was_delisted_is_run_again(version: str, step: int, tmp_path: Path) -> None:
    """The record index is delisted, and the drop dies: the next run builds both again, and never lists an empty one."""
    case = planned(version, MIXED, tmp_path / "source")
    published = case.published_of(tmp_path / "published")
    listed = Table(published).config.metadata_partitions - {"record_index"}
    update_properties(LocalStorage(published), {METADATA.name: ",".join(sorted(listed))})
    counting = FaultPlan(counts=MUTATIONS)
    whole = Path(shutil.copytree(published, tmp_path / "whole", symlinks=True))
    case.case.do(whole, ME, counting)
    case.check(whole)
    assert set(MIXED) <= Table(whole).config.metadata_partitions
    for number in range(step - 1, counting.counted, step + step // 2):
        path = Path(shutil.copytree(published, tmp_path / "killed", symlinks=True))
        plan = FaultPlan(kill_at=number, timing="after", counts=MUTATIONS)
        with pytest.raises(InjectedCrash):
            case.case.do(path, dead_process(), plan)
        case.check(path)
        drop_plan(context_of(path), case.instant, ME)
        case.check_dropped(path)
        shutil.rmtree(path)


@pytest.mark.parametrize("version", tiered(["8", "9"], ["8"]))
def test_a_published_plan_whose_record_index_has_another_size_is_run_again(version: str, tmp_path: Path) -> None:
    """Plans of real Hudi do not say the number of file groups, and the options of the next run may differ."""
    case = planned(version, MIXED, tmp_path / "source")
    path = case.published_of(tmp_path / "published")
    options = case.options | {"airflow_hudi.indexing.file_groups": "3"}
    run_act(case.instant, options)(path, LocalStorage(path), ME)
    assert group_counts(LocalStorage(path), "record_index") == {"record-index": 3}
    case.check(path)
    assert set(MIXED) <= Table(path).config.metadata_partitions


@pytest.mark.parametrize("version", tiered(["8", "9"], ["9"]))
def test_a_compaction_that_names_the_files_is_finished_first(version: str, tmp_path: Path) -> None:
    """Killed between the deltacommit and the listing, the file groups count: a pending compaction may name them."""
    case = planned(version, STATISTICS, tmp_path / "source")
    numbers = [
        number
        for number, operation in enumerate(case.operations)
        if operation.path.startswith(f"{ROOT}/.hoodie") and operation.path.endswith(".deltacommit")
    ]
    path = case.killed(tmp_path / "killed", numbers[-1])
    table, compaction = Table(path), Table(path).new_instant()
    assert table.config.metadata_partitions_inflight == set(STATISTICS)
    table.metadata_timeline.create_requested(compaction, Action.COMPACTION)
    before = comparable(table.live())
    for refused in (
        lambda: unschedule(context_of(path), case.instant, ME),
        lambda: abandon_builds(context_of(path), STATISTICS[:1], ME),
        lambda: run_act(case.instant, case.options)(path, LocalStorage(path), ME),
    ):
        with pytest.raises(ConflictError, match=f"compaction {compaction} of the metadata table is pending"):
            refused()
        assert all((path / ROOT / name).exists() for name in STATISTICS)
        assert table.metadata_timeline.load().completed().contains(case.instant)
    table.metadata_timeline.delete_instant(compaction, Action.COMPACTION)
    drop_plan(context_of(path), case.instant, ME)
    case.check_dropped(path)
    assert comparable(Table(path).live()) == before
