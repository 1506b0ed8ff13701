"""The pending overwrites of this engine, and whose owner is dead: their requested files name the process.

A write of Hudi shows by its heartbeat alone whether its writer lives. Of one of ours the claim says so, and before
there is one the process that requested it: where it is provably gone, nobody has to wait until a heartbeat expires, or
longer where it died before its first.
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import replace
from typing import Final

from hudi_core.errors import ConflictError, CorruptFileError, StorageNotFoundError
from hudi_core.storage.base import Storage
from hudi_core.timeline.actions.replacecommit import requested_extra
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.timeline.instant import Action, Instant, State
from hudi_core.timeline.timeline import Timeline
from hudi_core.transaction.claim_file import current_claim
from hudi_core.transaction.own_files import parse_own
from hudi_core.transaction.owner import Owner
from hudi_core.transaction.owner_liveness import is_live
from hudi_core.transaction.writer_heartbeats import Heartbeats

PROCESS_KEY: Final = "airflow_hudi.process"
"""In the extra metadata of an overwrite's requested file: the owner, as Owner.to_json."""


def process_of(owner: Owner) -> dict[str, str]:
    """The extra metadata by which the owner of a requested overwrite is known."""
    return {PROCESS_KEY: json.dumps(owner.to_json())}


def with_own_writes(heartbeats: Heartbeats, storage: Storage, active: ActiveTimeline, timeline: Timeline) -> Heartbeats:
    """The heartbeats, and of each pending overwrite of this engine whether its owner is dead. Beside none of them
    nothing is read.
    """
    found: dict[str, bool] = {}
    for item in timeline.pending().of_actions(Action.REPLACE_COMMIT):
        try:
            owner = _requested_by(active, item)
        except (CorruptFileError, StorageNotFoundError):
            continue  # no plan of ours, or gone since the listing
        if owner is not None:
            with suppress(ConflictError):  # it came to its end since the listing
                found[item.requested_time] = _is_dead(heartbeats, storage, active, item, owner)
    return replace(heartbeats, ours=found)


def _requested_by(active: ActiveTimeline, item: Instant) -> Owner | None:
    path = active.path(item.requested_time, Action.REPLACE_COMMIT, State.REQUESTED)
    data = active.read_requested(item.requested_time, Action.REPLACE_COMMIT)
    process = requested_extra(data, path=path).get(PROCESS_KEY)
    return None if process is None else Owner.from_json(parse_own(process.encode(), "the owner", path=path), path=path)


def _is_dead(
    heartbeats: Heartbeats, storage: Storage, active: ActiveTimeline, item: Instant, requested_by: Owner
) -> bool:
    """By its claim, which another process may have taken over. Without one, its owner claims it at once, if it lives:
    one that has not for as long as a heartbeat may be silent, is dead.
    """
    try:
        claimed = current_claim(storage, item.requested_time)
    except CorruptFileError:  # its own run or `rollback --instant` names the file: here nothing is taken from it
        return False
    if claimed is not None:
        return not is_live(storage, item.requested_time, claimed.epoch, now=lambda: heartbeats.now)
    if requested_by.is_provably_dead():
        return True
    requested = active.modified().get(active.path(item.requested_time, Action.REPLACE_COMMIT, State.REQUESTED))
    return requested is not None and heartbeats.now - requested > heartbeats.tolerance_seconds
