"""What a planned clean must not delete any more, and partitions that are in use again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from hudi_core.errors import ConflictError, FormatError
from hudi_core.services.clean import kept_files as guard
from hudi_core.services.clean.kept_files import drop_partitions, latest_files
from hudi_core.services.clean.planner import Planned, make_plan
from hudi_core.services.clean.retention import PartitionState
from hudi_core.services.service import Nothing
from hudi_core.timeline.actions.clean import CleanPlan, decode_clean_plan, encode_clean_plan
from hudi_core.timeline.actions.compaction import CompactionOperation, CompactionPlan, encode_compaction_plan
from hudi_core.timeline.actions.rollback import SavepointMetadata, encode_rollback_plan, encode_savepoint
from hudi_core.timeline.instant import Action, Instant, State
from hudi_core.timeline.pending_plans import without_rolled_back
from hudi_core.timeline.timeline import Timeline
from tests.support.golden_cleans import before_clean, context_of, data_files, run_clean, without_metadata_table
from tests.support.golden_data import GoldenCase
from tests.support.memory_storage import MemoryStorage
from tests.unit.hudi_core.services.clean.test_job import clean_of
from tests.unit.hudi_core.services.clean.test_retention_slices import (
    FIVE,
    GROUP,
    PENDING,
    group_of,
    replaced_at,
    slice_at,
)

Golden = Callable[[str, str], GoldenCase]
LATER = "20261121000000000"


def first_log_to_delete(table: Path, instant: str) -> tuple[str, str]:
    """Partition and name of a log file that the clean's plan names."""
    active = context_of(table).active
    plan = active.read_any(instant, Action.CLEAN, State.REQUESTED)["filePathsToBeDeletedPerPartition"]
    return next(
        (partition, name)
        for partition, entries in plan.items()
        for entry in entries
        if ".log." in (name := entry["filePath"].rsplit("/", 1)[1])
    )


def request_plan(table: Path, action: str, content: bytes) -> None:
    context_of(table).active.create_requested(LATER, action, content)


def compaction_of(table: Path, partition: str, log: str, layout: int) -> bytes:
    """The plan of a compaction of one log file: with the base instant of its name in layout 1, on the newest slice in
    layout 2.
    """
    file_id, rest = log[1:].split("_", 1)
    base = rest.split(".", 1)[0]
    if layout == 2:
        base = max(path.stem.rsplit("_", 1)[1] for path in (table / partition).glob(f"{file_id}_*.parquet"))
    operation = CompactionOperation(partition, file_id, base, None, (log,))
    return encode_compaction_plan(CompactionPlan((operation,)))


@pytest.mark.parametrize("folder", ["6", "8", "9"])
@pytest.mark.parametrize("action", [Action.COMPACTION, Action.LOG_COMPACTION])
def test_hudi_19290_a_clean_that_real_hudi_planned_waits_for_the_plan_that_needs_its_file(
    folder: str, action: str, golden: Golden
) -> None:
    table = golden(folder, "clean_requested_mor").table
    instant = clean_of(table)
    partition, log = first_log_to_delete(table, instant)
    request_plan(table, action, compaction_of(table, partition, log, 1 if folder == "6" else 2))
    files = data_files(table)
    with pytest.raises(ConflictError, match="which a pending plan needs"):
        run_clean(table, instant)
    assert data_files(table) == files
    context_of(table).active.remove(LATER, action, State.REQUESTED)
    assert run_clean(table, instant) == "completed"


@pytest.mark.parametrize("folder", ["8", "9"])
def test_hudi_19290_our_plan_leaves_out_what_a_pending_plan_names(folder: str, golden: Golden) -> None:
    """The pending compaction is of the newest slice, and names a log file that the view has in an old one."""
    case = golden(folder, "clean_requested_mor")
    partition, log = first_log_to_delete(case.table, clean_of(case.table))
    before = before_clean(case, clean_of(case.table))
    request_plan(before.table, Action.COMPACTION, compaction_of(before.table, partition, log, 2))
    context = context_of(before.table, case.info["write_options"])
    made = make_plan(context, context.active.load())
    assert isinstance(made, Planned)
    assert log not in made.plan.files[partition]
    assert 0 < made.plan.file_count < before.plan.file_count


