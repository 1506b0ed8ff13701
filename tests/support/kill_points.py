"""Acts that are killed at a change of the storage, or before each of their changes on copies of a table."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

import pytest

from hudi_core.metadata_table.partitions import row_exchange
from hudi_core.metadata_table.write import staged_logs
from hudi_core.metadata_table.write.staged_logs import STAGING
from hudi_core.services.rewriting import job as rewrite
from hudi_core.storage.base import Storage
from hudi_core.storage.local import LocalStorage
from tests.support.fault_storage import MUTATIONS, FaultPlan, FaultStorage, InjectedCrash, Operation
from tests.support.metadata_records import Table
from tests.support.service_calls import Timing


def kill_at(number: int, timing: Timing, act: Callable[[FaultPlan], object]) -> None:
    """Kills `act` at its change of that number.

    By their random names new files' records go to more or fewer file groups of an index, each of which has a log file:
    an act that makes fewer changes than another one before it may be done earlier.
    """
    plan = FaultPlan(kill_at=number, timing=timing, counts=MUTATIONS)
    try:
        act(plan)
    except InjectedCrash:
        return
    assert len(plan.mutations()) <= number


@contextmanager
def tasks_under(plan: FaultPlan, *modules: ModuleType) -> Iterator[pytest.MonkeyPatch]:
    """What the tasks of these modules do to the storage is under the plan, and where executors stage records of the
    metadata table.
    """
    with pytest.MonkeyPatch.context() as patch:
        for module in (*modules, staged_logs, row_exchange):
            patch.setattr(module, "open_data_storage", lambda uri, _: FaultStorage(LocalStorage(uri), plan))
        yield patch


@contextmanager
def executors_make_records(do: bool) -> Iterator[None]:
    """Whether executors stage the records of a rewrite's files however few these are; else the driver makes them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rewrite, "DRIVER_FILES", 0 if do else staged_logs.DRIVER_FILES)
        yield


def stages_statistics(change: Operation) -> bool:
    """Whether it stages records that the driver makes of few files: those of a record index always are staged."""
    return change.path.startswith(f"{STAGING}/") and "/column_stats_" in change.path


def killed_at_each_change(
    origin: Path, step: int, act: Callable[[Table, Storage], object]
) -> Iterator[tuple[int, Table]]:
    """The number of the change that `act` was killed before, every `step`-th one, and the table as it was left. Ends
    with the first number that `act` does not reach.
    """
    at = 0
    while True:
        copy = Path(shutil.copytree(origin, origin.parent / f"killed-{at}", symlinks=True))
        table = Table(copy)
        try:
            act(table, FaultStorage(LocalStorage(copy), FaultPlan(kill_at=at, counts=MUTATIONS)))
        except InjectedCrash:
            yield at, table
        else:
            return
        finally:
            shutil.rmtree(copy)
        at += step
