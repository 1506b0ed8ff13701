"""Reads some rows of a row group: of each column, only the pages that hold them.

Columns whose pages begin at the same rows are read as one file in memory (pieces.py). Others are read apart, and their
rows joined: parquet-mr begins pages of `_hoodie_file_name`, of one value in a file, at rows of their own.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import ExitStack

import pyarrow as pa

from hudi_core.codec.parquet.cuts import RowGroupCuts
from hudi_core.codec.parquet.file import MOST_BYTES
from hudi_core.codec.parquet.pieces import Piece
from hudi_core.frozen import dataclass


@dataclass(frozen=True, slots=True)
class RowRange:
    """The rows of a row group from `first` up to `end`, which its columns hold in pages that `cuts` knows."""

    cuts: RowGroupCuts
    first: int
    end: int

    def batches(
        self, names: Sequence[str], batch_rows: int, *, batch_bytes: int = MOST_BYTES
    ) -> Iterator[pa.RecordBatch]:
        """Yields the rows with the named top-level columns, in the file's order, as ParquetBaseFile.batches. Memory:
        the stored pages that hold the rows, and a batch of each set of columns whose pages begin at the same rows.
        Raises CorruptFileError where pages have fewer rows than their page index says.
        """
        file = self.cuts.source.file
        alike: dict[tuple[int, int], list[str]] = defaultdict(list)
        for name in names:
            alike[self.cuts.cover(file.leaves_of({name}), self.first, self.end)].append(name)
        ordered = [name for name in file.schema.names if name in set(names)]
        with ExitStack() as stack:
            streams = []
            for (begin, stop), read in alike.items():
                pages = stack.enter_context(Piece(self.cuts, begin, stop).file(file.leaves_of(frozenset(read))))
                streams.append(_Stream(pages.batches(read, batch_rows, batch_bytes=batch_bytes), self.first - begin))
            missing = self.end - self.first
            while missing:
                rows = min(missing, *(stream.ready() for stream in streams))
                if not rows:
                    raise self.cuts.source.damaged(self.cuts.number, f"its pages lack {missing} rows")
                columns = {name: column for stream in streams for name, column in stream.take(rows).items()}
                yield pa.RecordBatch.from_arrays([columns[name] for name in ordered], names=ordered)
                missing -= rows


class _Stream:
    """Batches of some columns, of which other numbers of rows are taken."""

    def __init__(self, batches: Iterator[pa.RecordBatch], skipped: int) -> None:
        self._batches = batches
        self._skipped = skipped
        self._batch: pa.RecordBatch | None = None

    def ready(self) -> int:
        """Returns how many rows can be taken at once; 0 at the end."""
        while self._batch is None or not self._batch.num_rows:
            self._batch = next(self._batches, None)
            if self._batch is None:
                return 0
            passed = min(self._skipped, self._batch.num_rows)
            self._skipped -= passed
            self._batch = self._batch.slice(passed)
        return int(self._batch.num_rows)

    def take(self, rows: int) -> dict[str, pa.Array]:
        assert self._batch is not None
        taken, self._batch = self._batch.slice(0, rows), self._batch.slice(rows)
        return dict(zip(taken.schema.names, taken.columns, strict=True))
