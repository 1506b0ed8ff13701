"""Which shard writes a row: that of its file group, that of a small one, or one of new files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from hudi_core.engine.protocol import TaskAttempt
from hudi_core.errors import FormatError, StorageNotFoundError
from hudi_core.model.names import RECORD_KEY
from hudi_core.services.write.route import FRACTIONS, Routes, RouteUnit, produce_routed
from hudi_core.services.write.row_shards import Spread
from tests.support.golden_data import GoldenCase
from tests.support.overwrites import put_source
from tests.support.table_invariants import read_rows
from tests.support.writes import SeenEngine, like, own_columns, write

Golden = Callable[[str, str], GoldenCase]
DAYS = ("2024-01-01", "2031-01-01")


@pytest.fixture
def unit(golden: Golden, tmp_path: Path) -> RouteUnit:
    """The unit of a bulk insert of 400 rows of two partitions."""
    table = golden("9", "mdt_disabled").table
    rows = own_columns(read_rows(table))
    source = like(rows, *({"id": f"k{number:05}", "dt": DAYS[number % 2]} for number in range(400)))
    engine = SeenEngine()
    write(table, "bulk_insert", put_source(source, tmp_path), engine=engine)
    (made,) = engine.units[0]
    assert isinstance(made, RouteUnit)
    return made


def routed(unit: RouteUnit) -> dict[int, list[tuple[str, str]]]:
    """The partition paths and keys of the rows that each shard gets, as they come."""
    columns = pa.schema([(RECORD_KEY, pa.string()), *unit.rows.columns])
    found: dict[int, list[tuple[str, str]]] = {}
    for batch in produce_routed(unit, TaskAttempt(0, 1, 0)):
        for shard, path, piece in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            rows = pa.ipc.read_record_batch(pa.py_buffer(piece), columns)
            assert set(rows.column("dt").to_pylist()) == {path.decode()}, "a piece is of one partition"
            found.setdefault(shard, []).extend((path.decode(), key) for key in rows.column(0).to_pylist())
    return found


def test_new_rows_go_to_the_shards_of_new_files(unit: RouteUnit) -> None:
    found = routed(replace(unit, routes=Routes((), Spread(1, {DAYS[1]: (1, 3)}))))
    assert set(found) == {0, 1, 2, 3}
    assert [path for path, _ in found[0]] == [DAYS[0]] * 200
    assert Counter(path for shard in (1, 2, 3) for path, _ in found[shard]) == {DAYS[1]: 200}
    keys = [key for rows in found.values() for _, key in rows]
    assert sorted(keys) == [f"k{number:05}" for number in range(400)]


def test_small_file_groups_take_their_shares_of_a_partition(unit: RouteUnit) -> None:
    """Also of numbered keys, whose hashes are close to each other: else one would get all of them, or none."""
    shares = {DAYS[0]: ((7, FRACTIONS // 4), (3, FRACTIONS // 2)), "2031-02-02": ((5, FRACTIONS),)}
    found = routed(replace(unit, routes=Routes((3, 5, 7), Spread(1, {DAYS[1]: (1, 1)}), small=shares)))
    counts = {shard: len(rows) for shard, rows in found.items()}
    assert set(counts) == {0, 2, 3, 4}, "none of the partition without rows"
    assert counts[4] == 200
    assert counts[2] == pytest.approx(50, abs=15)
    assert counts[0] == pytest.approx(50, abs=15)
    assert counts[3] == 200 - counts[2] - counts[0]
    assert {path for shard in (0, 2, 3) for path, _ in found[shard]} == {DAYS[0]}


def test_a_key_goes_the_same_way_in_each_attempt(unit: RouteUnit) -> None:
    shares = {DAYS[0]: ((0, 900), (1, 2000)), DAYS[1]: ((2, 3000),)}
    routes = Routes((0, 1, 2), Spread(2, {}), small=shares)
    ways = [routed(replace(unit, routes=routes)) for _ in range(2)]
    assert ways[0] == ways[1]


def test_a_name_out_of_the_folder_is_refused(unit: RouteUnit) -> None:
    for name, kind in (("../hoodie.properties", FormatError), ("gone.arrow", StorageNotFoundError)):
        with pytest.raises(kind, match=name):
            list(produce_routed(replace(unit, part=None, name=name, folder=".hoodie"), TaskAttempt(0, 1, 0)))
