"""A look finds what the run would find, in its words, and writes nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hudi_core.engine.local import LocalEngine
from hudi_core.errors import ConfigError, OrphanFilesError, TimelineError
from hudi_core.request import requests
from hudi_core.request.requests import Request, RunRequest, ScheduleRequest
from hudi_core.services.look import choose_engine, nothing_to_do
from hudi_core.services.verbs import perform
from tests.support.changed_tables import an_owner, open_context
from tests.support.golden_archives import TIGHT
from tests.support.golden_data import GoldenCase

Golden = Callable[[str, str], GoldenCase]
ONE = {"hoodie.clean.commits.retained": "1"}
LAZY = {"hoodie.cleaner.policy.failed.writes": "LAZY"}
EAGER = {"hoodie.cleaner.policy.failed.writes": "EAGER"}


def contents(table: Path) -> dict[str, bytes]:
    return {str(path.relative_to(table)): path.read_bytes() for path in table.rglob("*") if path.is_file()}


def looked(table: Path, request: Request) -> dict[str, Any] | None:
    before = contents(table)
    found = nothing_to_do(open_context(table, dict(request.options)), request, an_owner())
    assert contents(table) == before
    return None if found is None else found.to_dict()


def done(table: Path, request: Request) -> dict[str, Any]:
    return perform(open_context(table, dict(request.options)), request, LocalEngine(1), an_owner()).to_dict()


def newest(table: Path) -> str:
    found = open_context(table).active.load().commits().last()
    assert found is not None
    return found.requested_time


def first(table: Path) -> str:
    return open_context(table).active.load().commits().instants[0].requested_time


NOTHING: list[tuple[str, Callable[[Path], Request]]] = [
    ("compaction", lambda table: RunRequest(str(table), "compaction")),
    ("clean not scheduled", lambda table: RunRequest(str(table), "clean")),
    ("clean", lambda table: RunRequest(str(table), "clean", schedule=True)),
    ("clean, lazily", lambda table: RunRequest(str(table), "clean", schedule=True, options=LAZY)),
    ("rollback", lambda table: RunRequest(str(table), "rollback", schedule=True, all_pending=True)),
    ("archive", lambda table: RunRequest(str(table), "archive")),
    ("schedule clean", lambda table: ScheduleRequest(str(table), "clean")),
    ("schedule archive", lambda table: ScheduleRequest(str(table), "archive")),
    ("rollback of the next", lambda table: requests.RollbackRequest(str(table))),
    ("metadata create", lambda table: requests.MetadataCreateRequest(str(table), partitions=("files",))),
    ("metadata drop", lambda table: requests.MetadataDropRequest(str(table), partitions=("expr_index_x",))),
]


@pytest.mark.parametrize(("name", "make"), NOTHING, ids=[name for name, _ in NOTHING])
@pytest.mark.parametrize("version", ["6", "9"])
def test_where_there_is_nothing_it_says_what_the_run_says(
    golden: Golden, version: str, name: str, make: Callable[[Path], Request]
) -> None:
    table = golden(version, "mor_basic").table
    request = make(table)
    found = looked(table, request)
    assert found is not None
    before = contents(table)
    ran = done(table, request)
    assert found == ran
    assert found["reason"]
    if not name.startswith("metadata"):
        assert contents(table) == before


WORK: list[tuple[str, str, Callable[[Path], Request]]] = [
    ("mor_compaction_requested", "compaction", lambda table: RunRequest(str(table), "compaction")),
    ("mor_compacted", "clean", lambda table: RunRequest(str(table), "clean", schedule=True, options=ONE)),
    ("mor_compacted", "schedule clean", lambda table: ScheduleRequest(str(table), "clean", options=ONE)),
    ("failed_inflight_cow", "rollback", lambda table: RunRequest(str(table), "rollback", schedule=True, options=EAGER)),
    ("archived_timeline_cow", "archive", lambda table: RunRequest(str(table), "archive", options=TIGHT)),
    ("mor_basic", "restore", lambda table: requests.RestoreRequest(str(table), instant=first(table))),
    ("mor_basic", "savepoint", lambda table: requests.SavepointCreateRequest(str(table))),
    ("mor_basic", "metadata drop", lambda table: requests.MetadataDropRequest(str(table))),
    ("mor_basic", "metadata update", lambda table: requests.MetadataUpdateRequest(str(table))),
    ("mor_basic", "doctor", lambda table: requests.DoctorRequest(str(table))),
]


@pytest.mark.parametrize(("case", "name", "make"), WORK, ids=[name for _, name, _ in WORK])
@pytest.mark.parametrize("version", ["6", "8"])
def test_where_there_is_work_it_says_nothing(
    golden: Golden, version: str, case: str, name: str, make: Callable[[Path], Request]
) -> None:
    table = golden(version, case).table
    assert looked(table, make(table)) is None


def test_failed_writes_that_a_clean_rolls_back_first_are_work(golden: Golden) -> None:
    table = golden("8", "failed_inflight_cow").table
    lazy = {**LAZY, "hoodie.client.heartbeat.tolerable.misses": "1", "hoodie.client.heartbeat.interval_in_ms": "1000"}
    assert looked(table, RunRequest(str(table), "clean", schedule=True)) is not None
    assert looked(table, RunRequest(str(table), "clean", schedule=True, options=lazy)) is None


def test_what_is_done_already_is_found(golden: Golden) -> None:
    table = golden("9", "mor_compaction_requested").table
    kept = done(table, requests.SavepointCreateRequest(str(table)))
    again = looked(table, requests.SavepointCreateRequest(str(table), instant=kept["instant"]))
    assert again == {**kept, "existed": True}
    (plan,) = (item for item in open_context(table).active.load().pending())
    free = looked(table, requests.TakeoverRequest(str(table), instant=plan.requested_time))
    assert free is not None
    assert free == done(table, requests.TakeoverRequest(str(table), instant=plan.requested_time))
    assert looked(table, requests.UnscheduleRequest(str(table), instant=plan.requested_time)) is None


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda table: requests.SavepointDeleteRequest(table, instant="20240101000000000"), ConfigError),
        (lambda table: requests.RestoreRequest(table, instant="20240101000000000"), ConfigError),
        (lambda table: requests.RollbackRequest(table, instant="20240101000000000"), (ConfigError, TimelineError)),
        (lambda table: requests.TakeoverRequest(table, instant="99990101000000000"), ConfigError),
        (lambda table: requests.RunRequest(table, "compaction", instant="99990101000000000"), ConfigError),
        (lambda table: requests.RunRequest(table, "compaction", instant=first(Path(table))), ConfigError),
        (lambda table: requests.RunRequest(table, "clean", instant=first(Path(table))), ConfigError),
    ],
)
def test_bad_input_is_the_runs(golden: Golden, make: Any, error: Any) -> None:
    table = golden("9", "mor_basic").table
    request = make(str(table))
    with pytest.raises(error) as looking:
        looked(table, request)
    with pytest.raises(error) as running:
        done(table, request)
    assert str(looking.value) == str(running.value)


def test_orphans_in_the_way_of_an_archival_are_the_runs_error(golden: Golden) -> None:
    table = golden("8", "archived_timeline_cow").table
    second = open_context(table).active.load().commits().instants[1].requested_time
    source = max(table.glob("2024*/*.parquet"))
    group = "0" * 8 + source.name.split("_")[0][8:]
    source.with_name(f"{group}_9-9-9_{int(second) + 1}.parquet").write_bytes(source.read_bytes())
    request = RunRequest(str(table), "archive", options=TIGHT)
    with pytest.raises(OrphanFilesError):
        looked(table, request)


def test_the_engine_is_chosen_by_the_plan(golden: Golden) -> None:
    table = golden("8", "mor_compaction_requested").table
    request = RunRequest(str(table), "compaction")
    choice = choose_engine(open_context(table), request)
    assert (choice.local, choice.why.split(",")[0]) == (True, "3 units")
    for options, word in (
        ({"airflow_hudi.engine.local.max.units": "2"}, "max.units"),
        ({"airflow_hudi.engine.local.max.bytes": "10000"}, "max.bytes"),
        ({"airflow_hudi.engine.local.memory.bytes": str(64 << 20)}, "memory.bytes"),
    ):
        choice = choose_engine(open_context(table, options), request)
        assert (choice.local, word in choice.why) == (False, True)
        for unbounded in (requests.DoctorRequest(str(table)), RunRequest(str(table), "rollback")):
            assert choose_engine(open_context(table, {"airflow_hudi.engine.local.max.units": "2"}), unbounded).local


def test_of_an_index_the_whole_table_counts(golden: Golden) -> None:
    table = golden("9", "mor_basic").table
    create = requests.MetadataCreateRequest(str(table), partitions=("record_index",))
    options = {"airflow_hudi.engine.local.max.bytes": "1000"}
    assert choose_engine(open_context(table), create).local
    assert not choose_engine(open_context(table, options), create).local
    listing = requests.MetadataCreateRequest(str(table), partitions=("files",))
    assert choose_engine(open_context(table, options), listing).local
    assert choose_engine(open_context(table, options), requests.MetadataUpdateRequest(str(table))).local
