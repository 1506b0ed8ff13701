"""The services of this release by name. Each runs on all table versions; what one refuses of a table, its own checks
say.
"""

from __future__ import annotations

from hudi_core.errors import UnsupportedError
from hudi_core.services.archive.job import ArchiveService
from hudi_core.services.clean.planner import CleanService
from hudi_core.services.compaction.job import CompactionService
from hudi_core.services.indexing.planner import IndexingService
from hudi_core.services.rollback.planner import RollbackService
from hudi_core.services.service import ImmediateService, InstantService, SchedulingService

_SERVICES: dict[str, InstantService | ImmediateService] = {
    service.name: service
    for service in (ArchiveService(), CleanService(), CompactionService(), IndexingService(), RollbackService())
}


def service_of(name: str) -> InstantService | ImmediateService:
    """The service called `name`. Raises UnsupportedError when this release has none."""
    service = _SERVICES.get(name)
    if service is None:
        raise UnsupportedError(
            f"the service {name} is not in this release", remedy=f"this release runs: {', '.join(sorted(_SERVICES))}"
        )
    return service


def is_run(name: str) -> bool:
    """Whether this release has the service called `name`."""
    return name in _SERVICES


def nothing_pending(name: str, table: str) -> str:
    """Why a run of the service called `name` that was not asked to plan found nothing to do on `table`, and what would
    change it.
    """
    planned_here = isinstance(_SERVICES.get(name), SchedulingService)
    return (
        f"no {name} is pending on {table}; "
        f"{'--schedule plans one' if planned_here else 'this release plans none: the writers do'}"
    )
