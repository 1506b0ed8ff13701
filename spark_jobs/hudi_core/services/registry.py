"""The services of this release by name, and on which table versions each runs."""

from __future__ import annotations

from hudi_core.config.table_config import TableConfig
from hudi_core.config.versions import require_serviced
from hudi_core.errors import UnsupportedError
from hudi_core.services.archive.service import ArchiveService
from hudi_core.services.clean.service import CleanService
from hudi_core.services.compaction.service import CompactionService
from hudi_core.services.rollback.service import RollbackService
from hudi_core.services.service import ImmediateService, SchedulingService, Service

_SERVICES: dict[str, Service | ImmediateService] = {
    service.name: service for service in (ArchiveService(), CleanService(), CompactionService(), RollbackService())
}
_REWRITES_ROWS = frozenset({CompactionService.name})


def service_of(name: str, config: TableConfig) -> Service | ImmediateService:
    """The service called `name`. Raises UnsupportedError when this release has none, or does not run it on the table's version."""
    service = _SERVICES.get(name)
    if service is None:
        raise UnsupportedError(f"the service {name} is not in this release", remedy=f"this release runs: {', '.join(sorted(_SERVICES))}")
    if name in _REWRITES_ROWS:
        require_serviced(config.features, config.path)
    return service


def is_run_on(name: str, config: TableConfig) -> bool:
    """Whether this release has the service called `name` and runs it on the table's version."""
    return name in _SERVICES and (config.features.serviced or name not in _REWRITES_ROWS)


def nothing_pending(name: str, table: str) -> str:
    """Why a run of the service called `name` that was not asked to plan found nothing to do on `table`, and what would change it."""
    planned_here = isinstance(_SERVICES.get(name), SchedulingService)
    return f"no {name} is pending on {table}; {'--schedule plans one' if planned_here else 'this release plans none: the writers do'}"
