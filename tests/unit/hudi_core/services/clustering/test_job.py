"""A clustering as a job: what it takes for its instant, what it refuses before it writes, what stops it at the end."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_core.codec.avro.container import read_container, write_container
from hudi_core.engine.local import LocalEngine
from hudi_core.errors import (
    ConfigError,
    ConflictError,
    CorruptFileError,
    FormatError,
    HudiError,
    StorageNotFoundError,
    UnsupportedError,
)
from hudi_core.services.clustering import job
from hudi_core.services.clustering.planner import ClusteringService
from hudi_core.timeline.actions.commit import encode_commit, encode_commit_avro
from hudi_core.timeline.actions.replacecommit import (
    ClusteringGroup,
    ClusteringPlan,
    ClusteringSlice,
    encode_clustering_plan,
)
from hudi_core.timeline.instant import Action, State
from hudi_core.transaction.owner import Owner
from hudi_core.view.file_group import FileSlice
from tests.support.changed_tables import choose_payload, data_files, open_context
from tests.support.dropped_columns import name_dropped
from tests.support.golden_clusterings import SORT_COLUMNS, cluster, commit_of, plan_of_all, planned, replaced
from tests.support.golden_data import GoldenCase
from tests.support.rows import assert_same_rows
from tests.support.table_invariants import pending_instants, read_rows
from tests.support.tiers import tiered
from tests.unit.hudi_core.services.compaction.test_job_units import archive_writes

Golden = Callable[[str, str], GoldenCase]
VERSIONS = ["6", "8", "9"]
IGNORED = ("_hoodie_file_name",)


def assert_refused(
    table: Path,
    error: type[HudiError],
    text: str,
    instant: str | None = None,
    options: dict[str, str] | None = None,
) -> HudiError:
    files, pending = data_files(table), pending_instants(table)
    with pytest.raises(error, match=text) as caught:
        cluster(table, instant, options)
    assert data_files(table) == files
    assert pending_instants(table) == pending
    return caught.value


@pytest.mark.parametrize("columns", ["", "DT,Name", "dt"])
@pytest.mark.parametrize("version", tiered(VERSIONS, ["9"]))
def test_a_dropped_column_that_the_schema_names(golden: Golden, version: str, columns: str) -> None:
    """As Hudi's row writer leaves it there. The table's schema stays; files have no such column."""
    table = golden(version, "drop_partition_columns").table
    name_dropped(table)
    before = read_rows(table)
    instant = plan_of_all(table, {SORT_COLUMNS: columns})
    cluster(table, instant)
    assert_same_rows(read_rows(table), before, ignore=IGNORED)
    metadata = commit_of(table, str(instant))
    assert '"dt"' in (metadata.schema_text or "")
    for stat in metadata.write_stats():
        names = pq.read_table(table / stat.path, partitioning=None, columns=None)
        assert "dt" not in names.schema.names
        if "Name" in columns:
            values = names["name"].to_pylist()
            assert values == sorted(values, key=lambda name: (name is not None, name or ""))


@pytest.mark.parametrize("version", VERSIONS)
def test_a_plan_with_log_files_needs_the_payload_class(golden: Golden, version: str) -> None:
    table = golden(version, "clustering_requested_mor").table
    choose_payload(table, "com.acme.MyPayload")
    assert_refused(table, UnsupportedError, r"com\.acme\.MyPayload")


@pytest.mark.parametrize("version", VERSIONS)
def test_what_the_commit_says(golden: Golden, version: str) -> None:
    table = golden(version, "clustering_requested_mor").table
    before = {
        (item.file_group.partition, item.file_group.file_id)
        for partition in open_context(table).view(open_context(table).active.load()).partitions()
        for item in open_context(table).view(open_context(table).active.load()).latest_slices(partition)
    }
    instant = planned(table)
    result = cluster(table)
    metadata = commit_of(table, instant)
    assert {(name, one) for name, ids in replaced(table, instant).items() for one in ids} <= before
    assert result.files_written == len(list(metadata.write_stats()))
    assert result.bytes_written == sum(stat.file_size_in_bytes for stat in metadata.write_stats())
    assert json.loads(metadata.schema_text or "")["type"] == "record"
    assert metadata.extra_metadata["airflow_hudi.owner"]


@pytest.mark.parametrize("version", VERSIONS)
def test_another_instant_is_no_clustering(golden: Golden, version: str) -> None:
    table = golden(version, "insert_overwrite_table").table
    active = open_context(table).active
    overwrite = next(item for item in active.load().commits() if item.action == Action.REPLACE_COMMIT)
    for instant in (overwrite.requested_time, active.load().commits().instants[0].requested_time, "2" * 17):
        assert_refused(table, ConfigError, "holds no clustering at instant", instant)


@pytest.mark.parametrize("version", VERSIONS)
def test_sort_columns_that_the_table_lacks_are_bad_input(golden: Golden, version: str) -> None:
    table = golden(version, "clustered_cow").table
    assert_refused(table, ConfigError, "names nothing", plan_of_all(table, {SORT_COLUMNS: "nothing"}))


@pytest.mark.parametrize("version", VERSIONS)
def test_nothing_is_planned_by_columns_that_the_table_lacks(golden: Golden, version: str) -> None:
    table = golden(version, "clustered_cow").table
    context = open_context(table, {SORT_COLUMNS: "nothing"})
    pending = pending_instants(table)
    with pytest.raises(ConfigError, match="names nothing"):
        ClusteringService().schedule(context, Owner.current("test"), dry_run=False)
    assert pending_instants(table) == pending


@pytest.mark.parametrize("version", VERSIONS)
def test_a_missing_file_is_named(golden: Golden, version: str) -> None:
    table = golden(version, "clustering_requested_mor").table
    victim = min(path for path in table.glob("2024-01-03/*.parquet"))
    victim.unlink()
    error = assert_refused(table, StorageNotFoundError, "it is not there")
    assert str(error.path).endswith(victim.name)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_plan_without_a_log_file_of_its_slice_is_refused(golden: Golden, version: str) -> None:
    """The rows in it would be lost."""
    table = golden(version, "clustering_requested_mor").table
    context = open_context(table)
    instant = planned(table)
    path = table / context.active.path(instant, job.clustering_action(context.active.layout), State.REQUESTED)
    text = path.read_bytes()
    schema, (raw,) = read_container(text, path=path.name)
    for group in raw["clusteringPlan"]["inputGroups"]:
        for item in group["slices"]:
            item["deltaFilePaths"] = []
    path.write_bytes(write_container(schema, [raw]))
    assert_refused(table, FormatError, "does not name the file slice")


def landed(table: Path, instant: str) -> None:
    """A commit that changed a file group of the plan, completed meanwhile by a writer that was not told."""
    context = open_context(table)
    active = context.active
    last = active.load().commits().last()
    assert last is not None
    metadata = active.read_commit(last)
    time = context.new_instant(active.load())
    active.create_requested(time, Action.DELTA_COMMIT)
    active.to_inflight(time, Action.DELTA_COMMIT)
    content = encode_commit(metadata) if context.config.features.json_commits else encode_commit_avro(metadata)
    completion = None if active.layout == 1 else context.clock().next(active.load(), minimum=time)
    active.complete(time, Action.DELTA_COMMIT, content, completion)


@pytest.mark.parametrize("version", tiered(VERSIONS, ["6", "9"]))
def test_a_write_that_lands_while_it_runs_stops_it(
    golden: Golden, version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = golden(version, "clustered_mor").table
    rows = read_rows(table)
    instant = plan_of_all(table, {})
    assert instant is not None
    prove = job.prove

    def behind(*given: object, **named: object) -> object:
        landed(table, instant)
        return prove(*given, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(job, "prove", behind)
    with pytest.raises(ConflictError, match="has changed file group"):
        cluster(table, instant)
    monkeypatch.undo()
    assert_same_rows(read_rows(table, "off"), rows, ignore=IGNORED)
    assert (open_context(table).active.folder, instant) in pending_instants(table)
    with pytest.raises(ConflictError, match="has changed file group"):
        cluster(table, instant)


@pytest.mark.parametrize("version", tiered(VERSIONS, ["6", "9"]))
def test_two_plans_over_the_same_file_groups_run_once(golden: Golden, version: str) -> None:
    """The second would double the rows."""
    table = golden(version, "clustered_cow").table
    rows = read_rows(table)
    first, second = plan_of_all(table, {}), plan_of_all(table, {})
    cluster(table, first)
    assert_refused(table, ConflictError, "has changed file group", second)
    assert_same_rows(read_rows(table), rows, ignore=IGNORED)


@pytest.mark.parametrize("version", VERSIONS)
def test_the_service_runs_what_is_pending(golden: Golden, version: str) -> None:
    table = golden(version, "clustering_requested_cow").table
    context = open_context(table)
    service = ClusteringService()
    (instant,) = service.pending(context, context.active.load())
    assert instant == planned(table)
    result = service.run(context, instant, LocalEngine(1), Owner.current("test"), None)
    assert (result.action, result.state) == ("clustering", "completed")
    assert service.pending(context, context.active.load()) == []


def request(table: Path, slices: list[FileSlice]) -> str:
    """Requests a clustering of these slices, whatever else is planned on them."""
    context = open_context(table)
    named = tuple(
        ClusteringSlice(
            item.file_group.partition,
            item.file_group.file_id,
            None if item.base_file is None else item.base_file.name,
            tuple(file.name for file in item.log_files),
        )
        for item in slices
    )
    plan = ClusteringPlan(tuple(ClusteringGroup((item,), 1) for item in named))
    instant = context.new_instant(context.active.load())
    action = job.clustering_action(context.active.layout)
    context.active.create_requested(instant, action, encode_clustering_plan(plan, lambda path: f"{table}/{path}"))
    return instant


@pytest.mark.parametrize("version", tiered(VERSIONS, ["6", "9"]))
@pytest.mark.parametrize("case", ["mor_compaction_requested", "log_compaction_requested"])
def test_a_file_group_that_a_pending_plan_holds_is_a_conflict(golden: Golden, version: str, case: str) -> None:
    """Behind a compaction's plan the latest slice is the log files written since: the rows below them would be lost."""
    table = golden(version, case).table
    rows = read_rows(table)
    view = open_context(table).view(open_context(table).active.load())
    held = {*view.pending.compacting, *view.pending.log_compacting}
    slices = [
        item
        for partition in view.partitions()
        for item in view.latest_slices(partition)
        if item.file_group in held and item.data_files
    ]
    assert slices
    assert case != "mor_compaction_requested" or all(item.base_file is None for item in slices)
    error = assert_refused(table, ConflictError, "is pending on file groups of partition", request(table, slices[:1]))
    assert slices[0].file_group.file_id in error.message
    assert_same_rows(read_rows(table), rows, ignore=())


