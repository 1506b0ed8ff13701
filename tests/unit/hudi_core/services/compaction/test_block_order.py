"""Which log blocks a log compaction may not be put behind, by table version and by what its readers know."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from hudi_core.errors import ConflictError, HudiError, UnsupportedError
from hudi_core.filegroup.read.log_scan import CommittedInstants
from hudi_core.services.compaction.block_order import (
    BlockOrder,
    check_no_writer_beside,
    writer_beside,
)
from hudi_core.services.context import TableContext
from hudi_core.timeline.actions.compaction import CompactionOperation
from hudi_core.timeline.instant import Action, State
from tests.support.golden_compactions import context_of
from tests.support.golden_data import GoldenCase
from tests.support.log_compactions import PLANNED, VERSIONS, planned
from tests.support.log_files import data, put, rollback
from tests.support.memory_storage import MemoryStorage

Golden = Callable[[str, str], GoldenCase]
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
    ("pending", "late", "merged", "refused"),
    [
        ({"003"}, NONE, {"002", "004"}, ConflictError),
        (NONE, {"003"}, {"002", "004"}, UnsupportedError),
        ({"004"}, NONE, {"002", "003"}, ConflictError),
        (NONE, {"004"}, {"002", "003"}, UnsupportedError),
        (NONE, {"009"}, {"002", "003"}, None),  # not in this file group
        ({"003"}, {"004"}, {"002", "003", "004"}, None),
    ],
)
def test_in_version_6_blocks_count(
    shared: MemoryStorage, pending: set[str], late: set[str], merged: set[str], refused: type[HudiError] | None
) -> None:
    order = BlockOrder(False, frozenset(pending), frozenset(late))
    assert refusal(shared, order, merged, {"002", "003", "004"} - pending) is refused


def test_blocks_that_are_rolled_back_are_none(shared: MemoryStorage) -> None:
    put(shared, 4, rollback("005", "004"))
    check(shared, BlockOrder(False, frozenset({"004"}), NONE), {"002", "003"}, {"002", "003"})


@pytest.mark.parametrize("instant", ["001", "003", "005"])
def test_in_layout_2_names_count(instant: str) -> None:
    storage = MemoryStorage()
    for written in ("002", "004", instant):
        storage.write(f"p/.f-0_{written}.log.1_0-1-1", b"")
    storage.write("p/.other-0_009.log.1_0-1-1", b"")
    merged = {"002", "004"}
    assert refusal(storage, BlockOrder(True, frozenset({instant}), NONE), merged, merged) is ConflictError
    assert refusal(storage, BlockOrder(True, NONE, frozenset({instant})), merged, merged) is UnsupportedError
    assert refusal(storage, BlockOrder(True, frozenset({"009"}), NONE), merged, merged) is None


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
    assert order.by_name is (version != "6")
    assert order.pending == ({LATER} if version == "6" else set())
    assert order.late == set()
    assert order_at(table, deltas[-1]).late == set()
    begin_write(context, deltas[0][:-3] + "000")
    assert order_at(table, instant).pending - {LATER} == {deltas[0][:-3] + "000"}


@pytest.mark.parametrize("version", VERSIONS)
def test_a_live_writer_beside(golden: Golden, version: str) -> None:
    """In layout 2 one that was requested later comes behind."""
    table = golden(version, PLANNED).table
    instant = planned(table)
    early = f"{int(instant) - 1}"
    context = context_of(table)
    begin_write(context, early)

    def beside(at: str) -> str | None:
        found = writer_beside(context, context.active.load(), at)
        return None if found is None else found.requested_time

    assert beside(instant) == early
    assert beside("20000101000000000") == (early if version == "6" else None)
    with pytest.raises(ConflictError, match=f"deltacommit {early} is pending"):
        check_no_writer_beside(context, instant, context.active.load())
