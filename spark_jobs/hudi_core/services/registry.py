"""From the name of a service to what runs it."""

from __future__ import annotations

from importlib import import_module

from hudi_core.request.services import check_service
from hudi_core.services.service import ImmediateService, InstantService, SchedulingService


def service_of(name: str) -> InstantService | ImmediateService:
    """The service called `name`. Raises UnsupportedError when this release has none."""
    module, _, implementation = check_service(name).implementation.partition(":")
    service: InstantService | ImmediateService = getattr(import_module(module), implementation)()
    return service


def nothing_pending(service: InstantService, table: str) -> str:
    """Why a run of the service without planning found nothing to do on `table`, and the remedy."""
    planned_here = isinstance(service, SchedulingService)
    return (
        f"no {service.name} is pending on {table}; "
        f"{'--schedule plans one' if planned_here else 'this release plans none: the writers do'}"
    )
