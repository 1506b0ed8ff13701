"""The facade. That every golden table reads as real Hudi reads it is tested in tests/golden."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from hudi_core.engine.local import LocalEngine
from hudi_core.errors import ConfigError, CorruptFileError, MetadataUnavailableError, UnsupportedVersionError
from hudi_core.query.request import MetadataMode, Query
from hudi_core.table import HudiTable
from hudi_core.timeline.instant import Action, State
from hudi_core.verbs.run import RunRequest
from tests.support.golden_data import GoldenCase
from tests.support.rows import assert_same_rows, read_parquet

Golden = Callable[[str, str], GoldenCase]


def rows(
    table: HudiTable, query: Query = "snapshot", metadata: MetadataMode = "auto", columns: list[str] | None = None
) -> pa.Table:
    result = table.read(query, columns, metadata)
    return pa.Table.from_batches(list(result.batches), result.schema)


@pytest.fixture
def case(golden: Golden) -> GoldenCase:
    return golden("6", "mor_compaction_requested")


@pytest.mark.parametrize("metadata", ["auto", "on", "off"])
@pytest.mark.parametrize("query", ["snapshot", "read_optimized"])
def test_both_queries_by_either_listing(case: GoldenCase, query: Query, metadata: MetadataMode) -> None:
    assert_same_rows(
        rows(HudiTable.open(str(case.table)), query, metadata), read_parquet(case.expected / f"{query}.parquet")
    )


def test_columns_in_the_requested_order(case: GoldenCase) -> None:
    table = HudiTable.open(str(case.table))
    assert rows(table, columns=["ts", "_hoodie_record_key"]).column_names == ["ts", "_hoodie_record_key"]
    with pytest.raises(ConfigError, match="nowhere"):
        table.read(columns=["nowhere"])


def test_files_read_are_those_of_the_slices(case: GoldenCase) -> None:
    table = HudiTable.open(str(case.table))
    slices = table.files()
    assert table.read().files_read == sum(1 + len(item.log_files) for item in slices)
    assert table.read("read_optimized").files_read == len(slices)
    assert table.files(partition=slices[0].file_group.partition) == [slices[0]]
    assert [item.files for item in table.files(metadata="off")] == [item.files for item in slices]


def test_a_query_or_mode_that_does_not_exist(case: GoldenCase) -> None:
    table = HudiTable.open(str(case.table))
    with pytest.raises(ConfigError, match="unknown query"):
        table.read("everything")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="unknown metadata mode"):
        table.read(metadata="maybe")  # type: ignore[arg-type]


def test_a_listed_metadata_table_that_is_gone(case: GoldenCase) -> None:
    """`auto` lists the storage then, as Hudi's readers do; `on` insists."""
    shutil.rmtree(case.table / ".hoodie" / "metadata")
    table = HudiTable.open(str(case.table))
    assert rows(table).num_rows == read_parquet(case.expected / "snapshot.parquet").num_rows
    with pytest.raises(MetadataUnavailableError):
        table.read(metadata="on")


def test_show(case: GoldenCase) -> None:
    table = HudiTable.open(str(case.table))
    (pending,) = table.timeline().pending_compactions()
    shown = table.show(pending.requested_time)
    assert (shown.instant.action, shown.instant.state, shown.metadata) == (Action.COMPACTION, State.REQUESTED, None)
    assert shown.plan is not None
    assert len(shown.plan["operations"]) == 3
    written = table.timeline().commits().last()
    assert written is not None
    shown = table.show(written.requested_time)
    assert shown.plan is None
    assert shown.metadata is not None
    assert shown.metadata["operationType"] == "DELETE"
    with pytest.raises(ConfigError, match="holds an instant 20000101000000000"):
        table.show("20000101000000000")


def test_show_means_the_commit_that_a_savepoint_holds(golden: Golden) -> None:
    table = HudiTable.open(str(golden("6", "savepoint_clean_requested").table))
    saved = table.timeline().completed().of_actions(Action.SAVEPOINT).first()
    assert saved is not None
    assert table.show(saved.requested_time).instant.action == Action.COMMIT


def test_run_reports_and_progresses(case: GoldenCase) -> None:
    table = HudiTable.open(str(case.table), options={"hoodie.index.bloom.num_entries": "100"})
    steps: list[tuple[int, int]] = []
    request = RunRequest(table.uri, "compaction", owner="tester", options={"hoodie.parquet.compression.codec": "zstd"})
    result = table.run(request, LocalEngine(1), lambda instant, done, total: steps.append((done, total)))
    (done,) = result.instants
    assert (done.action, done.state, done.files_written) == ("compaction", "completed", 3)
    assert done.bytes_written > 0
    assert steps == [(1, 3), (2, 3), (3, 3)]
    assert table.show(done.instant).metadata is not None
    assert_same_rows(rows(table), read_parquet(case.expected / "after_snapshot.parquet"))


def test_options_of_ours_that_do_not_exist(case: GoldenCase) -> None:
    with pytest.raises(ConfigError, match="airflow_hudi"):
        HudiTable.open(str(case.table), options={"airflow_hudi.nonsense": "1"})
    table = HudiTable.open(str(case.table))
    with pytest.raises(ConfigError, match="airflow_hudi"):
        table.run(RunRequest(table.uri, "compaction", options={"airflow_hudi.nonsense": "1"}), LocalEngine(1))


def test_what_is_no_table(tmp_path: Path, golden: Golden) -> None:
    with pytest.raises(ConfigError, match="not a Hudi table"):
        HudiTable.open(str(tmp_path))
    older = golden("6", "cow_basic").table
    properties = older / ".hoodie" / "hoodie.properties"
    properties.write_text(properties.read_text().replace("hoodie.table.version=6", "hoodie.table.version=5"))
    with pytest.raises(UnsupportedVersionError, match="5"):
        HudiTable.open(str(older))
    broken = golden("6", "cow_basic").table
    properties = broken / ".hoodie" / "hoodie.properties"
    properties.write_text(re.sub("checksum=[0-9]+", "checksum=1", properties.read_text()))
    with pytest.raises(CorruptFileError, match=r"hoodie\.properties"):
        HudiTable.open(str(broken))
