"""The rows of an engine's exchange: each has a shard, a key and a value. They are sorted in temporary files.

A run is a file of rows sorted by shard and key, cut in pieces of some 256 KiB (Arrow IPC messages), so that a merge
holds one piece of each run. Run keeps the places of the pieces: no footer is read for each of thousands of shards.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hudi_core.errors import ExecutionError
from hudi_core.frozen import dataclass

ROWS = pa.schema([("shard", pa.int32()), ("key", pa.binary()), ("value", pa.binary())])
"""The schema of the rows that a producer yields; no column holds nulls."""
SHARD_ROWS = pa.schema([("key", pa.binary()), ("value", pa.binary())])
"""The schema of the rows that the consumer of one shard gets."""
PIECE_BYTES = 256 << 10
_SENT_BYTES = 4 << 20
PIECES_PER_BATCH = 16
"""The pieces that a consumer gets at a time where an engine cuts batches by `rows_per_batch` alone."""
FAN_IN = 64
"""The runs that are merged at a time: 16 MiB of pieces, and three times as much while they are combined."""
_SPILL_REMEDY = "make room in the folder of temporary files, or name another one in TMPDIR"


def exchange_rows(shards: pa.Array, keys: pa.Array, values: pa.Array) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([shards, keys, values], schema=ROWS)


def rows_per_piece(rows: pa.Table, piece_bytes: int) -> int:
    """Returns how many of `rows` make a piece of `piece_bytes` for exchange_pieces; at least 1."""
    step: int = rows.num_rows * piece_bytes // max(1, rows.nbytes)
    return max(1, step)


def exchange_pieces(pieces: Iterable[tuple[int, bytes, pa.Table]]) -> Iterator[pa.RecordBatch]:
    """Yields batches of ROWS for pieces: shard, key and rows. The value is the rows as an Arrow IPC message."""
    sent: list[tuple[int, bytes, bytes]] = []
    size = 0
    for shard, key, rows in pieces:
        (batch,) = rows.combine_chunks().to_batches()
        sent.append((shard, key, batch.serialize().to_pybytes()))
        size += len(sent[-1][2])
        if size >= _SENT_BYTES:
            yield _sent(sent)
            sent, size = [], 0
    if sent:
        yield _sent(sent)


def _sent(pieces: Sequence[tuple[int, bytes, bytes]]) -> pa.RecordBatch:
    shards, keys, values = zip(*pieces, strict=True)
    return exchange_rows(pa.array(shards, pa.int32()), pa.array(keys, pa.binary()), pa.array(values, pa.binary()))


def check_rows(batch: pa.RecordBatch, shards: int) -> pa.RecordBatch:
    """Returns a producer's batch. Raises ExecutionError for another schema, nulls, or a shard that does not exist."""
    if not isinstance(batch, pa.RecordBatch) or not batch.schema.equals(ROWS):
        form = batch.schema if isinstance(batch, pa.RecordBatch) else type(batch).__name__
        raise ExecutionError(f"a producer gave rows of another form than {ROWS.names}: {form}")
    if any(column.null_count for column in batch.columns):
        raise ExecutionError("a producer gave rows with nulls")
    if batch.num_rows:
        ends = pc.min_max(batch.column(0)).as_py()
        if ends["min"] < 0 or ends["max"] >= shards:
            raise ExecutionError(f"a producer named the shards {ends['min']} to {ends['max']}; there are {shards}")
    return batch


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """One sorted file, mapped into memory while it is read, or always (`mapped`): a process may have fewer maps than
    runs. Piece i belongs to `shards[i]`, ascending, and has the bytes from `starts[i]` to `starts[i + 1]`.
    """

    path: Path
    shards: NDArray[np.int64]
    starts: NDArray[np.int64]
    data: pa.Buffer | None = None

    def count(self, shard: int) -> int:
        return len(self._places(shard))

    def pieces(self, shard: int) -> Iterator[pa.RecordBatch]:
        places = self._places(shard)
        if not places:
            return
        data = self._bytes()
        for piece in places:
            start = int(self.starts[piece])
            yield pa.ipc.read_record_batch(data.slice(start, int(self.starts[piece + 1]) - start), SHARD_ROWS)

    def mapped(self) -> Run:
        return replace(self, data=self._bytes())

    def __reduce__(self) -> tuple[type[Run], tuple[Any, ...]]:
        return Run, (self.path, self.shards, self.starts)  # the rows stay in the file

    def _bytes(self) -> pa.Buffer:
        return pa.memory_map(str(self.path)).read_buffer() if self.data is None else self.data

    def _places(self, shard: int) -> range:
        return range(*np.searchsorted(self.shards, [shard, shard + 1]).tolist())


