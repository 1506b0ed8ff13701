"""What this process holds now, to distinguish it from what one of its own earlier runs left behind."""

from __future__ import annotations

import threading

from hudi_core.transaction.owner import Owner

_held: set[str] = set()
_guard = threading.Lock()


def hold(token: str) -> None:
    """Notes that this process holds the lock or claim named `token`; called before its file shows."""
    with _guard:
        _held.add(token)


def drop(token: str) -> None:
    """Removes `token`; called when the deletion of its file was tried, so that a failed one leaves it free."""
    with _guard:
        _held.discard(token)


def is_left_behind(owner: Owner, token: str) -> bool:
    """Whether `token` has no holder any more: its process is provably dead, or it is this one and has dropped it."""
    if owner.is_this_process:
        with _guard:
            return token not in _held
    return owner.is_provably_dead()
