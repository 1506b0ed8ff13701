"""Reads the holder of the table's lock, without taking it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from hudi_core.config.lock_config import PROVIDER
from hudi_core.errors import HudiError
from hudi_core.services.context import TableContext
from hudi_core.services.doctor.observations import LockObservations
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
