"""The services of this release, one line each, and whether a run of one takes a pending plan or makes one (next_step).

The only list of service names.

Standard library only, and the implementations are named, not imported: Airflow checks names without the engine.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final

from hudi_core.errors import UnsupportedError
from hudi_core.request.choices import one_of


@dataclass(frozen=True, slots=True)
class ServiceEntry:
    """`implementation` is `module:class`, imported when the service is used. `on_driver`: it is requests to the storage
    and no work on rows or on many files at a time. `units` is what its progress counts. `conditions` are those that
    make it due besides its own triggers (request/conditions.py).
    """

    implementation: str
    on_driver: bool = False
    units: str = "steps done"
    conditions: tuple[str, ...] = ()


SERVICES: Final[dict[str, ServiceEntry]] = {
    "compaction": ServiceEntry(
        "hudi_core.services.compaction.planner:CompactionService",
        units="file groups written",
        conditions=("commits", "age", "bytes", "log_ratio"),
    ),
    "clustering": ServiceEntry(
        "hudi_core.services.clustering.planner:ClusteringService",
        units="file groups read",
        conditions=("commits", "age", "bytes", "small_files"),
    ),
    "log_compaction": ServiceEntry(
        "hudi_core.services.log_compaction.planner:LogCompactionService", units="file groups written"
    ),
    "clean": ServiceEntry(
        "hudi_core.services.clean.planner:CleanService",
        units="batches of files deleted",
        conditions=("commits", "age"),
    ),
    "indexing": ServiceEntry("hudi_core.services.indexing.planner:IndexingService"),
    "rollback": ServiceEntry("hudi_core.services.rollback.verb:RollbackService", on_driver=True),
    "archive": ServiceEntry("hudi_core.services.archive.job:ArchiveService", on_driver=True),
}
_NAMES: Final = {"logcompaction": "log_compaction"}
"""Services by their action, where the two differ."""


def check_service(name: str) -> ServiceEntry:
    """The service called `name`. Raises UnsupportedError where this release has none."""
    entry = SERVICES.get(name)
    if entry is None:
        raise UnsupportedError(f"the service {name} is not in this release", remedy=one_of(name, sorted(SERVICES)))
    return entry


def service_of_action(action: str) -> str | None:
    """The service whose plans are pending under `action` of the timeline; None for a write, and for a replacecommit,
    which in layout 1 may be a clustering by its plan (timeline.pending_plans).
    """
    name = _NAMES.get(action, action)
    return name if name in SERVICES else None


def action_of_service(name: str) -> str:
    """The inverse: the action of the pending files of the service called `name`."""
    return next((action for action, service in _NAMES.items() if service == name), name)


class Step(Enum):
    """What a run that names no instant does."""

    RUN = "run"
    PLAN = "plan"
    NOTHING = "nothing"


def next_step(*, is_pending: bool, schedule: bool) -> Step:
    """A run takes what is pending; only where nothing is, and `schedule` says so, is an instant planned first."""
    if is_pending:
        return Step.RUN
    return Step.PLAN if schedule else Step.NOTHING


def nothing_pending(service: str, table: str) -> str:
    """Why a run of the service that plans nothing found nothing to do on the table of that name, and the remedy."""
    return f"no {service} is pending on {table}; --schedule plans one"
