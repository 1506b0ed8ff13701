"""Airflow's metrics of tables and of work on them; without a metrics backend nothing is read for them. look_metrics.py
sends those of a table.

| metric | kind | tags |
|---|---|---|
| hudi.service_seconds | timing, milliseconds in StatsD | table, service |
| hudi.bytes_written | counter | table, service |
| hudi.pending_age | gauge, seconds since the oldest pending instant was requested, 0 without one | table |
| hudi.metadata_lag | gauge, seconds since the oldest write that the metadata table lacks was completed | table |
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta

from airflow.sdk.observability import stats

from airflow_hudi.reports.finished_work import FinishedWork


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
