"""What is done of a request in this process, and what is left to Spark."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from hudi_core.config.engine_config import Mode
from hudi_core.driver import drive, drive_with_spark, run_on_target
from hudi_core.engine.local import LocalEngine
from hudi_core.errors import ConfigError, ZoneUnknownError
from hudi_core.metadata_table.extract.expressions import SESSION_ZONE
from hudi_core.request.results import Result
from hudi_core.table import HudiTable
from hudi_core.verbs.metadata import MetadataCreateRequest
from hudi_core.verbs.request import Request
from hudi_core.verbs.run import RunRequest
from hudi_core.verbs.write import InsertOverwriteRequest
from hudi_health.verbs import ProbeStoreRequest
from tests.support.golden_data import GoldenCase

Golden = Callable[[str, str], GoldenCase]
DUE = {"hoodie.compact.inline.max.delta.commits": "1"}
LARGE = {**DUE, "airflow_hudi.engine.local.max.units": "0"}


class Spark(LocalEngine):
    """Threads of this process in Spark's place, and what was asked of it."""

    def __init__(self) -> None:
        super().__init__(1)
        self.calls: list[str] = []

    def start(self) -> None:
        self.calls.append("start")

    def with_zone(self, request: Request) -> Request:
        return replace(request, options={**request.options, SESSION_ZONE: "UTC"})

    def __call__(self, why: str) -> Spark:
        self.calls.append(why)
        return self


def contents(table: Path) -> set[str]:
    return {str(path.relative_to(table)) for path in table.rglob("*") if path.is_file()}


def test_a_look_writes_nothing(golden: Golden) -> None:
    path = golden("9", "mor_basic").table
    table, before = HudiTable.open(str(path)), contents(path)
    due = RunRequest(str(path), "compaction", schedule=True, options=DUE)
    assert drive(table, due, Mode.LOOK) == Result(left="there is work")
    not_due = RunRequest(str(path), "clean", schedule=True)
    assert (drive(table, not_due, Mode.LOOK).left, bool(drive(table, not_due, Mode.LOOK).reason)) == (None, True)
    assert contents(path) == before


def test_what_is_small_is_done_here_and_what_is_large_is_planned_here(golden: Golden) -> None:
    path = golden("9", "mor_basic").table
    table = HudiTable.open(str(path))
    large = drive(table, RunRequest(str(path), "compaction", schedule=True, options=LARGE), Mode.AUTO)
    assert "airflow_hudi.engine.local.max.units" in (large.left or "")
    (planned,) = table.timeline().pending_compactions()
    small = drive(table, RunRequest(str(path), "compaction", options=DUE), Mode.AUTO)
    assert [(done.instant, done.state) for done in small.instants] == [(planned.requested_time, "completed")]
    assert (small.engine, small.left) == ("local", None)


def test_a_verb_that_has_nothing_to_do_needs_no_spark(golden: Golden) -> None:
    path = str(golden("9", "mor_basic").table)
    options = {"airflow_hudi.engine.local.max.bytes": "1"}
    there = MetadataCreateRequest(path, partitions=("files", "column_stats"), options=options)
    table = HudiTable.open(path)
    assert table.config.metadata_partitions >= {"files", "column_stats"}
    nothing = drive(table, there, Mode.AUTO)
    assert (nothing.left, (nothing.document or {})["reason"]) == (None, "all of them are there")
    missing = replace(there, partitions=("record_index",))
    assert "max.bytes" in (drive(table, missing, Mode.AUTO).left or "")
    assert (drive(table, missing, Mode.LOCAL).document or {})["created"] == ["record_index"]


def test_work_that_was_done_needs_its_source_no_more(golden: Golden, tmp_path: Path) -> None:
    path = golden("9", "cow_basic").table
    rows = pq.read_table(next((path / "2024-01-01").glob("*.parquet")))
    source = tmp_path / "rows.parquet"
    pq.write_table(rows.select([name for name in rows.column_names if not name.startswith("_hoodie")]), source)
    table, request = HudiTable.open(str(path)), InsertOverwriteRequest(str(path), source=str(source), token="of a day")
    assert dict(drive(table, request, Mode.AUTO).document or {})["repeated"] is False
    source.unlink()
    assert dict(drive(table, request, Mode.AUTO).document or {})["repeated"] is True


def test_spark_runs_what_is_left_in_the_minutes_that_are_left(golden: Golden) -> None:
    path, spark = str(golden("9", "mor_basic").table), Spark()
    request = RunRequest(path, "compaction", schedule=True, options=LARGE)
    done = drive_with_spark(HudiTable.open(path), request, Mode.AUTO, spark)
    assert [result.state for result in done.instants] == ["completed"]
    assert [call.split(" ")[0] for call in spark.calls] == ["more", "start"]
    again = drive_with_spark(HudiTable.open(path), replace(request, schedule=False), Mode.AUTO, spark)
    assert (again.instants, len(spark.calls)) == ((), 2), "where there is nothing to do, Spark is not started"


def test_what_this_process_does_not_know_is_left_to_spark(golden: Golden, monkeypatch: pytest.MonkeyPatch) -> None:
    path = str(golden("9", "mor_basic").table)
    table, request = HudiTable.open(path), RunRequest(path, "compaction", schedule=True, options=DUE)

    def no_zone(*_: object) -> Result:
        raise ZoneUnknownError("no zone")

    monkeypatch.setattr(RunRequest, "nothing", no_zone)
    monkeypatch.setattr(RunRequest, "plan", no_zone)
    for mode in (Mode.LOOK, Mode.AUTO):
        assert drive(table, request, mode) == Result(left="no zone")
    with pytest.raises(ZoneUnknownError):
        drive(table, request, Mode.LOCAL)


def test_what_needs_no_table_is_run_on_the_storage(tmp_path: Path) -> None:
    probe = ProbeStoreRequest(str(tmp_path), writers=2, rounds=1)
    tables: list[HudiTable] = []

    def run(table: HudiTable) -> Result:
        tables.append(table)
        return Result()

    assert (run_on_target(probe, {}, run).document or {})["writers"] == 2
    with pytest.raises(ConfigError, match="is not a Hudi table"):
        run_on_target(RunRequest(str(tmp_path), "clean"), {}, run)
    assert tables == []
