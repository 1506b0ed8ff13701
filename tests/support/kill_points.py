"""An act on copies of a table, killed before each of its changes of the storage."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from hudi_core.storage.base import Storage
from hudi_core.storage.local import LocalStorage
from tests.support.fault_storage import MUTATIONS, FaultPlan, FaultStorage, InjectedCrash
from tests.support.metadata_records import Table


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
