"""What a writer that was taken for dead writes into the metadata table behind, or during, the rollback of its
instant.
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from hudi_core.errors import ConflictError, HudiError, TimelineError
from hudi_core.metadata_table.instants import OperationSuffix
from hudi_core.metadata_table.read.file_group import ROOT
from hudi_core.metadata_table.records.files import live_entries
from hudi_core.metadata_table.write.publish import MetadataPublisher
from hudi_core.model.names import WriteToken
from hudi_core.timeline.instant import Action, State
from hudi_core.transaction.instant_generator import InstantClock
from tests.faults.test_metadata_publish import Step, clean, roll_back
from tests.support.fault_storage import MUTATIONS, FaultPlan, FaultStorage, InjectedCrash, Operation
from tests.support.golden_data import GoldenCase
from tests.support.metadata_records import (
    Records,
    Table,
    comparable,
    complete_rollback,
    crash_before_completion,
)
from tests.support.tiers import tiered

Golden = Callable[[str, str], GoldenCase]
CASES = [("6", "mdt_all_mor"), ("6", "cow_basic"), ("8", "mor_basic"), ("9", "mdt_all_cow")]


class Late:
    """A table whose newest commit died after it had written to the metadata table; `write` does that once more, as a
    zombie does.
    """

    def __init__(self, golden: Golden, version: str, case: str) -> None:
        self.table = Table(golden(version, case).table)
        self.failed = self.table.data.load().commits().instants[-1].requested_time
        crash_before_completion(self.table, self.failed)
        self.before = comparable(self.table.live())
        self.rollback = self.table.new_instant()
        self._copy = Path(shutil.copytree(self.table.path, self.table.path.parent / f"{self.table.path.name}-zombie"))

    @property
    def metadata_timeline(self) -> str:
        """The metadata table's rollback."""
        return (
            self.rollback
            if self.table.config.features.completion_time_in_name
            else OperationSuffix.ROLLBACK.of(self.rollback)
        )

    def write(self) -> None:
        """The zombie's files, under names of its own in layout 1, where another's are taken by then."""
        root = self._copy / ROOT
        for path in self._written(root):
            name = path.name
            if not self.table.config.features.log_name_has_delta_commit:
                start, _, version = name.partition(".log.")
                name = f"{start}.log.{int(version.partition('_')[0]) + 50}_9-9-9"
            shutil.copy2(path, self.table.path / ROOT / path.relative_to(root).parent / name)
        for path in (root / self.table.metadata_timeline.folder.removeprefix(f"{ROOT}/")).glob(f"{self.failed}*"):
            shutil.copy2(path, self.table.path / self.table.metadata_timeline.folder / path.name)

    def _written(self, root: Path) -> Iterable[Path]:
        found = [path for path in root.rglob(".*.log.*") if not path.name.endswith(".crc")]
        if self.table.config.features.log_name_has_delta_commit:
            return [path for path in found if f"_{self.failed}.log." in path.name]
        return [path for path in found if self.failed.encode() in path.read_bytes()]

    def finish(self) -> None:
        """Completes the rollback on the data timeline."""
        complete_rollback(self.table, self.failed, self.rollback)


@pytest.fixture(params=CASES, ids=lambda case: "-".join(case))
def late(golden: Golden, request: pytest.FixtureRequest) -> Late:
    return Late(golden, *request.param)


def test_what_comes_behind_the_completed_rollback_goes_when_that_is_run_again(late: Late) -> None:
    """The data table's rollback was cut off behind the metadata table's; the zombie comes before it is finished."""
    late.table.publisher().roll_back(late.failed, late.rollback)
    assert late.table.metadata_timeline.load().get(late.metadata_timeline, Action.ROLLBACK).is_completed
    late.write()
    assert late.table.publisher().footprint(late.failed)
    late.table.publisher().roll_back(late.failed, late.rollback)
    assert not late.table.publisher().footprint(late.failed)
    late.finish()
    assert comparable(late.table.live()) == late.before
    assert not list(late.table.metadata_timeline.load().pending())


def test_what_comes_behind_the_data_tables_rollback_goes_when_that_is_named_again(late: Late) -> None:
    late.table.publisher().roll_back(late.failed, late.rollback)
    late.finish()
    late.write()
    late.table.publisher().roll_back(late.failed, late.rollback)
    assert not late.table.publisher().footprint(late.failed)
    assert comparable(late.table.live()) == late.before


def test_without_the_second_look_its_records_would_show(late: Late) -> None:
    late.table.publisher().roll_back(late.failed, late.rollback)
    late.finish()
    late.write()
    assert comparable(late.table.live()) != late.before


