"""The DAGs of the table services, for real, on the local engine and by spark-submit with the job zip: results in XCom,
the timeline at the end.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from hudi_core.table import HudiTable
from tests.airflow.dag_runs import engines, environment_for, pending, run_dag, run_dags, timeline
from tests.support.changed_tables import open_context
from tests.support.golden_data import GoldenCase
from tests.support.metadata_records import Table
from tests.support.overwrites import own_rows, places, put_source, within
from tests.support.rows import assert_same_rows, read_parquet
from tests.support.table_invariants import read_rows
from tests.support.tiers import tiered
from tests.support.writes import own_columns
from tests.unit.hudi_core.services.metadata.test_catch_up import forget

pytestmark = [pytest.mark.airflow, pytest.mark.spark, pytest.mark.slow]

Golden = Callable[[str, str], GoldenCase]


def fail_newest_write(table: Path) -> str:
    """Takes the completed file of the newest write away: as if the writer had died right before it."""
    (newest,) = timeline(table).commits().instants[-1:]
    (completed,) = (
        path
        for path in table.glob(f".hoodie/**/{newest.requested_time}*.{newest.action}")
        if "metadata" not in path.parts
    )
    completed.unlink()
    return newest.requested_time


@pytest.mark.parametrize(
    ("version", "engine"), tiered([("6", "spark"), ("9", "spark"), ("9", "local")], [("9", "local")])
)
def test_failed_writes_go_then_old_files_then_old_instants(
    golden: Golden, airflow_environment: dict[str, str], version: str, engine: str
) -> None:
    table = golden(version, "clean_requested_mor").table
    for planned in table.glob(".hoodie/**/*.clean.requested"):
        planned.unlink()
    failed = fail_newest_write(table)
    before = timeline(table).requested_times
    rows = read_rows(table)
    conf = {"commits_retained": 1, "min_commits": 2, "max_commits": 3}

    (result,), output = run_dag(environment_for(airflow_environment, table, engine), "hudi_table_maintenance", [conf])

    assert result["state"] == "success", output[-8000:]
    assert set(result["tasks"].values()) == {"success"}
    rolled_back, cleaned, archived = (result["xcom"][task] for task in ("roll_back_failed_writes", "clean", "archive"))
    assert [item["target"] for item in rolled_back["instants"]] == [failed]
    assert rolled_back["files_written"] + rolled_back["files_deleted"] > 0
    assert pending(table, "deltacommit") == []
    assert (cleaned["state"], cleaned["files_deleted"] > 0) == ("completed", True)
    after = timeline(table).requested_times
    assert archived["instants"] == len(before - after - {failed}) > 0
    assert {rolled_back["instant"], cleaned["instant"]} <= after
    assert_same_rows(read_rows(table), rows)


@engines
def test_a_clean_that_a_writer_planned_is_seen_and_run(
    golden: Golden, airflow_environment: dict[str, str], engine: str
) -> None:
    case = golden("8", "clean_requested_mor")
    (planned,) = pending(case.table, "clean")

    (result,), output = run_dag(environment_for(airflow_environment, case.table, engine), "hudi_clean")

    assert result["state"] == "success", output[-8000:]
    seen, done = result["xcom"]["wait_for_clean"], result["xcom"]["clean"]
    assert (seen["instant"], seen["action"]) == (planned, "clean")
    assert (done["instant"], done["state"], done["already_completed"]) == (planned, "completed", False)
    assert (done["files_deleted"] > 0, done["engine"]) == (True, engine)
    assert pending(case.table, "clean") == []
    assert_same_rows(read_rows(case.table), read_rows(case.after()))


@engines
def test_a_log_compaction_that_a_writer_planned_and_one_of_ours(
    golden: Golden, airflow_environment: dict[str, str], engine: str
) -> None:
    case = golden("9", "log_compaction_requested")
    (planned,) = pending(case.table, "logcompaction")
    other = golden("8", "mor_basic").table
    tables = (case.table, other)
    rows = [read_rows(table) for table in tables]

    (first, second), output = run_dag(
        environment_for(airflow_environment, case.table, engine),
        "hudi_log_compaction",
        [{}, {"table": str(other), "plan": True, "blocks": 1}],
    )

    assert first["state"] == second["state"] == "success", output[-8000:]
    done, ours = first["xcom"]["merge_logs"], second["xcom"]["merge_logs"]
    assert (done["instant"], done["state"], done["already_completed"]) == (planned, "completed", False)
    assert (done["files_written"], done["engine"]) == (3, engine)
    assert (ours["action"], ours["state"], ours["table"]) == ("logcompaction", "completed", str(other))
    for table, before in zip(tables, rows, strict=True):
        assert pending(table, "logcompaction") == []
        assert_same_rows(read_rows(table), before, ignore=())


@engines
def test_a_partition_is_overwritten_and_another_deleted(
    golden: Golden, airflow_environment: dict[str, str], engine: str, tmp_path: Path
) -> None:
    table = golden("8", "mor_basic").table
    rows = read_rows(table)
    first, second = sorted(set(rows.column("_hoodie_partition_path").to_pylist()))[:2]
    kept = within(rows, first).slice(0, 3)
    source = put_source(own_rows(table, kept), tmp_path)
    once = {"source": str(source), "token": "once"}

    runs = [
        *(("hudi_insert_overwrite", conf) for conf in (once, once)),
        ("hudi_delete_partition", {"partitions": second}),
    ]
    (written, again, deleted), output = run_dags(environment_for(airflow_environment, table, engine), runs)

    assert {item["state"] for item in (written, again, deleted)} == {"success"}, output[-8000:]
    done, repeated, gone = (
        *(item["xcom"]["overwrite"] for item in (written, again)),
        deleted["xcom"]["delete"],
    )
    assert (done["records"], done["repeated"], done["engine"], done["token"]) == (3, False, engine, "once")
    assert (repeated["instant"], repeated["repeated"]) == (done["instant"], True)
    assert (gone["operation"], gone["partitions"], gone["repeated"]) == ("DELETE_PARTITION", 1, False)
    expected = pa.concat_tables([kept, within(rows, first, second, outside=True)])
    assert places(read_rows(table)) == places(expected)


def test_a_table_is_created_once_and_written_to(
    golden: Golden, airflow_environment: dict[str, str], tmp_path: Path
) -> None:
    rows = own_columns(read_rows(golden("9", "mor_basic").table))
    source, table = str(put_source(rows, tmp_path)), tmp_path / "lake" / "created"
    given = {"table_name": "t", "like": source, "table_type": "mor", "table_version": 8, "engine": "local"}
    new = {**given, "record_key": "id", "partition_by": "dt", "ordering": "ts"}
    merge = {"source": source, "engine": "local"}

    (created, again, merged), output = run_dags(
        environment_for(airflow_environment, table),
        [("hudi_create_table", new), ("hudi_create_table", new), ("hudi_merge_day", merge)],
    )

    assert {item["state"] for item in (created, again, merged)} == {"success"}, output[-8000:]
    assert [item["xcom"]["create"]["created"] for item in (created, again)] == [True, False]
    assert merged["xcom"]["merge"]["inserted"] == rows.num_rows
    assert open_context(table).config.version == 8
    assert_same_rows(own_columns(read_rows(table)), rows)


@engines
def test_a_day_is_merged_once(golden: Golden, airflow_environment: dict[str, str], engine: str, tmp_path: Path) -> None:
    table = golden("9", "cow_basic").table
    rows = read_rows(table)
    partition = min(rows.column("_hoodie_partition_path").to_pylist())
    changed = own_rows(table, within(rows, partition).slice(0, 3))
    changed = changed.set_column(changed.schema.get_field_index("name"), "name", pa.array(["merged"] * 3))
    conf = {"source": str(put_source(changed, tmp_path)), "token": "once"}

    (done, repeated), output = run_dag(
        environment_for(airflow_environment, table, engine), "hudi_merge_day", [conf, conf]
    )

    assert {item["state"] for item in (done, repeated)} == {"success"}, output[-8000:]
    first, again = (item["xcom"]["merge"] for item in (done, repeated))
    assert (first["operation"], first["updated"], first["repeated"], first["engine"]) == ("UPSERT", 3, False, engine)
    assert (again["instant"], again["repeated"]) == (first["instant"], True)
    after = read_rows(table)
    assert places(after) == places(rows)
    assert_same_rows(own_rows(table, after.filter(pa.compute.equal(after.column("name"), "merged"))), changed)


def test_a_late_source_is_waited_for(golden: Golden, airflow_environment: dict[str, str], tmp_path: Path) -> None:
    table = golden("9", "mor_basic").table
    rows = read_rows(table)
    partition = min(rows.column("_hoodie_partition_path").to_pylist())
    kept = within(rows, partition).slice(0, 3)
    late = tmp_path / "late" / "source"
    conf = {"source": str(late), "wait_minutes": 5, "engine": "local"}

    (written,), output = run_dag(
        environment_for(airflow_environment, table),
        "hudi_insert_overwrite",
        [conf],
        when={f"{late} is not there yet": lambda: put_source(own_rows(table, kept), late.parent)},
    )

    assert written["state"] == "success", output[-8000:]
    assert f"{late} is there" in output
    assert (written["xcom"]["overwrite"]["records"], written["xcom"]["overwrite"]["engine"]) == (3, "local")
    assert places(read_rows(table)) == places(pa.concat_tables([kept, within(rows, partition, outside=True)]))


@pytest.mark.conformance
def test_nothing_to_maintain_is_a_reason(golden: Golden, airflow_environment: dict[str, str]) -> None:
    table = golden("9", "mor_basic").table

    (result,), output = run_dag(environment_for(airflow_environment, table), "hudi_table_maintenance")

    assert result["state"] == "success", output[-8000:]
    for task in ("roll_back_failed_writes", "clean", "archive"):
        assert result["xcom"][task]["reason"], result["xcom"][task]
        assert result["xcom"][task]["reason"] in output


@engines
def test_many_tables_are_one_job(golden: Golden, airflow_environment: dict[str, str], engine: str) -> None:
    """By Spark where there is work; a table with nothing to do is looked at alone. The last run names its engine."""
    compacting, idle = golden("9", "mor_compaction_requested"), golden("9", "mor_basic")
    environment = environment_for(airflow_environment, compacting.table)
    conf = {"tables": f"{compacting.table.name}, {idle.table}", "services": "compaction, rollback"}

    rows = read_rows(idle.table)
    due = {**conf, "tables": str(idle.table), "services": "compaction", "delta_commits": 1, "engine": engine}

    (first, again, planned), output = run_dags(
        {**environment, "AIRFLOW_HUDI_TABLES": idle.table.name},
        [
            ("hudi_tables", {**conf, "delta_commits": 9}),
            ("hudi_tables", {**conf, "delta_commits": 9}),
            ("hudi_tables", due),
        ],
        forked_jobs=False,
    )

    assert first["state"] == "success", output[-8000:]
    found = first["xcom"]["run_services"]
    assert (found["tables"], found["done"], found["nothing"], found["failed"]) == (2, 1, 3, 0)
    (done,) = (item for item in found["results"] if item.get("instants"))
    assert (done["table"], done["engine"]) == (str(compacting.table), "spark")
    assert_same_rows(read_rows(compacting.table), read_parquet(compacting.expected / "after_snapshot.parquet"))
    assert pending(compacting.table, "compaction") == []
    assert again["tasks"]["run_services"] == "skipped"
    (compacted,) = planned["xcom"]["run_services"]["results"]
    assert [item["state"] for item in compacted["instants"]] == ["completed"]
    assert timeline(idle.table).commits().of_actions("commit").requested_times == {
        item["instant"] for item in compacted["instants"]
    }
    assert_same_rows(read_rows(idle.table), rows)
    assert output.count("Spark-Submit cmd") == 1 + (engine == "spark")


def test_a_fleet_is_served_by_its_policies(golden: Golden, airflow_environment: dict[str, str], tmp_path: Path) -> None:
    """What is due by the conditions of each table's policy, and an alert where an instant is pending for too long."""
    compacted, stuck = golden("9", "mor_basic"), golden("8", "mor_compaction_requested")
    rows = [read_rows(case.table) for case in (compacted, stuck)]
    policy = tmp_path / "policy.yaml"
    policy.write_text(
        "policies:\n"
        "  default: {services: {rollback: , compaction: {commits: 1}}}\n"
        "  watched: {services: {clean: {commits: 1000}}, alerts: {pending_age: 1h}}\n"
        "tables:\n"
        f"  - {compacted.table.name}\n"
        f"  - {{table: {stuck.table}, policy: watched}}\n"
    )
    environment = environment_for(airflow_environment, compacted.table)

    (first, second), output = run_dags(
        {**environment, "AIRFLOW_HUDI_POLICY_FILE": str(policy)}, [("hudi_fleet", {}), ("hudi_fleet", {})]
    )

    (waiting,) = pending(stuck.table, "compaction")
    states = {"services": "success", "alerts": "failed", "all_succeeded": "upstream_failed"}
    assert first["tasks"] == second["tasks"] == states, output[-8000:]
    assert first["state"] == "failed"
    (alert,) = first["xcom"]["alerts"]["alerts"]
    assert (alert["table"], alert["instant"], alert["action"]) == (str(stuck.table), waiting, "compaction")
    done, again = first["xcom"]["services"], second["xcom"]["services"]
    assert (done["tables"], done["done"], done["failed"], again["done"]) == (2, 1, 0, 0)
    (compaction,) = (item for item in done["results"] if item.get("instants"))
    assert (compaction["table"], compaction["engine"]) == (str(compacted.table), "local")
    assert "no commit since" in str(again["results"])
    for case, before in zip((compacted, stuck), rows, strict=True):
        assert_same_rows(read_rows(case.table), before)


