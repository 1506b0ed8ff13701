"""A look finds what the run would find, in its words, and writes nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hudi_core.config.table_config import TableConfig
from hudi_core.engine.local import LocalEngine
from hudi_core.errors import ConfigError, OrphanFilesError, StorageNotFoundError, TimelineError
from hudi_core.metadata_table.write.lifetime import drop_partitions
from hudi_core.services.clean.planner import CleanService
from hudi_core.storage.local import LocalStorage
from hudi_core.storage.one_look import OneLookStorage
from hudi_core.verbs.instants import (
    RestoreRequest,
    RollbackRequest,
    SavepointCreateRequest,
    SavepointDeleteRequest,
    TakeoverRequest,
    UnscheduleRequest,
)
from hudi_core.verbs.metadata import (
    MetadataCreateRequest,
    MetadataDropRequest,
    MetadataUpdateRequest,
)
from hudi_core.verbs.request import Request
from hudi_core.verbs.run import RunRequest, ScheduleRequest
from hudi_health.verbs import DoctorRequest, MetadataValidateRequest
from tests.support.changed_tables import an_owner, open_context
from tests.support.golden_archives import TIGHT
from tests.support.golden_data import GoldenCase
from tests.support.table_files import contents
from tests.support.table_looks import looked
from tests.support.table_requests import choose_engine, perform
from tests.support.tiers import tiered

Golden = Callable[[str, str], GoldenCase]
ONE = {"hoodie.clean.commits.retained": "1"}
LAZY = {"hoodie.cleaner.policy.failed.writes": "LAZY"}
EAGER = {"hoodie.cleaner.policy.failed.writes": "EAGER"}
DUE = {"hoodie.compact.inline.max.delta.commits": "1"}
NOT_DUE = {"hoodie.compact.inline.max.delta.commits": "100"}
BLOOM = {"hoodie.metadata.index.bloom.filter.enable": "true"}


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
    ("compaction not due", lambda table: RunRequest(str(table), "compaction", schedule=True, options=NOT_DUE)),
    ("schedule compaction not due", lambda table: ScheduleRequest(str(table), "compaction", options=NOT_DUE)),
    ("schedule rollback", lambda table: ScheduleRequest(str(table), "rollback")),
    ("indexing not scheduled", lambda table: RunRequest(str(table), "indexing", options=BLOOM)),
    ("indexing of nothing", lambda table: RunRequest(str(table), "indexing", schedule=True)),
    ("schedule indexing of nothing", lambda table: ScheduleRequest(str(table), "indexing")),
    ("unschedule of what is gone", lambda table: UnscheduleRequest(str(table), instant="99990101000000000")),
    ("rollback of the next", lambda table: RollbackRequest(str(table))),
    ("metadata create", lambda table: MetadataCreateRequest(str(table), partitions=("files",))),
    ("metadata drop", lambda table: MetadataDropRequest(str(table), partitions=("expr_index_x",))),
    ("restore", lambda table: RestoreRequest(str(table), instant=newest(table))),
]


@pytest.mark.parametrize(("name", "make"), NOTHING, ids=[name for name, _ in NOTHING])
@pytest.mark.parametrize("version", tiered(["6", "9"], ["9"]))
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


NOTHING_ON: list[tuple[str, str, Callable[[Path], Request]]] = [
    ("cow_basic", "compaction", lambda table: RunRequest(str(table), "compaction", schedule=True, options=DUE)),
    ("cow_basic", "schedule compaction", lambda table: ScheduleRequest(str(table), "compaction", options=DUE)),
    ("mdt_all_mor", "indexing", lambda table: RunRequest(str(table), "indexing", schedule=True, options=BLOOM)),
    ("mdt_all_mor", "schedule indexing", lambda table: ScheduleRequest(str(table), "indexing", options=BLOOM)),
]


@pytest.mark.parametrize(("case", "name", "make"), NOTHING_ON, ids=[name for _, name, _ in NOTHING_ON])
@pytest.mark.parametrize("version", ["6", "9"])
def test_a_table_that_has_no_such_work(
    golden: Golden, version: str, case: str, name: str, make: Callable[[Path], Request]
) -> None:
    table = golden(version, case).table
    request, before = make(table), contents(table)
    found = looked(table, request)
    assert found is not None
    assert found["reason"]
    assert found == done(table, request)
    assert contents(table) == before


WORK: list[tuple[str, str, Callable[[Path], Request]]] = [
    ("mor_compaction_requested", "compaction", lambda table: RunRequest(str(table), "compaction")),
    ("mor_compacted", "clean", lambda table: RunRequest(str(table), "clean", schedule=True, options=ONE)),
    ("mor_compacted", "schedule clean", lambda table: ScheduleRequest(str(table), "clean", options=ONE)),
    ("failed_inflight_cow", "rollback", lambda table: RunRequest(str(table), "rollback", schedule=True, options=EAGER)),
    ("archived_timeline_cow", "archive", lambda table: RunRequest(str(table), "archive", options=TIGHT)),
    ("failed_inflight_cow", "schedule rollback", lambda table: ScheduleRequest(str(table), "rollback", options=EAGER)),
    ("mor_basic", "compaction due", lambda table: RunRequest(str(table), "compaction", schedule=True, options=DUE)),
    ("mor_basic", "schedule compaction", lambda table: ScheduleRequest(str(table), "compaction", options=DUE)),
    ("indexing_requested", "indexing", lambda table: RunRequest(str(table), "indexing")),
    ("mor_basic", "indexing to plan", lambda table: RunRequest(str(table), "indexing", schedule=True, options=BLOOM)),
    ("mor_basic", "schedule indexing", lambda table: ScheduleRequest(str(table), "indexing", options=BLOOM)),
    ("mor_basic", "restore", lambda table: RestoreRequest(str(table), instant=first(table))),
    ("mor_basic", "savepoint", lambda table: SavepointCreateRequest(str(table))),
    ("mor_basic", "metadata drop", lambda table: MetadataDropRequest(str(table))),
    (
        "mor_basic",
        "metadata update, due to compact",
        lambda table: MetadataUpdateRequest(str(table), options={"hoodie.metadata.compact.max.delta.commits": "1"}),
    ),
    ("mor_basic", "metadata validate", lambda table: MetadataValidateRequest(str(table))),
    ("mor_basic", "doctor", lambda table: DoctorRequest(str(table))),
]


@pytest.mark.parametrize(("case", "name", "make"), WORK, ids=[name for _, name, _ in WORK])
@pytest.mark.parametrize("version", ["6", "8"])
def test_where_there_is_work_it_says_nothing(
    golden: Golden, version: str, case: str, name: str, make: Callable[[Path], Request]
) -> None:
    table = golden(version, case).table
    assert looked(table, make(table)) is None


@pytest.mark.parametrize("version", ["6", "8"])
def test_no_folder_is_listed_twice(golden: Golden, version: str) -> None:
    """Of a table without a metadata table as well, where each partition is listed; see `looked` for all others."""
    table = golden(version, "mor_basic").table
    storage = LocalStorage(table)
    drop_partitions(storage, TableConfig.load(storage), ["files"])
    assert looked(table, ScheduleRequest(str(table), "compaction", options=DUE)) is None


def test_a_timeline_that_changes_during_a_look_is_listed_again(golden: Golden) -> None:
    """An instant that was archived behind the listing: the next listing is without it."""
    table = golden("9", "mor_basic").table
    storage = OneLookStorage(LocalStorage(table))
    folder = open_context(table).active.folder
    with storage.one_look():
        before = sorted(storage.list_names(folder))
        (table / folder / before[0]).unlink()
        assert sorted(storage.list_names(folder)) == before
        with pytest.raises(StorageNotFoundError):
            storage.read(f"{folder}/{before[0]}")
        assert sorted(storage.list_names(folder)) == before[1:]
        assert sorted(info.name for info in storage.list_files(folder)) == before[1:]


@pytest.mark.parametrize("version", ["6", "9"])
def test_a_restore_that_is_done_is_looked_at(golden: Golden, version: str) -> None:
    """What a restore that died left behind is work."""
    table = golden(version, "mor_basic").table
    request = RestoreRequest(str(table), instant=first(table))
    assert looked(table, request) is None
    (*_, removed) = done(table, request)["removed"]["instants"]
    before, found = contents(table), looked(table, request)
    assert found is not None
    assert (found["reason"], bool(found["instant"])) == ("nothing was written after it", True)
    assert found == done(table, request)
    assert contents(table) == before
    marker = table / ".hoodie" / ".temp" / removed / "p" / "a.marker.CREATE"
    marker.parent.mkdir(parents=True)
    marker.touch()
    assert looked(table, request) is None
    assert done(table, request) == found
    assert not marker.exists()
    assert looked(table, request) == found


def test_failed_writes_that_a_clean_rolls_back_first_are_work(golden: Golden, monkeypatch: pytest.MonkeyPatch) -> None:
    table = golden("8", "failed_inflight_cow").table
    lazy = {**LAZY, "hoodie.client.heartbeat.tolerable.misses": "1", "hoodie.client.heartbeat.interval_in_ms": "1000"}
    assert looked(table, RunRequest(str(table), "clean", schedule=True)) is not None
    monkeypatch.setattr(CleanService, "schedule", lambda *_, **__: pytest.fail("a plan may need them gone"))
    assert looked(table, RunRequest(str(table), "clean", schedule=True, options=lazy)) is None


def test_what_is_done_already_is_found(golden: Golden) -> None:
    table = golden("9", "mor_compaction_requested").table
    kept = done(table, SavepointCreateRequest(str(table)))
    again = looked(table, SavepointCreateRequest(str(table), instant=kept["instant"]))
    assert again == {**kept, "existed": True}
    (plan,) = (item for item in open_context(table).active.load().pending())
    free = looked(table, TakeoverRequest(str(table), instant=plan.requested_time))
    assert free is not None
    assert free == done(table, TakeoverRequest(str(table), instant=plan.requested_time))
    assert looked(table, UnscheduleRequest(str(table), instant=plan.requested_time)) is None


def test_claims_that_an_unscheduled_instant_left_behind_are_work(golden: Golden) -> None:
    table, gone = golden("9", "mor_basic").table, "99990101000000000"
    request = UnscheduleRequest(str(table), instant=gone)
    open_context(table).claim(gone, an_owner()).release()
    assert looked(table, request) is None
    done(table, request)
    assert looked(table, request) == done(table, request)


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda table: SavepointDeleteRequest(table, instant="20240101000000000"), ConfigError),
        (lambda table: RestoreRequest(table, instant="20240101000000000"), ConfigError),
        (lambda table: RollbackRequest(table, instant="20240101000000000"), (ConfigError, TimelineError)),
        (lambda table: TakeoverRequest(table, instant="99990101000000000"), ConfigError),
        (lambda table: RunRequest(table, "compaction", instant="99990101000000000"), ConfigError),
        (lambda table: RunRequest(table, "compaction", instant=first(Path(table))), ConfigError),
        (lambda table: RunRequest(table, "clean", instant=first(Path(table))), ConfigError),
        (lambda table: MetadataUpdateRequest(table, partitions=("secondary_index_none",)), ConfigError),
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


@pytest.mark.parametrize("make", [MetadataUpdateRequest, MetadataValidateRequest])
def test_without_a_metadata_table_there_is_none_to_look_after(golden: Golden, make: Any) -> None:
    table = golden("9", "mor_basic").table
    drop_partitions(LocalStorage(table), open_context(table).config, ["files"])
    with pytest.raises(ConfigError, match="no metadata table") as looking:
        looked(table, make(str(table)))
    with pytest.raises(ConfigError) as running:
        done(table, make(str(table)))
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
        for unbounded in (DoctorRequest(str(table)), RunRequest(str(table), "rollback")):
            assert choose_engine(open_context(table, {"airflow_hudi.engine.local.max.units": "2"}), unbounded).local


def test_of_an_index_the_whole_table_counts(golden: Golden) -> None:
    table = golden("9", "mor_basic").table
    create = MetadataCreateRequest(str(table), partitions=("record_index",))
    options = {"airflow_hudi.engine.local.max.bytes": "1000"}
    assert choose_engine(open_context(table), create).local
    assert not choose_engine(open_context(table, options), create).local
    listing = MetadataCreateRequest(str(table), partitions=("files",))
    assert choose_engine(open_context(table, options), listing).local
    assert choose_engine(open_context(table, options), MetadataUpdateRequest(str(table))).local
