"""When the owner of a claim is dead."""

from __future__ import annotations

import time

from hudi_core.transaction.claim import claim
from hudi_core.transaction.claim_file import is_live
from tests.support.memory_storage import MemoryStorage
from tests.unit.hudi_core.transaction.test_claim import DEAD, HERE, REMOTE, T, put_claim


def test_an_owner_is_alive_until_released_succeeded_dead_or_silent_for_too_long() -> None:
    storage = MemoryStorage()
    assert not is_live(storage, T, 1)
    held = claim(storage, T, HERE)
    assert is_live(storage, T, 1)
    assert not is_live(storage, T, 2)
    held.release()
    assert not is_live(storage, T, 1)
    put_claim(storage, REMOTE, epoch=2)
    assert is_live(storage, T, 2)
    assert not is_live(storage, T, 1)
    assert not is_live(storage, T, 2, now=lambda: time.time() + 1000)
    put_claim(storage, DEAD, epoch=3)
    assert not is_live(storage, T, 3)