@pytest.mark.conformance
def test_a_run_with_a_failed_service_has_failed(
    golden: Golden, airflow_environment: dict[str, str], tmp_path: Path
) -> None:
    """Also where nothing is pending for too long, so that the last task that does something succeeds."""
    table = golden("9", "mor_compaction_requested").table
    (instant,) = pending(table, "compaction")
    next(table.glob(f".hoodie/timeline/{instant}.compaction.requested")).write_bytes(b"no plan")
    policy = tmp_path / "policy.yaml"
    policy.write_text(
        f"policies:\n  default: {{services: {{compaction: }}, alerts: {{pending_age: 36500d}}}}\ntables: [{table}]\n"
    )
    environment = {**environment_for(airflow_environment, table), "AIRFLOW_HUDI_POLICY_FILE": str(policy)}
    (run,), output = run_dags(environment, [("hudi_fleet", {})])
    expected = {"services": "failed", "alerts": "success", "all_succeeded": "upstream_failed"}
    assert (run["tasks"], run["state"]) == (expected, "failed"), output[-8000:]


def test_what_a_writer_planned_is_run(golden: Golden, airflow_environment: dict[str, str]) -> None:
    """The run that an event starts, by hand; twice."""
    case = golden("9", "mor_compaction_requested")
    (first, again), output = run_dags(
        environment_for(airflow_environment, case.table),
        [("hudi_services_on_events", {}), ("hudi_services_on_events", {})],
    )
    assert (first["state"], again["state"]) == ("success", "success"), output[-8000:]
    done, nothing = first["xcom"]["run_pending"], again["xcom"]["run_pending"]
    assert (done["done"], done["failed"], nothing["done"], nothing["failed"]) == (1, 0, 0, 0)
    assert pending(case.table, "compaction") == []
    assert_same_rows(read_rows(case.table), read_parquet(case.expected / "after_snapshot.parquet"))


