"""Asset events of a timeline on a whole Airflow: what a writer plans is run, what a write changed is clustered."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from demo.run import connections, environment
from demo.stack import Stack
from hudi_core.engine.local import LocalEngine
from hudi_core.table import HudiTable
from hudi_core.verbs.run import ScheduleRequest
from tests.airflow.airflow_forks import ROOT, TIMEOUT_SECONDS
from tests.support.changed_tables import QUICK_CLOCK
from tests.support.golden_data import GoldenCase
from tests.support.overwrites import commit_of, overwrite, own_rows, put_source, within
from tests.support.rows import assert_same_rows
from tests.support.table_invariants import assert_metadata_true, read_rows

pytestmark = [pytest.mark.airflow, pytest.mark.slow, pytest.mark.conformance]

Golden = Callable[[str, str], GoldenCase]
LATEST_SECONDS = 30
"""From the plan to the end of its run; the poll is two seconds, and a run of Airflow takes some."""


def stack_of(table: Path, scratch: Path, dags: Sequence[str]) -> Stack:
    folder = scratch / "dags"
    folder.mkdir()
    for name in dags:
        shutil.copy(ROOT / "dags" / f"{name}.py", folder)
    variables = {f"AIRFLOW_CONN_{name.upper()}": json.dumps(fields) for name, fields in connections(table).items()}
    variables |= {
        **environment(scratch, table),
        "AIRFLOW__CORE__DAGS_ARE_PAUSED_AT_CREATION": "False",
        "AIRFLOW_HUDI_WATCHED_TABLE": str(table),
        "AIRFLOW_HUDI_POLL_SECONDS": "2",
        "AIRFLOW_HUDI_FLEET_ENGINE": "local",
    }
    return Stack(scratch / "airflow", folder, variables)


def wait_until(holds: Callable[[], bool], what: str) -> float:
    """The seconds until something holds."""
    started = time.monotonic()
    while not holds():
        assert time.monotonic() - started < TIMEOUT_SECONDS, what
        time.sleep(0.5)
    return time.monotonic() - started


def test_what_a_writer_plans_is_run_within_seconds(golden: Golden, tmp_path: Path) -> None:
    table = golden("9", "mor_basic").table
    rows = read_rows(table)
    options = {**QUICK_CLOCK, "hoodie.compact.inline.max.delta.commits": "1"}
    seconds = []
    with stack_of(table, tmp_path, ["hudi_services_on_events"]) as stack:
        stack.wait_until_healthy(TIMEOUT_SECONDS)
        for service in ("compaction", "clustering"):
            request = ScheduleRequest(str(table), service=service, owner="a writer", options=options)
            document = HudiTable.open(str(table)).run(request, LocalEngine(1)).document or {}
            instant = document["instant"]

            def is_done(instant: str = instant) -> bool:
                found = [item for item in HudiTable.open(str(table)).timeline() if item.requested_time == instant]
                return bool(found) and all(item.is_completed for item in found)

            seconds.append(wait_until(is_done, f"{service} {instant} was not run"))
    timeline = HudiTable.open(str(table)).timeline()
    assert [item.requested_time for item in timeline if not item.is_completed] == []
    assert_same_rows(read_rows(table), rows)
    assert_metadata_true(table)
    # The first includes the start of the triggerer's watch.
    assert seconds[-1] < LATEST_SECONDS, seconds


def test_each_partition_that_was_written_is_clustered(golden: Golden, tmp_path: Path) -> None:
    table = golden("9", "cow_basic").table
    rows = read_rows(table)
    names = sorted(set(rows.column("_hoodie_partition_path").to_pylist()))[:2]
    given = put_source(own_rows(table, within(rows, *names)), tmp_path / "rows", files=2)
    size = sum(path.stat().st_size for path in given.iterdir())

    def clustered() -> list[str]:
        found = [item.requested_time for item in HudiTable.open(str(table)).timeline().of_actions("replacecommit")]
        commits = [commit_of(table, time) for time in found]
        return sorted(
            partition
            for commit in commits
            if str(commit.operation_type).upper() == "CLUSTER"
            for partition in commit.partition_to_write_stats
        )

    with stack_of(table, tmp_path, ["hudi_changed_partitions", "hudi_cluster_partition"]) as stack:
        stack.wait_until_healthy(TIMEOUT_SECONDS)
        time.sleep(20)  # until the triggerer has looked: writes from then on are new
        written = overwrite(table, given, {"hoodie.parquet.max.file.size": str(size // 8)})
        assert written.files_written > len(names)
        wait_until(lambda: clustered() == names, f"clustered are {clustered()}, not {names}")
    assert_same_rows(read_rows(table), read_rows(table, "off"), ignore=())
    assert read_rows(table).num_rows == rows.num_rows
    assert_metadata_true(table)
