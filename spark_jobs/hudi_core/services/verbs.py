"""Dispatch of a request: one function for each verb (request.model.VERBS)."""

from __future__ import annotations

from hudi_core.engine.protocol import Engine
from hudi_core.request.model import RunRequest, RunResult
from hudi_core.services.context import TableContext
from hudi_core.services.doctor.examine import examine
from hudi_core.services.doctor.wheels import read_executors
from hudi_core.services.metadata.verbs import perform_metadata
from hudi_core.services.registry import service_of
from hudi_core.services.repair.takeover import takeover
from hudi_core.services.repair.unschedule import unschedule
from hudi_core.services.restore.candidates import restorable_instants
from hudi_core.services.restore.verb import RestoreResult, restore
from hudi_core.services.rollback.verb import rollback
from hudi_core.services.runner import Progress, ServiceRunner, find_work, planner_of
from hudi_core.services.savepoint.verb import savepoint_create, savepoint_delete
from hudi_core.services.service import ImmediateService, Scheduled
from hudi_core.storage.base import Storage
from hudi_core.storage.probe import probe
from hudi_core.transaction.owner import Owner


def perform(
    context: TableContext, request: RunRequest, engine: Engine, owner: Owner, progress: Progress | None = None
) -> RunResult:
    """Does what `request.verb` says. Errors are those of the function that does it."""
    instant = request.instant
    match request.verb:
        case "run":
            return ServiceRunner(context, engine, owner, progress).run(request)
        case "schedule":
            return RunResult(document=schedule(context, request.service, owner, dry_run=request.dry_run).to_dict())
        case "rollback":
            rolled_back = rollback(
                context, instant, owner, dry_run=request.dry_run, unless_completed=request.unless_completed
            )
            return RunResult(document=rolled_back.to_dict())
        case "restore" if instant is not None:
            return RunResult(document=restore(context, instant, owner, dry_run=request.dry_run).to_dict())
        case "restore" if request.dry_run:
            return RunResult(
                document=RestoreResult(None, None, restorable=tuple(restorable_instants(context))).to_dict()
            )
        case "savepoint_create":
            return RunResult(document=savepoint_create(context, instant, owner, comment=request.comment).to_dict())
        case "savepoint_delete" if instant is not None:
            return RunResult(document=savepoint_delete(context, instant, owner).to_dict())
        case "takeover" if instant is not None:
            return RunResult(document=takeover(context, instant, owner).to_dict())
        case "unschedule" if instant is not None:
            return RunResult(document=unschedule(context, instant, owner, dry_run=request.dry_run).to_dict())
        case _:
            return _of_whole_table(context, request, engine, owner)


def _of_whole_table(context: TableContext, request: RunRequest, engine: Engine, owner: Owner) -> RunResult:
    """The verbs that are about no instant of the data table."""
    match request.verb:
        case "doctor":
            return RunResult(
                document=examine(context, files=not request.timeline_only, executors=read_executors(engine)).to_dict()
            )
        case "metadata_create" | "metadata_update" | "metadata_drop" | "metadata_validate":
            return RunResult(document=perform_metadata(context, request, engine, owner))
        case "probe_store":
            return probe_store(context.storage, request)
    raise ValueError(f"request.model lets the verb {request.verb!r} through without what it needs")


def probe_store(storage: Storage, request: RunRequest) -> RunResult:
    """Races writers on a storage, be there a table or not; the verdict is in the document. Errors as of
    storage.probe.
    """
    return RunResult(document=probe(storage, request.writers, request.rounds).to_json())


def nothing_to_run(context: TableContext, request: RunRequest, owner: Owner) -> RunResult | None:
    """The result of a run that has nothing to do; None where it has work. Where the request says so, an instant is
    planned, which the run then finds pending (runner.find_work).
    """
    service = service_of(request.service)
    if request.instant is not None or isinstance(service, ImmediateService):
        return None
    work = find_work(context, service, owner, schedule=request.schedule)
    return None if work.instants else RunResult((), work.reason)


def schedule(context: TableContext, name: str, owner: Owner, *, dry_run: bool) -> Scheduled:
    """Plans an instant of the service called `name`, or says why not; of a service without instants what it would do
    now.

    Raises UnsupportedError for a service whose instants this release does not plan.
    """
    service = service_of(name)
    if isinstance(service, ImmediateService):
        return service.preview(context)
    return planner_of(service).schedule(context, owner, dry_run=dry_run)