def test_a_changed_partition_is_clustered(golden: Golden, airflow_environment: dict[str, str]) -> None:
    """By hand; which runs the events start is tested on a whole Airflow."""
    table = golden("9", "cow_basic").table
    rows = read_rows(table)
    partition = min(rows.column("_hoodie_partition_path").to_pylist())
    (found, clustered, again), output = run_dags(
        environment_for(airflow_environment, table),
        [
            ("hudi_changed_partitions", {"partitions": partition}),
            ("hudi_cluster_partition", {"partition": partition, "sort_columns": "name"}),
            ("hudi_cluster_partition", {"partition": partition, "sort_columns": "name"}),
        ],
    )
    assert found["xcom"]["find_changed"] == [partition], output[-8000:]
    ((done,), engine) = (clustered["xcom"]["cluster"]["results"][0][name] for name in ("instants", "engine"))
    assert (done["state"], engine, again["tasks"]["cluster"]) == ("completed", "local", "skipped")
    commit = HudiTable.open(str(table)).show(done["instant"]).metadata
    assert list((commit or {})["partitionToWriteStats"]) == [partition]
    assert_same_rows(read_rows(table), rows)


@engines
def test_a_metadata_table_is_updated_and_validated(
    golden: Golden, airflow_environment: dict[str, str], engine: str
) -> None:
    table = golden("8", "mor_basic").table
    listed, gone = sorted(Table(table).config.metadata_partitions), forget(Table(table), 1)
    environment = {
        **environment_for(airflow_environment, table, engine),
        "AIRFLOW_HUDI_WRITER_OPTIONS": '{"hoodie.metadata.compact.max.delta.commits": "1"}',
    }

    (result,), output = run_dag(environment, "hudi_metadata")

    assert result["state"] == "success", output[-8000:]
    updated, validated = result["xcom"]["update"], result["xcom"]["validate"]
    assert (updated["applied"], updated["partitions"]) == (gone, listed)
    assert updated["compacted"]["files"] >= 2
    assert (validated["differences"], validated["kinds"]) == ([], listed)