@pytest.mark.parametrize("folder", ["8", "9"])
def test_hudi_19290_without_the_guard_our_plan_names_the_file(
    folder: str, golden: Golden, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mutation: what real Hudi 1.0.2 does."""
    monkeypatch.setattr("hudi_core.services.clean.retention.is_needed", lambda item, needed: False)
    with pytest.raises(AssertionError):
        test_hudi_19290_our_plan_leaves_out_what_a_pending_plan_names(folder, golden)


@pytest.mark.parametrize("folder", ["6", "8", "9"])
def test_files_of_a_pending_clustering_stay(folder: str, golden: Golden) -> None:
    """By versions, where Hudi looks at no clustering: a writer that may update groups being clustered makes the planned
    slice an old one.
    """
    case = golden(folder, "clustering_requested_mor")
    context = context_of(
        case.table, {"hoodie.cleaner.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.cleaner.fileversions.retained": "1"}
    )
    (pending,) = (plan for plan in context.view(context.active.load()).pending.read_clusterings().values())
    item = pending.slices[0]
    newer = f"{item.file_id}_0-0-0_20261121000000000.parquet"
    (case.table / item.partition / newer).write_bytes(b"x")
    _commit_one(case.table, item.partition, newer)
    made = make_plan(context, context.active.load())
    named = set() if not isinstance(made, Planned) else set(made.plan.files.get(item.partition, ()))
    assert item.base_file is not None
    assert item.base_file not in named
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("hudi_core.services.clean.retention.is_needed", lambda item, needed: False)
        unguarded = make_plan(context, context.active.load())
    assert isinstance(unguarded, Planned)
    assert item.base_file in unguarded.plan.files[item.partition]


def _commit_one(table: Path, partition: str, name: str) -> None:
    """A commit that wrote one base file."""
    from hudi_core.timeline.actions.commit import CommitMetadata, encode_commit, encode_commit_avro

    active = context_of(table).active
    metadata = CommitMetadata(operation_type="UPSERT", extra_metadata={"schema": "{}"})
    active.create_requested(LATER, Action.DELTA_COMMIT)
    active.to_inflight(LATER, Action.DELTA_COMMIT)
    layout_1 = active.layout == 1
    content = encode_commit(metadata) if layout_1 else encode_commit_avro(metadata)
    active.complete(LATER, Action.DELTA_COMMIT, content, None if layout_1 else "20261121000001000")


@pytest.mark.parametrize("folder", ["6", "8", "9"])
def test_a_savepoint_made_after_the_plan_keeps_its_files(folder: str, golden: Golden) -> None:
    table = golden(folder, "clean_requested_mor").table
    instant, active = clean_of(table), context_of(table).active
    partition, log = first_log_to_delete(table, instant)
    at = active.load().commits().instants[0].requested_time
    saved = encode_savepoint(SavepointMetadata("another", 0, "", {partition: (log,)}))
    active.to_inflight(at, Action.SAVEPOINT)
    active.complete(at, Action.SAVEPOINT, saved, None if folder == "6" else LATER)
    files = data_files(table)
    with pytest.raises(ConflictError, match="which a savepoint keeps"):
        run_clean(table, instant)
    assert data_files(table) == files


@pytest.mark.parametrize("folder", ["6", "8", "9"])
def test_a_slice_that_became_the_newest_again_stays(folder: str, golden: Golden) -> None:
    """A clean by versions was planned, then the commits after the planned slices were rolled back: their slices are
    what readers read now.
    """
    table = golden(folder, "clean_requested_versions_cow").table
    instant, active = clean_of(table), context_of(table).active
    newest = active.load().commits().instants[-1]
    (table / active.path_of(newest)).unlink()
    for path in [path for path in table.rglob("*.parquet") if newest.requested_time in path.name]:
        path.unlink()
    files = data_files(table)
    with pytest.raises(ConflictError, match="readers of the latest state need"):
        run_clean(table, instant)
    assert data_files(table) == files


@pytest.mark.parametrize("folder", ["6", "8", "9"])
def test_what_a_pending_rollback_brings_back_stays(folder: str, golden: Golden) -> None:
    """The rollback died before its first deletion; what finishes it, also a writer, does not look at cleans."""
    table = without_metadata_table(golden(folder, "clean_requested_versions_cow").table)
    one_version = {"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.clean.fileversions.retained": "1"}
    instant, context = clean_of(table), context_of(table, {**one_version, "hoodie.clean.multiple.enabled": "true"})
    planned = make_plan(context, context.active.load())
    assert isinstance(planned, Planned)
    newest = context.active.load().commits().instants[-1]
    plan = encode_rollback_plan(newest.requested_time, Action.COMMIT, ())
    context.active.create_requested(LATER, Action.ROLLBACK, plan)
    context.active.to_inflight(LATER, Action.ROLLBACK)
    view = context.view(without_rolled_back(context.active, context.active.load()))
    back = {file.name for partition in view.partitions() for file in view.latest_base_files(partition)}
    named = {name for names in planned.plan.files.values() for name in names}
    assert back & named, "the golden clean deletes nothing that the commit replaced"
    files = data_files(table)
    with pytest.raises(ConflictError, match="readers of the latest state need"):
        run_clean(table, instant)
    assert data_files(table) == files
    again = make_plan(context, context.active.load())
    assert isinstance(again, Nothing) or not back & {name for names in again.plan.files.values() for name in names}


def request_clean(table: Path, files: dict[str, tuple[str, ...]]) -> str:
    """A clean that some process planned."""
    plan = CleanPlan("KEEP_LATEST_COMMITS", files)
    content = encode_clean_plan(plan, lambda path: str(table / path))
    context_of(table).active.create_requested(LATER, Action.CLEAN, content)
    return LATER


def assert_untouched(table: Path, instant: str, match: str) -> None:
    """The clean is refused, and nothing is written, no claim either."""
    before = {path: path.read_bytes() for path in table.rglob("*") if path.is_file()}
    with pytest.raises(ConflictError, match=match) as caught:
        run_clean(table, instant)
    assert (caught.value.path or "").endswith(f"{instant}.clean.requested")
    assert {path: path.read_bytes() for path in table.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize("folder", ["6", "8", "9"])
def test_a_plan_that_names_what_readers_read_is_refused_before_the_claim(folder: str, golden: Golden) -> None:
    table = golden(folder, "cow_basic").table
    context = context_of(table)
    view = context.view(context.active.load())
    partition = view.partitions()[0]
    name = view.latest_base_files(partition)[0].name
    assert_untouched(table, request_clean(table, {partition: (name,)}), "readers of the latest state need")


@pytest.mark.parametrize("folder", ["6", "8", "9"])
def test_a_plan_that_names_a_file_of_a_pending_write_is_refused(folder: str, golden: Golden) -> None:
    """Its writer is at work, or a rollback takes the file away: Hudi's planner names no such file."""
    table = golden(folder, "failed_inflight_cow").table
    (pending,) = context_of(table).active.load().pending().requested_times
    path = min(table.rglob(f"*_{pending}.parquet"))
    partition = path.parent.relative_to(table).as_posix()
    instant = request_clean(table, {partition: (path.name,)})
    assert_untouched(table, instant, f"of {pending}, which is pending")
    context_of(table).active.delete_instant(pending, Action.COMMIT)
    assert run_clean(table, instant) == "completed"


@pytest.mark.parametrize("folder", ["8", "9"])
def test_a_plan_that_names_a_log_file_of_a_pending_write_is_refused(folder: str, golden: Golden) -> None:
    """No view has it, and in layout 2 its name tells its writer."""
    table = golden(folder, "failed_inflight_mor").table
    (pending,) = context_of(table).active.load().pending().requested_times
    path = min(path for path in table.glob(f"*/.*_{pending}.log.*") if path.suffix != ".crc")
    partition = path.parent.relative_to(table).as_posix()
    instant = request_clean(table, {partition: (path.name,)})
    assert_untouched(table, instant, f"of {pending}, which is pending")
    context_of(table).active.delete_instant(pending, Action.DELTA_COMMIT)
    assert run_clean(table, instant) == "completed"


@pytest.mark.parametrize("folder", ["6", "8", "9"])
def test_every_name_is_checked_before_the_first_delete(folder: str, golden: Golden) -> None:
    table = golden(folder, "clean_requested_cow").table
    active, instant = context_of(table).active, clean_of(table)
    path = active.path(instant, Action.CLEAN, State.REQUESTED)
    plan = decode_clean_plan((table / path).read_bytes(), path=path)
    last = max(plan.files)
    changed = replace(plan, files={**plan.files, last: (*plan.files[last], ".hoodie_partition_metadata")})
    (table / path).write_bytes(encode_clean_plan(changed, lambda name: str(table / name)))
    before = {file: file.read_bytes() for file in table.rglob("*") if file.is_file()}
    with pytest.raises(FormatError, match="neither a base file nor a log file"):
        run_clean(table, instant)
    assert {file: file.read_bytes() for file in table.rglob("*") if file.is_file()} == before


@pytest.mark.parametrize("folder", ["6", "8", "9"])
def test_an_inflight_clean_is_checked_by_the_run_that_owns_it(folder: str, golden: Golden) -> None:
    table = golden(folder, "cow_basic").table
    context = context_of(table)
    view = context.view(context.active.load())
    partition = view.partitions()[0]
    instant = request_clean(table, {partition: (view.latest_base_files(partition)[0].name,)})
    context.active.to_inflight(instant, Action.CLEAN, b"")
    files = data_files(table)
    with pytest.raises(ConflictError, match="readers of the latest state need"):
        run_clean(table, instant)
    assert data_files(table) == files


def test_without_the_guard_that_slice_is_lost(golden: Golden, monkeypatch: pytest.MonkeyPatch) -> None:
    """Mutation."""
    monkeypatch.setattr(guard, "_REQUESTED", ())
    with pytest.raises(pytest.fail.Exception):
        test_a_slice_that_became_the_newest_again_stays("9", golden)


LOGS_ONLY = slice_at("5", [".g_5.log.1_0-0-0"], base=False)


@pytest.mark.parametrize(
    ("inputs", "expected"),
    [
        (PartitionState("p", (FIVE,)), {"g_0-0-0_5.parquet"}),
        (PartitionState("p", (FIVE,), replaced={GROUP: replaced_at("5")}), set()),
        (PartitionState("p", (group_of(LOGS_ONLY),)), {".g_5.log.1_0-0-0"}),
        (
            PartitionState("p", (group_of(LOGS_ONLY, slice_at("4")),), compacting={GROUP: ("4",)}),
            {".g_5.log.1_0-0-0", "g_0-0-0_4.parquet"},
        ),
        (
            PartitionState("p", (group_of(slice_at("5", base=False), slice_at("4"), slice_at("3")),)),
            {"g_0-0-0_4.parquet"},
        ),
        (PENDING, {"g_0-0-0_4.parquet"}),
    ],
    ids=["base file", "replaced", "logs only", "pending compaction", "empty slice", "newest"],
)
def test_the_latest_state_is_what_a_snapshot_reads(inputs: PartitionState, expected: set[str]) -> None:
    assert latest_files(inputs) == expected


def dropping(storage: MemoryStorage, *pending: Instant) -> frozenset[str]:
    return drop_partitions(storage, CleanPlan("p", {}, dropped_partitions=("a", "b/c")), Timeline(pending))


def storage_with(*paths: str) -> MemoryStorage:
    storage = MemoryStorage()
    for path in paths:
        storage.write(path, b"x")
    return storage


def test_empty_partitions_are_deleted_and_may_be_gone() -> None:
    storage = storage_with("a/.hoodie_partition_metadata", "d/.hoodie_partition_metadata", "b/x")
    assert dropping(storage) == {"a", "b/c"}
    assert storage.list_files("a") == []
    assert storage.exists("d/.hoodie_partition_metadata")
    assert storage.exists("b/x")
    assert dropping(storage) == {"a", "b/c"}


@pytest.mark.parametrize("path", ["a/g_0-0-0_1.parquet", "a/.g_1.log.1_0-0-0", "a/below/x"])
def test_a_partition_that_is_in_use_again_is_left(path: str) -> None:
    storage = storage_with("a/.hoodie_partition_metadata", path)
    assert dropping(storage) == {"b/c"}
    assert storage.exists(path)
    assert storage.exists("a/.hoodie_partition_metadata")


@pytest.mark.parametrize("action", [Action.COMMIT, Action.DELTA_COMMIT, Action.REPLACE_COMMIT])
def test_a_writer_at_work_keeps_the_partitions(action: str) -> None:
    """It may have looked for the partition already, and would not write its metadata file again."""
    storage = storage_with("a/.hoodie_partition_metadata")
    assert dropping(storage, Instant("5", action, State.REQUESTED)) == {"b/c"}
    assert storage.exists("a/.hoodie_partition_metadata")


@pytest.mark.parametrize("folder", ["6", "8", "9"])
def test_a_partition_that_got_files_since_the_plan_survives(folder: str, golden: Golden) -> None:
    case = golden(folder, "insert_overwrite_clean_requested")
    late = case.table / "2024-01-02" / "0b6ba3ae-0000-4000-8000-000000000000-0_0-1-2_20261122000000000.parquet"
    late.write_bytes(b"of a writer that has not committed")
    instant = clean_of(case.table)
    run_clean(case.table, instant)
    assert late.exists()
    assert (case.table / "2024-01-02" / ".hoodie_partition_metadata").exists()
    assert not (case.table / "2024-01-03").exists()
    active = context_of(case.table).active
    done = active.read_of(active.load().get(instant, Action.CLEAN))["partitionMetadata"]
    assert {partition: part["isPartitionDeleted"] for partition, part in done.items()} == {
        "2024-01-01": False,
        "2024-01-02": False,
        "2024-01-03": True,
    }
