"""Rows of an exchange in sorted files: nothing lost in many small runs, and memory that does not grow with the rows."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest

from hudi_core.engine.exchange import RunBuffer, exchange_rows, fewer_runs, merged_rows
from hudi_core.engine.local import LocalEngine
from hudi_core.engine.protocol import TaskAttempt
from hudi_core.errors import ExecutionError

ROOT = Path(__file__).parents[4]


def batch_of(rows: list[tuple[int, bytes, bytes]]) -> pa.RecordBatch:
    shards, keys, values = zip(*rows, strict=True)
    return exchange_rows(pa.array(shards, pa.int32()), pa.array(keys, pa.binary()), pa.array(values, pa.binary()))


@pytest.mark.parametrize("at_most", [2, 3, 64])
def test_runs_are_merged_whole_and_in_order(tmp_path: Path, at_most: int) -> None:
    source = random.Random(7)
    rows = [
        (source.randrange(4), source.randbytes(source.randrange(4)), source.randbytes(source.randrange(2000)))
        for _ in range(3000)
    ]
    buffer = RunBuffer(tmp_path, "x", 200_000)
    for start in range(0, len(rows), 100):
        buffer.add(batch_of(rows[start : start + 100]))
    runs = buffer.finish()
    assert len(runs) > 3
    runs = fewer_runs(tmp_path, runs, at_most=at_most)
    assert len(runs) <= at_most
    assert len(list(tmp_path.iterdir())) == len(runs)
    for shard in range(5):
        found = [
            row
            for batch in merged_rows(runs, shard)
            for row in zip(*(column.to_pylist() for column in batch.columns), strict=True)
        ]
        assert [key for key, _ in found] == sorted(key for key, _ in found)
        assert sorted(found) == sorted((key, value) for number, key, value in rows if number == shard)


def test_no_more_runs_are_mapped_than_are_merged(tmp_path: Path) -> None:
    """A process may have 65,530 maps, and an exchange more units, each with a run of its own."""
    buffer = RunBuffer(tmp_path, "x", 1)
    for number in range(100):
        buffer.add(batch_of([(0, b"%d" % number, b"")]))
    runs = buffer.finish()
    assert len(runs) == 100
    maps = Path("/proc/self/maps")
    assert str(tmp_path) not in maps.read_text()
    runs = fewer_runs(tmp_path, runs)
    assert maps.read_text().count(str(tmp_path)) == len(runs) <= 64
    assert sum(batch.num_rows for batch in merged_rows(runs, 0)) == 100


def test_rows_larger_than_a_piece_and_than_the_buffer(tmp_path: Path) -> None:
    rows = [(0, b"b", b"x" * 700_000), (0, b"a", b"y" * 900_000), (1, b"", b"")]
    buffer = RunBuffer(tmp_path, "x", 1000)
    for row in rows:
        buffer.add(batch_of([row]))
    runs = buffer.finish()
    assert [key for batch in merged_rows(runs, 0) for key in batch.column(0).to_pylist()] == [b"a", b"b"]
    assert [batch.to_pylist() for batch in merged_rows(runs, 1)] == [[{"key": b"", "value": b""}]]


def test_abandoned_runs_leave_nothing(tmp_path: Path) -> None:
    buffer = RunBuffer(tmp_path, "x", 1)
    buffer.add(batch_of([(0, b"a", b"")]))
    buffer.abandon()
    assert list(tmp_path.iterdir()) == []
    assert buffer.finish() == []


def test_a_folder_that_cannot_be_written_to_is_reported(tmp_path: Path) -> None:
    buffer = RunBuffer(tmp_path / "absent", "x", 1)
    with pytest.raises(ExecutionError, match="could not be written") as caught:
        buffer.add(batch_of([(0, b"a", b"")]))
    assert "TMPDIR" in (caught.value.remedy or "")


@dataclass(frozen=True, slots=True)
class Number:
    n: int


@dataclass(frozen=True, slots=True)
class Counted:
    rows: int


def many_rows(unit: Number, attempt: TaskAttempt) -> Iterator[pa.RecordBatch]:
    """32 MB in 32 batches."""
    source = random.Random(unit.n)
    for _ in range(32):
        keys = pa.array([source.randbytes(16) for _ in range(1000)], pa.binary())
        shards = pa.array([source.randrange(3) for _ in range(1000)], pa.int32())
        yield exchange_rows(shards, keys, pa.array([b"v" * 984] * 1000, pa.binary()))


def count_rows(shard: int, batches: Iterator[pa.RecordBatch], attempt: TaskAttempt) -> Counted:
    count, last = 0, b""
    for batch in batches:
        keys = batch.column(0).to_pylist()
        if keys != sorted(keys) or keys[0] < last:
            raise ExecutionError("rows are out of order")
        count, last = count + len(keys), keys[-1]
    return Counted(count)


def measure() -> None:
    """Prints the peak of allocated Arrow memory while 128 MB go through a budget of 12 MB."""
    results = LocalEngine(2, exchange_bytes=12 << 20).exchange(
        many_rows, [Number(number) for number in range(4)], count_rows, shards=3, run_epoch=1
    )
    if sum(result.rows for result in results) != 4 * 32_000:
        raise SystemExit(f"rows were lost: {results}")
    print(pa.default_memory_pool().max_memory())


@pytest.mark.slow
def test_memory_is_that_of_the_budget_and_the_merge() -> None:
    script = "from tests.unit.hudi_core.engine.test_exchange import measure; measure()"
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    # 12 MiB of rows and sorted copies; two merges of some 64 runs of 256 KiB, up to three times over.
    assert int(done.stdout) < 72 << 20
