"""Makes the lineage of a task for OpenLineage, if OpenLineage's provider is installed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from airflow_hudi.assets import TABLE
from airflow_hudi.hooks import is_absolute, split_address
from airflow_hudi.results import OVERWRITES, WRITES, FinishedWork

_REPLACES: Final = frozenset(name.lower() for name in OVERWRITES)
_WRITES: Final = frozenset(name.lower() for name in WRITES)


def dataset_name(address: str) -> tuple[str, str]:
    """Returns OpenLineage's namespace and name of a table or folder: `("s3://bucket", "path")`, `("file", "/path")`."""
    scheme, place, path = split_address(address)
    if scheme == "file":
        return scheme, path.rstrip("/") or "/"
    return f"{scheme}://{place}", path.strip("/") or "/"


def _named(address: str) -> dict[str, Any]:
    namespace, name = dataset_name(address)
    return {"namespace": namespace, "name": name}


def dataset_of_asset(asset: Any, lineage_context: Any) -> Any:
    """Returns the dataset of an asset, or None without an absolute table. It is Airflow's converter of the scheme."""
    try:
        from openlineage.client.event_v2 import Dataset
    except ImportError:
        return None
    table = asset.extra.get(TABLE)
    if not isinstance(table, str) or not is_absolute(table):
        return None
    return Dataset(**_named(table))


def lineage_of(works: Sequence[FinishedWork], source: str | None = None, query: str | None = None) -> Any:
    """Returns the `OperatorLineage` of a task, or None without OpenLineage's provider. Each table that the task, or an
    earlier try of it, changed is an output. The output has the last instant as its version, a facet for an overwrite,
    and the rows and bytes that this try wrote. The table of a service is an input, too; the input of a write or an
    overwrite is its `source`. `query` is a facet of the job.
    """
    try:
        from airflow.providers.openlineage.extractors import OperatorLineage
        from openlineage.client.event_v2 import InputDataset, OutputDataset
        from openlineage.client.facet_v2 import sql_job
    except ImportError:
        return None
    works = [item for item in works if not item.elsewhere]
    outputs, inputs = [], []
    for table in dict.fromkeys(item.table for item in works):
        of_table = [item for item in works if item.table == table]
        facets: dict[str, Any] = {"facets": _facets(of_table), "outputFacets": _output_facets(of_table)}
        outputs.append(OutputDataset(**_named(table), **facets))
        if any(item.service not in _WRITES for item in of_table):
            inputs.append(InputDataset(**_named(table)))
    if source:
        inputs.append(InputDataset(**_named(source)))
    job = {"sql": sql_job.SQLJobFacet(query=query)} if query else {}
    return OperatorLineage(inputs=inputs, outputs=outputs, job_facets=job)


def _facets(works: Sequence[FinishedWork]) -> dict[str, Any]:
    from openlineage.client.facet_v2 import dataset_version_dataset, lifecycle_state_change_dataset, storage_dataset

    facets: dict[str, Any] = {"storage": storage_dataset.StorageDatasetFacet(storageLayer="hudi", fileFormat="parquet")}
    if instants := [item.instant for item in works if item.instant]:
        facets["version"] = dataset_version_dataset.DatasetVersionDatasetFacet(datasetVersion=max(instants))
    if any(item.service in _REPLACES for item in works):
        change = lifecycle_state_change_dataset.LifecycleStateChange.OVERWRITE
        facets["lifecycleStateChange"] = lifecycle_state_change_dataset.LifecycleStateChangeDatasetFacet(
            lifecycleStateChange=change
        )
    return facets


def _output_facets(works: Sequence[FinishedWork]) -> dict[str, Any]:
    from openlineage.client.facet_v2 import output_statistics_output_dataset

    works = [item for item in works if not item.earlier]
    if all(item.records is None for item in works):
        return {}
    return {
        "outputStatistics": output_statistics_output_dataset.OutputStatisticsOutputDatasetFacet(
            rowCount=sum(item.records or 0 for item in works),
            size=sum(item.bytes_written or 0 for item in works) or None,
            fileCount=sum(item.files_written or 0 for item in works) or None,
        )
    }
