"""Assets of Hudi tables, `hudi://…`: their addresses, and asset events about changes on the tables' timelines."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final
from urllib.parse import SplitResult, quote

from airflow.sdk import Asset, AssetAlias, AssetWatcher

from airflow_hudi.arguments import suggests_names
from airflow_hudi.conditions.writes import SERVICE_OPERATIONS
from airflow_hudi.dag_params import number_in
from airflow_hudi.hooks import HudiHook, is_absolute, split_address
from airflow_hudi.results import FinishedWork
from airflow_hudi.task_fate import may_pass
from airflow_hudi.timeline_reader import Look
from airflow_hudi.triggers.timeline_events import (
    PENDING,
    REPEAT_SECONDS,
    HudiTimelineEventTrigger,
    instant_details,
)
from hudi_core.errors import ConfigError, HudiError
from hudi_core.request.secrets import refuse_secret_address

log = logging.getLogger(__name__)

SCHEME = "hudi"
LONGEST_KEY = 250
"""The longest partition key of an asset event that Airflow's database takes, in characters."""
POLL_SECONDS = 10.0
TABLE = "table"
"""The key of the table's address in an asset's extra. The address of the asset does not contain the table's scheme."""
_LOOKS: Final = 3
_LOOK_AGAIN_SECONDS: Final = 5.0


def sanitize_uri(uri: SplitResult) -> SplitResult:
    """Checks an address of the form `hudi://bucket/path`. It is Airflow's handler of the scheme. Raises ValueError."""
    if not uri.netloc or not uri.path.strip("/"):
        raise ValueError("an asset of Hudi has the form hudi://bucket/path/of/table, or hudi://local/path of a folder")
    if uri.query or uri.fragment:
        raise ValueError("an asset of Hudi has neither a query nor a fragment")
    return uri._replace(path="/" + uri.path.strip("/"))


def asset_uri(table: str, hudi_conn_id: str | None = None) -> str:
    """Returns the address of a table's asset. It is `hudi://BUCKET/…` for a URI of any scheme, `hudi://local/…` for a
    path, and `hudi://conn=CONNECTION/…` for a table below a connection's base path: no bucket and no host has such a
    name. The path's `#` and `?` are escaped, because Airflow cuts a URI there, and therefore `%`, too. Raises
    ConfigError for an address with secrets, and for a table below a base path without a connection.
    """
    refuse_secret_address(table, what="the address of the table")
    _, place, path = split_address(table)
    if not is_absolute(table):
        if not hudi_conn_id:
            raise ConfigError(
                f"the table {table!r} is not absolute, and its asset needs the place of the table",
                remedy="give the table's URI or its absolute path",
            )
        place = f"conn={quote(hudi_conn_id, safe='')}"
    for character, escape in (("%", "%25"), ("#", "%23"), ("?", "%3F")):
        path = path.replace(character, escape)
    return f"{SCHEME}://{place or 'local'}/{path.strip('/')}"


def create_asset(*, uri: str, name: str | None = None, **given: Any) -> Asset:
    """Creates an asset of the scheme. It is Airflow's factory."""
    return Asset(uri=uri, name=name or uri, **given)


def table_asset(table: str, *, group: str = SCHEME) -> Asset:
    """Returns the asset of a table, for the outlets of tasks that change it and the schedules of DAGs that read it. The
    asset has an event whenever such a task has done something; see describe_events.

    :param table: the table's URI, or its absolute path. A path below a base path raises ConfigError: a task that has
        changed the table names its URI, so the asset of another address would have no event.
    """
    uri = asset_uri(table)
    return Asset(name=uri, uri=uri, group=group, extra={TABLE: table})


@suggests_names
def hudi_asset(
    table: str,
    *,
    name: str | None = None,
    state: str = PENDING,
    actions: Sequence[str] = (),
    hudi_conn_id: str | None = HudiHook.default_conn_name,
    poll_interval: float = POLL_SECONDS,
    repeat_seconds: float = REPEAT_SECONDS,
    group: str = SCHEME,
) -> Asset:
    """Returns an asset for the schedule of a DAG. It has an event whenever the table's timeline shows something new, or
    an instant stays pending there. The triggerer looks at the table while such a DAG is active. Airflow joins the
    events that come before a run starts into one run, so a run should run everything that is pending, and not only the
    instants of one event. HudiTimelineEventTrigger describes the arguments and the contents of an event. Airflow keeps
    one watcher of an asset, from the DAG file that it has parsed last: so the asset's address says what its watcher
    does (docs/use/fleets.md#events).

    :param table: the table's URI, or its path below the connection's base path
    :param name: the name of the asset; its address without one
    """
    named = [state, *actions]
    if poll_interval != POLL_SECONDS:
        named.append(f"every-{poll_interval:g}s")
    if repeat_seconds != REPEAT_SECONDS:
        named.append(f"repeat-{repeat_seconds:g}s")
    uri = f"{asset_uri(table, hudi_conn_id)}/{'-'.join(named)}"
    trigger = HudiTimelineEventTrigger(
        table=table,
        hudi_conn_id=hudi_conn_id,
        state=state,
        actions=actions,
        poll_interval=poll_interval,
        repeat_seconds=repeat_seconds,
    )
    watcher = AssetWatcher(name=f"{uri} watcher", trigger=trigger)
    return Asset(name=name or uri, uri=uri, group=group, extra={TABLE: table}, watchers=[watcher])


