"""Finds the partitions that writes have changed, and makes an asset event of each. hudi_cluster_partition runs for each
event.

The triggerer looks at the table's timeline. An event of completed writes starts a run, which reads the changed
partitions from the events. Compactions and clusterings change no rows, so they do not count.

| param | environment |
|---|---|
| partitions | -: partitions by name, separated by commas, instead of those of events |

Only the environment sets the watched table and the interval: AIRFLOW_HUDI_WATCHED_TABLE, AIRFLOW_HUDI_CONN_ID and
AIRFLOW_HUDI_POLL_SECONDS (else 10). Without a watched table the DAG runs when triggered.
"""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

from airflow.sdk import DAG, task
from airflow.sdk.exceptions import AirflowSkipException

from airflow_hudi.arguments import names_in
from airflow_hudi.assets import (
    add_partitions,
    changed_partitions_asset,
    watched_assets,
    watched_changes,
    written_partitions,
)
from airflow_hudi.dag_params import RUN_TYPES, optional_text

CHANGED = watched_changes() or changed_partitions_asset("/none")


@task(outlets=[CHANGED], retries=3, retry_delay=timedelta(minutes=1))
def find_changed(
    params: dict[str, Any] | None = None, triggering_asset_events: Any = None, outlet_events: Any = None
) -> list[str]:
    """Makes an asset event of each changed partition, and returns the partitions."""
    named = names_in(str((params or {}).get("partitions") or ""))
    found = sorted(named or written_partitions(triggering_asset_events or {}))
    if not found:
        raise AirflowSkipException("no write has changed a partition")
    add_partitions(outlet_events[CHANGED], found)
    return found


with DAG(
    dag_id="hudi_changed_partitions",
    dag_display_name="Hudi: find the partitions that writes changed",
    schedule=watched_assets(state="completed"),
    start_date=datetime(2024, 1, 1, tzinfo=timezone.utc),
    catchup=False,
    max_active_runs=1,  # Airflow joins the events that come before a run starts into one run.
    allowed_run_types=RUN_TYPES,
    tags=["hudi", "events"],
    doc_md=__doc__,
    params={"partitions": optional_text("Partitions, separated by commas; empty: those of the events")},
) as dag:
    find_changed()
