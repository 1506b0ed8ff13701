"""Golden plans of real Hudi, executed by us, against what real Hudi's own execution left."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudi_core.config.table_config import TableConfig
from hudi_core.engine.local import LocalEngine
from hudi_core.errors import ConfigError, ConflictError, FormatError, StorageError, UnsupportedError
from hudi_core.metadata_table.read.metadata_table import MetadataTable
from hudi_core.services.clean import job as clean_run
from hudi_core.services.clean.job import REMOVED
from hudi_core.services.clean.kept_files import check_not_needed, drop_partitions
from hudi_core.services.clean.planner import CleanService
from hudi_core.services.context import OWNER_KEY, RUN_KEY, VERSION_KEY, provenance
from hudi_core.services.metadata.action_updates import clean_changes
from hudi_core.services.metadata.index_drop import drop_metadata
from hudi_core.services.metadata.maintain import create_metadata
from hudi_core.storage.base import Storage
from hudi_core.storage.local import LocalStorage
from hudi_core.timeline.actions.clean import CleanPlan, decode_clean_plan, encode_clean_plan
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.timeline.instant import Action, State
from hudi_core.timeline.timeline import Timeline
from hudi_core.transaction.owner import Owner
from tests.support.changed_tables import index_records
from tests.support.golden_cleans import cases, cleans, context_of, data_files, run_clean
from tests.support.golden_data import GoldenCase
from tests.support.rows import assert_same_rows, read_parquet
from tests.support.table_invariants import assert_metadata_true, has_metadata_table, read_rows
from tests.support.tiers import tiered

Golden = Callable[[str, str], GoldenCase]
CASES = cases("clean_requested")
CORE = [case for case in CASES if case[0] == "9"] + [
    ("6", "clean_requested_mor"),
    ("8-by-1.2.0", "clean_requested_mor"),
]


def clean_of(table: Path) -> str:
    (item,) = cleans(table)
    return item.requested_time


def metadata_of(table: Path, instant: str) -> dict[str, Any]:
    """The decoded clean metadata without what no two runs agree on: how long it took, the order of files, and who ran
    it.
    """
    active = context_of(table).active
    found: dict[str, Any] = active.read_of(active.load().get(instant, Action.CLEAN))
    found.pop("timeTakenInMillis")
    found["extraMetadata"] = {
        key: value for key, value in found["extraMetadata"].items() if key not in (OWNER_KEY, RUN_KEY, VERSION_KEY)
    }
    for part in found["partitionMetadata"].values():
        for name in ("deletePathPatterns", "successDeleteFiles", "failedDeleteFiles"):
            part[name].sort()
    return found


def timeline_names(table: Path, base: str = "") -> list[str]:
    """The names on a timeline, without completion times."""
    storage = LocalStorage(table)
    active = ActiveTimeline(storage, TableConfig.load(storage), base)
    stems = (name.split(".") for name in active.names() if name[:1].isdigit())
    return sorted(".".join([stem.split("_")[0], *rest]) for stem, *rest in stems)


def listed(table: Path) -> dict[str, dict[str, int]]:
    """Every file that the metadata table names."""
    storage = LocalStorage(table)
    config = TableConfig.load(storage)
    found = MetadataTable(storage, config, ActiveTimeline(storage, config).load())
    return {partition: found.list_files(partition) for partition in found.partitions()}


@pytest.mark.parametrize(("folder", "name"), tiered(CASES, CORE))
def test_our_execution_is_real_hudis(folder: str, name: str, golden: Golden) -> None:
    case = golden(folder, name)
    instant, after = clean_of(case.table), case.after()
    assert run_clean(case.table, instant) == "completed"
    assert data_files(case.table) == data_files(after)
    assert timeline_names(case.table) == timeline_names(after)
    assert metadata_of(case.table, instant) == metadata_of(after, instant)
    expected = read_parquet(case.expected / "after_snapshot.parquet")
    assert_same_rows(read_rows(case.table, "off"), expected)
    if has_metadata_table(case.table):
        assert_same_rows(read_rows(case.table, "on"), expected)
        assert listed(case.table) == listed(after)
        assert index_records(case.table) == index_records(after)
        assert timeline_names(case.table, ".hoodie/metadata") == timeline_names(after, ".hoodie/metadata")
        assert_metadata_true(case.table)


@pytest.mark.parametrize(("folder", "name"), tiered(CASES, CORE))
def test_the_inflight_file_is_what_the_versions_hudi_resumes_from(folder: str, name: str, golden: Golden) -> None:
    case = golden(folder, name)
    instant = clean_of(case.table)
    run_clean(case.table, instant)
    active = context_of(case.table).active
    inflight, requested = (
        case.table / active.path(instant, Action.CLEAN, state) for state in (State.INFLIGHT, State.REQUESTED)
    )
    assert inflight.read_bytes() == (b"" if folder == "9" else requested.read_bytes())


def test_provenance_is_in_the_clean_metadata(golden: Golden) -> None:
    table = golden("9", "clean_requested_mor").table
    run_clean(table, clean_of(table), owner=Owner.current("nightly job"))
    active = context_of(table).active
    found = active.read_of(active.load().get(clean_of(table), Action.CLEAN))["extraMetadata"]
    assert found[OWNER_KEY].startswith("nightly job")
    assert {OWNER_KEY, RUN_KEY, VERSION_KEY} <= found.keys()


@pytest.mark.parametrize("folder", ["6", "8", "9"])
def test_a_clean_that_real_hudi_left_inflight_is_finished(folder: str, golden: Golden) -> None:
    """Some of its files are gone already; 0.15 and 1.0 put the plan into the inflight file, and 0.15 may have only that
    one left.
    """
    case = golden(folder, "clean_requested_mor")
    instant, active = clean_of(case.table), context_of(case.table).active
    requested, inflight = (
        case.table / active.path(instant, Action.CLEAN, state) for state in (State.REQUESTED, State.INFLIGHT)
    )
    inflight.write_bytes(b"" if folder == "9" else requested.read_bytes())
    if folder == "6":
        requested.write_bytes(b"")
    kept = set(data_files(case.after()))
    gone = [name for name in data_files(case.table) if name not in kept]
    for name in gone[:5]:
        (case.table / name).unlink()
    result = CleanService().run(context_of(case.table), instant, LocalEngine(2), Owner.current("test"), None)
    assert (result.state, result.files_deleted) == ("completed", len(gone) - 5)
    assert data_files(case.table) == sorted(kept)
    assert metadata_of(case.table, instant) == metadata_of(case.after(), instant)


def test_a_completed_clean_is_left_as_it_is(golden: Golden) -> None:
    table = golden("8", "clean_requested_mor").table
    instant = clean_of(table)
    run_clean(table, instant)
    everything = {path: path.read_bytes() for path in table.rglob("*") if path.is_file()}
    assert run_clean(table, instant) == "completed"
    assert {path: path.read_bytes() for path in table.rglob("*") if path.is_file()} == everything


def test_an_instant_that_is_not_there_is_refused(golden: Golden) -> None:
    table = golden("9", "clean_requested_mor").table
    with pytest.raises(ConfigError, match="holds no clean at instant 20260101000000000"):
        run_clean(table, "20260101000000000")


@pytest.mark.parametrize("folder", ["6", "9"])
def test_an_empty_plan_is_taken_off_the_timeline(folder: str, golden: Golden) -> None:
    """As a crash of an old writer leaves it: it would only be in the way of the next clean."""
    table = golden(folder, "clean_requested_mor").table
    instant, active = clean_of(table), context_of(table).active
    for state in (State.REQUESTED, State.INFLIGHT):
        (table / active.path(instant, Action.CLEAN, state)).write_bytes(b"")
    files = data_files(table)
    assert run_clean(table, instant) == REMOVED
    assert data_files(table) == files
    assert cleans(table) == []


def rewrite_plan(table: Path, instant: str, change: Callable[[dict[str, Any]], None]) -> None:
    """Changes the plan on the timeline, keeping its own schema."""
    from hudi_core.timeline.actions.content import decode_datum, encode_datum

    path = table / context_of(table).active.path(instant, Action.CLEAN, State.REQUESTED)
    raw = decode_datum(path.read_bytes(), path=path.name)
    change(raw)
    path.write_bytes(encode_datum("HoodieCleanerPlan", raw))


def add_file(partition: str, path: str) -> Callable[[dict[str, Any]], None]:
    return lambda raw: (
        raw["filePathsToBeDeletedPerPartition"]
        .setdefault(partition, [])
        .append({"filePath": path, "isBootstrapBaseFile": False})
    )


@pytest.mark.parametrize(
    ("partition", "path"),
    [
        ("2024-01-01", "/etc/passwd"),
        ("2024-01-01", "/elsewhere/2024-01-02/g_0-0-0_20260101000000000.parquet"),
        ("2024-01-01", "/t/2024-01-01/../../x/2024-01-01/g_0-0-0_20260101000000000.parquet"),
        ("2024-01-01", "/t/2024-01-01/.hoodie_partition_metadata"),
        ("2024-01-01", "/t/2024-01-01/notes.txt"),
        (".hoodie", "/t/.hoodie/g_0-0-0_20260101000000000.parquet"),
        ("../other", "/t/../other/g_0-0-0_20260101000000000.parquet"),
        ("/abs", "/abs/g_0-0-0_20260101000000000.parquet"),
    ],
)
def test_a_plan_that_names_other_files_deletes_nothing(partition: str, path: str, golden: Golden) -> None:
    table = golden("9", "clean_requested_mor").table
    rewrite_plan(table, clean_of(table), add_file(partition, path))
    files = data_files(table)
    with pytest.raises(FormatError, match=r"clean\.requested"):
        run_clean(table, clean_of(table))
    assert data_files(table) == files


def test_a_bootstrap_base_file_is_never_deleted(golden: Golden) -> None:
    table = golden("9", "clean_requested_mor").table

    def mark(raw: dict[str, Any]) -> None:
        raw["filePathsToBeDeletedPerPartition"]["2024-01-01"][0]["isBootstrapBaseFile"] = True

    rewrite_plan(table, clean_of(table), mark)
    with pytest.raises(UnsupportedError, match="bootstrap base file"):
        run_clean(table, clean_of(table))


def test_the_absolute_paths_of_a_plan_are_never_followed(golden: Golden, tmp_path: Path) -> None:
    """A plan that was written where another table lies now: that table keeps its files."""
    case, other = golden("9", "clean_requested_mor"), golden("9", "clean_requested_mor").table
    instant, files = clean_of(case.table), data_files(other)

    def move(raw: dict[str, Any]) -> None:
        for partition, entries in raw["filePathsToBeDeletedPerPartition"].items():
            for entry in entries:
                entry["filePath"] = f"{other}/{partition}/{entry['filePath'].rsplit('/', 1)[1]}"

    rewrite_plan(case.table, instant, move)
    run_clean(case.table, instant)
    assert data_files(other) == files
    assert data_files(case.table) == data_files(case.after())


def test_a_file_that_cannot_be_deleted_leaves_the_clean_to_be_run_again(
    golden: Golden, monkeypatch: pytest.MonkeyPatch
) -> None:
    """0.15 completes such a clean, and its metadata table then denies a file that is there."""
    case = golden("9", "clean_requested_mor")
    instant = clean_of(case.table)

    class Refusing(LocalStorage):
        def delete(self, path: str) -> bool:
            if path.endswith("5732_20261120222620388.parquet"):
                raise StorageError("permission denied", path=path)
            return super().delete(path)

    with monkeypatch.context() as patch:
        patch.setattr("hudi_core.services.clean.job.open_deleting_storage", lambda uri, options: Refusing(uri))
        with pytest.raises(StorageError, match="permission denied"):
            run_clean(case.table, instant)
    assert [item.state for item in cleans(case.table)] == [State.INFLIGHT]
    assert run_clean(case.table, instant) == "completed"
    assert data_files(case.table) == data_files(case.after())


def test_another_live_run_keeps_the_instant(golden: Golden) -> None:
    table = golden("9", "clean_requested_mor").table
    instant, context = clean_of(table), context_of(table)
    files = data_files(table)
    with context.claim(instant, Owner.current("the other")), pytest.raises(ConflictError, match="the other"):
        run_clean(table, instant)
    assert data_files(table) == files


def test_rows_are_the_same_before_and_after(golden: Golden) -> None:
    table = golden("8", "clean_requested_cow").table
    before: pa.Table = read_rows(table, "off")
    run_clean(table, clean_of(table))
    assert_same_rows(read_rows(table, "off"), before)


@pytest.mark.parametrize("folder", tiered(["6", "8", "9"], ["6", "9"]))
@pytest.mark.parametrize(
    "name",
    tiered(
        ["mdt_all_cow", "mdt_all_mor", "mdt_all_cow_compacted", "mdt_all_mor_compacted"],
        ["mdt_all_cow", "mdt_all_mor_compacted"],
    ),
)
def test_a_metadata_table_with_every_index_stays_true(name: str, folder: str, golden: Golden) -> None:
    """Our own clean by versions: the metadata table lists what lies in storage, readers agree with it on and off,
    `validate` finds nothing.
    """
    table = golden(folder, name).table
    before = read_rows(table, "off")
    context = context_of(
        table, {"hoodie.cleaner.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.cleaner.fileversions.retained": "1"}
    )
    done = CleanService().schedule(context, Owner.current("test"), dry_run=False)
    assert done.instant is not None, done.reason
    assert run_clean(table, done.instant) == "completed"
    stored = {f"{partition}/{file}" for partition, files in listed(table).items() for file in files}
    assert stored == {path for path in data_files(table) if not path.endswith(".hoodie_partition_metadata")}
    for metadata in ("on", "off"):
        assert_same_rows(read_rows(table, metadata), before)
    assert_metadata_true(table)


@pytest.mark.parametrize("version", tiered(["8", "9"], ["9"]))
def test_an_index_initialized_while_files_are_deleted_is_updated(
    version: str, golden: Golden, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Version 6 begins none while an action is pending."""
    table, owner = golden(version, "mdt_all_mor").table, Owner.current("test")
    drop_metadata(context_of(table), {"bloom_filters"}, owner)
    options = {"hoodie.cleaner.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.cleaner.fileversions.retained": "1"}
    planned = CleanService().schedule(context_of(table, options), owner, dry_run=False).instant
    assert planned is not None

    def initialized_meanwhile(*arguments: Any, **named: Any) -> None:
        check_not_needed(*arguments, **named)
        create_metadata(context_of(table), {"bloom_filters"}, LocalEngine(1), owner, 3)

    with monkeypatch.context() as patched:
        patched.setattr(clean_run, "check_not_needed", initialized_meanwhile)
        assert run_clean(table, planned) == "completed"
    assert "bloom_filters" in context_of(table).config.metadata_partitions
    assert_metadata_true(table)