def watched_assets(*, state: str = PENDING) -> list[Asset] | None:
    """Returns a DAG's schedule: the asset of the table in AIRFLOW_HUDI_WATCHED_TABLE; None without one. Its arguments
    are AIRFLOW_HUDI_CONN_ID, AIRFLOW_HUDI_POLL_SECONDS (else 10) and AIRFLOW_HUDI_REPEAT_SECONDS (else 900).
    """
    table = os.environ.get("AIRFLOW_HUDI_WATCHED_TABLE")
    if not table:
        return None
    return [
        hudi_asset(
            table,
            state=state,
            hudi_conn_id=_watched_conn_id(),
            poll_interval=number_in("AIRFLOW_HUDI_POLL_SECONDS", POLL_SECONDS),
            repeat_seconds=number_in("AIRFLOW_HUDI_REPEAT_SECONDS", REPEAT_SECONDS),
        )
    ]


def watched_changes() -> Asset | None:
    """Returns the changed_partitions_asset of the table in AIRFLOW_HUDI_WATCHED_TABLE, else in AIRFLOW_HUDI_TABLE, by
    the connection in AIRFLOW_HUDI_CONN_ID. Returns None without a table.
    """
    table = os.environ.get("AIRFLOW_HUDI_WATCHED_TABLE") or os.environ.get("AIRFLOW_HUDI_TABLE")
    return changed_partitions_asset(table, hudi_conn_id=_watched_conn_id()) if table else None


def _watched_conn_id() -> str:
    return os.environ.get("AIRFLOW_HUDI_CONN_ID") or HudiHook.default_conn_name


def changed_partitions_asset(table: str, *, hudi_conn_id: str | None = None) -> Asset:
    """Returns the asset that has an event for each partition of the table that writes have changed. The partition is
    the partition key of the event. The DAG hudi_changed_partitions makes these events. The tasks of this package that
    have the asset as an outlet make them, too.

    :param table: the table's URI, or its absolute path, as for table_asset
    :param hudi_conn_id: the connection of a table that is a path below its base path. Tasks make no events for such a
        table; a DAG makes them itself with add_partitions
    """
    uri = f"{asset_uri(table, hudi_conn_id)}/changed-partitions"
    return Asset(name=uri, uri=uri, group=SCHEME, extra={TABLE: table})


def add_partitions(event: Any, names: Iterable[str]) -> None:
    """Makes an event of each partition name. It omits names too long for a partition key, and logs how many."""
    found = sorted(names)
    keys = [name for name in found if len(name) <= LONGEST_KEY]
    if len(keys) < len(found):
        log.warning("%d partitions have longer names than a partition key has", len(found) - len(keys))
    if keys:
        event.add_partitions(keys)


def written_partitions(events: Mapping[Any, Iterable[Any]]) -> set[str]:
    """Returns the partitions that writes changed, by the `triggering_asset_events` of a run; see event_partitions."""
    found: set[str] = set()
    for of_asset in events.values():
        for event in of_asset:
            found |= event_partitions(event.extra.get("payload") or event.extra)
    return found


def event_partitions(payload: Mapping[str, Any]) -> set[str]:
    """Returns the partitions whose rows an event's instants changed; none for a table without partitions."""
    found: set[str] = set()
    for instant in payload.get("instants") or ():
        if str(instant.get("operation") or "").upper() not in SERVICE_OPERATIONS:
            found.update(instant.get("partitions") or ())
    return found - {""}


def describe_events(
    outlets: Iterable[Any],
    outlet_events: Any,
    works: Sequence[FinishedWork],
    look_of: Callable[[str], Look],
) -> None:
    """Fills in the events of a task's outlets: of table_asset, of changed_partitions_asset, and of an AssetAlias
    (docs/use/fleets.md#events). They hold the instants that the task, or an earlier try of it, completed. Where a table
    cannot be read and another look may help, it looks again after some seconds.
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
