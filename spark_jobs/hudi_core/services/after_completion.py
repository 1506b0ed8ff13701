"""What a run leaves that dies right after it completed its instant: its claims, the table lock, and what its service
removes behind a commit.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from hudi_core.errors import ConflictError
from hudi_core.services.context import TableContext
from hudi_core.transaction.claim import CLAIMS, forget_claims
from hudi_core.transaction.owner import Owner

log = logging.getLogger(__name__)


def clean_up_completed(
    context: TableContext, instant: str, owner: Owner, clean_up: Callable[[], None], *, more: bool = False
) -> None:
    """Removes what the run of a completed `instant` left; nothing when it left nothing, or when it is alive and does so
    itself.

    `clean_up` removes what is the service's own, under the claim and the table lock; `more` says that some of it is
    there, claims or not. Taking the lock also breaks the one that the dead run may have left.
    """
    if not more and not context.storage.list_files(f"{CLAIMS}/{instant}"):
        return
    try:
        held = context.claim(instant, owner)
    except ConflictError as error:
        log.info("%s: its owner cleans up", error)
        return
    with held, context.lock(owner):
        log.info("%s was completed by a run that died right after", instant)
        clean_up()
    forget_claims(context.storage, instant)
