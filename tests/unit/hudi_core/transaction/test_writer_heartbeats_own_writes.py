"""Whose pending overwrites are ours, and which of their owners are dead."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from hudi_core.services.context import TableContext
from hudi_core.timeline.actions.replacecommit import encode_requested_overwrite
from hudi_core.timeline.instant import Action
from hudi_core.transaction.owner import Owner
from hudi_core.transaction.writer_heartbeats import PROCESS_KEY, Heartbeats, eager_writers, process_of, with_own_writes
from tests.support.golden_cleans import context_of
from tests.support.golden_data import GoldenCase

Golden = Callable[[str, str], GoldenCase]

HERE = Owner.current("test")
ELSEWHERE = replace(HERE, boot_id="another kernel")
DEAD = replace(HERE, process_start="1")


def requested(context: TableContext, process: dict[str, str] | None) -> str:
    with context.lock(HERE):
        instant = context.new_instant(context.active.load())
        content = encode_requested_overwrite(
            "insert_overwrite", token=None, layout=context.active.layout, names_deletes=False, process=process
        )
        context.active.create_requested(instant, Action.REPLACE_COMMIT, content)
    return instant


def ours(context: TableContext, instant: str, seconds: float) -> Heartbeats:
    """As it is so many seconds behind the request."""
    path = f"{context.active.folder}/{instant}.replacecommit.requested"
    beats = Heartbeats({}, context.active.modified()[path] + seconds, 120.0, 3600.0)
    return with_own_writes(beats, context.storage, context.active, context.active.load())


@pytest.mark.parametrize("version", ["6", "9"])
@pytest.mark.parametrize(
    ("owner", "seconds", "dead"),
    [(HERE, 10, False), (DEAD, 10, True), (ELSEWHERE, 10, False), (ELSEWHERE, 130, True)],
)
def test_before_its_claim_the_process_that_requested_it_counts(
    golden: Golden, version: str, owner: Owner, seconds: float, dead: bool
) -> None:
    context = context_of(golden(version, "cow_basic").table)
    instant = requested(context, process_of(owner))
    found = ours(context, instant, seconds)
    assert found.ours == {instant: dead}
    assert found.is_expired(instant) == dead
    assert eager_writers(context.active, context.active.load(), found) == []


def test_behind_its_claim_the_owner_of_that_counts(golden: Golden) -> None:
    context = context_of(golden("9", "cow_basic").table)
    instant = requested(context, process_of(DEAD))
    with context.claim(instant, HERE):
        assert ours(context, instant, 10).ours == {instant: False}
    assert ours(context, instant, 10).ours == {instant: True}


def test_a_damaged_claim_is_taken_for_a_live_one(golden: Golden) -> None:
    """Other runs go on beside it: its own run names the file."""
    context = context_of(golden("9", "cow_basic").table)
    instant = requested(context, process_of(DEAD))
    with context.claim(instant, HERE):
        pass
    for claim in Path(context.uri, ".hoodie", ".airflow_hudi", "claims", instant).rglob("*"):
        claim.write_bytes(b"{")
    assert ours(context, instant, 10).ours == {instant: False}


@pytest.mark.parametrize("process", [None, {PROCESS_KEY: "no JSON"}, {PROCESS_KEY: "{}"}])
def test_of_another_write_the_heartbeats_alone_tell(golden: Golden, process: dict[str, str] | None) -> None:
    context = context_of(golden("9", "cow_basic").table)
    instant = requested(context, process)
    found = ours(context, instant, 10)
    assert found.ours == {}
    assert [item.requested_time for item in eager_writers(context.active, context.active.load(), found)] == [instant]
