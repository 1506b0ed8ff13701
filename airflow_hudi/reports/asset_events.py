"""Says in the asset events of a task what it has done to which table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from airflow.sdk import Asset, AssetAlias

from airflow_hudi.assets import (
    SCHEME,
    add_partitions,
    asset_uri,
    changed_partitions_asset,
    event_partitions,
    table_asset,
)
from airflow_hudi.reports.finished_work import FinishedWork
from airflow_hudi.timeline_reader import Look
from airflow_hudi.triggers.timeline_events import instant_details


def describe_events(
    outlets: Iterable[Any],
    outlet_events: Any,
    works: Sequence[FinishedWork],
    look_of: Callable[[str], Look],
) -> None:
    """Fills in the events of a task's outlets.

    The event of a table's asset (assets.table_asset) has the payload of HudiTimelineEventTrigger as its extra, with the
    instants that the task completed. That of `changed_partitions_asset` is one for each partition whose rows they
    changed. An AssetAlias gets an event of the asset of each table that something was done to, which is for tasks whose
    tables are not known when the DAG is parsed. Other outlets are left alone.
    """
    aliases = [item for item in outlets if isinstance(item, AssetAlias)]
    assets = {item.uri: item for item in outlets if isinstance(item, Asset) and item.uri.startswith(f"{SCHEME}://")}
    if not aliases and not assets:
        return
    for table in dict.fromkeys(item.table for item in works):
        payload = _payload(look_of(table), table, works)
        if not payload["instants"]:
            continue
        for alias in aliases:
            outlet_events[alias].add(table_asset(table), extra=payload)
        if asset_uri(table) in assets:
            outlet_events[assets[asset_uri(table)]].extra = payload
        changed = assets.get(changed_partitions_asset(table).uri)
        if changed is not None:
            add_partitions(outlet_events[changed], event_partitions(payload))


def _payload(look: Look, table: str, works: Sequence[FinishedWork]) -> dict[str, Any]:
    done = {item.instant for item in works if item.table == table}
    found = [item for item in look.timeline.completed() if item.requested_time in done]
    return {
        "table": table,
        "state": "completed",
        "instants": [instant_details(look.reader, item) for item in found],
    }
