"""In which time zone a table's instants are written."""

from __future__ import annotations

from collections.abc import Mapping

from hudi_core.config.service_config import TIMELINE_ZONE
from hudi_core.config.table_config import TableConfig


def timeline_zone(config: TableConfig, options: Mapping[str, str]) -> str:
    """The zone's name for timeline.instant_time: UTC when the table's properties say so, else the option, else LOCAL (this process's zone).

    `hoodie.table.timeline.timezone` = LOCAL means the zone of whatever process wrote the table, which the table does not record.
    """
    return config.timezone if config.timezone == "UTC" else TIMELINE_ZONE.read(options)
