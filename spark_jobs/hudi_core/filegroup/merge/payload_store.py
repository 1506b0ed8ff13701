"""Keeps rows of log records by number: up to a budget in memory, then in memory-mapped Arrow IPC files."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hudi_core.errors import ExecutionError

_PIECES = 4
"""A spill file is written when a quarter of the budget waits. Combining it takes at most half of the budget."""


class PayloadStore:
    """Appends batches of one schema and returns rows in any order. Memory: at most `budget` bytes of rows, plus the
    batch that is appended. Spilled rows are in a temporary folder until close(), and are read through memory maps.
    """

    def __init__(self, schema: pa.Schema, *, budget: int) -> None:
        self.schema = schema
        self.rows = 0
        self.spilled_bytes = 0
        self._budget = budget
        self._folder: Path | None = None
        self._chunks: list[pa.RecordBatch] = []
        self._starts: list[int] = []
        self._waiting: list[pa.RecordBatch] = []
        self._waiting_bytes = 0
        self._bytes = 0
        self._kept_bytes = 0
        self._spilling = False

    def append(self, batch: pa.RecordBatch) -> int:
        """Adds rows and returns the first one's number. Raises ExecutionError when the spill file cannot be written."""
        first = self.rows
        if batch.num_rows:
            self.rows += batch.num_rows
            self._waiting.append(batch)
            self._waiting_bytes += batch.nbytes
            self._bytes += batch.nbytes
            if self._waiting_bytes * _PIECES >= self._budget:
                self._combine_waiting()
        return first

    @property
    def row_bytes(self) -> int:
        return self._bytes // max(1, self.rows)

    def take(self, rows: NDArray[np.int64]) -> pa.RecordBatch:
        self._combine_waiting()
        if len(rows) == 0 or not self._chunks:
            return pa.RecordBatch.from_arrays([pa.array([], field.type) for field in self.schema], schema=self.schema)
        if len(self._chunks) == 1:
            return self._chunks[0].take(pa.array(rows))
        order = np.argsort(rows, kind="stable")
        requested = rows[order]
        edges = np.searchsorted(requested, np.array([*self._starts, self.rows]))
        parts = [
            chunk.take(pa.array(requested[low:high] - start))
            for chunk, start, low, high in zip(self._chunks, self._starts, edges[:-1], edges[1:], strict=True)
            if low < high
        ]
        back = np.empty(len(rows), dtype=np.int64)
        back[order] = np.arange(len(rows))
        return combine(parts, self.schema).take(pa.array(back))

    def close(self) -> None:
        self._chunks, self._waiting = [], []
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    def _combine_waiting(self) -> None:
        """Makes one chunk of the waiting batches, in memory while the budget lasts, then in files."""
        if not self._waiting:
            return
        chunk = combine(self._waiting, self.schema)
        start = self.rows - chunk.num_rows
        self._waiting, self._waiting_bytes = [], 0
        if self._spilling or self._kept_bytes + chunk.nbytes * 2 > self._budget:
            if not self._spilling:
                self._spilling = True
                self._chunks = [self._spill(kept) for kept in self._chunks]
            chunk = self._spill(chunk)
        else:
            self._kept_bytes += chunk.nbytes
        self._chunks.append(chunk)
        self._starts.append(start)

    def _spill(self, chunk: pa.RecordBatch) -> pa.RecordBatch:
        try:
            if self._folder is None:
                self._folder = Path(tempfile.mkdtemp(prefix="hudi-log-records-"))
            path = self._folder / f"{self.spilled_bytes}.arrow"
            with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, self.schema) as writer:
                writer.write_batch(chunk)
            mapped = pa.ipc.open_file(pa.memory_map(str(path))).get_batch(0)
        except OSError as error:
            message = f"log records could not be spilled: {error}"
            remedy = "free disk space, or raise the memory budget"
            raise ExecutionError(message, path=str(self._folder or tempfile.gettempdir()), remedy=remedy) from error
        self.spilled_bytes += chunk.nbytes
        return mapped


def combine(batches: list[pa.RecordBatch], schema: pa.Schema) -> pa.RecordBatch:
    if len(batches) == 1:
        return batches[0]
    columns = [pa.concat_arrays([batch.column(index) for batch in batches]) for index in range(len(schema))]
    return pa.RecordBatch.from_arrays(columns, schema=schema)
