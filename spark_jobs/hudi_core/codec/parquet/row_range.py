"""Reads some rows of a row group: of each column, only the pages that hold them.

Columns whose pages begin at the same rows are read as one file in memory (cuts.py). Others are read apart, and their
rows joined: parquet-mr begins pages of `_hoodie_file_name`, of one value in a file, at rows of their own.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from hudi_core.codec.parquet.cuts import RowGroupCuts
from hudi_core.codec.parquet.file import MOST_BYTES, ParquetBaseFile


@dataclass(frozen=True, slots=True)
class RowRange:
    """The rows of a row group from `first` up to `end`, which its columns hold in pages that `cuts` knows."""

    cuts: RowGroupCuts
    first: int
    end: int

    @property
    def file(self) -> ParquetBaseFile:
        return self.cuts.source.file

    def batches(
        self, names: Sequence[str], batch_rows: int, *, batch_bytes: int = MOST_BYTES
    ) -> Iterator[pa.RecordBatch]:
        """Yields the rows with the named top-level columns, in the file's order, as ParquetBaseFile.batches. Memory:
        one batch, and the pages that hold it.
        """
        group = self.file.metadata.row_group(self.cuts.number)
        row_bytes = max(1, group.total_byte_size // group.num_rows)
        most = max(1, min(batch_rows, min(batch_bytes, MOST_BYTES) // row_bytes))
        for first in range(self.first, self.end, most):
            yield from self._joined(names, first, min(first + most, self.end))

    def _joined(self, names: Sequence[str], first: int, end: int) -> Iterator[pa.RecordBatch]:
        alike: dict[tuple[int, int], list[str]] = defaultdict(list)
        for name in names:
            alike[self.cuts.cover(self.file.leaves_of({name}), first, end)].append(name)
        columns: dict[str, pa.ChunkedArray] = {}
        for (begin, stop), read in alike.items():
            with self.cuts.file(begin, stop, self.file.leaves_of(frozenset(read))) as pages:
                rows = pa.Table.from_batches(pages.batches(read)).slice(first - begin, end - first)
            columns |= dict(zip(rows.column_names, rows.columns, strict=True))
        ordered = [name for name in self.file.schema.names if name in columns]
        table = pa.table([columns[name] for name in ordered], names=ordered)
        yield from table.combine_chunks().to_batches()
