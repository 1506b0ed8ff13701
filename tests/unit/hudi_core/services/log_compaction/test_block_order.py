"""Which log blocks a log compaction may not be put behind, by table version and by what its readers know."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from hudi_core.errors import ConflictError, HudiError, UnsupportedError
from hudi_core.filegroup.read.log_scan import CommittedInstants
from hudi_core.services.context import TableContext
from hudi_core.services.log_compaction.block_order import (
    BlockOrder,
    check_no_writer_beside,
    places_merged,
    writer_beside,
)
from hudi_core.timeline.actions.compaction import CompactionOperation
from hudi_core.timeline.instant import Action, State
from tests.support.golden_compactions import context_of
from tests.support.golden_data import GoldenCase
from tests.support.log_compactions import PLANNED, VERSIONS, planned
from tests.support.log_files import data, put, rollback
from tests.support.memory_storage import MemoryStorage

Golden = Callable[[str, str], GoldenCase]
PLACES = {"hoodie.optimized.log.blocks.scan.enable": "true"}
NON_BLOCKING = {"hoodie.write.concurrency.mode": "NON_BLOCKING_CONCURRENCY_CONTROL"}
OPERATION = CompactionOperation("p", "f-0", "001", None, ())
LATER = "20990101000000000"
NONE: frozenset[str] = frozenset()


def check(storage: MemoryStorage, order: BlockOrder, merged: set[str], committed: set[str]) -> None:
    counts = CommittedInstants(frozenset(committed), frozenset(), "001")
    order.check(storage, OPERATION, storage.list_files("p"), frozenset(merged), counts)


def refusal(storage: MemoryStorage, order: BlockOrder, merged: set[str], committed: set[str]) -> type[HudiError] | None:
    try:
        check(storage, order, merged, committed)
    except (ConflictError, UnsupportedError) as error:
        return type(error)
    return None


@pytest.fixture
def shared() -> MemoryStorage:
    """Version 6: a slice's log files in the order of their versions, with blocks of 002, 004 and 003."""
    storage = MemoryStorage()
    for version, instant in ((1, "002"), (2, "004"), (3, "003")):
        put(storage, version, data(instant, [("a", 1, "x")]))
    storage.write("p/.other-0_001.log.1_0-1-1", b"not of this file group")
    return storage


@pytest.mark.parametrize(
    ("places", "pending", "late", "merged", "refused"),
    [
        (True, {"003"}, NONE, {"002", "004"}, None),  # behind all that is merged
        (False, {"003"}, NONE, {"002", "004"}, ConflictError),
        (False, NONE, {"003"}, {"002", "004"}, UnsupportedError),
        (True, {"004"}, NONE, {"002", "003"}, ConflictError),  # in between
        (True, NONE, {"004"}, {"002", "003"}, UnsupportedError),
        (False, NONE, NONE, {"002", "003", "004"}, None),
    ],
)
def test_in_version_6_the_order_is_that_of_the_blocks(
    shared: MemoryStorage,
    places: bool,
    pending: set[str],
    late: set[str],
    merged: set[str],
    refused: type[HudiError] | None,
) -> None:
    order = BlockOrder(places, False, frozenset(pending), frozenset(late))
    assert refusal(shared, order, merged, {"002", "003", "004"} - pending) is refused


def test_blocks_that_are_rolled_back_are_none(shared: MemoryStorage) -> None:
    put(shared, 4, rollback("005", "004"))
    check(shared, BlockOrder(False, False, frozenset({"004"}), NONE), {"002", "003"}, {"002", "003"})


@pytest.mark.parametrize(
    ("places", "instant", "refused"),
    [
        (True, "005", None),
        (False, "005", ConflictError),
        (True, "003", ConflictError),
        (False, "003", ConflictError),
    ],
)
def test_in_layout_2_the_order_is_that_of_the_names(
    places: bool, instant: str, refused: type[HudiError] | None
) -> None:
    storage = MemoryStorage()
    for written in ("002", "004", instant):
        storage.write(f"p/.f-0_{written}.log.1_0-1-1", b"")
    storage.write("p/.other-0_003.log.1_0-1-1", b"")
    order = BlockOrder(places, True, frozenset({instant}), NONE)
    assert refusal(storage, order, {"002", "004"}, {"002", "004"}) is refused


def begin_write(context: TableContext, instant: str) -> None:
    for state in (State.REQUESTED, State.INFLIGHT):
        context.storage.write(context.active.path(instant, Action.DELTA_COMMIT, state), b"")


def order_at(table: Path, instant: str, options: dict[str, str] | None = None) -> BlockOrder:
    context = context_of(table, options)
    return BlockOrder.of(context, context.active.load(), instant)


@pytest.mark.parametrize("version", VERSIONS)
def test_what_of_the_timeline_counts(golden: Golden, version: str) -> None:
    """In layout 2 nothing that was requested later."""
    table = golden(version, PLANNED).table
    context, instant = context_of(table), planned(table)
    deltas = sorted(context.active.load().of_actions(Action.DELTA_COMMIT).requested_times)
    begin_write(context, LATER)
    order = order_at(table, instant)
    assert (order.places, order.by_name) == (False, version != "6")
    assert order.pending == ({LATER} if version == "6" else set())
    assert order.late == set()
    assert order_at(table, deltas[-1]).late == set()
    begin_write(context, deltas[0][:-3] + "000")
    assert order_at(table, instant).pending - {LATER} == {deltas[0][:-3] + "000"}


@pytest.mark.parametrize("version", VERSIONS)
def test_a_live_writer_beside(golden: Golden, version: str) -> None:
    """It counts where some readers would find its rows too early, and where writers let each other go on."""
    table = golden(version, PLANNED).table
    instant = planned(table)
    early = f"{int(instant) - 1}"
    begin_write(context_of(table), early)

    def beside(options: dict[str, str], at: str = instant) -> str | None:
        context = context_of(table, options)
        found = writer_beside(context, context.active.load(), at)
        return None if found is None else found.requested_time

    assert places_merged(context_of(table, PLACES))
    assert beside({}) == early
    assert beside(PLACES) is None
    assert beside({**PLACES, **NON_BLOCKING}) == early
    assert beside(NON_BLOCKING, "20000101000000000") == (early if version == "6" else None)
    context = context_of(table, NON_BLOCKING)
    with pytest.raises(ConflictError, match=f"deltacommit {early} is pending") as caught:
        check_no_writer_beside(context, instant, context.active.load())
    assert "hoodie.optimized.log.blocks.scan.enable" in str(caught.value.remedy)
