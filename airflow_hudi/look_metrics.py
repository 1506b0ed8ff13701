"""The metric that each look at a table's timeline gives at no further request: how old the oldest pending instant is.

reports/metrics.py lists all metrics.
"""

from __future__ import annotations

from functools import cache
from typing import Final

from airflow.sdk import conf
from airflow.sdk.observability import stats
from airflow.sdk.observability.metrics.stats_utils import get_stats_factory

from airflow_hudi.timeline_reader import Look
from hudi_core.timeline.pending_age import age_of

_BACKENDS: Final = ("statsd_on", "statsd_datadog_enabled", "otel_on")


def is_measured() -> bool:
    """Whether Airflow sends metrics anywhere."""
    return any(conf.getboolean("metrics", name, fallback=False) for name in _BACKENDS)


@cache
def start_in_triggerer() -> None:
    """Makes the triggerer send what report_look reports: Airflow 3.3 sets the SDK's metrics up in tasks alone."""
    legacy = conf.getboolean("metrics", "legacy_names_on", fallback=True)
    stats.initialize(factory=get_stats_factory(), export_legacy_names=legacy)


def report_look(look: Look) -> None:
    """The pending age of the table, where it is sent anywhere."""
    if is_measured():
        stats.gauge("hudi.pending_age", pending_age(look), tags={"table": look.uri})


def pending_age(look: Look) -> int:
    """Seconds since the oldest pending instant was requested; 0 without one."""
    return max((age_of(item, look.at, look.zone) for item in look.timeline.pending()), default=0)
