"""Indexing actions that real Hudi planned, run by us: the index is what real Hudi builds, or, where it builds too
little, what it should be.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from hudi_core.codec.avro.container import read_container
from hudi_core.engine.local import LocalEngine
from hudi_core.errors import ConflictError
from hudi_core.services.indexing.planner import IndexingService
from hudi_core.storage.base import Storage
from hudi_core.table import HudiTable
from hudi_core.timeline.instant import Action, State
from hudi_core.transaction.owner import Owner
from hudi_health.table import validate_metadata
from tests.support.golden_cleans import context_of
from tests.support.golden_data import GoldenCase
from tests.support.metadata_records import Table, comparable
from tests.support.tiers import tiered

Golden = Callable[[str, str], GoldenCase]
VERSIONS = ("6", "8", "9")
OWNER = Owner.current("test")
QUICK = {"hoodie.client.heartbeat.interval_in_ms": "1000", "hoodie.cleaner.policy.failed.writes": "LAZY"}
EMPTY_IN_HUDI = {"6": {"column_stats"}, "8": set[str](), "9": {"bloom_filters"}}
"""What real Hudi lists and leaves empty: 0.15 looks for files before its metadata table is opened, 1.2's second index
of a plan is rolled back.
"""


def planned(table: Path) -> str:
    (instant,) = HudiTable.open(str(table)).timeline().pending().of_actions(Action.INDEXING)
    return instant.requested_time


def run(
    table: Path,
    instant: str,
    options: dict[str, str] | None = None,
    storage: Storage | None = None,
    owner: Owner = OWNER,
) -> str:
    return (
        IndexingService()
        .run(context_of(table, {**QUICK, **(options or {})}, storage), instant, LocalEngine(1), owner, None)
        .state
    )


def differences(path: Path) -> list[str]:
    return [f"{item.partition_type}: {item.what}" for item in validate_metadata(HudiTable.open(str(path))).differences]


@pytest.mark.parametrize("version", tiered(VERSIONS, ["6", "9"]))
def test_what_hudi_planned_is_built_as_hudi_builds_it(golden: Golden, version: str) -> None:
    case = golden(version, "indexing_requested")
    ours, real, instant = Table(case.table), Table(case.after()), planned(case.table)
    assert run(case.table, instant) == "completed"
    assert ours.config.metadata_partitions == real.config.metadata_partitions
    assert ours.config.metadata_partitions_inflight == frozenset()
    assert differences(case.table) == []
    mine, theirs = comparable(ours.live()), comparable(real.live())
    for name in theirs:
        if name in EMPTY_IN_HUDI[version]:
            assert (theirs[name], len(mine[name]) > 0) == ({}, True), name
        else:
            assert mine[name] == theirs[name], name
    assert set(ours.metadata_instants()) <= set(real.metadata_instants())
    definitions = Path(".hoodie", ".index_defs", "index.json")
    assert (case.table / definitions).exists() == (real.path / definitions).exists() == (version != "6")
    if version != "6":
        written, expected = (
            json.loads((table / definitions).read_text())["indexDefinitions"] for table in (case.table, real.path)
        )
        assert written == {name: {"version": "V1", **item} for name, item in expected.items()}, "1.0 names no versions"
    (mine_done,), (real_done,) = (table.data.load().completed().of_actions(Action.INDEXING) for table in (ours, real))
    assert read_container(ours.data.read_details(mine_done), path="ours") == read_container(
        real.data.read_details(real_done), path="real"
    )
    assert run(case.table, instant) == "completed"


def test_another_owner_runs_it(golden: Golden) -> None:
    table = golden("8", "indexing_requested").table
    instant = planned(table)
    with context_of(table).claim(instant, Owner.current("other")), pytest.raises(ConflictError):
        run(table, instant)
    assert HudiTable.open(str(table)).timeline().find(instant, Action.INDEXING).state is State.REQUESTED
