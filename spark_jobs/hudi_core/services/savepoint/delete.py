"""Deletes a savepoint: from then on its commit's files may be cleaned (SavepointHelpers.deleteSavepoint)."""

from __future__ import annotations

from hudi_core.errors import ConfigError
from hudi_core.services.context import TableContext
from hudi_core.services.lifecycle import claimed
from hudi_core.services.savepoint.listing import Savepoint, read_savepoint, savepoint_of
from hudi_core.timeline.actions.savepoint import SavepointMetadata
from hudi_core.timeline.instant import Action, Instant
from hudi_core.transaction.claim_file import forget_claims
from hudi_core.transaction.owner import Owner


def savepoint_delete(context: TableContext, instant: str, owner: Owner) -> Savepoint:
    """Deletes the savepoint of the commit `instant`, or what a run that died left of one.

    Raises ConfigError when there is none, ConflictError while another process makes it or the lock is not free.
    """
    _find(context, instant)
    # What an earlier run decided to complete and did not is completed first: otherwise its late request could bring the
    # savepoint back.
    with claimed(context, instant, owner), context.lock(owner) as lock:
        found = _find(context, instant)
        metadata = read_savepoint(context, found) if found.is_completed else SavepointMetadata("", 0, "")
        lock.check()
        context.active.undo(instant, Action.SAVEPOINT)
    forget_claims(context.storage, instant)
    return savepoint_of(instant, metadata, deleted=True)


def _find(context: TableContext, instant: str) -> Instant:
    found = context.active.load().find(instant, Action.SAVEPOINT)
    if found is None:
        raise ConfigError(
            f"there is no savepoint of instant {instant}",
            path=context.active.folder,
            remedy="list them: `hudictl savepoint list TABLE`",
        )
    return found
