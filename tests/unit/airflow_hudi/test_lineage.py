"""What OpenLineage's provider records: its own extractor asks our operators, and its client serializes the answer."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from airflow.providers.openlineage.extractors import ExtractorManager, OperatorLineage
from openlineage.client.serde import Serde

from airflow_hudi.assets import changed_partitions_asset, table_asset
from airflow_hudi.lineage import dataset_name, dataset_of_asset, lineage_of
from airflow_hudi.operators.overwrite import HudiInsertOverwriteOperator
from airflow_hudi.operators.service import HudiCompactionOperator
from airflow_hudi.operators.write import HudiWriteOperator
from airflow_hudi.results import FinishedWork
from tests.support.fake_spark_submit import Store, context, real_job
from tests.support.golden_data import GoldenCase
from tests.support.overwrites import own_rows, put_source, within
from tests.support.table_invariants import read_rows

Golden = Callable[[str, str], GoldenCase]


def extracted(operator: Any) -> OperatorLineage:
    """As OpenLineage's listener does when a task has succeeded."""
    extractor = ExtractorManager().get_extractor_class(operator)
    assert extractor is not None
    found = extractor(operator).extract_on_complete(context()["ti"])
    assert isinstance(found, OperatorLineage)
    return found


def shown(dataset: Any) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(Serde.to_json(dataset))
    for facets in (value.get("facets") or {}, value.get("outputFacets") or {}):
        for facet in facets.values():
            del facet["_producer"], facet["_schemaURL"]
    return value


@pytest.mark.parametrize(
    ("address", "name"),
    [
        ("s3a://lake/wh/t/", ("s3://lake", "wh/t")),
        ("gs://lake/t", ("gs://lake", "t")),
        ("abfss://c@account.dfs.core.windows.net/t", ("abfss://c@account.dfs.core.windows.net", "t")),
        ("/data/t", ("file", "/data/t")),
        ("file:///data/t", ("file", "/data/t")),
        ("s3://lake/t#old", ("s3://lake", "t#old")),
        ("/data/t?x=1", ("file", "/data/t?x=1")),
    ],
)
def test_names_of_datasets(address: str, name: tuple[str, str]) -> None:
    assert dataset_name(address) == name


def test_assets_are_datasets_of_the_same_name() -> None:
    for asset in (table_asset("gs://lake/t"), changed_partitions_asset("gs://lake/t")):
        found = dataset_of_asset(asset, None)
        assert (found.namespace, found.name) == ("gs://lake", "t")
    assert dataset_of_asset(type(table_asset("/t"))("hudi://lake/t"), None) is None
    # The base path of a connection is not known here.
    assert dataset_of_asset(changed_partitions_asset("sales/t", hudi_conn_id="eu"), None) is None


def test_an_overwrite(golden: Golden, tmp_path: Path, submitted: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = golden("9", "mor_basic").table
    real_job(monkeypatch)
    rows = read_rows(table)
    kept = within(rows, min(rows.column("_hoodie_partition_path").to_pylist()))
    source = put_source(own_rows(table, kept), tmp_path)
    write = HudiInsertOverwriteOperator(task_id="t", table=str(table), hudi_conn_id=None, source=str(source))
    done = write.execute(context(Store()))
    found = extracted(write)
    assert [(item.namespace, item.name) for item in found.inputs] == [("file", str(source))]
    (output,) = map(shown, found.outputs)
    assert (output["namespace"], output["name"]) == ("file", str(table))
    assert output["facets"] == {
        "storage": {"storageLayer": "hudi", "fileFormat": "parquet"},
        "version": {"datasetVersion": done["instant"]},
        "lifecycleStateChange": {"lifecycleStateChange": "OVERWRITE"},
    }
    assert output["outputFacets"]["outputStatistics"]["rowCount"] == kept.num_rows


def test_a_write_has_its_source_as_input_and_overwrites_nothing(
    golden: Golden, tmp_path: Path, submitted: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = golden("9", "cow_basic").table
    real_job(monkeypatch)
    source = put_source(own_rows(table, read_rows(table).slice(0, 3)), tmp_path)
    write = HudiWriteOperator(task_id="t", table=str(table), hudi_conn_id=None, operation="upsert", source=str(source))
    done = write.execute(context(Store()))
    found = extracted(write)
    assert [(item.namespace, item.name) for item in found.inputs] == [("file", str(source))]
    (output,) = map(shown, found.outputs)
    assert output["facets"] == {
        "storage": {"storageLayer": "hudi", "fileFormat": "parquet"},
        "version": {"datasetVersion": done["instant"]},
    }
    statistics = output["outputFacets"]["outputStatistics"]
    assert [statistics[name] for name in ("rowCount", "fileCount")] == [done["records"], done["files_written"]]


def test_a_service(golden: Golden, submitted: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = golden("8", "mor_compaction_requested").table
    real_job(monkeypatch)
    compact = HudiCompactionOperator(task_id="t", table=str(table), hudi_conn_id=None)
    done = compact.execute(context(Store()))
    found = extracted(compact)
    assert [(item.namespace, item.name) for item in found.inputs] == [("file", str(table))]
    (output,) = map(shown, found.outputs)
    assert "lifecycleStateChange" not in output["facets"]
    statistics = output["outputFacets"]["outputStatistics"]
    assert [statistics[name] for name in ("rowCount", "size", "fileCount")] == [
        done[name] for name in ("records", "bytes_written", "files_written")
    ]


def test_a_query_is_a_facet_of_the_job() -> None:
    found = lineage_of([FinishedWork("s3://lake/t", "insert_overwrite", "1")], query="SELECT 1")
    assert found.job_facets["sql"].query == "SELECT 1"
    assert (found.inputs, found.outputs[0].outputFacets) == ([], {})


def test_a_task_that_did_nothing_has_no_dataset(
    golden: Golden, submitted: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = golden("8", "cow_basic").table
    compact = HudiCompactionOperator(
        task_id="t", table=str(table), hudi_conn_id=None, mode="execute", nothing_to_do="succeed"
    )
    compact.execute(context(Store()))
    found = extracted(compact)
    assert (found.inputs, found.outputs) == ([], [])


def test_who_lost_a_race_has_no_output_and_a_cleared_task_no_statistics(
    golden: Golden, submitted: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, store = golden("9", "mor_compaction_requested").table, Store()
    real_job(monkeypatch, lost_race=True)
    loser = HudiCompactionOperator(task_id="t", table=str(table), hudi_conn_id=None)
    done = loser.execute(context(store))
    assert (done["state"], done["already_completed"], done["engine"]) == ("completed", True, None)
    assert (done["seconds"], done["reason"]) == (0.0, "another process completed it")
    assert (extracted(loser).outputs, extracted(loser).inputs) == ([], [])
    mine = FinishedWork("s3://lake/t", "compaction", "1", earlier=True, records=3, bytes_written=9)
    (output,) = map(shown, lineage_of([mine]).outputs)
    assert output["facets"]["version"] == {"datasetVersion": "1"}
    assert output["outputFacets"] == {}