def test_the_second_look_may_be_cut_off_anywhere(golden: Golden) -> None:
    for version, case in (("6", "cow_basic"), ("8", "mor_basic")):
        number = 0
        while True:
            late = Late(golden, version, case)
            late.table.publisher().roll_back(late.failed, late.rollback)
            late.write()
            plan = FaultPlan(kill_at=number, counts=frozenset({"create_exclusive", "delete"}))
            try:
                late.table.publisher(FaultStorage(late.table.storage, plan)).roll_back(late.failed, late.rollback)
            except InjectedCrash:
                late.table.publisher().roll_back(late.failed, late.rollback)
            assert not late.table.publisher().footprint(late.failed), (version, number)
            late.finish()
            assert comparable(late.table.live()) == late.before, (version, number)
            if not plan.crashed:
                break
            number += 1
        assert number > 2


class _Comes(FaultStorage):
    """Lets the zombie write right after its instant has left the metadata table's timeline, and before the rollback
    completes.
    """

    def __init__(self, late: Late) -> None:
        super().__init__(late.table.storage, FaultPlan())
        self._late = late

    def delete(self, path: str) -> bool:
        done = super().delete(path)
        if path == self._late.table.metadata_timeline.path(self._late.failed, Action.DELTA_COMMIT, State.REQUESTED):
            self._late.write()
        return done


def test_what_comes_while_it_is_rolled_back_is_a_conflict_and_goes_with_the_next_try(late: Late) -> None:
    with pytest.raises(ConflictError, match="while it was rolled back"):
        late.table.publisher(_Comes(late)).roll_back(late.failed, late.rollback)
    assert not late.table.metadata_timeline.load().get(late.metadata_timeline, Action.ROLLBACK).is_completed
    late.table.publisher().roll_back(late.failed, late.rollback)
    late.finish()
    assert comparable(late.table.live()) == late.before


def test_what_a_compaction_took_in_since_is_refused(late: Late) -> None:
    late.table.publisher().roll_back(late.failed, late.rollback)
    late.write()
    compaction = f"{late.rollback}001"
    metadata_timeline = late.table.metadata_timeline
    metadata_timeline.create_requested(compaction, Action.COMPACTION, b"plan")
    metadata_timeline.to_inflight(compaction, Action.COMPACTION)
    metadata_timeline.complete(compaction, Action.COMPACTION, b"{}", late.table.later(compaction))
    names = metadata_timeline.names()
    with pytest.raises(TimelineError, match="was compacted"):
        late.table.publisher().roll_back(late.failed, late.rollback)
    assert metadata_timeline.names() == names
    assert metadata_timeline.load().get(late.failed, Action.DELTA_COMMIT).state is State.COMPLETED


ZOMBIES = [
    (clean, "6", "mdt_all_mor", True),
    (clean, "8", "mor_basic", False),
    (clean, "9", "cow_basic", True),
    (roll_back, "6", "mdt_all_mor", False),
    (roll_back, "8", "mor_basic", True),
    (roll_back, "9", "cow_basic", False),
]


@pytest.mark.parametrize(
    ("make", "version", "case", "finished"),
    tiered(ZOMBIES, [(clean, "9", "cow_basic", True), (roll_back, "6", "mdt_all_mor", False)]),
)
def test_a_zombie_of_our_own_does_no_harm(
    golden: Golden, make: Callable[[Table], Step], version: str, case: str, finished: bool
) -> None:
    """It passed its last check of the claim and is stopped before every second change in turn, which of them is by
    `finished`; its successor does all of it, in files of its own names; then it goes on to its end. `finished`: the
    action has completed on the data timeline by then.
    """
    whole = make(Table(golden(version, case).table))
    whole.call(whole.table.publisher())
    whole.finish()
    expected = _said(whole.table)
    number = int(finished)
    while True:
        step = make(Table(golden(version, case).table))
        second = MetadataPublisher(
            step.table.storage, step.table.config, WriteToken(0, 8, 0), InstantClock("UTC", sleep=lambda seconds: None)
        )
        plan = FaultPlan(when=_before(number, lambda step=step, second=second: _succeed(step, second, finished)))
        with contextlib.suppress(HudiError):
            step.call(step.table.publisher(FaultStorage(step.table.storage, plan)))
        if not plan.operations or len(plan.mutations()) <= number:
            break
        if not finished:
            step.call(second)
            step.finish()
        assert _said(step.table) == expected, number
        assert not list(step.table.metadata_timeline.load().pending()), number
        number += 2
    assert number > 4


def _said(table: Table) -> Records:
    """What readers get: that a file is deleted may be said twice, and is then on record."""
    records = comparable(table.live())
    return {**records, "files": {key: live_entries(record) for key, record in records["files"].items()}}


def _succeed(step: Step, publisher: MetadataPublisher, finished: bool) -> None:
    step.call(publisher)
    if finished:
        step.finish()


def _before(number: int, act: Callable[[], None]) -> Callable[[Operation], bool]:
    """Calls `act` before change number `number`; no operation fails."""
    seen: list[Operation] = []

    def look(operation: Operation) -> bool:
        if operation.kind in MUTATIONS:
            seen.append(operation)
            if len(seen) == number + 1:
                act()
        return False

    return look
