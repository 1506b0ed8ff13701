"""Says which rows of a base file that is read alone may match a predicate: by the footer, which row groups; by the page
index, which pages in them. Not for base files that are merged with log files: a row that does not match may decide the
result of its key.
"""

from __future__ import annotations

import struct

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from hudi_core.codec.parquet.footer import Chunk, schema_of
from hudi_core.codec.parquet.page_index import PageBounds, places_of
from hudi_core.codec.parquet.splice import RowGroupSource
from hudi_core.codec.parquet.statistics import leaf_columns, leaf_path, page_ranges
from hudi_core.errors import SizeLimitError
from hudi_core.expr.bound import Bound
from hudi_core.expr.ranges import ColumnRange, may_match
from hudi_core.expr.tree import Column, Operand
from hudi_core.filegroup.read.base_file import RowChoice
from hudi_core.filegroup.read.read_spec import ReaderSpec
from hudi_core.frozen import dataclass
from hudi_core.index.row_group_skipping import (
    column_range,
    columns_not_in_files,
    flat_columns,
    footer_ranges,
    type_at,
)


def row_choice(bound: Bound, spec: ReaderSpec) -> RowChoice | None:
    """Returns the choice of a predicate's rows in base files; None when no statistics of a file can help."""
    kinds = flat_columns(bound, columns_not_in_files(spec))
    return _ByRanges(bound, kinds) if kinds else None


@dataclass(frozen=True, slots=True)
class _ByRanges:
    """`kinds` are the predicate's flat columns with their types."""

    bound: Bound
    kinds: dict[Column, pa.DataType]

    def row_groups(self, metadata: pq.FileMetaData) -> list[int] | None:
        mask = may_match(self.bound, footer_ranges(metadata, self.kinds, self.bound.schema), metadata.num_row_groups)
        return None if bool(mask.all()) and len(mask) else [int(number) for number in mask.nonzero()[0]]

    def rows(self, source: RowGroupSource, number: int) -> list[tuple[int, int]] | None:
        columns: dict[Operand, tuple[NDArray[np.int64], ColumnRange]] = {}
        try:
            for column, kind in self.kinds.items():
                if (pages := self._pages(source, number, column, kind)) is not None:
                    columns[column] = pages
        except SizeLimitError:
            return None  # the page index is an aid: without it, all pages are read
        if not columns:
            return None
        starts = np.unique(np.concatenate([first_rows for first_rows, _ in columns.values()]))
        ranges = {
            column: pages.take(pa.array(np.searchsorted(first_rows, starts, side="right") - 1))
            for column, (first_rows, pages) in columns.items()
        }
        return _runs(may_match(self.bound, ranges, len(starts)), np.append(starts, source.num_rows(number)))

    def _pages(
        self, source: RowGroupSource, number: int, column: Column, kind: pa.DataType
    ) -> tuple[NDArray[np.int64], ColumnRange] | None:
        """Returns the first rows and the ranges of a column's pages; None without a page index."""
        metadata = source.file.metadata
        leaves = leaf_columns(metadata)
        path = leaf_path(leaves, column.path)
        if path is None:
            return None
        place, rows = leaves[path], source.num_rows(number)
        with source.naming(number):
            chunk = source.column_chunks(number)[place]
            begin, size = source.extent(source.metadata_of(chunk, schema_of(metadata).column(place).path))
            places = places_of(source.part(chunk, Chunk.offset_index), begin, begin + size, rows)
            if places is None:
                return None
            bounds = PageBounds.of(source.part(chunk, Chunk.column_index), len(places.offsets))
            if bounds is None:
                return None
            stored = type_at(schema_of(metadata).to_arrow_schema(), path)
            try:
                pages = page_ranges(bounds, places, metadata, place, stored, rows)
            except struct.error as error:
                raise ValueError(f"a bound in its page index is no value: {error}") from error
        ranges = None if pages is None else column_range(pages, column, kind, self.bound.schema)
        return None if ranges is None else (places.first_rows, ranges)


def _runs(mask: NDArray[np.bool_], ends: NDArray[np.int64]) -> list[tuple[int, int]]:
    """Returns the rows of the segments in `mask`, of which the number n has the rows from ends[n] to ends[n + 1]."""
    edges = np.flatnonzero(np.diff(np.r_[False, mask, False]))
    return [(int(ends[first]), int(ends[end])) for first, end in zip(edges[::2], edges[1::2], strict=True)]
