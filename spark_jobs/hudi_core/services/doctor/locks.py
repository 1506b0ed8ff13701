"""The holder of the table's lock, read without taking it, and the rule on it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Final

from hudi_core.config.lock_config import PROVIDER
from hudi_core.errors import HudiError
from hudi_core.services.context import TableContext
from hudi_core.services.doctor.finding import Finding, LockObservations, Observations, duration
from hudi_core.transaction.locks.base import TableLock
from hudi_core.transaction.locks.registry import table_lock
from hudi_core.transaction.owner import Owner

_FILE_SYSTEM: Final = "org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider"
_IN_PROCESS: Final = "org.apache.hudi.client.transaction.lock.InProcessLockProvider"


def read_lock(context: TableContext, options: Mapping[str, str], now: float) -> LockObservations:
    """The lock that `options` name, and its holder; an error of that check is an observation, too."""
    provider = PROVIDER.read(options)
    name = provider or ".hoodie/lock"
    try:
        lock = _lock(context, options, provider)
        name = lock.name
        holder = lock.holder()
    except HudiError as error:
        return LockObservations(provider, name, problem=str(error), how_to_break=error.remedy)
    if holder is None:
        return LockObservations(provider, name)
    age = max(0.0, now - holder.since)
    return LockObservations(provider, name, holder.describe(), age, holder.is_left_behind, lock.how_to_break(holder))


def _lock(context: TableContext, options: Mapping[str, str], provider: str | None) -> TableLock:
    # Where none is configured our processes share the file; with this value the search for other writers is omitted.
    named = {**options, PROVIDER.name: _FILE_SYSTEM} if provider in (None, _IN_PROCESS) else options
    return table_lock(
        context.storage, context.config, named, Owner.current("doctor"), storage_options=context.storage_options
    )


def lock(observed: Observations) -> Iterator[Finding]:
    """A lock whose holder is gone, one that has been held for long, one that cannot be checked."""
    found = observed.lock
    finding = partial(Finding, path=found.name, age_seconds=found.age, owner=found.holder)
    if found.problem is not None:
        what = f"the lock cannot be checked: {found.problem}"
        yield finding("lock_unreadable", "error", what, found.how_to_break or "check its options")
    elif found.holder is not None and found.left_behind:
        fix = f"our next run takes it by itself; writers of Hudi do not: {found.how_to_break}"
        yield finding("lock_left_behind", "warning", f"the lock was left behind by {found.holder}", fix)
    elif found.holder is not None and (found.age or 0.0) > observed.stalled_after:
        what = f"the lock is held by {found.holder} for {duration(found.age or 0.0)}"
        yield finding("lock_held", "warning", what, found.how_to_break or "wait for its holder")
