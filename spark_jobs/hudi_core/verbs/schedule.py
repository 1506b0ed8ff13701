"""schedule: plans an instant of a table service."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hudi_core.errors import ConfigError, OrphanFilesError
from hudi_core.request.choices import one_of
from hudi_core.request.results import Result
from hudi_core.request.services import SERVICES
from hudi_core.verbs.request import WHAT, Request, Work

if TYPE_CHECKING:
    from hudi_core.services.context import TableContext
    from hudi_core.services.service import Scheduled
    from hudi_core.transaction.owner import Owner


@dataclass(frozen=True, slots=True)
class ScheduleRequest(Request):
    """Plans an instant of a table service; with `dry_run` the plan is reported, and nothing is written."""

    verb = "schedule"
    service: str
    dry_run: bool = False

    def check_fields(self) -> None:
        check_service_name(self.service)

    def nothing(self, context: TableContext, owner: Owner) -> Result | None:
        planned = schedule(context, self.service, owner, dry_run=True)
        return None if planned.plan is not None else Result(document=planned.to_dict())

    def run(self, work: Work) -> Result:
        planned = schedule(work.context, self.service, work.owner, dry_run=self.dry_run)
        return Result(document=planned.to_dict())


def schedule(context: TableContext, name: str, owner: Owner, *, dry_run: bool) -> Scheduled:
    """Plans an instant of the service called `name`, or says why not; of a service without instants what it would do.

    Raises UnsupportedError for a service whose instants this release does not plan.
    """
    from hudi_core.services.service import ImmediateService, Scheduled, service_of

    service = service_of(name)
    if isinstance(service, ImmediateService):
        try:
            return service.preview(context)
        except OrphanFilesError as error:
            return Scheduled(None, None, str(error))
    return service.schedule(context, owner, dry_run=dry_run)


def check_service_name(name: str) -> None:
    """Raises ConfigError for a service that this release does not have."""
    if name not in SERVICES:
        raise ConfigError(f"{WHAT}: unknown service {name!r}", remedy=one_of(name, sorted(SERVICES)))
