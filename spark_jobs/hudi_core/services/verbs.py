"""Dispatch of a request: one function for each class of request/requests.py."""

from __future__ import annotations

from hudi_core.engine.protocol import Engine, Json
from hudi_core.errors import OrphanFilesError
from hudi_core.request import overwrites, requests
from hudi_core.request.requests import ProbeStoreRequest, Request, RunRequest
from hudi_core.request.results import RunResult
from hudi_core.services.context import TableContext
from hudi_core.services.doctor.examine import examine
from hudi_core.services.doctor.wheels import read_executors
from hudi_core.services.metadata.verbs import perform_metadata
from hudi_core.services.overwrite.verb import delete_partitions, insert_overwrite
from hudi_core.services.repair.takeover import takeover
from hudi_core.services.repair.unschedule import unschedule
from hudi_core.services.restore.candidates import restorable_instants
from hudi_core.services.restore.savepoint import savepoint_create, savepoint_delete
from hudi_core.services.restore.verb import RestoreResult, restore
from hudi_core.services.rollback.verb import rollback
from hudi_core.services.runner import Choose, Progress, ServiceRunner, find_work
from hudi_core.services.service import ImmediateService, Scheduled, service_of
from hudi_core.storage.base import Storage
from hudi_core.storage.probe import probe
from hudi_core.transaction.owner import Owner


def perform(
    context: TableContext,
    request: Request,
    engine: Engine,
    owner: Owner,
    progress: Progress | None = None,
    choose: Choose | None = None,
) -> RunResult:
    """Does what the request says; `choose` as of ServiceRunner. Errors are those of the function that does it."""
    match request:
        case RunRequest():
            return ServiceRunner(context, engine, owner, progress, choose).run(request)
        case requests.DoctorRequest():
            report = examine(context, files=not request.timeline_only, executors=read_executors(engine))
            return RunResult(document=report.to_dict())
        case (
            requests.MetadataCreateRequest()
            | requests.MetadataUpdateRequest()
            | requests.MetadataDropRequest()
            | requests.MetadataValidateRequest()
        ):
            return RunResult(document=perform_metadata(context, request, engine, owner))
        case overwrites.InsertOverwriteRequest():
            return RunResult(document=insert_overwrite(context, request, engine, owner, progress).to_dict())
        case overwrites.DeletePartitionRequest():
            return RunResult(document=delete_partitions(context, request, engine, owner, progress).to_dict())
        case ProbeStoreRequest():
            return probe_store(context.storage, request)
        case _:
            return RunResult(document=_perform_on_driver(context, request, owner))


def _perform_on_driver(context: TableContext, request: Request, owner: Owner) -> Json:
    """The verbs that need no engine: they plan, or undo and keep instants."""
    match request:
        case requests.ScheduleRequest(service=service, dry_run=dry_run):
            return schedule(context, service, owner, dry_run=dry_run).to_dict()
        case requests.RollbackRequest(instant=instant, dry_run=dry_run, unless_completed=unless_completed):
            return rollback(context, instant, owner, dry_run=dry_run, unless_completed=unless_completed).to_dict()
        case requests.RestoreRequest(instant=None):
            return RestoreResult(None, None, restorable=tuple(restorable_instants(context))).to_dict()
        case requests.RestoreRequest(instant=str(instant), dry_run=dry_run):
            return restore(context, instant, owner, dry_run=dry_run).to_dict()
        case requests.SavepointCreateRequest(instant=instant, comment=comment):
            return savepoint_create(context, instant, owner, comment=comment).to_dict()
        case requests.SavepointDeleteRequest(instant=instant):
            return savepoint_delete(context, instant, owner).to_dict()
        case requests.TakeoverRequest(instant=instant):
            return takeover(context, instant, owner).to_dict()
        case requests.UnscheduleRequest(instant=instant, dry_run=dry_run):
            return unschedule(context, instant, owner, dry_run=dry_run).to_dict()
    raise TypeError(f"{type(request).__name__} is no request of request.parse.VERBS")


def probe_store(storage: Storage, request: ProbeStoreRequest) -> RunResult:
    """Races writers on a storage, with a table or without; the verdict is in the document. Errors as storage.probe."""
    return RunResult(document=probe(storage, request.writers, request.rounds).to_json())


def nothing_to_run(context: TableContext, request: RunRequest, owner: Owner) -> RunResult | None:
    """The result of a run that has nothing to do; None where it has work. Where the request says so, an instant is
    planned, which the run then finds pending (runner.find_work).
    """
    service = service_of(request.service)
    if request.instant is not None or isinstance(service, ImmediateService):
        return None
    work = find_work(context, service, owner, request)
    return None if work.instants else RunResult((), work.reason)


def schedule(context: TableContext, name: str, owner: Owner, *, dry_run: bool) -> Scheduled:
    """Plans an instant of the service called `name`, or says why not; of a service without instants what it would do.

    Raises UnsupportedError for a service whose instants this release does not plan.
    """
    service = service_of(name)
    if isinstance(service, ImmediateService):
        try:
            return service.preview(context)
        except OrphanFilesError as error:
            return Scheduled(None, None, str(error))
    return service.schedule(context, owner, dry_run=dry_run)