@pytest.mark.parametrize("version", tiered(VERSIONS, ["6", "9"]))
@pytest.mark.parametrize("case", ["clustered_cow", "clustered_mor"])
def test_a_commit_that_is_rolled_back_while_it_runs_stops_it(
    golden: Golden, version: str, case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a writer that cleans failed writes lazily: the rows that were read before would come back."""
    table = golden(version, case).table
    instant = plan_of_all(table, {})
    assert instant is not None
    active = open_context(table).active
    gone = active.load().commits().last()
    assert gone is not None
    prove = job.prove

    def behind(*given: object, **named: object) -> object:
        (table / active.path_of(gone)).unlink()  # as a rollback begins: it is inflight again
        return prove(*given, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(job, "prove", behind)
    with pytest.raises(ConflictError, match=f"commit {gone.requested_time} was rolled back since {instant} began"):
        cluster(table, instant)
    assert (active.folder, instant) in pending_instants(table)


@pytest.mark.parametrize("service", ["clustering", "sorted clustering"])
def test_logs_count_whose_commits_are_archived(golden: Golden, service: str) -> None:
    """Also where only replacecommits are on the timeline."""
    table = golden("6", "mor_basic").table
    rows = read_rows(table)
    archive_writes(table)
    assert_same_rows(read_rows(table), rows, ignore=())
    instant = plan_of_all(table, {} if service == "clustering" else {SORT_COLUMNS: "amount"})
    cluster(table, instant)
    assert_same_rows(read_rows(table), rows, ignore=IGNORED)


def test_a_base_file_with_change_operations_leaves_the_instant_requested(golden: Golden) -> None:
    table = golden("9", "clustering_requested_cow").table
    victim = min(table.glob("2024-01-03/*.parquet"))
    rows = pq.ParquetFile(victim).read()
    pq.write_table(rows.append_column("_hoodie_operation", pa.array(["I"] * rows.num_rows)), victim)
    error = assert_refused(table, UnsupportedError, "rows with the column _hoodie_operation")
    assert str(error.path).endswith(victim.name)


@pytest.mark.parametrize("order", [{SORT_COLUMNS: "ts"}, {}], ids=["sorted", "copied"])
@pytest.mark.parametrize("statistics", [True, False])
@pytest.mark.parametrize("version", tiered(VERSIONS, ["9"]))
def test_rows_without_a_key_are_named_and_not_taken(
    golden: Golden, version: str, statistics: bool, order: dict[str, str]
) -> None:
    """Whether they are sorted, or their row groups would be copied."""
    table = golden(version, "cow_basic").table
    for path in (path for path in data_files(table) if path.endswith(".parquet")):
        file = pq.ParquetFile(table / path)
        rows, footer = file.read(), file.schema_arrow.metadata
        at = rows.schema.get_field_index("_hoodie_record_key")
        keys = pa.array([None, *rows.column(at).to_pylist()[1:]], pa.string())
        rows = rows.set_column(at, "_hoodie_record_key", keys).replace_schema_metadata(footer)
        pq.write_table(rows, table / path, write_statistics=statistics)
    size = "1000" if order else str(1 << 30)
    instant = plan_of_all(table, {**order, "hoodie.clustering.plan.strategy.target.file.max.bytes": size})
    options = {"airflow_hudi.parquet.row_group.rows": "4"}
    assert_refused(table, CorruptFileError, "1 records have no record key", instant, options)