@engines
def test_indexes_are_built_and_validated(golden: Golden, airflow_environment: dict[str, str], engine: str) -> None:
    table = golden("8", "mor_basic").table
    environment = {
        **environment_for(airflow_environment, table, engine),
        "AIRFLOW_HUDI_WRITER_OPTIONS": '{"hoodie.write.lock.wait_time_ms": "30000"}',
    }
    conf = {
        "column_stats": False,
        "bloom_filters": True,
        "record_index": True,
        "secondary_column": "name",
        "index_name": "by_name",
    }

    (built, again), output = run_dag(environment, "hudi_indexing", [conf, {}])

    assert built["state"] == "success", output[-8000:]
    done, validated = built["xcom"]["build"], built["xcom"]["validate"]
    assert (done["action"], done["state"], done["already_completed"]) == ("indexing", "completed", False)
    assert {"bloom_filters", "record_index", "secondary_index_by_name"} <= HudiTable.open(
        str(table)
    ).config.metadata_partitions
    assert validated["differences"] == []
    assert {"bloom_filters", "record_index", "secondary_index_by_name"} <= set(validated["kinds"])
    assert again["tasks"] == {"build": "skipped", "validate": "skipped"}


@pytest.mark.parametrize(
    ("version", "engine"), tiered([("6", "local"), ("6", "spark"), ("9", "spark")], [("6", "local")])
)
def test_files_are_clustered_once(
    golden: Golden, airflow_environment: dict[str, str], version: str, engine: str
) -> None:
    table = golden(version, "clustering_requested_cow").table
    rows = read_rows(table)
    environment = environment_for(airflow_environment, table, engine)
    pending = [item.requested_time for item in timeline(table).pending()]
    conf = {"sort_columns": "name,qty"}

    (first, again), output = run_dag(environment, "hudi_clustering", [conf, conf])

    assert first["state"] == again["state"] == "success", output[-8000:]
    done = first["xcom"]["cluster"]
    assert [done["instant"]] == pending, "a writer planned it"
    assert (done["action"], done["state"], done["files_written"]) == ("clustering", "completed", 3)
    assert again["tasks"] == {"cluster": "skipped"}
    assert "that an earlier clustering left as this one would" in output
    assert_same_rows(read_rows(table), rows)
