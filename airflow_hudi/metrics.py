"""Airflow's metrics of work on tables and of looks at their timelines. A look reports the age of the oldest pending
instant, without a further request. It also reports how far the metadata table lags behind, by a listing of the metadata
table when the timeline has changed. Without a metrics backend nothing is read for the metrics.

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
from functools import cache
from typing import Final

from airflow.sdk import conf
from airflow.sdk.observability import stats
from airflow.sdk.observability.metrics.stats_utils import get_stats_factory

from airflow_hudi.hooks import HudiHook
from airflow_hudi.results import FinishedWork
from airflow_hudi.timeline_reader import Look, TimelineReader
from hudi_core.errors import HudiError
from hudi_core.timeline.instant import COMMIT_ACTIONS, Action
from hudi_core.timeline.instant_time import parse_instant
from hudi_core.timeline.timeline import Timeline, age_of

log = logging.getLogger(__name__)

METADATA_TABLE: Final = ".hoodie/metadata"
_RECORDED: Final = COMMIT_ACTIONS | {Action.CLEAN}
"""Actions that have a deltacommit of the same instant in the metadata table (services.metadata.catch_up)."""
_BACKENDS: Final = ("statsd_on", "statsd_datadog_enabled", "otel_on")


def is_measured() -> bool:
    return any(conf.getboolean("metrics", name, fallback=False) for name in _BACKENDS)


@cache
def start_in_triggerer() -> None:
    """Makes the triggerer send the metrics of looks: Airflow 3.3 sets up the SDK's metrics only in tasks."""
    legacy = conf.getboolean("metrics", "legacy_names_on", fallback=True)
    stats.initialize(factory=get_stats_factory(), export_legacy_names=legacy)


class LookMetrics:
    """Reports the metrics of looks at one table, if a metrics backend is on. It blocks, so call it in a thread."""

    def __init__(self, hook: HudiHook) -> None:
        self._hook = hook
        self._seen: Timeline | None = None
        self._recorded: TimelineReader | None = None

    def report(self, look: Look) -> None:
        """Reports the pending age. If the timeline has changed, lists the metadata table and reports its lag, too."""
        if not is_measured():
            return
        report_age(look)
        if look.timeline is self._seen:
            return
        self._seen = look.timeline
        try:
            if look.reader.config.metadata_partitions:
                if self._recorded is None:
                    self._recorded = self._hook.timeline(f"{look.uri}/{METADATA_TABLE}")
                lag = metadata_lag(look, self._recorded.load())
                stats.gauge("hudi.metadata_lag", lag, tags={"table": look.uri})
        except HudiError:
            self._recorded = None
            log.warning("The metrics of %s are not complete", look.uri, exc_info=True)


def report_age(look: Look) -> None:
    if is_measured():
        stats.gauge("hudi.pending_age", pending_age(look), tags={"table": look.uri})


def pending_age(look: Look) -> int:
    return max((age_of(item, look.at, look.zone) for item in look.timeline.pending()), default=0)


def metadata_lag(look: Look, recorded: Timeline) -> int:
    """Returns the seconds since the first completion of the writes and cleans that the metadata table lacks, or 0.
    Instants that are older than the metadata table's first do not count.
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


def report_work(works: Iterable[FinishedWork]) -> None:
    for work in works:
        if work.earlier:
            continue
        tags = {"table": work.table, "service": work.service}
        if work.seconds is not None:
            stats.timing("hudi.service_seconds", timedelta(seconds=work.seconds), tags=tags)
        if work.bytes_written:
            stats.incr("hudi.bytes_written", work.bytes_written, tags=tags)
