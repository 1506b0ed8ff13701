"""What each service does to a table, as a call that may be cut off anywhere and made again."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Literal

import pytest

from hudi_core.config.concurrency_config import FAILED_WRITES_POLICY
from hudi_core.engine.local import LocalEngine
from hudi_core.services.archive.job import ArchiveService
from hudi_core.services.clean import job as clean_execute
from hudi_core.services.clean.planner import CleanService
from hudi_core.services.context import TableContext
from hudi_core.services.restore.savepoint import savepoint_create, savepoint_delete
from hudi_core.services.restore.verb import restore
from hudi_core.services.rollback.verb import clean_failed_writes, rollback
from hudi_core.services.takeover import takeover
from hudi_core.services.unschedule import unschedule
from hudi_core.storage.local import LocalStorage
from hudi_core.timeline.instant import Action
from hudi_core.transaction.claim_file import current_claim
from hudi_core.transaction.owner import Owner
from tests.support.changed_tables import open_context
from tests.support.fault_storage import FaultPlan, FaultStorage, InjectedCrash, Operation

Act = Callable[[TableContext, Owner], object]
Timing = Literal["before", "after"]


def clean_act(instant: str) -> Act:
    return lambda context, owner: CleanService().run(context, instant, LocalEngine(1), owner, None)


def plan_clean_act() -> Act:
    return lambda context, owner: CleanService().schedule(context, owner, dry_run=False)


def rollback_act(instant: str) -> Act:
    return lambda context, owner: rollback(context, instant, owner)


def failed_writes_act() -> Act:
    return lambda context, owner: clean_failed_writes(eager(context), owner)


def eager(context: TableContext) -> TableContext:
    """The table without other writers: all pending writes failed."""
    return replace(context, options={**context.options, FAILED_WRITES_POLICY.name: "EAGER"})


def restore_act(instant: str) -> Act:
    return lambda context, owner: restore(context, instant, owner)


def savepoint_act(instant: str) -> Act:
    return lambda context, owner: savepoint_create(context, instant, owner)


def delete_savepoint_act(instant: str) -> Act:
    def act(context: TableContext, owner: Owner) -> None:
        if instant in context.active.load().of_actions(Action.SAVEPOINT).requested_times:
            savepoint_delete(context, instant, owner)

    return act


def archive_act() -> Act:
    return lambda context, owner: ArchiveService().run_now(context, owner, None)


def unschedule_act(instant: str) -> Act:
    def act(context: TableContext, owner: Owner) -> None:
        if context.active.load().contains(instant) or current_claim(context.storage, instant) is not None:
            unschedule(context, instant, owner)

    return act


def takeover_act(instant: str) -> Act:
    return lambda context, owner: takeover(context, instant, owner)


def dead_process() -> Owner:
    """An owner of this machine whose process is provably gone: its PID belongs to a process that started at another
    time.
    """
    return replace(Owner.current("the process that dies"), process_start="1")


def perform(
    table: Path, act: Act, owner: Owner, plan: FaultPlan | None = None, options: Mapping[str, str] | None = None
) -> None:
    """Does it on a local table; all of it, the tasks' deletes included, is under `plan`."""
    storage = LocalStorage(table)
    with pytest.MonkeyPatch.context() as patch:
        if plan is not None:
            patch.setattr(clean_execute, "open_deleting_storage", lambda uri, _: FaultStorage(LocalStorage(uri), plan))
        act(open_context(table, dict(options or {}), storage if plan is None else FaultStorage(storage, plan)), owner)


def killed(table: Path, act: Act, plan: FaultPlan, options: Mapping[str, str] | None = None) -> None:
    """Does it until the plan kills the process."""
    with pytest.raises(InjectedCrash):
        perform(table, act, dead_process(), plan, options)
    assert plan.fired is not None


_UUID_OR_NUMBER = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|\d+")


def class_of(operation: Operation) -> str:
    """The class of an operation: its kind, and its path without times, ids and numbers."""
    return f"{operation.kind} {_UUID_OR_NUMBER.sub('#', operation.path)}"


def one_of_each_class(operations: list[Operation]) -> dict[str, int]:
    """The first number of each class among the operations."""
    found: dict[str, int] = {}
    for number, operation in enumerate(operations):
        found.setdefault(class_of(operation), number)
    return found