@pytest.mark.parametrize("version", ["6", "8", "9"])
def test_a_partition_that_a_writer_makes_again_while_it_is_cleaned_stays_listed(
    version: str, golden: Golden, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = golden(version, "insert_overwrite_clean_requested").table
    instant = clean_of(table)
    made: list[Path] = []

    def dropped_and_made_again(storage: Storage, plan: CleanPlan, timeline: Timeline) -> frozenset[str]:
        gone = drop_partitions(storage, plan, timeline)
        made.extend(table / partition / ".hoodie_partition_metadata" for partition in gone)
        for file in made:
            file.parent.mkdir(parents=True)
            file.write_bytes(b"commitTime=1\npartitionDepth=1\n")
        return gone

    with monkeypatch.context() as patched:
        patched.setattr(clean_run, "drop_partitions", dropped_and_made_again)
        with pytest.raises(ConflictError, match="in use again"):
            run_clean(table, instant)
    assert made
    assert all(file.exists() for file in made)
    assert run_clean(table, instant) == "completed"


@pytest.mark.parametrize("version", ["6", "8", "9"])
def test_a_partition_that_is_dropped_later_than_its_files_is_no_longer_listed(
    version: str, golden: Golden, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A clean deletes the files and leaves the folder, as beside a pending write; the plan of a later clean names the
    partition and none of its files.
    """
    table = golden(version, "insert_overwrite_clean_requested").table
    context, first = context_of(table), clean_of(table)
    requested = context.active.path(first, Action.CLEAN, State.REQUESTED)
    content = context.storage.read(requested)
    dropped = decode_clean_plan(content, path=requested).dropped_partitions
    assert dropped
    context.active.remove(first, Action.CLEAN, State.REQUESTED)
    create_metadata(context, {"files"}, LocalEngine(1), Owner.current("test"), 3)
    context = context_of(table)
    context.active.create_requested(first, Action.CLEAN, content)
    with monkeypatch.context() as patched:
        patched.setattr(clean_run, "drop_partitions", lambda *_: frozenset())
        assert run_clean(table, first) == "completed"
    assert {*listed_partitions(table)} >= {*dropped}

    second = context.new_instant(context.active.load())
    plan = CleanPlan("KEEP_LATEST_COMMITS", {}, last_completed=first, dropped_partitions=dropped)
    context.active.create_requested(second, Action.CLEAN, encode_clean_plan(plan, str))
    assert run_clean(table, second) == "completed"
    assert not {*listed_partitions(table)} & {*dropped}
    assert_metadata_true(table)
    details = context.active.read_of(context.active.load().get(second, Action.CLEAN))
    assert clean_changes(details, path="").dropped_partitions == {*dropped}


def listed_partitions(table: Path) -> list[str]:
    """The partitions that the metadata table lists."""
    context = context_of(table)
    return MetadataTable(context.storage, context.config, context.active.load()).partitions()


@pytest.mark.parametrize("version", ["6", "6-by-1.2.0", "8", "8-by-1.2.0", "9"])
def test_a_clean_names_its_run(golden: Golden, version: str) -> None:
    table = golden(version, "clean_requested_mor").table
    owner = Owner.current("nightly job", "run-7")
    run_clean(table, clean_of(table), owner=owner)
    active = context_of(table).active
    found = active.read_of(active.load().get(clean_of(table), Action.CLEAN))["extraMetadata"]
    assert {key: found[key] for key in (OWNER_KEY, RUN_KEY, VERSION_KEY)} == provenance(owner)
    assert found[RUN_KEY] == "run-7"
