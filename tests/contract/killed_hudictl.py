"""hudictl in a process of its own that is killed (SIGKILL) at one of its changes of the storage."""

from __future__ import annotations

import multiprocessing
import os
import re
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import pytest

import hudi_core.table
from hudi_core.services.clean import job as clean_execute
from hudi_core.services.compaction import merge_slice as compaction_execute
from hudi_core.storage.arrow_store import open_data_storage, open_deleting_storage
from hudi_core.storage.base import Storage
from hudi_core.storage.registry import open_storage
from tests.support.fault_storage import MUTATIONS, FaultPlan, FaultStorage, Operation
from tests.support.hudictl_runner import hudictl

BEFORE = "before "
_SECONDS = 120


@contextmanager
def under(plan: FaultPlan) -> Iterator[None]:
    """Every storage that a command opens, its tasks' own included, is under the plan."""

    def data(uri: str, options: Mapping[str, str] | None = None) -> Storage:
        return FaultStorage(open_data_storage(uri, options), plan)

    def deleting(uri: str, options: Mapping[str, str] | None = None) -> Storage:
        return FaultStorage(open_deleting_storage(uri, options), plan)

    def control(uri: str, options: Mapping[str, str] | None = None) -> Storage:
        return FaultStorage(open_storage(uri, options), plan)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hudi_core.table, "open_storage", control)
        patch.setattr(compaction_execute, "open_data_storage", data)
        patch.setattr(clean_execute, "open_deleting_storage", deleting)
        yield


def changes_of(arguments: Sequence[str]) -> int:
    """How many changes of the storage the command makes in an undisturbed run."""
    plan = FaultPlan(counts=MUTATIONS)
    with under(plan):
        done = hudictl(*arguments)
    assert done.code == 0, done.err
    return plan.counted


def run_killed(arguments: Sequence[str], kill_at: int | str) -> bool:
    """Runs the command in another process until that change is done, and the process with it; False when it ended well
    before. The change is given by its number, or as the first to a path that matches a pattern: BEFORE it is killed
    before that one.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])
    process = context.Process(target=_run, args=(list(arguments), kill_at))
    process.start()
    process.join(_SECONDS)
    assert process.exitcode in (0, -signal.SIGKILL)
    return process.exitcode != 0


def _run(arguments: list[str], kill_at: int | str) -> None:
    if isinstance(kill_at, int):
        plan = FaultPlan(kill_at=kill_at, timing="after", counts=MUTATIONS, error=_die)
    else:
        pattern = re.compile(kill_at.removeprefix(BEFORE))
        plan = FaultPlan(
            when=lambda operation: pattern.fullmatch(operation.path) is not None,
            timing="before" if kill_at.startswith(BEFORE) else "after",
            counts=MUTATIONS,
            error=_die,
        )
    with under(plan):
        done = hudictl(*arguments)
    sys.exit(done.code)


def _die(operation: Operation) -> Exception:
    os.kill(os.getpid(), signal.SIGKILL)
    raise RuntimeError(f"this process is dead at {operation}")
