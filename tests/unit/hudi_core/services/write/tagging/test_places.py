"""To which file groups and partitions rows go, by the places of their keys."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hudi_core.filegroup.merge.ordering_values import Ordering, OrderingColumn
from hudi_core.model.names import PARTITION_PATH, RECORD_KEY
from hudi_core.services.source.key_scope import KeyScope
from hudi_core.services.write.row_shards import ordering_keys
from hudi_core.services.write.tagging.places import HERE, KEYS_AT_POSITIONS, NEW, POSITION, TABLE_KEYS, Places

WITHIN, FIXED, MOVES = KeyScope(), KeyScope(True), KeyScope(True, True)
BY_TS = Ordering((OrderingColumn("ts", "long", pa.int64()),), hudi_1=True)


def keys_of(group: int, *keys: str) -> pa.RecordBatch:
    """The keys of a file group, as a shard gets them."""
    orders = pa.array([HERE] * len(keys), pa.binary())
    return pa.RecordBatch.from_arrays(
        [pa.array(keys, pa.string()), pa.array([group] * len(keys), pa.int32()), orders], schema=TABLE_KEYS
    )


def rows_of(*places: tuple[str, str]) -> pa.Table:
    paths, keys = zip(*places, strict=True) if places else ((), ())
    return pa.table({PARTITION_PATH: pa.array(paths, pa.string()), RECORD_KEY: pa.array(keys, pa.string())})


def found(places: Places, *rows: tuple[str, str]) -> list[tuple[int, int]]:
    """Rows, by number, with their file groups."""
    placed = places.of_rows(rows_of(*rows), np.zeros(len(rows), np.bool_))
    assert not placed.leaves.any()
    assert placed.paths.to_pylist() == [rows[row][0] for row in placed.rows]
    return list(zip(placed.rows.tolist(), placed.groups.tolist(), strict=True))


def test_a_key_is_looked_for_in_its_partition_alone() -> None:
    places = Places.of([keys_of(0, "a", "b"), keys_of(1, "c")], ["p", "q"], WITHIN, None)
    assert found(places, ("q", "a"), ("p", "b"), ("p", "c"), ("q", "c")) == [(0, NEW), (1, 0), (2, NEW), (3, 1)]


def test_a_key_in_several_file_groups_goes_to_each_of_them() -> None:
    """As in Hudi: the row of each is the newest then."""
    places = Places.of([keys_of(2, "a", "b"), keys_of(0, "a"), keys_of(1, "a")], ["p", "q", "p"], WITHIN, None)
    assert found(places, ("p", "b"), ("p", "a"), ("q", "a")) == [(0, 2), (1, 0), (1, 2), (2, 1)]


def test_a_key_twice_in_one_file_group_goes_there_once() -> None:
    places = Places.of([keys_of(0, "a", "a"), keys_of(0, "a")], ["p"], WITHIN, None)
    assert found(places, ("p", "a")) == [(0, 0)]


def test_a_place_has_the_positions_of_its_key() -> None:
    """All of them, ascending; none where only log files have the key."""
    batches = [
        keys_of(group, *keys).append_column(POSITION, pa.array(positions, pa.int64()))
        for group, keys, positions in (
            (0, ("b", "a", "b"), [7, 2, 3]),
            (1, ("a",), [0]),
            (0, ("b", "c"), [None, None]),
        )
    ]
    rows = rows_of(("p", "c"), ("p", "b"), ("p", "new"), ("p", "a"))
    for scope in (WITHIN, FIXED):
        places = Places.of(batches, ["p", "p"], scope, None, schema=KEYS_AT_POSITIONS)
        done = places.of_rows(rows, np.zeros(4, np.bool_))
        assert done.positions is not None
        found = zip(done.rows.tolist(), done.groups.tolist(), done.positions.to_pylist(), strict=True)
        assert sorted(found, key=str) == [(0, 0, []), (1, 0, [3, 7]), (2, NEW, None), (3, 0, [2]), (3, 1, [0])]
    assert Places.of([], [], WITHIN, None, schema=KEYS_AT_POSITIONS).positions.to_pylist() == []  # type: ignore[union-attr]


def test_a_table_without_keys_has_only_new_ones() -> None:
    assert found(Places.of([], [], WITHIN, None), ("p", "a"), ("p", "b")) == [(0, NEW), (1, NEW)]
    assert found(Places.of([keys_of(0, "a")], ["p"], WITHIN, None)) == []


NAMES = st.sampled_from(["", "a", "b", "a\0", "é"])


@given(
    st.lists(st.lists(NAMES, max_size=5), min_size=1, max_size=4),
    st.lists(st.sampled_from(["", "p", "p/a"]), min_size=4, max_size=4),
    st.lists(st.tuples(st.sampled_from(["", "p", "p/a", "q"]), NAMES), max_size=8),
)
@settings(max_examples=200, deadline=None)
def test_random_keys_are_found_as_one_by_one(
    groups: list[list[str]], partitions: list[str], rows: list[tuple[str, str]]
) -> None:
    partitions = partitions[: len(groups)]
    batches = [keys_of(number, *keys) for number, keys in enumerate(groups) if keys]
    expected = []
    for number, (path, key) in enumerate(rows):
        there = [at for at, keys in enumerate(groups) if partitions[at] == path and key in keys]
        expected += [(number, at) for at in there or [NEW]]
    assert found(Places.of(batches, partitions, WITHIN, None), *rows) == expected


def placed(
    places: Places, *rows: tuple[str, str, int], deletes: tuple[int, ...] = ()
) -> list[tuple[int, int, str, bool]]:
    """Rows, by number, with their file groups, their partitions, and whether they leave."""
    paths, keys, ts = zip(*rows, strict=True)
    table = rows_of(*zip(paths, keys, strict=True)).append_column("ts", pa.array(ts, pa.int64()))
    done = places.of_rows(table, np.array([row in deletes for row in range(len(rows))]))
    return list(
        zip(done.rows.tolist(), done.groups.tolist(), done.paths.to_pylist(), done.leaves.tolist(), strict=True)
    )


def with_order(group: int, **values: int | None) -> pa.RecordBatch:
    """Keys of a file group with their ordering values; None for a key that the merged rows lack."""
    keys = pa.array(list(values), pa.string())
    batch = pa.RecordBatch.from_arrays([pa.array(list(values.values()), pa.int64())], names=["ts"])
    orders = pc.if_else(batch.column(0).is_valid(), ordering_keys(batch, keys, BY_TS), pa.scalar(None, pa.binary()))
    return pa.RecordBatch.from_arrays([keys, pa.array([group] * len(keys), pa.int32()), orders], schema=TABLE_KEYS)


@pytest.mark.parametrize("deletes", [(), (0,)])
def test_a_row_changes_where_its_key_is_if_rows_do_not_move(deletes: tuple[int, ...]) -> None:
    places = Places.of([keys_of(0, "a"), keys_of(1, "b")], ["p", "q"], FIXED, None)
    rows = ("q", "a", 1), ("q", "b", 1), ("q", "c", 1)
    assert placed(places, *rows, deletes=deletes) == [(0, 0, "p", False), (1, 1, "q", False), (2, NEW, "q", False)]


def test_a_row_that_moves_leaves_its_old_partition_and_is_new() -> None:
    places = Places.of([keys_of(0, "a"), keys_of(1, "b")], ["p", "q"], MOVES, None)
    assert placed(places, ("q", "a", 1), ("q", "b", 1)) == [
        (0, 0, "p", True),
        (1, 1, "q", False),
        (0, NEW, "q", False),
    ]


def test_a_delete_does_not_move() -> None:
    places = Places.of([keys_of(0, "a")], ["p"], MOVES, None)
    assert placed(places, ("q", "a", 1), deletes=(0,)) == [(0, 0, "p", False)]


def test_a_key_that_several_partitions_have_stays_in_the_row_s_own() -> None:
    """It leaves the others, and is new once where none is its own."""
    places = Places.of([keys_of(0, "a", "b"), keys_of(1, "a", "b")], ["p", "q"], MOVES, None)
    assert placed(places, ("q", "a", 1), ("r", "b", 1)) == [
        (0, 0, "p", True),
        (0, 1, "q", False),
        (1, 0, "p", True),
        (1, 1, "q", True),
        (1, NEW, "r", False),
    ]


def test_a_row_does_not_move_where_the_stored_one_is_newer() -> None:
    places = Places.of([with_order(0, a=5, b=5, c=5)], ["p"], MOVES, BY_TS)
    assert placed(places, ("q", "a", 4), ("q", "b", 5), ("q", "c", -6)) == [
        (0, 0, "p", False),
        (1, 0, "p", True),
        (2, 0, "p", False),
        (1, NEW, "q", False),
    ]


def test_a_row_does_not_go_where_log_files_deleted_its_key() -> None:
    """Hudi finds no row to move (mergeForPartitionUpdatesIfNeeded); within its partition the log decides."""
    places = Places.of([with_order(0, a=None, b=None), with_order(0, c=1), with_order(0, c=None)], ["p"], MOVES, BY_TS)
    assert placed(places, ("q", "a", 4), ("p", "b", 4), ("q", "c", 4)) == [
        (2, 0, "p", True),
        (1, 0, "p", False),
        (0, NEW, "q", False),
        (2, NEW, "q", False),
    ]


@pytest.mark.parametrize("scope", [FIXED, MOVES])
def test_a_key_that_is_gone_from_a_partition_is_not_put_back_there(scope: KeyScope) -> None:
    """A base file has it still; its row would be there twice."""
    places = Places.of([with_order(0, a=None), with_order(1, a=3), with_order(2, a=None)], ["p", "q", "p"], scope, None)
    assert placed(places, ("q", "a", 4)) == [(0, 1, "q", False)]
    moved = [(0, 1, "q", True), (0, NEW, "p", False)] if scope.moves else [(0, 1, "q", False)]
    assert placed(places, ("p", "a", 4)) == moved
    assert placed(places, ("p", "a", 4), deletes=(0,)) == [(0, 1, "q", False)]
    gone = Places.of([with_order(0, a=None), with_order(1, a=None)], ["p", "p"], scope, None)
    assert placed(gone, ("p", "a", 4)) == [(0, 0, "p", False)]
    assert placed(gone, ("q", "a", 4)) == [(0, NEW, "q", False)]
