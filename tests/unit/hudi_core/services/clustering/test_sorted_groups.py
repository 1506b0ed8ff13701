"""Pieces of sorted rows come together in order, whatever their sizes; files get equal parts."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_core.config.services.clustering_config import Layout
from hudi_core.engine.exchange import SHARD_ROWS
from hudi_core.model.names import RECORD_KEY
from hudi_core.services.clustering.sorted_groups import WEIGHT, Sample, order_and_cuts
from hudi_core.services.rewriting.sort_order import SORT_KEY, SortOrder, merged_pieces

SCHEMA = pa.schema([(RECORD_KEY, pa.string()), ("value", pa.int64())])
ORDER = SortOrder(("value",))


def keyed(values: list[int], start: int) -> pa.RecordBatch:
    rows = pa.record_batch([[f"{start + row:06d}" for row in range(len(values))], values], schema=SCHEMA)
    return rows.append_column(SORT_KEY, ORDER.keys(rows))


def pieces(runs: list[list[int]], size: int) -> Iterator[pa.RecordBatch]:
    """The pieces of sorted runs as an exchange brings them: by their first keys."""
    found = []
    for number, run in enumerate(runs):
        rows = keyed(sorted(run), 1000 * number)
        for at in range(0, rows.num_rows, size):
            piece = rows.slice(at, size)
            found.append((piece.column(2)[0].as_py(), piece.serialize().to_pybytes()))
    for some in threes(sorted(found)):
        yield pa.RecordBatch.from_arrays(
            [pa.array([key for key, _ in some], pa.binary()), pa.array([value for _, value in some], pa.binary())],
            schema=SHARD_ROWS,
        )


def threes(items: list[tuple[bytes, bytes]]) -> Iterator[list[tuple[bytes, bytes]]]:
    for at in range(0, len(items), 3):
        yield items[at : at + 3]


@given(
    runs=st.lists(st.lists(st.integers(-5, 50), max_size=40), max_size=6),
    size=st.integers(1, 7),
    hold=st.integers(1, 4000),
)
def test_pieces_are_merged_in_order(runs: list[list[int]], size: int, hold: int) -> None:
    tables = list(merged_pieces(pieces(runs, size), SCHEMA, hold))
    rows = [row for table in tables for row in table.to_pylist()]
    values = [row["value"] for row in rows]
    assert values == sorted(value for run in runs for value in run)
    assert len({row[RECORD_KEY] for row in rows}) == len(rows)
    assert all(table.schema.equals(SCHEMA) for table in tables)


def test_no_more_is_held_than_what_overlaps() -> None:
    """Runs that follow each other: what went by is given away before the next comes."""
    runs = [list(range(1000 * number, 1000 * number + 1000)) for number in range(8)]
    held = [table.nbytes for table in merged_pieces(pieces(runs, 50), SCHEMA, 4000)]
    assert len(held) > 20
    assert max(held) < 16_000


def sample(values: list[int], weight: float) -> Sample:
    rows = pa.table([[f"{row:06d}" for row in range(len(values))], values], schema=SCHEMA)
    rows = rows.append_column(WEIGHT, pa.array([weight] * len(values), pa.float64()))
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    return Sample(sink.getvalue().to_pybytes())


@pytest.mark.parametrize("layout", list(Layout))
@pytest.mark.parametrize("outputs", [1, 2, 3, 7])
def test_cuts_divide_the_rows_into_equal_parts(layout: Layout, outputs: int) -> None:
    values = np.random.default_rng(3).permutation(2100).tolist()
    order, cuts = order_and_cuts(
        [sample(values[:900], 1.0), sample(values[900:], 1.0)], SortOrder(("value",), layout), outputs
    )
    assert len(cuts) == outputs - 1
    assert list(cuts) == sorted(cuts)
    rows = pa.record_batch([[f"{row:06d}" for row in range(2100)], values], schema=SCHEMA)
    keys = sorted(order.keys(rows).to_pylist())
    parts = np.diff([0, *(sum(key < cut for key in keys) for cut in cuts), len(keys)])
    assert max(parts) - min(parts) < 120


def test_a_sample_counts_by_its_weight() -> None:
    _, (cut,) = order_and_cuts([sample([1, 2, 3, 4], 100.0), sample([10, 11, 12, 13], 1.0)], ORDER, 2)
    assert cut == keyed([1, 2, 3], 0).column(SORT_KEY)[2].as_py()


def test_many_rows_of_one_value_are_divided_by_their_keys() -> None:
    _, cuts = order_and_cuts([sample([5] * 300, 1.0)], ORDER, 3)
    assert len(cuts) == 2


def test_there_are_no_cuts_without_rows() -> None:
    assert order_and_cuts([sample([], 0.0)], ORDER, 4) == (ORDER, ())


@pytest.mark.parametrize("outputs", [5, 1 << 20])
def test_there_are_no_more_files_than_sampled_rows(outputs: int) -> None:
    """A plan may claim any number, up to 2^31."""
    tracemalloc.start()
    _, cuts = order_and_cuts([sample([1, 2], 1.0), sample([3, 4], 7.0)], ORDER, outputs)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert 0 < len(cuts) < 4
    assert peak < 1 << 20
