"""Says in the asset events of a task what it has done to which table."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

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
from airflow_hudi.task_fate import may_pass
from airflow_hudi.timeline_reader import Look
from airflow_hudi.triggers.timeline_events import instant_details
from hudi_core.errors import HudiError

log = logging.getLogger(__name__)

_LOOKS: Final = 3
_LOOK_AGAIN_SECONDS: Final = 5.0


def describe_events(
    outlets: Iterable[Any],
    outlet_events: Any,
    works: Sequence[FinishedWork],
    look_of: Callable[[str], Look],
) -> None:
    """Fills in the events of a task's outlets.

    The event of a table's asset (assets.table_asset) has the payload of HudiTimelineEventTrigger as its extra, with the
    instants that the task, or an earlier try of it, completed. That of `changed_partitions_asset` is one for each
    partition whose rows they changed. An AssetAlias gets an event of the asset of each table that something was done
    to, which is for tasks whose tables are not known when the DAG is parsed. Other outlets are left alone. A table that
    cannot be read is looked at again after some seconds where that may help; then it has no event, and the log says
    why.
    """
    aliases = [item for item in outlets if isinstance(item, AssetAlias)]
    assets = {item.uri: item for item in outlets if isinstance(item, Asset) and item.uri.startswith(f"{SCHEME}://")}
    if not aliases and not assets:
        return
    left = list(dict.fromkeys(item.table for item in works))
    for looks in reversed(range(_LOOKS)):
        again = []
        for table in left:
            try:
                payload = _payload(look_of(table), table, works)
            except HudiError as error:
                if looks and may_pass(error):
                    again.append(table)
                else:
                    log.warning("The work on %s is done, and has no event: %s", table, error, exc_info=True)
                continue
            if payload["instants"]:
                _describe(payload, aliases, assets, outlet_events)
        left = again
        if not left:
            return
        time.sleep(_LOOK_AGAIN_SECONDS)


def _describe(
    payload: dict[str, Any], aliases: Iterable[AssetAlias], assets: Mapping[str, Asset], outlet_events: Any
) -> None:
    """The events of one table."""
    table = payload["table"]
    for alias in aliases:
        outlet_events[alias].add(table_asset(table), extra=payload)
    if asset_uri(table) in assets:
        outlet_events[assets[asset_uri(table)]].extra = payload
    changed = assets.get(changed_partitions_asset(table).uri)
    if changed is not None:
        add_partitions(outlet_events[changed], event_partitions(payload))


def _payload(look: Look, table: str, works: Sequence[FinishedWork]) -> dict[str, Any]:
    done = {item.instant for item in works if item.table == table and not item.elsewhere}
    found = [item for item in look.timeline.completed() if item.requested_time in done]
    return {
        "table": table,
        "state": "completed",
        "instants": [instant_details(look.reader, item) for item in found],
    }
