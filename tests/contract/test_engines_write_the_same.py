"""Every service's plan by both engines: the choice between them never changes what readers see."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudi_core.engine.local import LocalEngine
from hudi_core.engine.protocol import Engine
from hudi_core.request.requests import MetadataCreateRequest, Request, RunRequest, ScheduleRequest
from hudi_core.table import HudiTable
from tests.support.golden_data import GoldenCase
from tests.support.log_compactions import FROM_ONE
from tests.support.table_invariants import read_rows

pytestmark = [pytest.mark.spark, pytest.mark.slow]

Golden = Callable[[str, str], GoldenCase]
INDEXES = {
    "hoodie.metadata.index.column.stats.enable": "true",
    "hoodie.metadata.record.index.enable": "true",
    "hoodie.metadata.record.index.min.filegroup.count": "2",
}
TIGHT = {
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
    "hoodie.clean.commits.retained": "1",
}
EAGER = {"hoodie.cleaner.policy.failed.writes": "EAGER"}
TOKEN = re.compile(r"(?<=_)\d+-\d+-\d+(?=_|\.|$)")
"""The write token, which names the attempt that wrote a file."""

CASES: list[tuple[str, str, str, dict[str, str]]] = [
    ("6", "mor_compaction_requested", "compaction", {}),
    ("8", "mor_compaction_requested", "compaction", {}),
    ("9", "mor_compaction_requested", "compaction", {}),
    ("6", "mdt_all_mor", "log_compaction", FROM_ONE),
    ("8", "mor_basic", "log_compaction", FROM_ONE),
    ("9", "mdt_all_mor", "log_compaction", FROM_ONE),
    ("6", "mor_compacted", "clean", {"hoodie.clean.commits.retained": "1"}),
    ("9", "mor_compacted", "clean", {"hoodie.clean.commits.retained": "1"}),
    ("6", "mor_basic", "indexing", INDEXES),
    ("9", "mor_basic", "indexing", INDEXES),
    ("8", "failed_inflight_mor", "rollback", EAGER),
    ("9", "archived_timeline_cow", "archive", TIGHT),
]


def masked(value: Any) -> Any:
    return TOKEN.sub("T", value) if isinstance(value, str) else value


def rows_of(table: Path) -> list[dict[str, Any]]:
    found: pa.Table = read_rows(table)
    return sorted(
        ({name: masked(value) for name, value in row.items()} for row in found.to_pylist()), key=lambda row: str(row)
    )


def files_of(table: Path) -> list[str]:
    """Data files as a reader lists them. Their sizes differ by bytes, since their rows name them with the token."""
    view = HudiTable.open(str(table)).view()
    slices = [item for partition in view.partitions() for item in view.all_slices(partition)]
    return sorted(masked(file.path) for item in slices for file in item.files)


def seen(table: Path) -> dict[str, Any]:
    opened = HudiTable.open(str(table))
    return {
        "rows": rows_of(table),
        "files": files_of(table),
        "timeline": [(item.requested_time, item.action, item.state.value) for item in opened.timeline()],
        "indexes": sorted(opened.config.metadata_partitions),
        "differences": opened.validate_metadata().to_dict()["differences"] if opened.config.metadata_partitions else [],
    }


def run_all(table: Path, request: Request, engines: dict[str, Engine]) -> dict[str, dict[str, Any]]:
    found = {}
    for name, engine in engines.items():
        copy = Path(shutil.copytree(table, table.parent / name / table.name))
        result = HudiTable.open(str(copy), options=request.options).run(request, engine)
        assert result.exit_code == 0
        found[name] = seen(copy)
    return found


@pytest.fixture
def engines(spark: Any) -> Any:
    from hudi_spark.engine import SparkEngine

    with LocalEngine(processes=2) as processes:
        yield {"threads": LocalEngine(2), "processes": processes, "spark": SparkEngine(spark)}


@pytest.mark.parametrize(("version", "case", "service", "options"), CASES, ids=[f"{c[2]}-{c[0]}" for c in CASES])
def test_a_plan_by_every_engine(
    golden: Golden, engines: dict[str, Engine], version: str, case: str, service: str, options: dict[str, str]
) -> None:
    table = golden(version, case).table
    before = seen(table)
    if service not in ("compaction", "archive"):
        planned = HudiTable.open(str(table), options=options).run(
            ScheduleRequest(str(table), service, options=options), LocalEngine(1)
        )
        assert planned.document is not None
        assert planned.document["instant"]
    found = run_all(table, RunRequest(str(table), service, options=options), engines)
    assert found["threads"] == found["processes"] == found["spark"]
    assert found["threads"]["timeline"] != before["timeline"]
    assert found["threads"]["differences"] == []


@pytest.mark.parametrize("version", ["6", "8"])
def test_an_initialized_index_by_every_engine(golden: Golden, engines: dict[str, Engine], version: str) -> None:
    table = golden(version, "mor_basic").table
    request = MetadataCreateRequest(str(table), partitions=("column_stats", "record_index"), options=INDEXES)
    found = run_all(table, request, engines)
    assert found["threads"] == found["processes"] == found["spark"]
    assert {"column_stats", "record_index"} <= set(found["threads"]["indexes"])
    assert found["threads"]["differences"] == []
