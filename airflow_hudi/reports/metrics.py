"""Airflow's metrics of tables and of work on them; without a metrics backend nothing is read for them.

| metric | kind | tags |
|---|---|---|
| hudi.service_seconds | timing, milliseconds in StatsD | table, service |
| hudi.bytes_written | counter | table, service |
| hudi.pending_age | gauge, seconds since the oldest pending instant was requested, 0 without one | table |
| hudi.metadata_lag | gauge, seconds since the oldest write that the metadata table lacks was completed | table |
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from datetime import timedelta
from typing import Final

from airflow.sdk.observability import stats

from airflow_hudi.hooks.hudi import HudiHook
from airflow_hudi.look_metrics import report_look
from airflow_hudi.reports.finished_work import FinishedWork
from airflow_hudi.timeline_reader import Look
from hudi_core.errors import HudiError
from hudi_core.timeline.instant import COMMIT_ACTIONS, Action
from hudi_core.timeline.instant_time import parse_instant
from hudi_core.timeline.timeline import Timeline

log = logging.getLogger(__name__)

METADATA_TABLE: Final = ".hoodie/metadata"
_RECORDED: Final = COMMIT_ACTIONS | {Action.CLEAN}
"""Each of these has a deltacommit of the same instant in the metadata table (services.metadata.missing_actions)."""


def report_work(works: Iterable[FinishedWork]) -> None:
    """The seconds and bytes of work, once."""
    for item in works:
        if item.earlier:
            continue
        tags = {"table": item.table, "service": item.service}
        if item.seconds is not None:
            stats.timing("hudi.service_seconds", timedelta(seconds=item.seconds), tags=tags)
        if item.bytes_written:
            stats.incr("hudi.bytes_written", item.bytes_written, tags=tags)


def report_table(hook: HudiHook, look: Look) -> None:
    """The pending age and the metadata lag of a table: one listing of its metadata table, if it has one, and a warning
    where that cannot be read.
    """
    report_look(look)
    try:
        if look.reader.config.metadata_partitions:
            recorded = hook.timeline(f"{look.uri}/{METADATA_TABLE}").load()
            stats.gauge("hudi.metadata_lag", metadata_lag(look, recorded), tags={"table": look.uri})
    except HudiError:
        log.warning("The metrics of %s are not complete", look.uri, exc_info=True)


def metadata_lag(look: Look, recorded: Timeline) -> int:
    """Seconds since the completion of the oldest write or clean that the metadata table's timeline lacks; 0 where it
    lacks none. What is older than that timeline is in the metadata table by its initialization or its archive.
    """
    known = recorded.completed().requested_times
    start = min(known, default="")
    lacking = [
        look.completed_at(item)
        for item in look.timeline.completed()
        if item.action in _RECORDED and item.requested_time > start and item.requested_time not in known
    ]
    if not known or not lacking:
        return 0
    return max(0, int((look.at - parse_instant(min(lacking), look.zone)).total_seconds()))
