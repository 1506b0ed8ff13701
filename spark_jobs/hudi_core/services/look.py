"""Whether a request would find something to do: asked before an engine is started, and answered in the run's own words.

Nothing is written and no lock is taken. What is found here is planned or done by the run, which asks again.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import reduce
from operator import or_
from typing import Any, BinaryIO

from hudi_core.config.engine_config import EngineConfig
from hudi_core.config.write_config import WriteConfig
from hudi_core.engine.protocol import Json
from hudi_core.errors import HudiError, StorageNotFoundError
from hudi_core.metadata_table.partition_type import FILES_PARTITION, is_row_level
from hudi_core.metadata_table.timeline import MetadataTimeline
from hudi_core.request import overwrites, requests
from hudi_core.request.requests import Request, RunRequest
from hudi_core.request.results import RunResult
from hudi_core.request.services import SERVICES, Step, next_step, nothing_pending
from hudi_core.services.context import TableContext
from hudi_core.services.engine_choice import Choice, Extent, choose
from hudi_core.services.lifecycle import Run
from hudi_core.services.metadata.catch_up import missing_actions
from hudi_core.services.metadata.index_drop import planned_rebuild
from hudi_core.services.metadata.validate.run import check_metadata
from hudi_core.services.metadata.verbs import nothing_to_create, nothing_to_drop, perform_metadata
from hudi_core.services.overwrite.source import find_source
from hudi_core.services.overwrite.verb import nothing_to_overwrite
from hudi_core.services.repair.takeover import nothing_to_free
from hudi_core.services.repair.unschedule import unschedule
from hudi_core.services.restore.savepoint import existing_savepoint, savepoint_to_delete
from hudi_core.services.restore.verb import restore
from hudi_core.services.rollback.verb import rollback
from hudi_core.services.runner import Work, completed_before, find_work, plan_due
from hudi_core.services.service import ImmediateService, InstantService, service_of
from hudi_core.services.verbs import schedule
from hudi_core.storage.base import FileInfo, Storage
from hudi_core.storage.recorded_changes import RecordingStorage
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.timeline.instant import Instant
from hudi_core.transaction.claim_file import current_claim
from hudi_core.transaction.locks.base import LockHolder, TableLock
from hudi_core.transaction.owner import Owner

log = logging.getLogger(__name__)


def nothing_to_do(context: TableContext, request: Request, owner: Owner) -> RunResult | None:
    """The result of a request that has nothing to do; None where it has work, or only the work itself can tell. Raises
    bad input as the run does.
    """
    storage = ListedOnce(context.storage)
    active = ActiveTimeline(storage, context.config, zone=context.zone)
    looking = _Looking(context.uri, storage, context.config, active, context.options, context.storage_options)
    try:
        return _nothing_to_do(looking, request, owner)
    except WorkFoundError:
        return None


def _nothing_to_do(context: TableContext, request: Request, owner: Owner) -> RunResult | None:
    match request:
        case RunRequest():
            return _nothing_to_run(context, request, owner)
        case requests.ScheduleRequest(service=service):
            planned = schedule(context, service, owner, dry_run=True)
            return None if planned.plan is not None else RunResult(document=planned.to_dict())
        case requests.RollbackRequest(instant=instant, unless_completed=unless_completed):
            undone = rollback(context, instant, owner, dry_run=True, unless_completed=unless_completed)
            if undone.reason is None or undone.target is not None or undone.removed.instants:
                return None
            return RunResult(document=undone.to_dict())
        case requests.RestoreRequest(instant=str(instant), dry_run=dry_run):
            return RunResult(document=restore(context, instant, owner, dry_run=dry_run).to_dict())
        case requests.UnscheduleRequest(instant=instant, dry_run=dry_run):
            dropped = unschedule(context, instant, owner, dry_run=True)
            if dropped.action or current_claim(context.storage, instant) is not None:
                # The run removes the claims of an instant that is gone.
                return None
            return RunResult(document=replace(dropped, dry_run=dry_run).to_dict())
        case requests.TakeoverRequest(instant=instant):
            free = nothing_to_free(context, instant)
            return None if free is None else RunResult(document=free.to_dict())
        case requests.SavepointCreateRequest(instant=instant):
            existing = existing_savepoint(context, instant)
            return None if existing is None else RunResult(document=existing.to_dict())
        case requests.SavepointDeleteRequest(instant=instant):
            savepoint_to_delete(context, instant)
        case overwrites.InsertOverwriteRequest() | overwrites.DeletePartitionRequest():
            before = nothing_to_overwrite(context, request)
            return None if before is None else RunResult(document=before.to_dict())
        case _:
            return _nothing_of_metadata(context, request, owner)
    return None


def _nothing_of_metadata(context: TableContext, request: Request, owner: Owner) -> RunResult | None:
    document = None
    match request:
        case requests.MetadataCreateRequest():
            document = nothing_to_create(context, request)
        case requests.MetadataDropRequest():
            document = nothing_to_drop(context, request)
        case requests.MetadataUpdateRequest():
            document = _nothing_to_update(context, request, owner)
        case requests.MetadataValidateRequest():
            check_metadata(context)
        case _:
            # doctor and probe-store look themselves.
            pass
    return None if document is None else RunResult(document=document)


def _nothing_to_update(context: TableContext, request: requests.MetadataUpdateRequest, owner: Owner) -> Json | None:
    """The update itself is run until it writes. What it would log as done, or wait for, is asked before."""
    if context.has_metadata_table and (
        planned_rebuild(context) or missing_actions(context, MetadataTimeline(context.storage, context.config))
    ):
        return None
    return perform_metadata(context, request, _NoEngine(), owner)


class WorkFoundError(Exception):
    """A look came upon something to write, or to run on an engine. Not for others: no HudiError."""


def _found_work(*_: object, **__: object) -> Any:
    raise WorkFoundError


class _NoEngine:
    """Whatever a look would run on an engine is work."""

    name = "none"
    is_remote = False
    run = staticmethod(_found_work)
    exchange = staticmethod(_found_work)


class _NoLock(TableLock):
    """The lock of a look, which takes none."""

    def acquire(self) -> None:
        """See TableLock, as for all methods below."""

    def release(self) -> bool:
        return True

    def check(self) -> None:
        pass

    def holder(self) -> LockHolder | None:
        return None

    def how_to_break(self, holder: LockHolder) -> str:
        return ""


class _Looking(TableContext):
    """A table as a look sees it."""

    def lock(self, owner: Owner) -> TableLock:
        return _NoLock(self.uri, owner, 0)


class ListedOnce(RecordingStorage):
    """A storage as one look sees it: each folder is listed once, and a change raises WorkFoundError. Where a listed
    file is gone, folders are listed anew.
    """

    def __init__(self, inner: Storage) -> None:
        RecordingStorage.__init__(self, inner)
        self._files: dict[str, list[FileInfo]] = {}
        self._names: dict[str, list[str]] = {}

    def list_files(self, folder: str) -> list[FileInfo]:
        """See Storage, as for all methods below."""
        if folder not in self._files:
            self._files[folder] = RecordingStorage.list_files(self, folder)
        return [*self._files[folder]]

    def list_names(self, folder: str) -> list[str]:
        if folder not in self._names:
            listed = self._files.get(folder)
            names = RecordingStorage.list_names(self, folder) if listed is None else [info.name for info in listed]
            self._names[folder] = names
        return [*self._names[folder]]

    def read(self, path: str) -> bytes:
        try:
            return RecordingStorage.read(self, path)
        except StorageNotFoundError:
            folder, _, name = path.rpartition("/")
            if name in {*self._names.get(folder, ()), *(info.name for info in self._files.get(folder, ()))}:
                self._files.clear()
                self._names.clear()
            raise

    def write(self, path: str, data: bytes) -> None:
        raise WorkFoundError

    def create_exclusive(self, path: str, data: bytes) -> None:
        raise WorkFoundError

    def write_if(self, path: str, data: bytes, *, version: str | None) -> str:
        raise WorkFoundError

    def open_output(self, path: str) -> BinaryIO:
        raise WorkFoundError

    def delete(self, path: str) -> bool:
        if self.exists(path):
            raise WorkFoundError
        return False

    def delete_folder(self, folder: str) -> list[str]:
        if self.list_files(folder) or self.list_folders(folder):
            raise WorkFoundError
        return []


def _nothing_to_run(context: TableContext, request: RunRequest, owner: Owner) -> RunResult | None:
    service = service_of(request.service)
    if isinstance(service, ImmediateService):
        planned = service.preview(context)
        return None if planned.plan is not None else RunResult((), planned.reason)
    if request.instant is not None:
        service.job(Run(context, request.instant, owner)).find(context.active.load())
        return None
    pending = service.pending(context, context.active.load())
    match next_step(is_pending=bool(pending), schedule=request.schedule):
        case Step.RUN:
            return None
        case Step.NOTHING:
            return RunResult((), nothing_pending(service.name, context.config.name))
        case Step.PLAN:
            if not request.when and service.has_work_before(context, owner):
                return None
            planned = plan_due(context, service, owner, request.when, dry_run=True)
            return None if planned.plan is not None else RunResult((), planned.reason)


def preview(context: TableContext, request: RunRequest, owner: Owner) -> RunResult:
    """See HudiTable.preview. The instants are those that are pending now: with `all_pending`, plans follow them."""
    service, timeline = service_of(request.service), context.active.load()
    found: list[Instant] = []
    if isinstance(service, ImmediateService):
        planned = schedule(context, request.service, owner, dry_run=True)
        work = Work((), planned.reason, planned.plan)
    elif request.instant is not None:
        named = service.job(Run(context, request.instant, owner)).find(timeline)
        found = [] if named.is_completed else [named]
        work = Work((), None if found else completed_before(service, request.instant))
    else:
        work = find_work(context, service, owner, request, dry_run=True)
        taken = work.instants if request.all_pending else work.instants[:1]
        found = [service.job(Run(context, instant, owner)).find(timeline) for instant in taken]
        if not found and request.schedule and not request.when and service.has_work_before(context, owner):
            work = replace(
                work, reason="; ".join(filter(None, (work.reason, "failed writes would be rolled back first")))
            )
    instants = [
        {"instant": item.requested_time, "action": item.pending_action, "state": item.state.value} for item in found
    ]
    return RunResult(document={"dry_run": True, "instants": instants, "plan": work.plan, "reason": work.reason})


def choose_engine(context: TableContext, request: Request, *, at_once: int = 1) -> Choice:
    """The engine for the work that the request will find now: see engine_choice. Plans are read; nothing is written.

    What needs no executors is local. A run takes the largest of its pending plans for all of them.
    """
    config = EngineConfig.of(context.options)
    if isinstance(request, overwrites.InsertOverwriteRequest) and not request.source:
        return Choice(local=False, why="it answers the query" if request.query else "it has the DataFrame")
    return choose(_extent(context, request, config), config, WriteConfig.of(context.options), at_once=at_once)


def _extents(
    context: TableContext, service: InstantService, instants: Iterable[str], config: EngineConfig, *, raises: bool
) -> Iterator[Extent]:
    """Of each instant; without `raises` those whose plans cannot be read are left to the run, which reports each."""
    for instant in instants:
        try:
            yield service.extent(context, instant, config)
        except HudiError as error:
            if raises:
                raise
            log.info("the plan of %s is left out of the choice of an engine: %s", instant, error)


def _extent(context: TableContext, request: Request, config: EngineConfig) -> Extent:
    if not request.needs_executors:
        return Extent()
    match request:
        case RunRequest() if not SERVICES[request.service].on_driver:
            service = service_of(request.service)
            if isinstance(service, ImmediateService):
                return Extent()
            pending = service.pending(context, context.active.load())
            if request.instant is not None:
                # The run says what is wrong with another one.
                pending = [instant for instant in pending if instant == request.instant]
            taken = pending if request.all_pending else pending[:1]
            return reduce(or_, _extents(context, service, taken, config, raises=not request.all_pending), Extent())
        case overwrites.InsertOverwriteRequest(source=source) if source:
            return Extent.of((part.size for part in find_source(source, context.storage_options)[1]), config)
        case overwrites.DeletePartitionRequest() if any(map(is_row_level, context.config.metadata_partitions)):
            return Extent.of(context.slice_sizes(), config)
        case requests.MetadataCreateRequest(partitions=partitions, columns=columns):
            if not columns and {*partitions} <= {FILES_PARTITION}:
                return Extent()
            return Extent.of(context.slice_sizes(), config)
        case requests.MetadataUpdateRequest() if context.has_metadata_table:
            # It may read what each of them wrote.
            missing = missing_actions(context, MetadataTimeline(context.storage, context.config))
            return Extent(max(1, len(missing)))
    return Extent()
