"""Whether writers may be alive that take no lock, as no lock provider is configured, and so whether to warn or refuse.

The lock that is taken even then is chosen in registry.py.

Hudi runs without a lock provider when it considers itself the only writer, and only logs that. Our processes exclude
each other by the file-system lock even then; Hudi's writers do not use that lock unless they are configured for it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from hudi_core.config.lock_config import FOREIGN_MINUTES, PROVIDER
from hudi_core.config.table_config import TableConfig
from hudi_core.config.transaction_config import CONCURRENCY_MODE, HeartbeatConfig
from hudi_core.errors import LockError, StorageNotFoundError
from hudi_core.model.claim_names import CLAIMS, is_released
from hudi_core.model.partition import join
from hudi_core.storage.base import Storage
from hudi_core.timeline.instant import Action, State
from hudi_core.timeline.naming import naming_for
from hudi_core.transaction.writer_heartbeats import read_heartbeats

_SHOWN = 3
_SINGLE = "SINGLE_WRITER"


@dataclass(frozen=True, slots=True)
class WriterSigns:
    """Signs of another writer, ages in seconds. An instant with claims is ours, unless its last owner released it."""

    heartbeats: Mapping[str, float]
    """Instants whose heartbeat is fresh, and its age."""
    inflight: Mapping[str, float]
    """Instants that became inflight not long ago, and how long ago."""
    concurrency_mode: str | None
    """`hoodie.write.concurrency.mode` where options or table properties set it."""

    def describe(self) -> tuple[str, ...]:
        """Each sign in words; empty when there is none."""
        found = [
            f"{instant} has a heartbeat {age:.0f} s old" for instant, age in sorted(self.heartbeats.items())[:_SHOWN]
        ]
        inflight = sorted((instant, age) for instant, age in self.inflight.items() if instant not in self.heartbeats)
        found += [f"{instant} went inflight {age:.0f} s ago" for instant, age in inflight[:_SHOWN]]
        if self.concurrency_mode not in (None, _SINGLE):
            found.append(f"{CONCURRENCY_MODE.name} is {self.concurrency_mode}")
        return tuple(found)


def check_alone(signs: WriterSigns, mode: Literal["warn", "refuse"], uri: str) -> str | None:
    """The warning about another writer; None without a sign. Raises LockError when the run is to be refused."""
    found = signs.describe()
    if not found:
        return None
    message = f"no lock provider is configured, and another writer may be alive: {'; '.join(found)}"
    remedy = (
        f"set {PROVIDER.name} and its options to what all writers of the table use; when none is alive, run again later"
    )
    if mode == "refuse":
        raise LockError(message, path=uri, remedy=remedy)
    return f"{uri}: {message} ({remedy})"


def read_signs(
    storage: Storage, config: TableConfig, options: Mapping[str, str], *, now: Callable[[], float] = time.time
) -> WriterSigns:
    """Reads the signs: one listing of heartbeats and of the timeline, and one per instant. `now` is in seconds."""
    beats = read_heartbeats(storage, HeartbeatConfig.of(options), now=now)
    fresh = {instant: beats.age(instant) or 0.0 for instant in beats.live()}
    young = _young_inflight(storage, config, FOREIGN_MINUTES.read(options) * 60, now())
    claims = {
        instant: [info.name for info in storage.list_files(f"{CLAIMS}/{instant}")]
        for instant in fresh.keys() | young.keys()
    }
    ours = {instant for instant, names in claims.items() if names}
    mode = (
        CONCURRENCY_MODE.read(options)
        if CONCURRENCY_MODE.is_set(options)
        else CONCURRENCY_MODE.read(config.raw, path=config.path)
    )
    return WriterSigns(
        {instant: age for instant, age in fresh.items() if instant not in ours or is_released(claims[instant])},
        {instant: age for instant, age in young.items() if instant not in ours},
        mode,
    )


def _young_inflight(storage: Storage, config: TableConfig, limit: float, now: float) -> dict[str, float]:
    """The inflight instants whose file is younger than `limit` seconds. Requested ones do not count, since plans wait
    for hours; nor do rollbacks, since those of a restore stay inflight forever.
    """
    naming = naming_for(config.layout_version)
    found: dict[str, float] = {}
    for instant in naming.instants(storage.list_names(config.timeline_folder)):
        if instant.state is not State.INFLIGHT or instant.action == Action.ROLLBACK:
            continue
        name = naming.file_name(instant.requested_time, instant.action, State.INFLIGHT)
        try:
            age = max(0.0, now - storage.stat(join(config.timeline_folder, name)).modified)
        except StorageNotFoundError:
            age = 0.0  # it moved on since the folder was listed
        if age <= limit:
            found[instant.requested_time] = age
    return found
