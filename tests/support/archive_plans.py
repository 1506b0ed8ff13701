"""Plans of an archival over timelines made for them: an instant is a number."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from hudi_core.config.services.retention_config import ArchiveConfig
from hudi_core.services.archive.planner import NOT_LISTED, ArchiveInputs, ArchivePlan, Findings, plan_archival
from hudi_core.timeline.instant import Instant, State, completed_action
from hudi_core.timeline.timeline import Timeline

FEW = ArchiveConfig(keep_min=2, keep_max=4, delta_commits=None)


def done(time: int, action: str = "commit", completion: int | None = None) -> Instant:
    return Instant(
        f"{time:03d}",
        completed_action(action),
        State.COMPLETED,
        None if completion is None else f"{completion:03d}",
        action,
    )


def open_(time: int, action: str = "commit", state: State = State.INFLIGHT) -> Instant:
    return Instant(f"{time:03d}", action, state, None, action)


def commits(*times: int) -> list[Instant]:
    return [done(time) for time in times]


def plan(
    instants: Iterable[Instant], config: ArchiveConfig = FEW, findings: Findings = NOT_LISTED, **inputs: Any
) -> ArchivePlan:
    return plan_archival(ArchiveInputs(Timeline(instants), **inputs), config, findings)


def times(found: ArchivePlan) -> list[int]:
    return [int(item.requested_time) for item in found.instants]
