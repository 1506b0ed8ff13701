"""An epoch belongs to one owner: numbers do not come again while an instant may be run, and where they are set by hand,
the token distinguishes them.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import pytest

from hudi_core.errors import ConflictError
from hudi_core.model.names import HUDI_HEARTBEATS
from hudi_core.transaction.claim import claim
from hudi_core.transaction.claim_file import Decision, claimed_instants, forget_claims, has_let_go, is_live
from hudi_core.transaction.owner import Owner
from tests.support.fault_storage import MUTATIONS, FaultPlan, FaultStorage, InjectedCrash
from tests.support.memory_storage import MemoryStorage

T = "20260102000000000"
REMOTE = replace(Owner.current("another owner"), boot_id="another boot", host="another host")


def test_a_zombie_whose_epoch_another_owner_has_by_now_is_none() -> None:
    """The claims of a pending instant were removed by hand, and both owners have epoch 1."""
    storage = MemoryStorage()
    zombie = claim(storage, T, REMOTE)
    forget_claims(storage, T)
    owner = claim(storage, T, REMOTE)
    assert zombie.epoch == owner.epoch == 1
    with pytest.raises(ConflictError, match="was removed"):
        zombie.check()
    zombie.release()
    assert is_live(storage, T, 1), "the zombie let go of what it has not"
    owner.check()
    owner.release()


def test_a_zombie_decides_nothing_for_the_new_owner_of_its_number() -> None:
    storage = MemoryStorage()
    zombie = claim(storage, T, REMOTE)
    forget_claims(storage, T)
    owner = claim(storage, T, REMOTE)
    with pytest.raises(ConflictError, match="was removed"):
        zombie.decide(Decision("compaction", None, b"the zombie's"))
    owner.decide(Decision("compaction", None, b"the owner's"))
    assert owner.may_have_decided
    zombie.release()
    owner.release()


def test_who_let_go_and_who_has_claims() -> None:
    storage = MemoryStorage()
    assert claimed_instants(storage) == frozenset()
    assert not has_let_go(storage, T)
    held = claim(storage, T, REMOTE)
    assert not has_let_go(storage, T)
    held.release()
    assert has_let_go(storage, T)
    again = claim(storage, T, REMOTE)
    assert not has_let_go(storage, T)
    again.release()
    assert claimed_instants(storage) == {T}


def test_a_released_claim_left_no_heartbeat_of_hudi() -> None:
    """Cut off anywhere in the release: a heartbeat beside a released claim is taken for a living writer's."""
    number, crashed = 0, True
    while crashed:
        inner = MemoryStorage()
        held = claim(inner, T, REMOTE)
        held.heartbeat.stop()
        plan = FaultPlan(kill_at=number, counts=MUTATIONS)
        held._storage = FaultStorage(inner, plan)
        with suppress(InjectedCrash):
            held.release()
        crashed = plan.crashed
        assert not (has_let_go(inner, T) and inner.exists(f"{HUDI_HEARTBEATS}/{T}"))
        number += 1
    assert has_let_go(inner, T)
    assert number == 3
