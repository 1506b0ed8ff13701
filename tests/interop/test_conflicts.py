"""Whom a commit is compared with, and which file groups the others changed: ours against Hudi's own strategy classes on
golden tables.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import pytest

from hudi_core.config.concurrency_config import Strategy
from hudi_core.config.table_config import TableConfig
from hudi_core.storage.local import LocalStorage
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.timeline.instant import Action, Instant, State
from hudi_core.timeline.pending_plans import is_clustering
from hudi_core.transaction.concurrent_operations import read_operation
from hudi_core.transaction.conflict import RULES, ConcurrentOperation, OperationStart, Other, candidates
from tests.faults.test_clustering_faults import run_killed
from tests.interop.real_hudi import RealHudi
from tests.support.fault_storage import FaultPlan, InjectedCrash
from tests.support.golden_clusterings import planned
from tests.support.golden_data import GoldenCase
from tests.support.tiers import tiered

pytestmark = pytest.mark.hudi
Golden = Callable[[str, str], GoldenCase]
CASES = (
    "mor_compaction_requested",
    "compaction_inflight",
    "clustering_requested_cow",
    "clustering_requested_mor",
    "failed_inflight_cow",
    "failed_inflight_mor",
    "clustered_mor",
    "mor_compacted",
    "insert_overwrite_partition_mor",
    "delete_partition_cow",
)
BEFORE, AFTER = "20200101000000000", "20990101000000000"
WORKERS = {"6": "hudi_0_15", "8": "hudi_1_0", "9": "hudi_1_2"}


class Table:
    def __init__(self, case: GoldenCase) -> None:
        self.path = case.table
        storage = LocalStorage(self.path)
        self.config = TableConfig.load(storage)
        self.active = ActiveTimeline(storage, self.config, zone="UTC")
        self.timeline = self.active.load()

    def questions(self) -> list[tuple[Strategy, str, str, str | None]]:
        """Writers before, among and behind everything on the timeline, and its pending services."""
        times = [instant.requested_time for instant in self.timeline]
        lasts = [None, times[0], times[-1]]
        writers = [(Action.DELTA_COMMIT, time) for time in (BEFORE, f"{times[len(times) // 2]}5", AFTER)]
        services = [
            (found.action, found.requested_time) for found in self.timeline.pending() if self._is_service(found)
        ]
        strategies = (Strategy.SIMPLE, Strategy.PREFER_WRITER)
        return [
            (strategy, action, time, last)
            for strategy in strategies
            for action, time in writers + services
            for last in lasts
        ]

    def _is_service(self, instant: Instant) -> bool:
        return instant.action == Action.COMPACTION or self._is_clustering(instant)

    def _is_clustering(self, instant: Instant) -> bool:
        return instant.action in (Action.CLUSTERING, Action.REPLACE_COMMIT) and is_clustering(self.active, instant)

    def answer(self, strategy: Strategy, action: str, time: str, last: str | None) -> list[list[Any]]:
        found = self.timeline.find(time, action)
        mine = Action.CLUSTERING if found is not None and self._is_clustering(found) else action
        this = ConcurrentOperation(time, mine, State.INFLIGHT, None, frozenset())
        completed = self.active.completion_times(self.timeline)
        others = [
            Other(item, completed.get(item), not item.is_completed and self._is_clustering(item))
            for item in self.timeline
        ]
        rules = RULES[self.config.features.conflict_release]
        chosen = candidates(
            this, others, OperationStart(last), strategy, rules, merge_on_read=self.config.is_merge_on_read
        )
        operations = [(other, read_operation(self.active, other)) for other in chosen]
        return sorted(
            [
                other.instant.requested_time,
                other.instant.action,
                other.instant.state.name,
                sorted([group.partition, group.file_id] for group in operation.groups),
            ]
            for other, operation in operations
            if operation is not None
        )


def differences(hudi: RealHudi, table: Table) -> tuple[list[str], int]:
    """Where our answers are not Hudi's, and how many instants were compared."""
    questions = table.questions()
    answers = hudi.ask(
        "conflict_candidates",
        base=str(table.path),
        cases=[[question[0].value, *question[1:]] for question in questions],
    )
    compared = 0
    wrong: list[str] = []
    for question, answer in zip(questions, answers, strict=True):
        ours = table.answer(*question)
        compared += len(ours)
        # 1.2.0 lists a pending clustering of any age, also the one that asks; no writer conflicts with itself.
        if ours != [item for item in answer if item[0] != question[2]]:
            wrong.append(f"{table.path.name} {question}: ours {ours}, Hudi {answer}")
    return wrong, compared


@pytest.mark.parametrize(("version", "half"), tiered(product(WORKERS, (0, 1)), [("9", 0)]))
def test_the_candidates_and_their_file_groups_are_hudis(
    version: str, half: int, golden: Golden, request: pytest.FixtureRequest
) -> None:
    hudi: RealHudi = request.getfixturevalue(WORKERS[version])
    compared = 0
    wrong: list[str] = []
    for case in CASES[half::2]:
        found, count = differences(hudi, Table(golden(version, case)))
        wrong += found
        compared += count
    assert wrong == []
    assert compared > 50


@pytest.mark.parametrize("name", ["clustering_requested_cow", "clustering_requested_mor"])
@pytest.mark.parametrize("version", tiered(WORKERS, ["9"]))
def test_writers_see_the_file_groups_of_a_clustering_that_we_run(
    version: str, name: str, golden: Golden, request: pytest.FixtureRequest
) -> None:
    """A writer of Hudi reads them from the inflight file, which is empty in Hudi's own clusterings."""
    hudi: RealHudi = request.getfixturevalue(WORKERS[version])
    case = golden(version, name)
    plan = FaultPlan(when=lambda item: item.path.endswith(".inflight"), timing="after")
    with pytest.raises(InjectedCrash):
        run_killed(case.table, planned(case.table), plan)
    table = Table(case)
    (clustering,) = (item for item in table.timeline.pending() if table._is_clustering(item))
    assert clustering.state is State.INFLIGHT
    wrong, compared = differences(hudi, table)
    assert wrong == []
    assert compared > 10
