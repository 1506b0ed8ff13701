"""Every service's plan by both engines: the choice between them never changes what readers see."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_core.engine.local import LocalEngine
from hudi_core.engine.protocol import Engine
from hudi_core.services.clustering import units
from hudi_core.table import HudiTable
from hudi_core.verbs.metadata import MetadataCreateRequest
from hudi_core.verbs.request import Request
from hudi_core.verbs.run import RunRequest, ScheduleRequest
from hudi_health.table import validate_metadata
from tests.support.golden_clusterings import LAYOUT, SORT_COLUMNS, cluster, new_files, plan_of_all
from tests.support.golden_data import GoldenCase
from tests.support.log_compactions import FROM_ONE
from tests.support.table_invariants import assert_metadata_true, read_rows
from tests.support.tiers import tiered

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

VERSIONS = ("6", "8", "9")
SERVICES: list[tuple[str, str, dict[str, str]]] = [
    ("mor_compaction_requested", "compaction", {}),
    ("mdt_all_mor", "log_compaction", {**FROM_ONE, "spark.sql.session.timeZone": "UTC"}),
    ("mor_compacted", "clean", {"hoodie.clean.commits.retained": "1"}),
    ("mor_basic", "indexing", INDEXES),
    ("failed_inflight_mor", "rollback", EAGER),
    ("archived_timeline_cow", "archive", TIGHT),
]
CASES = [pytest.param(version, *service, id=f"{service[1]}-{version}") for version in VERSIONS for service in SERVICES]
CORE = [*(f"{service}-9" for _, service, _ in SERVICES), "compaction-6"]
"""Every service on the newest version, and what the oldest writes in another form."""


def masked(value: Any) -> Any:
    return TOKEN.sub("T", value) if isinstance(value, str) else value


def rows_of(table: Path) -> list[dict[str, Any]]:
    found: pa.Table = read_rows(table)
    return sorted(
        ({name: masked(value) for name, value in row.items()} for row in found.to_pylist()), key=lambda row: str(row)
    )


def files_of(table: Path) -> list[tuple[str, Any]]:
    """Data files as a reader lists them, with what they consist of."""
    view = HudiTable.open(str(table)).view()
    slices = [item for partition in view.partitions() for item in view.all_slices(partition)]
    return sorted((masked(file.path), parts_of(table / file.path)) for item in slices for file in item.files)


def parts_of(file: Path) -> Any:
    """The size of a log file. Of a base file the rows and encodings of every column chunk of every row group, the
    values in their order but for `_hoodie_file_name`, and the length of the footer's entries. Rows name their file with
    the token, whose digits differ by engine; and what ISA-L compresses equal bytes to differs by a byte or two from one
    process to another.
    """
    if file.suffix != ".parquet":
        return file.stat().st_size
    footer = pq.read_metadata(file)
    groups = [footer.row_group(number) for number in range(footer.num_row_groups)]
    chunks = [(group.num_rows, group.column(number)) for group in groups for number in range(group.num_columns)]
    layout = [(rows, item.path_in_schema, item.encodings, item.num_values) for rows, item in chunks]
    values = pq.ParquetFile(file).read().drop_columns(["_hoodie_file_name"]).to_pylist()
    return layout, values, {key: len(value) for key, value in footer.metadata.items()}


def seen(table: Path) -> dict[str, Any]:
    opened = HudiTable.open(str(table))
    return {
        "rows": rows_of(table),
        "files": files_of(table),
        "timeline": [(item.requested_time, item.action, item.state.value) for item in opened.timeline()],
        "indexes": sorted(opened.config.metadata_partitions),
        "differences": validate_metadata(opened).to_dict()["differences"] if opened.config.metadata_partitions else [],
    }


def run_all(table: Path, request: Request, engines: dict[str, Engine]) -> dict[str, dict[str, Any]]:
    found = {}
    for name, engine in engines.items():
        copy = Path(shutil.copytree(table, table.parent / name / table.name))
        result = HudiTable.open(str(copy), options=request.options).run(request, engine)
        assert result.exit_code == 0
        found[name] = seen(copy)
    return found


@pytest.fixture(scope="module")
def engines(spark: Any) -> Any:
    from hudi_spark.engine import SparkEngine

    with LocalEngine(processes=2) as processes:
        yield {"threads": LocalEngine(2), "processes": processes, "spark": SparkEngine(spark)}


@pytest.mark.parametrize(("version", "case", "service", "options"), tiered(CASES, CORE))
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


@pytest.mark.parametrize(
    ("version", "layout"), tiered([("6", ""), ("8", "linear"), ("9", "hilbert")], [("6", ""), ("9", "hilbert")])
)
def test_a_clustering_by_every_engine(
    golden: Golden,
    engines: dict[str, Engine],
    version: str,
    layout: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The new file groups have other ids in each run, and the same rows in the same order. Spark sorts a group in one
    task, and one that is too large for that by an exchange.
    """
    table = golden(version, "mdt_all_mor").table
    instant = plan_of_all(table, {SORT_COLUMNS: "name,qty", LAYOUT: layout} if layout else {}, 2)
    found = {}
    for name, engine in [*engines.items(), *([("exchange", engines["spark"])] if layout else [])]:
        copy = Path(shutil.copytree(table, tmp_path / name / table.name))
        if name == "exchange":
            monkeypatch.setattr(units, "MOST_BYTES", 0)
        cluster(copy, instant, engine=engine)
        assert_metadata_true(copy)
        found[name] = sorted(
            (path.parent.name, pq.ParquetFile(path).read(["_hoodie_record_key"]).column(0).to_pylist())
            for path in new_files(copy, str(instant))
        )
    assert all(rows == found["threads"] for rows in found.values()), found
    assert len(found["threads"]) >= 3


@pytest.mark.parametrize("version", tiered(VERSIONS, ["9"]))
def test_an_initialized_index_by_every_engine(golden: Golden, engines: dict[str, Engine], version: str) -> None:
    table = golden(version, "mor_basic").table
    request = MetadataCreateRequest(str(table), partitions=("column_stats", "record_index"), options=INDEXES)
    found = run_all(table, request, engines)
    assert found["threads"] == found["processes"] == found["spark"]
    assert {"column_stats", "record_index"} <= set(found["threads"]["indexes"])
    assert found["threads"]["differences"] == []