class RunBuffer:
    """Takes rows in any order and writes a run whenever `max_bytes` of rows wait; to sort them takes twice as much."""

    def __init__(self, folder: Path, name: str, max_bytes: int) -> None:
        self._folder = folder
        self._name = name
        self._max_bytes = max_bytes
        self._waiting: list[pa.RecordBatch] = []
        self._waiting_bytes = 0
        self._runs: list[Run] = []

    def add(self, batch: pa.RecordBatch) -> None:
        if batch.num_rows:
            self._waiting.append(batch)
            self._waiting_bytes += batch.nbytes
            if self._waiting_bytes >= self._max_bytes:
                self._spill()

    def finish(self) -> list[Run]:
        self._spill()
        return self._runs

    def abandon(self) -> None:
        self._waiting, self._waiting_bytes = [], 0
        for run in self._runs:
            run.path.unlink(missing_ok=True)
        self._runs = []

    def _spill(self) -> None:
        if not self._waiting:
            return
        table = pa.Table.from_batches(self._waiting).combine_chunks()
        self._waiting, self._waiting_bytes = [], 0
        table = table.take(pc.sort_indices(table, sort_keys=[("shard", "ascending"), ("key", "ascending")]))
        shards = table.column(0).to_numpy()
        starts = np.flatnonzero(np.r_[True, shards[1:] != shards[:-1]])
        ends = np.r_[starts[1:], len(shards)]
        rows = table.select(SHARD_ROWS.names)
        spans = zip(starts.tolist(), ends.tolist(), strict=True)
        parts = ((int(shards[start]), iter([rows.slice(start, end - start)])) for start, end in spans)
        self._runs.append(write_run(self._folder / f"{self._name}-{len(self._runs)}.arrow", parts))


def write_run(path: Path, parts: Iterator[tuple[int, Iterator[pa.Table | pa.RecordBatch]]]) -> Run:
    """Writes a run of sorted rows, shards ascending. Raises ExecutionError when the file cannot be written."""
    shards: list[int] = []
    starts = [0]
    try:
        with pa.OSFile(str(path), "wb") as sink:
            for shard, tables in parts:
                for message in (message for rows in tables for message in _messages(rows)):
                    sink.write(message)
                    shards.append(shard)
                    starts.append(starts[-1] + message.size)
        return Run(path, np.array(shards, dtype=np.int64), np.array(starts, dtype=np.int64))
    except OSError as error:
        message = f"rows of an exchange could not be written to {path}: {error}"
        raise ExecutionError(message, remedy=_SPILL_REMEDY) from error


def _messages(rows: pa.Table | pa.RecordBatch) -> Iterator[pa.Buffer]:
    step = max(1, rows.num_rows * PIECE_BYTES // max(rows.nbytes, 1))
    for start in range(0, rows.num_rows, step):
        for batch in _batches(rows.slice(start, step)):
            yield batch.serialize()


def fewer_runs(folder: Path, runs: Sequence[Run], *, at_most: int = FAN_IN) -> list[Run]:
    """Returns at most `at_most` mapped runs with the rows of `runs`: it merges the oldest first, and removes them."""
    rest = list(runs)
    number = 0
    while len(rest) > at_most:
        merged, rest = [run.mapped() for run in rest[:at_most]], rest[at_most:]
        shards = np.unique(np.concatenate([run.shards for run in merged])).tolist()
        parts = ((shard, merged_rows(merged, shard)) for shard in shards)
        rest.append(write_run(folder / f"merged-{number}.arrow", parts))
        number += 1
        for run in merged:
            run.path.unlink()
    return [run.mapped() for run in rest]


def merged_rows(runs: Sequence[Run], shard: int) -> Iterator[pa.RecordBatch]:
    """Yields the rows of a shard as SHARD_ROWS, sorted by key; it holds one piece of each run."""
    sources = [run.pieces(shard) for run in runs]
    heads = [(first, source) for source in sources if (first := next(source, None)) is not None]
    if all(run.count(shard) < 2 for run in runs):
        # All pieces of the shard are here: they are sorted in one step, which matters for thousands of small shards.
        yield from _sorted([batch for batch, _ in heads])
        return
    while len(heads) > 1:
        bound = min(_key(batch, batch.num_rows - 1) for batch, _ in heads)
        parts, ahead = [], []
        for batch, source in heads:
            taken = bisect.bisect_right(range(batch.num_rows), bound, key=partial(_key, batch))
            parts.append(batch.slice(0, taken))
            rest = batch.slice(taken) if taken < batch.num_rows else next(source, None)
            if rest is not None:
                ahead.append((rest, source))
        heads = ahead
        yield from _sorted([part for part in parts if part.num_rows])
    for batch, source in heads:
        yield batch
        yield from source


def _sorted(parts: list[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    if len(parts) > 1:
        table = pa.Table.from_batches(parts).combine_chunks()
        parts = _batches(table.take(pc.sort_indices(table, sort_keys=[("key", "ascending")])))
    yield from parts


def _batches(rows: pa.Table | pa.RecordBatch) -> list[pa.RecordBatch]:
    if isinstance(rows, pa.RecordBatch):
        return [rows]
    batches: list[pa.RecordBatch] = rows.combine_chunks().to_batches()
    return batches


def _key(batch: pa.RecordBatch, row: int) -> bytes:
    key: bytes = batch.column(0)[row].as_py()
    return key
