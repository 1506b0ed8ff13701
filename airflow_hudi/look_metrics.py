"""The metrics that looks at a table's timeline give: how old the oldest pending instant is, at no further request, and
how far the metadata table lags behind, by a listing of it where the timeline has changed.

reports/metrics.py lists all metrics.
"""

from __future__ import annotations

import logging
from functools import cache
from typing import Final

from airflow.sdk import conf
from airflow.sdk.observability import stats
from airflow.sdk.observability.metrics.stats_utils import get_stats_factory

from airflow_hudi.hooks.hudi import HudiHook
from airflow_hudi.timeline_reader import Look, TimelineReader
from hudi_core.errors import HudiError
from hudi_core.timeline.instant import COMMIT_ACTIONS, Action
from hudi_core.timeline.instant_time import parse_instant
from hudi_core.timeline.timeline import Timeline, age_of

log = logging.getLogger(__name__)

METADATA_TABLE: Final = ".hoodie/metadata"
_RECORDED: Final = COMMIT_ACTIONS | {Action.CLEAN}
"""Each of these has a deltacommit of the same instant in the metadata table (services.metadata.catch_up)."""
_BACKENDS: Final = ("statsd_on", "statsd_datadog_enabled", "otel_on")


def is_measured() -> bool:
    """Whether Airflow sends metrics anywhere."""
    return any(conf.getboolean("metrics", name, fallback=False) for name in _BACKENDS)


@cache
def start_in_triggerer() -> None:
    """Makes the triggerer send what looks report: Airflow 3.3 sets the SDK's metrics up in tasks alone."""
    legacy = conf.getboolean("metrics", "legacy_names_on", fallback=True)
    stats.initialize(factory=get_stats_factory(), export_legacy_names=legacy)


class LookMetrics:
    """What the looks at one table in this process report, where it is sent anywhere. Blocks: for threads."""

    def __init__(self, hook: HudiHook) -> None:
        self._hook = hook
        self._seen: Timeline | None = None
        self._recorded: TimelineReader | None = None
        """Of the metadata table, whose properties are read once."""

    def report(self, look: Look) -> None:
        """The pending age and, of a timeline that is another than at the last look, the metadata lag: one listing of
        the metadata table, if there is one, and a warning where that cannot be read.
        """
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
    """The pending age alone, where it is sent anywhere."""
    if is_measured():
        stats.gauge("hudi.pending_age", pending_age(look), tags={"table": look.uri})


def pending_age(look: Look) -> int:
    """Seconds since the oldest pending instant was requested; 0 without one."""
    return max((age_of(item, look.at, look.zone) for item in look.timeline.pending()), default=0)


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
