"""Looks at timelines that are given by the names of their files."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timezone

from airflow_hudi.timeline_reader import Look, TimelineReader
from hudi_core.storage.local import LocalStorage
from hudi_core.timeline.naming import timeline_of
from hudi_core.timeline.timeline import Timeline

NOON = datetime(2026, 1, 2, 12, tzinfo=timezone.utc)


def look_at(
    names: Timeline | Mapping[str, float] | list[str], layout: int = 1, *, at: datetime = NOON, zone: str = "UTC"
) -> Look:
    """A look in which nothing can be read; of a mapping the values are times of modification."""
    modified: dict[str, float] = {} if isinstance(names, Timeline) else dict.fromkeys(names, 0.0)
    if isinstance(names, Mapping):
        modified |= names
    timeline = names if isinstance(names, Timeline) else timeline_of(modified, layout, modified, zone)
    return Look(timeline, at, zone, modified, TimelineReader(LocalStorage("/nowhere")))
